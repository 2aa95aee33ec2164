// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"maps"
	"reflect"
	"slices"
)

// Identities maps the URLs of address lists and key directories to the crawlers whose operators publish them. With it,
// a signed request, or a request from an address on a list, can be attributed to its crawler even if the User-Agent
// names another client. Identities are immutable.
type Identities struct {
	catalogLists []string
	ownLists     []string
	lists        map[string]*Crawler // by URL; nil if several crawlers share the list
	directories  map[string][]*Crawler
}

var sharedIdentities Derived[*Identities]

// NewIdentities returns the identities for c, which is a catalog or the catalog of a policy. A policy can add crawlers
// to its catalog. If it does not add or change any verification facts, NewIdentities returns the same value as for all
// other such policies.
func NewIdentities(c *Catalog) *Identities {
	base := c.withoutPolicy()
	if !slices.ContainsFunc(c.crawlers, func(cr *Crawler) bool {
		return cr.FromPolicy && !reflect.DeepEqual(cr.Verification, base.facts(cr.Token))
	}) {
		if id, ok := sharedIdentities.Get(base, func() *Identities { return collectIdentities(base, base) }); ok {
			return id
		}
	}
	return collectIdentities(c, base)
}

// facts returns the verification facts of the crawler whose token is token, or the zero value if the catalog does not
// have the crawler.
func (c *Catalog) facts(token string) (v Verification) {
	if cr, ok := c.Lookup(token); ok {
		v = cr.Verification
	}
	return v
}

func collectIdentities(c, base *Catalog) *Identities {
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
	var builtIn []string
	if embedded, err := Embedded(); err == nil {
		builtIn = embedded.AddressLists()
	}
	cataloged := base.AddressLists()
	for _, url := range c.AddressLists() {
		switch {
		case slices.Contains(builtIn, url):
		case slices.Contains(cataloged, url):
			id.catalogLists = append(id.catalogLists, url)
		default:
			id.ownLists = append(id.ownLists, url)
		}
	}
	return id
}

// CatalogLists returns the URLs of the address lists that are in the catalog in use, but not in the embedded catalog.
func (id *Identities) CatalogLists() []string { return id.catalogLists }

// OwnLists returns the URLs of the address lists that only the policy names.
func (id *Identities) OwnLists() []string { return id.ownLists }

// ByList returns the crawler whose operator publishes the address list at url. It returns nil if the list is unknown,
// or if several crawlers share the list.
func (id *Identities) ByList(url string) *Crawler { return id.lists[url] }

// ByDirectory returns the crawlers that sign with the keys of a directory. url must be spelled as in the catalog.
func (id *Identities) ByDirectory(url string) []*Crawler { return id.directories[url] }

// Directories returns the URLs of all key directories, sorted.
func (id *Identities) Directories() []string { return slices.Sorted(maps.Keys(id.directories)) }
