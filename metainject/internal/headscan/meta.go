// SPDX-License-Identifier: Apache-2.0

package headscan

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/ascii"
)

// Everyone is the name of the meta tag that addresses every crawler.
const Everyone = "robots"

// A Meta is a robots meta tag in the head of the page.
type Meta struct {
	Start, End int
	// ValueStart and ValueEnd are the start and end of the value of content, including its quotes.
	ValueStart, ValueEnd int
	Audience             string // in lower case
	Content              string
	// Named means that the audience is in the attribute name. If it is in property="robots" or
	// http-equiv="X-Robots-Tag" instead, crawlers ignore the tag, so it cannot hold the only copy of a rule.
	Named bool
	// Charset is the encoding that the same tag declares. This declaration must stay if the rules are removed.
	Charset string
	Done    bool // a mark that only the caller of Metas uses
}

type attribute struct {
	at, end int32
	given   bool
}

func (a attribute) value(b []byte) []byte {
	v := b[a.at:a.end]
	if len(v) > 0 && (v[0] == '"' || v[0] == '\'') {
		v = v[1 : len(v)-1]
	}
	return v
}

// The relevant attributes of a meta tag.
const (
	attrName = iota
	attrProperty
	attrHTTPEquiv
	attrContent
	attrCharset
	attrNamespace
	numAttrs
)

var attrNames = [numAttrs]string{"name", "property", "http-equiv", "content", "charset", "xmlns"}

// metaAttributes holds the relevant attributes of a meta tag. If a name repeats, the first attribute applies.
type metaAttributes struct {
	attrs [numAttrs]attribute
	exact bool // names are case-sensitive, as in XML
}

// slot returns the index of name in attrNames, or -1 if the attribute is irrelevant.
func (m *metaAttributes) slot(name []byte) int {
	for i, lower := range attrNames {
		if ascii.EqualFold(name, lower) && (!m.exact || string(name) == lower) {
			return i
		}
	}
	return -1
}

// set stores the position of an attribute's value. It does nothing if the attribute is irrelevant or repeated.
func (m *metaAttributes) set(slot, at, end int) {
	if slot >= 0 && !m.attrs[slot].given {
		m.attrs[slot] = attribute{int32(at), int32(end), true}
	}
}

// walkAny does the same as walk for attributes in any form. It follows the HTML standard's tokenizer, from the state
// "before attribute name" to the state "after attribute value (quoted)".
func walkAny(b []byte, i int, m *metaAttributes) (end int, ok bool) {
	from := i
	for {
		for i < len(b) && (class[b[i]]&isSpace != 0 || b[i] == '/') {
			i++
		}
		if i == len(b) {
			return from, false
		}
		if b[i] == '>' {
			return i + 1, true
		}
		from = i
		for i++; i < len(b) && class[b[i]]&endsAttr == 0; {
			i++
		}
		name := b[from:i]
		for i < len(b) && class[b[i]]&isSpace != 0 {
			i++
		}
		at := i
		if i < len(b) && b[i] == '=' {
			for i++; i < len(b) && class[b[i]]&isSpace != 0; {
				i++
			}
			if i == len(b) {
				return from, false
			}
			at = i
			if q := b[i]; q == '"' || q == '\'' {
				j := bytes.IndexByte(b[i+1:], q)
				if j < 0 {
					return from, false
				}
				i += j + 2
			} else {
				for i < len(b) && class[b[i]]&endsValue == 0 {
					i++
				}
			}
		}
		if m != nil {
			m.set(m.slot(name), at, i)
		}
	}
}

type metaValues [numAttrs][]byte

func (m *metaAttributes) values(b []byte) (v metaValues) {
	for i, a := range m.attrs {
		v[i] = a.value(b)
	}
	return v
}

