// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"slices"
	"sync"
)

// Identities maps what operators publish about their crawlers' requests back to the
// crawlers: a request that is signed, or that comes from an address on a list, can be
// attributed to a crawler whatever its User-Agent says. It is immutable.
type Identities struct {
	base           *Identities // of the embedded catalogue; nil for itself
	catalogueLists []string
	ownLists       []string
	lists          map[string]*Crawler // by URL; nil where several crawlers share a list
	directories    map[string][]*Crawler
}

// NewIdentities returns the identities of a catalogue. It holds only what differs from
// the embedded catalogue, of which there is one copy.
func NewIdentities(c *Catalogue) *Identities {
	base := builtinIdentities()
	if built, err := Embedded(); err == nil && built == c {
		return base
	}
	all := collectIdentities(c)
	id := &Identities{
		base:        base,
		lists:       changes(all.lists, base.lists, func(a, b *Crawler) bool { return a == b }),
		directories: changes(all.directories, base.directories, slices.Equal),
	}
	catalogued := c.withoutPolicy().AddressLists()
	for url := range all.lists {
		if _, ok := base.lists[url]; ok {
			continue
		}
		if _, found := slices.BinarySearch(catalogued, url); found {
			id.catalogueLists = append(id.catalogueLists, url)
		} else {
			id.ownLists = append(id.ownLists, url)
		}
	}
	slices.Sort(id.catalogueLists)
	slices.Sort(id.ownLists)
	return id
}

// changes returns what m has and base has not, and a zero value for what only base has.
func changes[V any](m, base map[string]V, equal func(a, b V) bool) map[string]V {
	changed := map[string]V{}
	for key, v := range m {
		if known, ok := base[key]; !ok || !equal(v, known) {
			changed[key] = v
		}
	}
	for key := range base {
		if v, ok := m[key]; !ok {
			changed[key] = v
		}
	}
	return changed
}

var builtinIdentities = sync.OnceValue(func() *Identities {
	c, err := Embedded()
	if err != nil {
		c = new(Catalogue)
	}
	return collectIdentities(c)
})

func collectIdentities(c *Catalogue) *Identities {
	id := &Identities{lists: map[string]*Crawler{}, directories: map[string][]*Crawler{}}
	for _, crawler := range c.crawlers {
		for _, url := range crawler.Verification.AddressLists {
			if _, shared := id.lists[url]; shared {
				id.lists[url] = nil
			} else {
				id.lists[url] = crawler
			}
		}
		if url := crawler.Verification.WebBotAuth; url != "" {
			id.directories[url] = append(id.directories[url], crawler)
		}
	}
	return id
}

// CatalogueLists returns the URLs of address lists that the catalogue in use has and the
// embedded one does not.
func (id *Identities) CatalogueLists() []string { return id.catalogueLists }

// OwnLists returns the URLs of address lists that only the policy has.
func (id *Identities) OwnLists() []string { return id.ownLists }

// ByList returns the crawler that alone uses the address list with this URL, or nil.
func (id *Identities) ByList(url string) *Crawler {
	crawler, ok := id.lists[url]
	if !ok && id.base != nil {
		crawler = id.base.lists[url]
	}
	return crawler
}

// ByDirectory returns the crawlers whose requests are signed with the keys of a
// directory, named as in the catalogue.
func (id *Identities) ByDirectory(url string) []*Crawler {
	crawlers, ok := id.directories[url]
	if !ok && id.base != nil {
		crawlers = id.base.directories[url]
	}
	return crawlers
}

// Directories returns the URLs of all key directories, in order.
func (id *Identities) Directories() []string {
	var urls []string
	for url, crawlers := range id.directories {
		if crawlers != nil {
			urls = append(urls, url)
		}
	}
	if id.base != nil {
		for url := range id.base.directories {
			if _, changed := id.directories[url]; !changed {
				urls = append(urls, url)
			}
		}
	}
	slices.Sort(urls)
	return urls
}
