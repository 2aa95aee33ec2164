// SPDX-License-Identifier: Apache-2.0

package headscan

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"

	"github.com/robotspolicy/caddy-robots-policy/metainject/internal/ascii"
)

// Everyone is the name of the element that speaks to every crawler.
const Everyone = "robots"

// A Meta is a robots meta element of the page, a child of its head.
type Meta struct {
	Start, End int
	// ValueStart and ValueEnd enclose the value of content, with its quotes.
	ValueStart, ValueEnd int
	Audience             string // in lower case
	Content              string
	// Named means that the attribute name holds the audience. Crawlers do not read property="robots" and
	// http-equiv="X-Robots-Tag", so no rules may be left to these alone.
	Named bool
	Done  bool // for the caller's use
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

// metaAttributes are the first attributes of each relevant name in a meta element.
type metaAttributes struct {
	name, property, httpEquiv, content, charset attribute
	exact                                       bool // names in capitals are others, as in XML
}

// slot is the place for the attribute called name, or nil.
func (m *metaAttributes) slot(name []byte) *attribute {
	is := func(lower string) bool { return ascii.EqualFold(name, lower) && (!m.exact || string(name) == lower) }
	switch len(name) {
	case 4:
		if is("name") {
			return &m.name
		}
	case 7:
		if is("content") {
			return &m.content
		}
		if is("charset") {
			return &m.charset
		}
	case 8:
		if is("property") {
			return &m.property
		}
	case 10:
		if is("http-equiv") {
			return &m.httpEquiv
		}
	}
	return nil
}

// walkAny is walk by the tokenizer's states from "before attribute name" to "after attribute value (quoted)".
func walkAny(b []byte, i int, m *metaAttributes) int {
	for {
		for i < len(b) && (class[b[i]]&isSpace != 0 || b[i] == '/') {
			i++
		}
		if i == len(b) {
			return 0
		}
		if b[i] == '>' {
			return i + 1
		}
		from := i
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
				return 0
			}
			at = i
			if q := b[i]; q == '"' || q == '\'' {
				j := bytes.IndexByte(b[i+1:], q)
				if j < 0 {
					return 0
				}
				i += j + 2
			} else {
				for i < len(b) && class[b[i]]&endsValue == 0 {
					i++
				}
			}
		}
		if m == nil {
			continue
		}
		if a := m.slot(name); a != nil && !a.given {
			*a = attribute{int32(at), int32(i), true}
		}
	}
}

type metaValues struct {
	name, property, httpEquiv, content, charset []byte
}

// meta looks at a meta element in the head, whose tag ends before s.pos.
func (s *Scanner) meta(b []byte, m *metaAttributes) {
	if !m.charset.given && !m.httpEquiv.given {
		// The most frequent kind: a name that is none of ours.
		name, property := m.name.value(b), m.property.value(b)
		if !m.content.given || s.known(name) == "" && s.known(property) == "" &&
			bytes.IndexByte(name, '&') < 0 && bytes.IndexByte(property, '&') < 0 {
			return
		}
	}
	v := metaValues{m.name.value(b), m.property.value(b), m.httpEquiv.value(b), m.content.value(b), m.charset.value(b)}
	if tag := b[s.tok:s.pos]; s.xml {
		v.unescape()
	} else if bytes.IndexByte(tag, '&') >= 0 || bytes.IndexByte(tag, 0) >= 0 {
		v.decode(tag)
	}
	if s.declaration(m, &v) || !m.content.given {
		return
	}
	f := Meta{Start: s.tok, End: s.pos, ValueStart: int(m.content.at), ValueEnd: int(m.content.end), Content: string(v.content)}
	if f.Audience = s.known(v.name); f.Audience != "" {
		f.Named = len(v.name) == len(f.Audience)
	} else if f.Audience = s.known(v.property); f.Audience == "" && !s.headerForm(&v, &f) {
		return
	}
	if s.names.Speaks(f.Audience, f.Content) {
		s.metas = append(s.metas, f)
	}
}

// decode replaces the values by what x/net/html makes of them.
func (v *metaValues) decode(tag []byte) {
	z := html.NewTokenizer(bytes.NewReader(tag))
	z.Next()
	z.TagName()
	var seen metaAttributes
	for more := true; more; {
		var key, value []byte
		key, value, more = z.TagAttr()
		a := seen.slot(key)
		if a == nil || a.given {
			continue
		}
		a.given = true
		switch a {
		case &seen.name:
			v.name = value
		case &seen.property:
			v.property = value
		case &seen.httpEquiv:
			v.httpEquiv = value
		case &seen.content:
			v.content = value
		case &seen.charset:
			v.charset = value
		}
	}
}

// unescape replaces the references in the values of a well-formed XML tag.
func (v *metaValues) unescape() {
	for _, value := range [...]*[]byte{&v.name, &v.property, &v.httpEquiv, &v.content, &v.charset} {
		if bytes.IndexByte(*value, '&') >= 0 {
			*value = []byte(html.UnescapeString(string(*value)))
		}
	}
}

// label returns the encoding that a meta element declares.
func (m *metaAttributes) label(v *metaValues) (label []byte, ok bool) {
	if m.charset.given {
		return v.charset, true
	}
	if !ascii.EqualFold(bytes.TrimSpace(v.httpEquiv), "content-type") {
		return nil, false
	}
	_, after, ok := bytes.Cut(bytes.ToLower(v.content), []byte("charset"))
	return bytes.Trim(after, " \t\r\n\f=\"'"), ok
}

// declaration records where the page declares its encoding. Such an element holds no rules.
func (s *Scanner) declaration(m *metaAttributes, v *metaValues) bool {
	label, ok := m.label(v)
	if !ok {
		return false
	}
	means := ASCIIBased
	if !s.Decided {
		means = EncodingOf(label)
	}
	if s.CharsetEnd == 0 || s.unlabelled && means != Unlabelled {
		s.CharsetEnd, s.unlabelled = s.pos, means == Unlabelled
		if s.NoscriptAt >= 0 && means != Unlabelled {
			s.Charset = string(label)
		}
	}
	// UTF-16 in a meta element means UTF-8, since it could be read at all.
	if means == Other {
		s.Foreign = true
	}
	return true
}

// headerForm reads <meta http-equiv="X-Robots-Tag" content="…">, by which an author means the header: rules for
// everyone or, after "TOKEN:", for one crawler.
func (s *Scanner) headerForm(v *metaValues, f *Meta) bool {
	if !ascii.EqualFold(bytes.TrimSpace(v.httpEquiv), "x-robots-tag") {
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
