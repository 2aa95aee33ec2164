// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"html"
	"maps"
	"sync/atomic"

	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// Everyone is the name of the element that speaks to every crawler.
const Everyone = "robots"

// An Element is what one audience is told: <meta name="NAME" content="RULES">
// (HTML meta element of draft-illyes-repext).
type Element struct {
	Name  string // Everyone, or a crawler's product token in any case
	Rules robotsrule.Set
}

// A Set is the elements that the pages of one path get, prepared once and
// shared by all requests.
type Set struct {
	elements []prepared
	tokens   map[string]struct{}
	everyone robotsrule.Set
	html     []byte // all elements one after the other
	xhtml    []byte
	// combinations grows as pages are seen; it changes no result.
	combinations atomic.Pointer[map[combinationKey]*combination]
}

type prepared struct {
	name        string // as it is written
	lower       string
	rules       robotsrule.Set
	html, xhtml string
}

// NewSet prepares elements, in the order they are given in. Elements without
// rules are left out, and so are names that cannot be a product token (longer
// than 64 bytes, or with white space, a control character or a colon); the
// rules of one name are united. tokens, which may be nil,
// holds the product tokens, in lower case, whose elements are recognised in a
// page besides Everyone and the names of elements; it is not copied and must
// not change any more.
func NewSet(elements []Element, tokens map[string]struct{}) *Set {
	s := &Set{tokens: tokens}
	for _, e := range elements {
		p := prepared{name: e.Name, lower: asciiLower(e.Name), rules: e.Rules}
		if e.Rules.IsEmpty() || !isName(e.Name) {
			continue
		}
		if q := s.find(p.lower); q != nil {
			q.rules = q.rules.Union(e.Rules)
			continue
		}
		s.elements = append(s.elements, p)
	}
	for i := range s.elements {
		p := &s.elements[i]
		p.html, p.xhtml = render(p.name, p.rules, false), render(p.name, p.rules, true)
		s.html = append(s.html, p.html...)
		s.xhtml = append(s.xhtml, p.xhtml...)
		if p.lower == Everyone {
			s.everyone = p.rules
		}
	}
	return s
}

// maxToken is the longest product token, in bytes, that is looked for in pages.
const maxToken = 64

func isName(s string) bool {
	for i := range len(s) {
		if class[s[i]]&notInToken != 0 {
			return false
		}
	}
	return s != "" && len(s) <= maxToken
}

func asciiLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	return string(b)
}

// IsEmpty tells whether there is nothing to put into a page. It holds for nil.
func (s *Set) IsEmpty() bool { return s == nil || len(s.elements) == 0 }

// HTML returns the elements as they are written into an HTML page.
func (s *Set) HTML() string {
	if s == nil {
		return ""
	}
	return string(s.html)
}

func (s *Set) find(lower string) *prepared {
	for i := range s.elements {
		if s.elements[i].lower == lower {
			return &s.elements[i]
		}
	}
	return nil
}

// known returns the audience that name, as it stands in a page, means, or "".
func (s *Set) known(name []byte) string {
	var buf [maxToken]byte
	for len(name) > 0 && class[name[0]]&isSpace != 0 {
		name = name[1:]
	}
	for len(name) > 0 && class[name[len(name)-1]]&isSpace != 0 {
		name = name[:len(name)-1]
	}
	if len(name) == 0 || len(name) > len(buf) {
		return ""
	}
	for i, c := range name {
		if class[c]&notInToken != 0 {
			return ""
		}
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		buf[i] = c
	}
	lower := buf[:len(name)]
	if string(lower) == Everyone {
		return Everyone
	}
	if _, ok := s.tokens[string(lower)]; ok {
		return string(lower)
	}
	for i := range s.elements {
		if s.elements[i].lower == string(lower) {
			return s.elements[i].lower
		}
	}
	return ""
}

// render writes an element. The attribute values are escaped.
func render(name string, rules robotsrule.Set, xml bool) string {
	return renderValue(name, html.EscapeString(rules.Meta()), xml)
}

func renderValue(name, escaped string, xml bool) string {
	end := ">"
	if xml {
		end = "/>"
	}
	return `<meta name="` + html.EscapeString(name) + `" content="` + escaped + `"` + end
}

// A combination is what a page's elements for one audience become.
type combination struct {
	keep   bool   // they say it already
	value  string // of content, escaped; "" if they have to go
	quoted []byte // value in quotes
}

type combinationKey struct {
	audience, content string
	mode              Mode
}

// A site's pages say the same few things, so what they become is kept, up to
// these limits.
const (
	maxCombinations = 64
	maxContent      = 256
)

// combined is combine, remembered.
func (s *Set) combined(audience, content string, element *prepared, mode Mode) *combination {
	key := combinationKey{audience, content, mode}
	known := s.combinations.Load()
	if known != nil {
		if c := (*known)[key]; c != nil {
			return c
		}
	}
	want, keep := combine(robotsrule.Parse(content), content, element, s.everyone, mode)
	c := &combination{keep: keep, value: html.EscapeString(want.Meta())}
	c.quoted = []byte(`"` + c.value + `"`)
	if len(content) > maxContent || known != nil && len(*known) >= maxCombinations {
		return c
	}
	more := make(map[combinationKey]*combination)
	if known != nil {
		maps.Copy(more, *known)
	}
	more[key] = c
	s.combinations.CompareAndSwap(known, &more) // another's is as good
	return c
}
