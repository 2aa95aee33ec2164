// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"
)

// found is a robots meta element of the page, a child of its head.
type found struct {
	start, end int
	// valueAt and valueEnd enclose the value of content as it is written, with
	// its quotes.
	valueAt, valueEnd int
	audience          string // in lower case
	content           string
	// carrier tells that name is what names the audience. Elements with
	// property="robots" or http-equiv="X-Robots-Tag" are read as what their
	// author meant, but crawlers do not read them, so no rules may be left to
	// them alone.
	carrier bool
	handled bool
}

// attribute is one of a tag's attributes, as it is written.
type attribute struct {
	name    []byte
	value   []byte // without quotes
	at, end int    // of the value with its quotes; 0 if there is none
}

// nextAttribute reads the attribute after i; the tag's '>' stands at last. It
// follows the same states as scanner.attributes.
func nextAttribute(b []byte, i, last int) (a attribute, next int) {
	for i < last && (class[b[i]]&isSpace != 0 || b[i] == '/') {
		i++
	}
	if i >= last {
		return a, last
	}
	from := i
	for i++; i < last && class[b[i]]&endsAttr == 0; {
		i++
	}
	a.name = b[from:i]
	for i < last && class[b[i]]&isSpace != 0 {
		i++
	}
	if i >= last || b[i] != '=' {
		return a, i
	}
	for i++; i < last && class[b[i]]&isSpace != 0; {
		i++
	}
	if i >= last {
		return a, last
	}
	a.at = i
	if q := b[i]; q == '"' || q == '\'' {
		j := bytes.IndexByte(b[i+1:last], q)
		if j < 0 { // only in XHTML that is not well-formed
			a.at = 0
			return a, last
		}
		a.value, a.end = b[i+1:i+1+j], i+j+2
		return a, a.end
	}
	for i < last && class[b[i]]&endsValue == 0 {
		i++
	}
	a.value, a.end = b[a.at:i], i
	return a, i
}

// metaAttributes are the first attributes of each name that matters.
type metaAttributes struct {
	name, property, httpEquiv, content, charset attribute
}

func (m *metaAttributes) slot(name []byte) *attribute {
	switch len(name) {
	case 4:
		if equalFold(name, "name") {
			return &m.name
		}
	case 7:
		if equalFold(name, "content") {
			return &m.content
		}
		if equalFold(name, "charset") {
			return &m.charset
		}
	case 8:
		if equalFold(name, "property") {
			return &m.property
		}
	case 10:
		if equalFold(name, "http-equiv") {
			return &m.httpEquiv
		}
	}
	return nil
}

// meta looks at a meta element in the head, whose tag ends before s.pos.
func (s *scanner) meta(b []byte) {
	var m metaAttributes
	last := s.pos - 1
	if s.slash && b[last-1] == '/' && s.xml {
		last--
	}
	special := false // character references or NULs in a value
	for i := s.nameEnd; i < last; {
		var a attribute
		a, i = nextAttribute(b, i, last)
		if p := m.slot(a.name); p != nil && p.name == nil {
			*p = a
			special = special || bytes.IndexByte(a.value, '&') >= 0 || bytes.IndexByte(a.value, 0) >= 0
		}
	}
	if special {
		m.decode(b[s.tok:s.pos])
	}
	s.declaration(&m)
	if m.content.at == 0 {
		return
	}
	f := found{start: s.tok, end: s.pos, valueAt: m.content.at, valueEnd: m.content.end}
	if f.audience = s.set.known(m.name.value); f.audience != "" {
		f.carrier = len(m.name.value) == len(f.audience)
	} else if f.audience = s.set.known(m.property.value); f.audience == "" && !s.headerForm(&m, &f) {
		return
	}
	if f.content == "" {
		f.content = string(m.content.value)
	}
	if isACAP(f.content) {
		return
	}
	s.metas = append(s.metas, f)
}

// decode replaces the values by what x/net/html makes of them.
func (m *metaAttributes) decode(tag []byte) {
	z := html.NewTokenizer(bytes.NewReader(tag))
	z.Next()
	z.TagName()
	var seen metaAttributes
	for more := true; more; {
		var key, value []byte
		key, value, more = z.TagAttr()
		if p := seen.slot(key); p != nil && p.name == nil {
			p.name = key
			m.slot(key).value = value
		}
	}
}

// declaration notes where the page declares its character encoding.
func (s *scanner) declaration(m *metaAttributes) {
	label := m.charset.value
	if m.charset.name == nil {
		if !equalFold(bytes.TrimSpace(m.httpEquiv.value), "content-type") {
			return
		}
		_, after, ok := bytes.Cut(bytes.ToLower(m.content.value), []byte("charset"))
		if !ok {
			return
		}
		label = bytes.Trim(after, " \t\r\n\f=\"'")
	}
	if s.charsetEnd == 0 {
		s.charsetEnd = s.pos
	}
	// UTF-16 in a meta element means UTF-8, since it could be read at all.
	if !s.decided && encodingOf(label) == otherEncoding {
		s.foreign = true
	}
}

// headerForm reads <meta http-equiv="X-Robots-Tag" content="…">, which no
// crawler is known to heed. Its author means the header: rules for everyone,
// or, after "TOKEN:", for one crawler.
func (s *scanner) headerForm(m *metaAttributes, f *found) bool {
	if !equalFold(bytes.TrimSpace(m.httpEquiv.value), "x-robots-tag") {
		return false
	}
	f.audience, f.content = Everyone, string(m.content.value)
	if before, after, ok := strings.Cut(f.content, ":"); ok {
		if name := s.set.known([]byte(before)); name != "" {
			f.audience, f.content = name, after
		}
	}
	return true
}

// isACAP tells whether content is a permission of ACAP, such as "ACAP
// allow-index", which is no list of robots rules.
func isACAP(content string) bool {
	content = strings.TrimLeft(content, " \t\r\n\f")
	return len(content) >= 4 && strings.EqualFold(content[:4], "ACAP") &&
		(len(content) == 4 || class[content[4]]&isSpace != 0)
}
