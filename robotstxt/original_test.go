// SPDX-License-Identifier: Apache-2.0

package robotstxt_test

import (
	"encoding/binary"
	"regexp"
	"strings"
	"unicode/utf16"
)

// original is a robots.txt that the test itself reads line by line according to RFC 9309, without the parser of this
// package. A crawler's name in a User-agent line ends at "/", because all parsers that the tests use read it so.
type original struct {
	groups map[string][]originalRule // by the crawler's name in lower case
	named  map[string]int            // the first line that names a crawler
	whole  map[string]bool           // true if the line has only the name
	unsure map[string]bool           // true if the crawler has two groups, or if an unknown line may end its block of User-agent lines
	names  []string
}

type originalRule struct {
	line    int
	allow   bool
	pattern string
	size    int  // number of bytes after percent-encoding (RFC 9309 section 2.2.2)
	encoded bool // true if the pattern as written has a "%"
}

// readOriginal parses a file. If the map instead has the number of a line, it replaces the line with the map's text.
func readOriginal(data []byte, instead map[int]string) *original {
	o := &original{groups: map[string][]originalRule{}, named: map[string]int{}, whole: map[string]bool{}, unsure: map[string]bool{}}
	var to []string
	ruled := false
	for i, line := range originalLines(data) {
		if replaced, ok := instead[i+1]; ok {
			line = replaced
		}
		line, _, _ = strings.Cut(line, "#")
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		switch key = strings.ToLower(strings.TrimSpace(key)); key {
		case "user-agent":
			if ruled {
				to, ruled = nil, false
			}
			name, _, _ := strings.Cut(value, "/")
			name = strings.Join(strings.Fields(strings.ToLower(name)), " ")
			if name == "" {
				continue
			}
			if _, ok := o.named[name]; !ok {
				o.named[name] = i + 1
				o.names = append(o.names, name)
				o.whole[name] = true
			} else {
				o.unsure[name] = true
			}
			o.whole[name] = o.whole[name] && strings.EqualFold(name, value)
			to = append(to, name)
		case "allow", "disallow":
			ruled = true
			for _, name := range to {
				if value != "" && (value[0] == '/' || value[0] == '*') {
					p := originalPattern(value)
					o.groups[name] = append(o.groups[name], originalRule{i + 1, key == "allow", p, len(p), strings.Contains(value, "%")})
				}
			}
		case "crawl-delay", "request-rate", "visit-time", "noindex", "content-usage", "content-signal", "app-directives":
			// A line with an unknown key does not end a block of User-agent lines (RFC 9309 section 2.2.4). But a line
			// with one of the keys of this case belongs to a group, so some parsers may treat it as the end of the
			// block.
			for _, name := range to {
				o.unsure[name] = o.unsure[name] || !ruled
			}
		}
	}
	return o
}

func originalLines(data []byte) []string {
	return strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(originalText(data)), "\n")
}

func originalText(data []byte) string {
	var order binary.ByteOrder = binary.BigEndian
	switch {
	case len(data) < 2:
		return string(data)
	case data[0] == 0xff && data[1] == 0xfe:
		order = binary.LittleEndian
	case data[0] != 0xfe || data[1] != 0xff:
		return strings.TrimPrefix(string(data), "\xef\xbb\xbf")
	}
	var units []uint16
	for i := 2; i+1 < len(data); i += 2 {
		units = append(units, order.Uint16(data[i:i+2]))
	}
	return string(utf16.Decode(units))
}

const hexDigits = "0123456789ABCDEF"

// originalNormal encodes a path or, if wild is true, a pattern, so that equivalent texts become equal.
func originalNormal(s string, wild bool) string {
	var b strings.Builder
	star, query := false, false
	for i := 0; i < len(s); i++ {
		c, encoded := s[i], false
		if c == '%' && i+2 < len(s) {
			hi, lo := strings.IndexByte(hexDigits, upper(s[i+1])), strings.IndexByte(hexDigits, upper(s[i+2]))
			if hi >= 0 && lo >= 0 {
				c, encoded = byte(hi<<4|lo), true
				i += 2
			}
		}
		unreserved := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
		switch {
		case unreserved, strings.IndexByte(":[]@!&'()+,;=", c) >= 0, query && (c == '/' || c == '?'):
			b.WriteByte(c)
			query = query || star && c == '='
		case encoded || c == '%' || c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>\\^`{|}", c) >= 0:
			b.WriteByte('%')
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&15])
		default:
			b.WriteByte(c)
			star, query = star || wild && c == '*', query || c == '?'
		}
	}
	return b.String()
}

// originalPath normalizes a path. "*" and "$" do not have a special meaning in a path. originalPattern normalizes a
// pattern, in which only "*" and a "$" at the end have a special meaning (RFC 9309 section 2.2.3).
func originalPath(s string) string {
	return strings.NewReplacer("*", "%2A", "$", "%24").Replace(originalNormal(s, false))
}

func originalPattern(s string) string {
	body, ends := strings.CutSuffix(originalNormal(s, true), "$")
	body = strings.ReplaceAll(body, "$", "%24")
	if ends {
		body += "$"
	}
	return body
}

func upper(c byte) byte {
	if c >= 'a' && c <= 'f' {
		return c - 'a' + 'A'
	}
	return c
}

var originalExpressions = map[string]*regexp.Regexp{}

func originalMatch(pattern, path string) bool {
	re := originalExpressions[pattern]
	if re == nil {
		body, ends := strings.CutSuffix(pattern, "$")
		text := "(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(body), `\*`, ".*")
		if ends {
			text += "$"
		}
		re = regexp.MustCompile(text)
		originalExpressions[pattern] = re
	}
	return re.MatchString(path)
}

// may reports whether a crawler may fetch a normalized path, and returns the line that decides, or 0 if there is none.
func (o *original) may(name, path string) (bool, int) {
	name = strings.ToLower(name)
	if _, ok := o.named[name]; !ok {
		name = "*"
	}
	best := originalRule{allow: true, size: -1}
	for _, r := range o.groups[name] {
		if originalMatch(r.pattern, path) && (r.size > best.size || r.size == best.size && r.allow && !best.allow) {
			best = r
		}
	}
	return best.allow, best.line
}
