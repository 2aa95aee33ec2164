// SPDX-License-Identifier: Apache-2.0

package console

import (
	"errors"
	"sync"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/recorders"
)

// runningActivity returns the activity recorder of the running configuration. It returns nil if the configuration does
// not have one.
func runningActivity() *Activity {
	a, _ := recorders.RunningStore().(*Activity)
	return a
}

// runningStore returns the fleet database of the running configuration or, without a fleet database, the open activity
// database. It returns nil if there is neither. If node is not empty, the fleet database returns only the totals of the
// server with this name; see Activity.queries.
func runningStore(node string) store.Queries {
	if a := runningActivity(); a != nil {
		return a.queries(node)
	}
	return nil
}

// errNoStore returns the reason why runningStore returns nil.
func errNoStore() error {
	if a := runningActivity(); a != nil {
		return a.errNotOpen()
	}
	return errors.New("this server does not store totals of requests; add the option \"activity\" to robots_policy")
}

// totals returns the rows that the database returns for the query q. If a page asks the same query several times, the
// database is asked only once. A second call waits until the answer for the first call is ready.
func (v *view) totals(q store.Query) ([]store.Row, error) {
	if v.store == nil {
		return nil, nil
	}
	v.asking.Lock()
	answer := v.answers[q.Key()]
	if answer == nil {
		if v.answers == nil {
			v.answers = map[string]func() ([]store.Row, error){}
		}
		answer = sync.OnceValues(func() ([]store.Row, error) { return v.store.Totals(v.ctx, q) })
		v.answers[q.Key()] = answer
	}
	v.asking.Unlock()
	return answer()
}

// askEarly starts queries whose answers the page needs later, so that they run at the same time.
func (v *view) askEarly(questions ...store.Query) {
	for _, q := range questions {
		go func() {
			defer func() { _ = recover() }() // the page repeats the query, and handles the panic there
			_, _ = v.totals(q)               // the page repeats the query, and handles the error there
		}()
	}
}

// counts holds numbers of requests. All is the sum of Allowed, Unknown, Closed, Would and Blocked. Unknown counts the
// requests of unlisted clients, regardless of the decision. The other summands count requests of crawlers by decision:
// Closed counts requests for disallowed pages that the server neither blocked nor logged. Would counts requests that
// the server only logs instead of blocking or limiting them. Blocked counts blocked and limited requests.
type counts struct {
	All, Allowed, Unknown, Closed, Would, Blocked int64
	Violations, Bytes                             int64
	Unread                                        int64 // requests by crawlers that have not read any robots.txt; see store.Counts
}

func addRow(c *counts, r *store.Row) {
	kind, decision := r.Values[store.ByKind], r.Values[store.ByDecision]
	c.All += r.Requests
	c.Violations += r.Violations
	c.Bytes += r.Bytes
	c.Unread += r.Unread
	switch {
	case kind == activity.CategoryUnlisted:
		c.Unknown += r.Requests
	case decision == string(activity.Disallowed):
		c.Closed += r.Requests
	case decision == string(activity.WouldBlock), decision == string(activity.WouldLimit):
		c.Would += r.Requests
	case decision == string(activity.Blocked), decision == string(activity.Limited):
		c.Blocked += r.Requests
	default:
		c.Allowed += r.Requests
	}
}

func (c *counts) plus(d counts) {
	c.All += d.All
	c.Allowed += d.Allowed
	c.Unknown += d.Unknown
	c.Closed += d.Closed
	c.Would += d.Would
	c.Blocked += d.Blocked
	c.Violations += d.Violations
	c.Bytes += d.Bytes
	c.Unread += d.Unread
}

// sum adds up the rows that a query returns. It returns nil if the query fails.
func (v *view) sum(q store.Query) *counts {
	rows, err := v.totals(q)
	if err != nil {
		return nil
	}
	c := new(counts)
	for i := range rows {
		addRow(c, &rows[i])
	}
	return c
}

// seen returns the crawlers that have sent requests to any host. On the pages of a site, it returns nil, because the
// result would include crawlers of other hosts.
func (v *view) seen() []store.Crawler {
	if v.store == nil || v.may != nil {
		return nil
	}
	all, err := v.store.Crawlers(v.ctx)
	if err != nil {
		return nil
	}
	return all
}

// busiest returns a query for the hosts that received requests in the last 30 days. In the answer, the host with the
// most requests is first.
func (v *view) busiest() store.Query {
	day := v.Now.Truncate(24 * time.Hour)
	return store.Query{From: day.AddDate(0, 0, -30), To: day.AddDate(0, 0, 1), By: []store.Dimension{store.ByHost}, Limit: 1000, Rough: true}
}

func (v *view) busiestHosts() (hosts []string) {
	rows, err := v.totals(v.busiest())
	if err != nil {
		return nil
	}
	for _, r := range rows {
		hosts = append(hosts, r.Values[store.ByHost])
	}
	return hosts
}
