// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"cmp"
	"embed"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/ascii"
)

//go:embed catalog/*.yaml
var embedded embed.FS

// Catalog is an immutable set of crawlers that is safe for concurrent use. No two crawlers have tokens that are equal
// if letter case is ignored. The zero value is empty.
type Catalog struct {
	crawlers  []*Crawler // ordered by token, ignoring case
	byToken   map[string]int
	asOf      string
	controls  []Control
	addresses string   // the address lists delivered with the catalog, for package verify
	base      *Catalog // the catalog into which the rows of a policy file were merged, or nil
}

var builtin = sync.OnceValues(func() (*Catalog, error) { return load(embedded) })

// installed is the catalog that replaces the embedded one in this process.
var installed atomic.Pointer[Catalog]

// Embedded returns the catalog that is part of the program. The first call parses the catalog, which takes some
// milliseconds. The error is always nil in a build for which the tests of package crawlers pass.
func Embedded() (*Catalog, error) { return builtin() }

// Default returns the catalog in use. This is the installed catalog, or the embedded catalog if none was installed.
// Default returns the same error as [Embedded].
func Default() (*Catalog, error) {
	if c := installed.Load(); c != nil {
		return c, nil
	}
	return Embedded()
}

// Install makes c the catalog in use. If c is nil, the embedded catalog is in use again. Values created from the
// previous catalog continue to use the previous catalog.
func Install(c *Catalog) { installed.Store(c) }

// AsOf returns the date of the catalog's newest file, as YYYY-MM-DD.
func (c *Catalog) AsOf() string { return c.asOf }

// Addresses returns the text of the address lists delivered with the catalog, or "" if there are none. Package verify
// parses it.
func (c *Catalog) Addresses() string { return c.addresses }

// newCatalog returns a catalog with the crawlers in list, whose tokens must be distinct. It sorts list.
func newCatalog(list []*Crawler, controls []Control, asOf string) *Catalog {
	slices.SortFunc(list, func(a, b *Crawler) int {
		return cmp.Compare(ascii.Lower(a.Token), ascii.Lower(b.Token))
	})
	c := &Catalog{crawlers: list, byToken: make(map[string]int, len(list)), controls: controls, asOf: asOf}
	for i, cr := range list {
		c.byToken[ascii.Lower(cr.Token)] = i
	}
	return c
}

// Len returns the number of crawlers.
func (c *Catalog) Len() int { return len(c.crawlers) }

// All returns every crawler, ordered by token. The caller may change the slice.
func (c *Catalog) All() []*Crawler { return slices.Clone(c.crawlers) }

// At returns the crawler with index i, which usually comes from a [Recognizer]. It panics if i is not below
// [Catalog.Len].
func (c *Catalog) At(i int) *Crawler { return c.crawlers[i] }

// Lookup returns the crawler whose product token is token, in any letter case.
func (c *Catalog) Lookup(token string) (*Crawler, bool) {
	i, ok := c.Index(token)
	if !ok {
		return nil, false
	}
	return c.crawlers[i], true
}

// Index returns the position of the crawler whose product token is token, in any letter case.
func (c *Catalog) Index(token string) (int, bool) {
	i, ok := c.byToken[ascii.Lower(token)]
	return i, ok
}

// OfCategory returns the crawlers that `category:NAME` in a policy selects. These are the crawlers with the main
// category k, or all crawlers for AI if k is [CategoryAI].
func (c *Catalog) OfCategory(k Category) []*Crawler {
	return c.filter(func(cr *Crawler) bool { return cr.Category == k || k == CategoryAI && cr.IsAI() })
}

// OfOperator returns the crawlers of an operator. name may have any letter case.
func (c *Catalog) OfOperator(name string) []*Crawler {
	return c.filter(func(cr *Crawler) bool { return strings.EqualFold(cr.Operator, name) })
}

