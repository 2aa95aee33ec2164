// SPDX-License-Identifier: Apache-2.0

package console

import (
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/recorders"
)

// runningActivity returns the recorder of the running configuration, nil if it has none.
func runningActivity() *Activity {
	a, _ := recorders.RunningStore().(*Activity)
	return a
}

// runningStore is the store of the running configuration, or of its fleet; nil if it has none.
func runningStore(node string) store.Queries {
	if a := runningActivity(); a != nil {
		return a.queries(node)
	}
	return nil
}

// errNoStore is why runningStore has none.
func errNoStore() error {
	if a := runningActivity(); a != nil {
		return a.errNotOpen()
	}
	return errors.New("this server does not store totals of requests; add the option activity to robots_policy")
}

const (
	answersFor = 3 * time.Second
	maxAnswers = 200
)

var errUnanswered = errors.New("a question to the activity database was not answered")

type answer struct {
	at   time.Time
	rows []store.Row
	err  error // errUnanswered unless it was answered without a panic
	done chan struct{}
}

func (a *answer) isOld() bool { return time.Since(a.at) > answersFor }

var answers = struct {
	sync.Mutex
	by map[asked]*answer
}{by: map[asked]*answer{}}

// asked is a question to a database. It holds the recorder, whose address another one could have otherwise, with the
// answers of the former.
type asked struct {
	of          *Activity
	node, query string
}

// totals answers a question. An answer, also one that is being computed, is used again for a moment.
func (v *view) totals(q store.Query) ([]store.Row, error) {
	if v.store == nil {
		return nil, nil
	}
	key := asked{runningActivity(), v.node, q.Key()}
	answers.Lock()
	a := answers.by[key]
	asks := a == nil || a.isOld()
	if asks {
		maps.DeleteFunc(answers.by, func(_ asked, a *answer) bool { return a.isOld() })
		if len(answers.by) >= maxAnswers {
			clear(answers.by)
		}
		a = &answer{at: time.Now(), err: errUnanswered, done: make(chan struct{})}
		answers.by[key] = a
	}
	answers.Unlock()
	if asks {
		defer close(a.done)
		if a.rows, a.err = v.store.Totals(v.ctx, q); a.err != nil {
			answers.Lock()
			delete(answers.by, key) // a failure is not used again
			answers.Unlock()
		}
		return a.rows, a.err
	}
	select {
	case <-a.done:
	case <-v.ctx.Done():
		return nil, v.ctx.Err()
	}
	if a.err != nil { // the other's request may have ended
		return v.store.Totals(v.ctx, q)
	}
	return a.rows, nil
}

// askEarly asks questions whose answers the page needs later, so that they are answered at the same time.
func (v *view) askEarly(questions ...store.Query) {
	for _, q := range questions {
		go func() {
			defer func() { _ = recover() }() // the page asks again, and its panic is handled
			_, _ = v.totals(q)               // likewise
		}()
	}
}

// counts are requests by verdict. The verdicts add up to All.
type counts struct {
	All, Allowed, Unknown, Closed, Would, Blocked int64
	Violations, Bytes                             int64
	Unread                                        int64 // cannot be judged: see store.Row
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
	case decision == string(activity.WouldBlock):
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

// sum adds up the answer to a question by kind and decision; nil if there is none.
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

// seen are the crawlers that ever came to any host. A site sees only its own.
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

// busiest asks for the hosts with visits, the busiest first.
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
