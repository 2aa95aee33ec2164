// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

// A client is a crawler with one identity, or an unlisted client, under one name. For example, verified and unverified
// requests of the same crawler belong to two clients.
type client struct {
	clientID
	Kind, Operator string
	How            string
	First, Last    time.Time
	Days           []int64
	Spark          spark
	Meter          meter
	Path           string // the path that an unlisted client requested most
	PathN          int64
	counts
}

// IsUnknown reports whether the client is an unlisted client.
func (c *client) IsUnknown() bool { return c.Kind == activity.CategoryUnlisted }

// Judged returns the number of requests that can be compared with the robots.txt that the client had read.
func (c *client) Judged() int64 {
	if c.Impostor() || c.IsUnknown() {
		return 0
	}
	return c.All - c.Unread
}

// Impostor reports whether the client uses the name of a crawler, but is not that crawler.
func (c *client) Impostor() bool { return c.Identity == activity.Impostor }

// Tag returns one word for the identity of the client, or "unlisted".
func (c *client) Tag() string {
	if c.IsUnknown() {
		return activity.CategoryUnlisted
	}
	return string(c.Identity)
}

// Label returns the client's name as shown on pages. The name of an impostor is in quotation marks.
func (c *client) Label() string {
	if c.Impostor() {
		return "“" + shorten(c.Name) + "”"
	}
	return shorten(c.Name)
}

type clientID struct {
	Name     string
	Identity activity.Identity
}

// idOf returns the ID of the client in r: its name and its identity. All clients whose User-Agent names the command
// `audit` have the name of this command, even if the User-Agent also names a crawler.
func idOf(r *store.Row) clientID {
	id := clientID{r.Values[store.ByCrawler], activity.Identity(r.Values[store.ByIdentity])}
	switch id.Identity {
	case activity.Audit:
		id.Name = activity.AuditProduct
	case "":
		id.Identity = activity.Unverified
	case activity.Verified, activity.Unverified, activity.Impostor:
	}
	return id
}

// traffic returns a query that counts the requests in the chosen period, separately for each bar of the chart, each
// client and each decision. If name is not empty, only requests of clients with this name are counted. If prefix is not
// empty, only requests for paths that begin with prefix are counted.
func (v *view) traffic(name, prefix string) store.Query {
	q := v.query(v.steps().by, store.ByCrawler, store.ByKind, store.ByIdentity, store.ByDecision)
	q.Days, q.PathPrefix = int(v.steps().width.Hours()/24), prefix
	if name != "" && name != activity.AuditProduct { // the audit sends requests under the names of several crawlers, so all names are selected
		q.Only[store.ByCrawler] = []string{name}
	}
	return q
}

// clients adds up rows, the result of the query that traffic returns. It returns one client for each name and identity
// in rows. The client with the most requests is first.
func (v *view) clients(rows []store.Row) []*client {
	from, _ := v.span()
	by := map[clientID]*client{}
	var all []*client
	for i := range rows {
		r := &rows[i]
		k := idOf(r)
		c := by[k]
		if c == nil {
			c = &client{clientID: k, Kind: r.Values[store.ByKind], Days: make([]int64, v.bars())}
			if k.Identity == activity.Audit {
				c.Kind = activity.CategoryUnlisted
			}
			v.describe(c)
			by[k] = c
			all = append(all, c)
		}
		addRow(&c.counts, r)
		if at := int(r.Start.Sub(from) / v.steps().width); at >= 0 && at < len(c.Days) {
			c.Days[at] += r.Requests
		}
	}
	slices.SortFunc(all, func(a, b *client) int {
		return cmp.Or(cmp.Compare(b.All, a.All), strings.Compare(a.Name, b.Name), strings.Compare(string(a.Identity), string(b.Identity)))
	})
	return all
}

// describe sets the fields of the client that come from the catalog.
func (v *view) describe(c *client) {
	row := v.lookup(c.Name)
	if row == nil {
		c.How = "not in the catalog"
		return
	}
	c.Operator = row.Operator
	if c.Kind == "" {
		c.Kind = string(row.Category)
	}
	ways := waysToVerify(row.Verification)
	switch {
	case c.Impostor():
		c.How = "not " + cmp.Or(row.Operator, row.Token)
	case ways == "":
		c.How = "no way to check it"
	case c.Identity == activity.Verified:
		c.How = "by " + ways
	default:
		c.How = "can be verified by " + ways
	}
}

// lookup finds a crawler in the catalog of the policy or, if no policy is loaded, in the catalog that crawlers.Default
// returns. It returns nil if the catalog does not have the crawler.
func (v *view) lookup(name string) *crawlers.Crawler {
	catalog, _ := crawlers.Default() // the built-in catalog is valid
	if v.Running != nil {
		catalog = v.Running.Site.File.Catalog
	}
	row, _ := catalog.Lookup(name)
	return row
}

// waysToVerify lists the data that an operator publishes to verify its crawler. It returns "" if there is none.
func waysToVerify(f crawlers.Verification) string {
	var ways []string
	if len(f.AddressLists) > 0 {
		ways = append(ways, "address list")
	}
	if len(f.ReverseDNS) > 0 {
		ways = append(ways, "DNS")
	}
	if f.WebBotAuth != "" {
		ways = append(ways, "signature")
	}
	return english.List(ways, "or")
}

// addSeen sets the times when clients were first and last seen, and draws the small chart of each client.
func (v *view) addSeen(clients []*client) {
	s := v.steps()
	from, _ := v.span()
	names, seen := map[string]int{}, map[string]store.Crawler{}
	for _, x := range v.seen() {
		seen[x.Name] = x
	}
	for _, c := range clients {
		names[c.Name]++
	}
	for _, c := range clients {
		c.Spark = newSpark(c.Days, s.unit)
		c.Spark.Dropped = s.width == 24*time.Hour && v.since.IsZero() && fell(c)
		c.First, c.Last = seen[c.Name].First, seen[c.Name].Last
		if v.may == nil && names[c.Name] == 1 && !c.Impostor() {
			continue
		}
		// The map seen has one first and one last time for each name. These times are about all hosts and all
		// identities. They may be wrong if the name has several identities, or if the user may not see all hosts. In
		// these cases, take the times from c.Days instead.
		c.First, c.Last = time.Time{}, time.Time{}
		for i, n := range c.Days {
			if at := from.Add(time.Duration(i) * s.width); n > 0 {
				c.Last = at
				if c.First.IsZero() {
					c.First = at
				}
			}
		}
	}
}

// fell reports whether a crawler has stopped sending requests. It compares the last two days in c.Days with the days
// before them. On each of those earlier days, the crawler must have sent requests, on average at least 20 a day. It has
// stopped if it then sent fewer than half of this average on the second last day, and no requests on the last day.
func fell(c *client) bool {
	n := len(c.Days)
	if n < 7 || c.Impostor() || c.IsUnknown() {
		return false
	}
	var before int64
	for _, d := range c.Days[:n-2] {
		if d == 0 {
			return false
		}
		before += d
	}
	mean := before / int64(n-2)
	return mean >= 20 && c.Days[n-1] == 0 && c.Days[n-2] < mean/2
}