// meta evaluates a meta tag in the head. The tag ends before s.pos.
func (s *Scanner) meta(b []byte, m *metaAttributes) {
	content := m.attrs[attrContent]
	if !m.attrs[attrCharset].given && !m.attrs[attrHTTPEquiv].given {
		// The usual case: the name is not the name of a robots meta tag.
		name, property := m.attrs[attrName].value(b), m.attrs[attrProperty].value(b)
		if !content.given || s.known(name) == "" && s.known(property) == "" &&
			bytes.IndexByte(name, '&') < 0 && bytes.IndexByte(property, '&') < 0 {
			return
		}
	}
	v := m.values(b)
	if tag := b[s.tok:s.pos]; s.xml {
		v.unescape()
	} else if bytes.IndexByte(tag, '&') >= 0 || bytes.IndexByte(tag, 0) >= 0 {
		v.decode(tag)
	}
	label, declares := s.declaration(m, &v)
	if !content.given {
		return
	}
	f := Meta{Start: s.tok, End: s.pos, ValueStart: int(content.at), ValueEnd: int(content.end), Content: string(v[attrContent])}
	if f.Audience = s.known(v[attrName]); f.Audience != "" {
		f.Named = len(v[attrName]) == len(f.Audience)
	} else if f.Audience = s.known(v[attrProperty]); f.Audience == "" && !s.headerForm(&v, &f) {
		return
	}
	if !s.names.Speaks(f.Audience, f.Content) {
		return
	}
	if declares && !m.attrs[attrCharset].given { // content declares the encoding, so it cannot hold the new rules
		f.Named = false
		if end := bytes.IndexAny(label, "; \t\r\n\f\"'"); end >= 0 {
			label = label[:end]
		}
	}
	f.Charset = string(label)
	s.metas = append(s.metas, f)
}

// decode replaces character references in the values, in the same way as x/net/html.
func (v *metaValues) decode(tag []byte) {
	z := html.NewTokenizer(bytes.NewReader(tag))
	z.Next()
	z.TagName()
	var seen metaAttributes
	for more := true; more; {
		var key, value []byte
		key, value, more = z.TagAttr()
		if i := seen.slot(key); i >= 0 && !seen.attrs[i].given {
			seen.set(i, 0, 0)
			v[i] = value
		}
	}
}

// unescape replaces the character references in the values of a well-formed XML tag.
func (v *metaValues) unescape() {
	for i, value := range v {
		if bytes.IndexByte(value, '&') >= 0 {
			v[i] = []byte(html.UnescapeString(string(value)))
		}
	}
}

// label returns the encoding that a meta tag declares.
func (m *metaAttributes) label(v *metaValues) (label []byte, ok bool) {
	if m.attrs[attrCharset].given {
		return v[attrCharset], true
	}
	if !ascii.EqualFold(bytes.TrimSpace(v[attrHTTPEquiv]), "content-type") {
		return nil, false
	}
	_, after, ok := bytes.Cut(bytes.ToLower(v[attrContent]), []byte("charset"))
	return bytes.Trim(after, " \t\r\n\f=\"'"), ok
}

// declaration stores the position of a declaration of the encoding, and returns the declared encoding.
func (s *Scanner) declaration(m *metaAttributes, v *metaValues) (label []byte, ok bool) {
	if label, ok = m.label(v); !ok {
		return nil, false
	}
	means := ASCIIBased
	if !s.Decided {
		means = EncodingOf(label)
	}
	// XML documents declare their encoding in the XML declaration.
	if !s.xml && (s.CharsetEnd == 0 || s.unlabeled && means != Unlabeled) {
		s.CharsetEnd, s.unlabeled = s.pos, means == Unlabeled
		if s.NoscriptAt >= 0 && means != Unlabeled {
			s.Charset = string(label)
		}
	}
	// A declaration of UTF-16 does not set Foreign. If a meta tag that could be read as ASCII declares UTF-16, browsers
	// read the page as UTF-8.
	if means == Other {
		s.Foreign = true
	}
	return label, true
}

// headerForm reads <meta http-equiv="X-Robots-Tag" content="…">. The author of such a tag wants the effect of the
// header X-Robots-Tag. The rules are for everyone or, after "TOKEN:", for one crawler.
func (s *Scanner) headerForm(v *metaValues, f *Meta) bool {
	if !ascii.EqualFold(bytes.TrimSpace(v[attrHTTPEquiv]), "x-robots-tag") {
		return false
	}
	f.Audience = Everyone
	if before, after, ok := strings.Cut(f.Content, ":"); ok {
		if name := s.known([]byte(before)); name != "" {
			f.Audience, f.Content = name, after
		}
	}
	return true
}
