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

// An Element is a meta tag with rules for one audience: <meta name="NAME" content="RULES"> (draft-illyes-repext,
// HTML meta tag).
type Element struct {
	Name  string // Everyone, or a crawler's product token in any case
	Rules robotsrule.Set
	// Content is the text of the attribute content. If Content is empty, Rules determine this text.
	Content string
	// Combine receives the content of the page's elements of the same name, joined by commas, and returns the new
	// content. If Combine is nil, or in mode Replace, Content replaces the page's content.
	Combine func(theirs string) string
	// Silent means that the element is combined with the page's elements of the same name, but is not added to a page
	// that has none.
	Silent bool
}

// A Set holds the policy's elements for the pages at one path. It is prepared once and shared by all requests.
type Set struct {
	elements []prepared
	tokens   map[string]struct{}
	lift     robotsrule.Lift // restrictions to remove from a page's elements
	everyone robotsrule.Set
	robots   bool   // at least one element has rules
	html     []byte // all elements as HTML
	xhtml    []byte
	mark     string // identifies the elements within entity tags
	// plain is this set without indexifembedded. It is used for pages in which an element for one crawler has a noindex
	// without indexifembedded. Crawlers combine all elements of a page, so this noindex applies even if another element
	// has indexifembedded. plain is nil if no element for everyone has indexifembedded.
	plain *Set
	// combinations caches the results of combined, to save time. It grows with the number of different contents in the
	// site's pages, up to maxCombinations.
	combinations atomic.Pointer[map[combinationKey]*combination]
}

type prepared struct {
	Element
	lower       string // Name in lower case
	html, xhtml string
}

// NewSet prepares elements in the given order, and joins the rules of elements with the same name. It leaves out
// elements that have neither rules nor content. It also leaves out elements whose name cannot be a product token,
// because it is empty, longer than 64 bytes, or contains white space, a control character or a colon.
//
// tokens lists the product tokens, in lower case, of crawlers that obey meta tags with their names. It may be nil.
// NewSet keeps the map, so the caller must not change it. A page's meta tags are recognized if their name is in
// tokens or in elements, is Everyone, or is yandex.
//
// In mode Merge, the set also removes the restrictions in lift from the elements of a page.
func NewSet(elements []Element, tokens map[string]struct{}, lift robotsrule.Lift) *Set {
	s := &Set{tokens: tokens, lift: lift}
	for _, e := range elements {
		p := prepared{Element: e, lower: ascii.Lower(e.Name)}
		if e.Rules.IsEmpty() && e.Content == "" || !isName(e.Name) {
			continue
		}
		if q := s.find(p.lower); q != nil {
			q.Rules = q.Rules.Union(e.Rules)
			continue
		}
		s.elements = append(s.elements, p)
	}
	if e := s.find(Everyone); e != nil && e.Rules.Has("indexifembedded") {
		if without := s.withoutEmbedding(); s.refuses() {
			s.elements = without
		} else {
			s.plain = (&Set{elements: without, tokens: tokens, lift: lift}).prepare()
		}
	}
	return s.prepare()
}

// refuses reports whether at least one element for a single crawler contains noindex without indexifembedded.
func (s *Set) refuses() bool {
	return slices.ContainsFunc(s.elements, func(p prepared) bool { return p.lower != Everyone && p.Rules.PlainNoindex() })
}

func (s *Set) withoutEmbedding() []prepared {
	elements := slices.Clone(s.elements)
	for i := range elements {
		elements[i].Rules = elements[i].Rules.WithoutEmbedding()
	}
	return elements
}

// prepare renders the elements as HTML and XHTML.
func (s *Set) prepare() *Set {
	sum := fnv.New32a()
	for i := range s.elements {
		p := &s.elements[i]
		s.robots = s.robots || !p.Rules.IsEmpty()
		value := p.Content
		if value == "" {
			value = p.Rules.Meta()
		}
		value = html.EscapeString(value)
		p.html, p.xhtml = renderValue(p.Name, value, false), renderValue(p.Name, value, true)
		if p.Silent {
			sum.Write([]byte(p.html))
			continue
		}
		s.html = append(s.html, p.html...)
		s.xhtml = append(s.xhtml, p.xhtml...)
		if p.lower == Everyone {
			s.everyone = p.Rules
		}
	}
	sum.Write(s.html)
	sum.Write([]byte{byte(s.lift)})
	s.mark = fmt.Sprintf("%08x", sum.Sum32())
	return s
}

// maxToken is the maximum length of a product token in a page, in bytes.
const maxToken = 64

func isName(s string) bool {
	for i := range len(s) {
		if neverInToken(s[i]) {
			return false
		}
	}
	return s != "" && len(s) <= maxToken
}

// neverInToken reports whether c is a byte that a product token cannot contain.
func neverInToken(c byte) bool { return c <= ' ' || c == ':' || c == 0x7f }

// IsEmpty reports whether the set does not change any page. A nil Set is empty.
func (s *Set) IsEmpty() bool { return s == nil || len(s.elements) == 0 && s.lift == 0 }

// Send reports whether the set adds elements to a page without meta tags. It returns false for a nil Set, and if all
// elements are Silent.
func (s *Set) Send() bool { return s != nil && len(s.html) > 0 }

// HTML returns the elements in the form in which they are added to an HTML page.
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

// renderValue renders an element whose content is already escaped.
func renderValue(name, escaped string, xml bool) string {
	end := ">"
	if xml {
		end = "/>"
	}
	return `<meta name="` + html.EscapeString(name) + `" content="` + escaped + `"` + end
}

// A combination is the result of combining a page's elements for one audience with the policy's element for the same
// audience.
type combination struct {
	keep   bool   // the page's elements need no change
	value  string // the new value of content, escaped; "" if the page's elements must be removed
	quoted []byte // the new value with its quotes
}

type combinationKey struct {
	audience, content string
	mode              Mode
}

// Limits of the cache of combinations. The pages of a site repeat the same few values, so a small cache is enough.
const (
	maxCombinations = 64
	maxContent      = 256
)

// combined returns the result of combine, from the cache if possible.
func (s *Set) combined(audience, content string, element *prepared, mode Mode) *combination {
	key := combinationKey{audience, content, mode}
	known := s.combinations.Load()
	if known != nil {
		if c := (*known)[key]; c != nil {
			return c
		}
	}
	c := &combination{}
	if element != nil && element.Content != "" {
		value := element.Content
		if mode != Replace && element.Combine != nil {
			value = element.Combine(content)
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
	s.combinations.CompareAndSwap(known, &more) // if another goroutine has stored its map first, that map is kept
	return c
}
