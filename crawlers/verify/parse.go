// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/netip"
	"regexp"
	"strings"
	"time"
)

// Limits of an address list.
const (
	maxListBytes = 4 << 20
	maxPrefixes  = 100_000
	// Nobody crawls from more than this; such a prefix is a mistake, and would
	// verify everybody.
	minBits4 = 8
	minBits6 = 20
)

// parseList reads a published address list. Operators publish them in four
// ways: as the JSON that Google began with and draft-illyes-webbotauth-jafar
// describes, as that JSON within an HTML page, as RFC 8805 geofeed, and as
// plain lines.
//
// A JSON prefix must have exactly one of ipv4Prefix and ipv6Prefix, or it is
// ignored (draft-illyes-aipref-jafar-00); so are a prefix that cannot be
// read, that is not public, or that is too wide to be true. Differing from
// that draft, formatVersion, synctoken and a well-formed creationTime are not
// asked for, and a bare address counts as its own prefix. Prefixes of all
// services count, `service` and `services` are not read.
//
// A list without any usable prefix is an error. The time is creationTime, or
// zero.
func parseList(data []byte) ([]netip.Prefix, time.Time, error) {
	if len(data) > maxListBytes {
		return nil, time.Time{}, fmt.Errorf("larger than %d bytes", maxListBytes)
	}
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	var texts []string
	var created time.Time
	switch {
	case len(data) == 0:
		return nil, created, errors.New("is empty")
	case data[0] == '{':
		doc, err := decodeDocument(data)
		if err != nil {
			return nil, created, fmt.Errorf("reading JSON: %w", err)
		}
		texts, created = doc.texts(), doc.time()
	case data[0] == '<':
		doc, err := documentInHTML(data)
		if err != nil {
			return nil, created, err
		}
		texts, created = doc.texts(), doc.time()
	default:
		texts = firstColumns(data)
	}
	prefixes := usable(texts)
	if len(prefixes) == 0 {
		return nil, created, errors.New("holds no usable prefix")
	}
	if len(prefixes) > maxPrefixes {
		return nil, created, fmt.Errorf("holds more than %d prefixes", maxPrefixes)
	}
	return prefixes, created, nil
}

// document is the JSON form. encoding/json matches names in any letter case.
type document struct {
	CreationTime any `json:"creationTime"`
	Prefixes     []struct {
		IPv4 string `json:"ipv4Prefix"`
		IPv6 string `json:"ipv6Prefix"`
	} `json:"prefixes"`
}

// decodeDocument decodes the JSON value at the beginning of data.
func decodeDocument(data []byte) (*document, error) {
	doc := new(document)
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(doc); err != nil {
		return nil, err
	}
	return doc, nil
}

func (d *document) texts() []string {
	texts := make([]string, 0, len(d.Prefixes))
	for _, p := range d.Prefixes {
		if (p.IPv4 == "") != (p.IPv6 == "") {
			texts = append(texts, p.IPv4+p.IPv6)
		}
	}
	return texts
}

// time reads creationTime, with or without a zone and fractions of a second.
func (d *document) time() time.Time {
	text, _ := d.CreationTime.(string)
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t
		}
	}
	return time.Time{}
}

var (
	htmlTag      = regexp.MustCompile(`<[^>]*>`)
	prefixesName = regexp.MustCompile(`(?i)"prefixes"`)
)

// documentInHTML finds the JSON in a page. It looks at the innermost objects
// around the first mention of the prefixes.
func documentInHTML(page []byte) (*document, error) {
	text := html.UnescapeString(htmlTag.ReplaceAllString(string(page), " "))
	mention := prefixesName.FindStringIndex(text)
	if mention == nil {
		return nil, errors.New("is an HTML page without a list")
	}
	for at := mention[0]; ; {
		if at = strings.LastIndexByte(text[:at], '{'); at < 0 || mention[0]-at > 4096 {
			break
		}
		if doc, err := decodeDocument([]byte(text[at:])); err == nil && len(doc.Prefixes) > 0 {
			return doc, nil
		}
	}
	return nil, errors.New("is an HTML page without a list")
}

// firstColumns returns the first column of each line that is no comment.
func firstColumns(data []byte) []string {
	var texts []string
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		line, _, _ := strings.Cut(s.Text(), "#")
		line, _, _ = strings.Cut(line, ",")
		if line = strings.TrimSpace(line); line != "" {
			texts = append(texts, line)
		}
	}
	return texts
}

// usable returns the prefixes that can be a crawler's.
func usable(texts []string) []netip.Prefix {
	prefixes := make([]netip.Prefix, 0, len(texts))
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			a, err := netip.ParseAddr(text)
			if err != nil || a.Zone() != "" {
				continue
			}
			p = netip.PrefixFrom(a, a.BitLen())
		}
		if p.Addr().Is4In6() {
			continue
		}
		least := minBits4
		if p.Addr().Is6() {
			least = minBits6
		}
		if p.Bits() >= least && isPublic(p.Masked().Addr()) {
			prefixes = append(prefixes, p.Masked())
		}
	}
	return prefixes
}
