// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"fmt"
	"hash/fnv"
	"html"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/ascii"
	"github.com/robotspolicy/caddy-robots-policy/metainject/internal/headscan"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// Everyone is the name of the meta tag that addresses every crawler.
const Everyone = headscan.Everyone

// An Element carries rules for one audience: <meta name="NAME" content="RULES"> (HTML meta tag
// of draft-illyes-repext).
type Element struct {
	Name  string // Everyone, or a crawler's product token in any case
	Rules robotsrule.Set
	// Content is the value of an element that has no rules.
	Content string
	// Combine returns the content for a page whose elements of that name have content, separated by commas. If it is nil,
	// Content replaces theirs.
	Combine func(theirs string) string
	// Silent elements are only for pages that have an element of the name.
	Silent bool
}

// A Set is the elements for the pages of one path, prepared once and shared by all requests.
type Set struct {
	elements []prepared
	tokens   map[string]struct{}
	lift     robotsrule.Lift // from the elements of a page
	everyone robotsrule.Set
	robots   bool   // there are robots elements among the elements
	html     []byte // all elements one after the other
	xhtml    []byte
	mark     string // of the elements, for entity tags
	// plain is the set without indexifembedded, for pages in which another element has a noindex without it: readers
	// add the elements up. It is nil if nothing says indexifembedded to everyone.
	plain *Set
	// combinations grows as pages are seen; it changes no result.
	combinations atomic.Pointer[map[combinationKey]*combination]
}

type prepared struct {
	name        string // as it is written
	lower       string
	rules       robotsrule.Set
	content     string
	combine     func(theirs string) string
	silent      bool
	html, xhtml string
}

// NewSet prepares elements in the given order. It unites the rules of one name. It leaves out elements
// without rules, and names that cannot be a product token: those over 64 bytes or with white space, a
// control character or a colon. tokens lists, in lower case, the product tokens of crawlers that read meta
// tags with their names. It may be nil, is not copied and must not change. Meta tags of a page are
// recognized by these tokens, by Everyone, by yandex and by the given names.
func NewSet(elements []Element, tokens map[string]struct{}) *Set {
	return NewLiftingSet(elements, tokens, 0)
}

// NewLiftingSet is NewSet with restrictions to lift from the elements of a page, in mode Merge.
func NewLiftingSet(elements []Element, tokens map[string]struct{}, lift robotsrule.Lift) *Set {
	s := &Set{tokens: tokens, lift: lift}
	for _, e := range elements {
		p := prepared{name: e.Name, lower: ascii.Lower(e.Name), rules: e.Rules, content: e.Content, combine: e.Combine, silent: e.Silent}
		if e.Rules.IsEmpty() && e.Content == "" || !isName(e.Name) {
			continue
		}
		if q := s.find(p.lower); q != nil {
			q.rules = q.rules.Union(e.Rules)
			continue
		}
		s.elements = append(s.elements, p)
	}
	if e := s.find(Everyone); e != nil && e.rules.Has("indexifembedded") {
		if without := s.withoutEmbedding(); s.refuses() {
			s.elements = without
		} else {
			s.plain = (&Set{elements: without, tokens: tokens, lift: lift}).prepare()
		}
	}
	return s.prepare()
}

// refuses reports whether an element for one crawler has a noindex without indexifembedded.
func (s *Set) refuses() bool {
	return slices.ContainsFunc(s.elements, func(p prepared) bool { return p.lower != Everyone && p.rules.PlainNoindex() })
}

func (s *Set) withoutEmbedding() []prepared {
	elements := slices.Clone(s.elements)
	for i := range elements {
		elements[i].rules = elements[i].rules.WithoutEmbedding()
	}
	return elements
}

// prepare writes the elements.
func (s *Set) prepare() *Set {
	sum := fnv.New32a()
	for i := range s.elements {
		p := &s.elements[i]
		s.robots = s.robots || !p.rules.IsEmpty()
		value := p.content
		if value == "" {
			value = p.rules.Meta()
		}
		value = html.EscapeString(value)
		p.html, p.xhtml = renderValue(p.name, value, false), renderValue(p.name, value, true)
		if p.silent {
			sum.Write([]byte(p.html))
			continue
		}
		s.html = append(s.html, p.html...)
		s.xhtml = append(s.xhtml, p.xhtml...)
		if p.lower == Everyone {
			s.everyone = p.rules
		}
	}
	sum.Write(s.html)
	sum.Write([]byte{byte(s.lift)})
	s.mark = fmt.Sprintf("%08x", sum.Sum32())
	return s
}

// maxToken bounds the product tokens in pages, in bytes.
const maxToken = 64

func isName(s string) bool {
	for i := range len(s) {
		if neverInToken(s[i]) {
			return false
		}
	}
	return s != "" && len(s) <= maxToken
}

// neverInToken reports whether c is never part of a product token.
func neverInToken(c byte) bool { return c <= ' ' || c == ':' || c == 0x7f }

// IsEmpty reports whether there is nothing to put into a page. A nil Set is empty.
func (s *Set) IsEmpty() bool { return s == nil || len(s.elements) == 0 && s.lift == 0 }

// Send reports whether a page gets an element for a name for which it has none. A nil Set sends none.
func (s *Set) Send() bool { return s != nil && len(s.html) > 0 }

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

// renderValue writes an element with escaped content.
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

// Limits of the cache of what a page's elements become: pages of a site say the same few things.
const (
	maxCombinations = 64
	maxContent      = 256
)

// combined is combine with a cache.
func (s *Set) combined(audience, content string, element *prepared, mode Mode) *combination {
	key := combinationKey{audience, content, mode}
	known := s.combinations.Load()
	if known != nil {
		if c := (*known)[key]; c != nil {
			return c
		}
	}
	c := &combination{}
	if element != nil && element.content != "" {
		value := element.content
		if mode != Replace && element.combine != nil {
			value = element.combine(content)
		}
		c.keep, c.value = value == content, html.EscapeString(value)
	} else {
		says := robotsrule.Parse(content)
		have := says.Lifted(s.lift)
		want, keep := combine(have, content, element, s.deniedTo(audience), mode)
		keep = keep && have == says
		if audience == Everyone && s.refuses() && want.Has("indexifembedded") {
			want, keep = want.WithoutEmbedding(), false
		}
		c.keep, c.value = keep, html.EscapeString(want.Meta())
	}
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
