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

// These constants limit an address list.
const (
	maxListBytes = 4 << 20
	maxPrefixes  = 100_000
	// A prefix with fewer bits must be a mistake, and would verify almost any client.
	minBits4 = 8
	minBits6 = 20
)

// parsed is the content of an address list.
type parsed struct {
	prefixes []netip.Prefix
	created  time.Time // creationTime, or zero
	problem  string    // why the list may lack addresses, or ""
}

// parseList parses a published address list. Operators publish such lists in four formats. The first is the JSON format
// that Google introduced and draft-illyes-webbotauth-jafar describes. The second is the same JSON inside an HTML page.
// The others are RFC 8805 geofeed, and lines with one address or prefix.
//
// Invalid entries are ignored. The earlier version of the draft, draft-illyes-aipref-jafar-00, demands this for JSON
// prefixes that do not have exactly one of ipv4Prefix and ipv6Prefix. Prefixes that are not public, or too wide, are
// ignored as well. A list with ignored entries, or inside a web page, is reported as incomplete. In contrast to the
// draft, formatVersion, synctoken and creationTime are optional, and a single address is a valid prefix. If the list
// names different services of the operator, the prefixes of all services are used.
//
// parseList returns an error for a list without a usable prefix. It also returns an error if most of the lines in a
// list are invalid.
func parseList(data []byte) (parsed, error) {
	var p parsed
	if len(data) > maxListBytes {
		return p, fmt.Errorf("the list is larger than %d bytes", maxListBytes)
	}
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	var texts []string
	lines := false
	switch {
	case len(data) == 0:
		return p, errors.New("is empty")
	case data[0] == '{':
		doc, err := decodeDocument(data)
		if err != nil {
			return p, fmt.Errorf("the list is not valid JSON: %w", err)
		}
		texts, p.created = doc.texts(), doc.time()
	case data[0] == '<':
		doc, err := documentInHTML(data)
		if err != nil {
			return p, err
		}
		texts, p.created = doc.texts(), doc.time()
		p.problem = "it is embedded in a web page"
	default:
		texts, lines = firstColumns(data), true
	}
	p.prefixes = usable(texts)
	switch invalid := len(texts) - len(p.prefixes); {
	case len(p.prefixes) == 0:
		return parsed{}, errors.New("the list has no usable prefix")
	case len(p.prefixes) > maxPrefixes:
		return parsed{}, fmt.Errorf("the list has more than %d prefixes", maxPrefixes)
	case lines && invalid > len(p.prefixes):
		return parsed{}, fmt.Errorf("the file is not an address list: %d of its %d entries are invalid", invalid, len(texts))
	case invalid > 0:
		p.problem = fmt.Sprintf("%d of %d entries are invalid", invalid, len(texts))
	}
	return p, nil
}

// document is an address list in JSON. encoding/json accepts the names of its members in any letter case.
type document struct {
	CreationTime any `json:"creationTime"`
	Prefixes     []struct {
		IPv4 string `json:"ipv4Prefix"`
		IPv6 string `json:"ipv6Prefix"`
	} `json:"prefixes"`
}

func decodeDocument(data []byte) (*document, error) {
	doc := new(document)
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(doc); err != nil {
		return nil, err
	}
	return doc, nil
}

func (d *document) texts() []string {
	texts := make([]string, len(d.Prefixes)) // "" for an invalid entry
	for i, p := range d.Prefixes {
		if p.IPv4 == "" || p.IPv6 == "" {
			texts[i] = p.IPv4 + p.IPv6
		}
	}
	return texts
}

// time parses creationTime. The time zone and the fraction of a second are optional.
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

// documentInHTML finds the JSON in a web page. The JSON is the innermost object that contains the first occurrence of
// "prefixes".
func documentInHTML(page []byte) (*document, error) {
	text := html.UnescapeString(htmlTag.ReplaceAllString(string(page), " "))
	mention := prefixesName.FindStringIndex(text)
	if mention == nil {
		return nil, errors.New("the address leads to a web page without an address list")
	}
	for at := mention[0]; ; {
		if at = strings.LastIndexByte(text[:at], '{'); at < 0 || mention[0]-at > 4096 {
			break
		}
		if doc, err := decodeDocument([]byte(text[at:])); err == nil && len(doc.Prefixes) > 0 {
			return doc, nil
		}
	}
	return nil, errors.New("the address leads to a web page without an address list")
}

// firstColumns returns the first column of each line that is not a comment.
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

// usable parses texts as prefixes, and returns the prefixes that can belong to a crawler.
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