// Operators returns the operators' names in alphabetical order, without duplicates.
func (c *Catalog) Operators() []string {
	names := make([]string, 0, len(c.crawlers))
	for _, cr := range c.crawlers {
		if cr.Operator != "" {
			names = append(names, cr.Operator)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(ascii.Lower(a), ascii.Lower(b)) })
	return slices.Compact(names)
}

// Search returns the crawlers that a person may mean by a name. If name is the token of a crawler in any letter case,
// Search returns only that crawler. If name is a category, it returns the crawlers that have this category as main or
// further category. Otherwise it returns every crawler whose token, operator or User-Agent string contains name.
func (c *Catalog) Search(name string) []*Crawler {
	if cr, ok := c.Lookup(name); ok {
		return []*Crawler{cr}
	}
	if k := Category(ascii.Lower(name)); k.Valid() {
		return c.filter(func(cr *Crawler) bool { return cr.Is(k) })
	}
	want := strings.ToLower(name)
	contains := func(s string) bool { return strings.Contains(strings.ToLower(s), want) }
	return c.filter(func(cr *Crawler) bool {
		return contains(cr.Token) || contains(cr.Operator) || slices.ContainsFunc(cr.UserAgents, contains)
	})
}

// withoutPolicy returns the original catalog, without the rows that a policy added or changed.
func (c *Catalog) withoutPolicy() *Catalog {
	if c.base != nil {
		return c.base
	}
	return c
}

// AddressLists returns the URLs of all address lists, sorted and without duplicates.
func (c *Catalog) AddressLists() []string {
	var urls []string
	for _, cr := range c.crawlers {
		urls = append(urls, cr.Verification.AddressLists...)
	}
	slices.Sort(urls)
	return slices.Compact(urls)
}

func (c *Catalog) filter(keep func(*Crawler) bool) []*Crawler {
	var found []*Crawler
	for _, cr := range c.crawlers {
		if keep(cr) {
			found = append(found, cr)
		}
	}
	return found
}

// Patterns returns the strings to look for in a User-Agent. The Index of a pattern is the index of its crawler, for
// [Catalog.At]. The patterns of crawlers from the policy file come first. If a built-in crawler has an equal pattern,
// the crawler from the policy file takes precedence.
func (c *Catalog) Patterns() []Pattern {
	patterns := make([]Pattern, 0, len(c.crawlers))
	for _, fromPolicy := range []bool{true, false} {
		for i, cr := range c.crawlers {
			if cr.FromPolicy != fromPolicy {
				continue
			}
			for _, p := range cr.Patterns() {
				patterns = append(patterns, Pattern{Token: p, Index: i})
			}
		}
	}
	return patterns
}

// Derived caches a value computed from the catalog in use, so that all callers share one value. When another catalog
// comes into use, the value is computed again. The zero value is ready to use.
type Derived[T any] struct {
	mu    sync.Mutex
	of    *Catalog
	value T
}

// Get returns the result of derive for c. ok is false if c is not the catalog in use. In that case, the caller must
// compute the value itself.
func (d *Derived[T]) Get(c *Catalog, derive func() T) (value T, ok bool) {
	if current, err := Default(); err != nil || current != c {
		return value, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of != c {
		d.of, d.value = c, derive()
	}
	return d.value, true
}

// WellKnown lists the crawlers that messages mention before all others.
var WellKnown = []string{
	"Googlebot", "Bingbot", "DuckDuckBot", "Applebot", "facebookexternalhit", "GPTBot", "ClaudeBot", "CCBot", "Amazonbot",
	"PerplexityBot", "OAI-SearchBot", "Claude-SearchBot", "ChatGPT-User", "Claude-User", "Perplexity-User", "GoogleOther",
}

// SortWellKnown moves the names in [WellKnown] to the front of names. The order of all other names does not change.
func SortWellKnown(names []string) {
	rank := func(name string) int {
		if i := slices.Index(WellKnown, name); i >= 0 {
			return i
		}
		return len(WellKnown)
	}
	slices.SortStableFunc(names, func(a, b string) int { return rank(a) - rank(b) })
}
