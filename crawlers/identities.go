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
	id := &Identities{base: base, lists: map[string]*Crawler{}, directories: map[string][]*Crawler{}}
	catalogued := c.withoutPolicy().AddressLists()
	for url, crawler := range all.lists {
		known, ok := base.lists[url]
		if !ok {
			if _, found := slices.BinarySearch(catalogued, url); found {
				id.catalogueLists = append(id.catalogueLists, url)
			} else {
				id.ownLists = append(id.ownLists, url)
			}
		}
		if !ok || known != crawler {
			id.lists[url] = crawler
		}
	}
	for url := range base.lists {
		if _, ok := all.lists[url]; !ok {
			id.lists[url] = nil
		}
	}
	for url, crawlers := range all.directories {
		if !slices.Equal(crawlers, base.directories[url]) {
			id.directories[url] = crawlers
		}
	}
	for url := range base.directories {
		if _, ok := all.directories[url]; !ok {
			id.directories[url] = nil
		}
	}
	slices.Sort(id.catalogueLists)
	slices.Sort(id.ownLists)
	return id
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
