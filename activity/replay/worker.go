// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"context"
	"crypto/sha256"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/accesslog"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

type worker struct {
	options  *Options
	new, old *decider // if old is nil, the new policy is compared with a server that does not block any request
	tally    *tally
	queue    *queue
	ids      *identifier
	clients  map[string]*client            // keys are User-Agents
	over     map[[sha256.Size]byte]*worker // workers for sites with their own robots.txt, by hash of that file
}

// maxOver limits how many different robots.txt files of sites a worker combines with the policies. For further sites,
// the policies alone decide, as if these sites had no robots.txt.
const maxOver = 20

// of returns the worker for the requests of a host. If the host's own robots.txt is known, the worker combines that
// file with the policies. The workers of all hosts use the same tally.
func (w *worker) of(host string) *worker {
	if w.options.Below == nil {
		return w
	}
	file, known := w.options.Below(host)
	if !known || file == nil {
		return w
	}
	over, ok := w.over[file.Sum]
	if !ok && len(w.over) < maxOver {
		over = w.with(file)
		w.over[file.Sum] = over
	}
	if over == nil {
		return w
	}
	return over
}

// with returns a worker that combines the policies with a site's own robots.txt.
func (w *worker) with(file *robotstxt.File) *worker {
	o := *w.options
	o.Below = nil
	for _, s := range []**site.Site{&o.New, &o.Old} {
		if *s == nil {
			continue
		}
		*s = (*s).Over(file)
	}
	over := newWorker(&o)
	over.tally, over.queue = w.tally, w.queue
	return over
}

// client holds the crawlers that each of the two policies recognizes in a User-Agent.
type client struct {
	new, old  []policy.CrawlerID // the crawlers that the User-Agent names
	purposes  [2][]string        // purposes in the User-Agent, according to the new and the old policy
	automated string             // name of an automated client that neither policy lists, or empty
	preview   bool               // see crawlers.OnDevicePreview
}

func newWorker(o *Options) *worker {
	w := &worker{options: o, new: newDecider(o.New), tally: newTally(), queue: &queue{room: maxQueued / max(1, o.Workers)}, clients: map[string]*client{}, over: map[[sha256.Size]byte]*worker{}}
	if o.Old == nil {
		w.ids = newIdentifier(o.New)
	} else {
		w.old, w.ids = newDecider(o.Old), newIdentifier(o.New, o.Old)
	}
	return w
}

// maxHosts limits the number of hosts that a worker remembers.
const maxHosts = 20_000

// maxClients limits the number of User-Agents that a worker remembers.
const maxClients = 20_000

func (w *worker) client(ua []byte) *client {
	if c, ok := w.clients[string(ua)]; ok {
		return c
	}
	if len(w.clients) >= maxClients {
		clear(w.clients)
	}
	text := string(ua)
	lines := strings.Split(text, "\n")
	c := &client{new: w.new.site.RecognizeAll(nil, lines), preview: crawlers.OnDevicePreview(lines)}
	c.purposes[0] = w.new.site.Purposes(lines)
	if w.old != nil {
		c.old, c.purposes[1] = w.old.site.RecognizeAll(nil, lines), w.old.site.Purposes(lines)
	}
	if len(c.new) == 0 && len(c.old) == 0 {
		c.automated, _ = crawlers.Automated(lines[0])
	}
	w.clients[text] = c
	return c
}

// recognized returns the crawlers that may have sent a request. If the server recognized a crawler by its signature or
// address, recognized returns only that crawler, and not the crawlers that the User-Agent names.
func recognized(r *accesslog.Record, j *decider, named []policy.CrawlerID) []policy.CrawlerID {
	if len(r.Crawler) == 0 || j == nil {
		return named
	}
	if id := j.site.Policy.Crawler(string(r.Crawler)); id != 0 && !slices.Contains(named, id) {
		return []policy.CrawlerID{id}
	}
	return named
}

func (w *worker) record(r *accesslog.Record) { w.of(cmp.Or(string(r.Host), w.options.Host)).replay(r) }

func (w *worker) replay(r *accesslog.Record) {
	if !w.options.Since.IsZero() && r.Time.Before(w.options.Since) || !w.options.Until.IsZero() && !r.Time.Before(w.options.Until) {
		return
	}
	t := w.tally
	t.span(r.Time)
	t.requests++
	if len(t.hosts) < maxHosts && !t.hosts[string(r.Host)] {
		t.hosts[string(r.Host)] = true
	}
	c := w.client(r.UserAgent)
	named, before := recognized(r, w.new, c.new), recognized(r, w.old, c.old)
	if len(named) == 0 && len(before) == 0 {
		if c.automated != "" {
			t.addUnknown(c.automated, 1, r.Bytes)
		}
		return
	}
	t.sample(r)
	target, ok := pathOf(string(r.Target))
	if !ok {
		t.opaque++
		return
	}
	host, hostless := string(r.Host), false
	if host == "" {
		if host = w.options.Host; host == "" {
			t.hostless++
			hostless = true
		}
	}
	at := site.NewTarget(host, target)
	addr := clientAddress(r.ClientIP)
	identify := func(s *site.Site, id policy.CrawlerID) identity { return w.ids.identify(r, addr, c, s, id) }
	d := w.decide(&at, r.Time, named, before, c.purposes, identify)
	if d.liveOnly {
		t.liveOnly++
	}
	limits := [2][]site.Limit{w.new.limits(&at, r.Time, named, c.purposes[0], identify, d.new), w.old.limits(&at, r.Time, before, c.purposes[1], identify, d.old)}
	if hostless && d.lost.Loss == 0 && d.site != nil && w.options.losses().OnHosts(d.info().Token) {
		t.unsaid[unsaid{d.info().Token, d.identity, gapHosts}]++
	}
	if plain, _, ok := strings.Cut(target, "?"); ok && d.interesting() {
		without := at.WithoutQuery()
		if w.decide(&without, r.Time, named, before, c.purposes, identify).key == d.key {
			target = plain // the query does not matter
		}
	}
	if limits[0] == nil && limits[1] == nil || !w.queue.add(&queued{r.Time, r.Bytes, target, d.key, limits}) {
		t.add(r.Time, 1, r.Bytes, d.key, target)
	}
	if w.options.Decided != nil {
		w.options.Decided(r, d.verdict())
	}
}

type decided struct {
	key
	liveOnly bool // see identity
}

func (d *decided) verdict() Verdict {
	v := Verdict{Crawler: d.info().Token, Identity: d.identity, Decision: d.new.decision, Rule: d.site.RuleName(d.new.rule)}
	if d.new.impostor {
		v.Rule = "enforcement.impostors"
	}
	return v
}

// decide decides about a request under both policies. named and before are the crawlers that the new and the old policy
// recognize in the request. The request is counted for the crawler whose rules decide under the new policy or, if the
// new policy does not recognize a crawler, under the old policy. There is an exception. If the old policy recognizes a
// search engine, but the new policy recognizes only other crawlers, the request is counted for the search engine.
func (w *worker) decide(t *site.Target, now time.Time, named, before []policy.CrawlerID, purposes [2][]string, identify func(*site.Site, policy.CrawlerID) identity) decided {
	d := decided{key: key{old: verdict{decision: activity.Allowed}}}
	by := func(j *decider, id policy.CrawlerID) {
		found := identify(j.site, id)
		d.site, d.crawler, d.identity, d.liveOnly, d.unproven = j.site, id, found.Identity, found.liveOnly, found.unproven
	}
	var id policy.CrawlerID
	if w.old != nil {
		if id, d.old = w.old.decide(t, now, before, purposes[1], identify); id != 0 {
			by(w.old, id)
		}
	}
	engine := d.site != nil && d.site.Searches(d.crawler) && !slices.Contains(named, w.new.site.Policy.Crawler(d.info().Token))
	if id, d.new = w.new.decide(t, now, named, purposes[0], identify); id != 0 && !engine {
		by(w.new, id)
	}
	if d.site != nil {
		d.lost = w.lost(policy.Query{Host: t.Host, Path: t.Path, Now: now}, &d.key, purposes)
		d.unproven = d.unproven && d.lost != effect.Lost{}
	}
	return d
}

func (w *worker) lost(q policy.Query, k *key, purposes [2][]string) effect.Lost {
	token := k.info().Token
	q.Identity = k.identity
	was, is := q, q
	is.Crawler, is.Purposes = w.new.site.Policy.Crawler(token), purposes[0]
	if w.old == nil {
		return effect.Compare(nil, w.new.site.Engine, was, is, effect.Counted).Counted()
	}
	was.Crawler, was.Purposes = w.old.site.Policy.Crawler(token), purposes[1]
	return effect.Compare(w.old.site.Engine, w.new.site.Engine, was, is, effect.Counted).Counted()
}

func (w *worker) store(ctx context.Context) error {
	from, to := w.options.Since, w.options.Until
	if from.IsZero() {
		from = time.Unix(0, 0)
	}
	if to.IsZero() {
		to = time.Now().Add(24 * time.Hour)
	}
	var err error
	w.tally.stored, err = w.options.Stored(ctx, from, to, func(v activity.Totals) error {
		w.of(v.Host).visits(&v)
		return nil
	})
	return err
}

// stored returns the client for a row of an activity database. Such a row has the token of a crawler, but no
// User-Agent. If the token is unknown, or is only used in robots.txt, stored recognizes crawlers in the token as in a
// User-Agent.
func (w *worker) stored(token string) *client {
	c := *w.client([]byte(token))
	named := func(p *policy.Policy, recognized []policy.CrawlerID) []policy.CrawlerID {
		if id := p.Crawler(token); id != 0 && !p.CrawlerInfo(id).RobotsOnly {
			return []policy.CrawlerID{id}
		}
		return recognized
	}
	c.new = named(w.new.site.Policy, c.new)
	if w.old != nil {
		c.old = named(w.old.site.Policy, c.old)
	}
	return &c
}

func (w *worker) visits(v *activity.Totals) {
	t := w.tally
	t.span(v.Start)
	t.requests += v.Requests
	c := w.stored(v.Crawler)
	stored, _ := recorded(string(v.Identity)) // valid, because the rows do not include audits
	if v.Path == activity.OtherPath {
		t.other += v.Requests
		if w.options.losses().Of(v.Crawler, v.Host) {
			t.unsaid[unsaid{v.Crawler, stored.Identity, gapFolded}] += v.Requests
		}
		return
	}
	if len(c.new) == 0 && len(c.old) == 0 {
		t.addUnknown(v.Crawler, v.Requests, v.Bytes)
		return
	}
	t.queries += v.Queries
	if w.new.purposes || w.old != nil && w.old.purposes {
		t.purposes += v.Requests
	}
	at := site.NewTarget(v.Host, v.Path)
	identify := func(*site.Site, policy.CrawlerID) identity { return stored }
	d := w.decide(&at, v.Start, c.new, c.old, [2][]string{}, identify)
	if w.new.limits(&at, v.Start, c.new, nil, identify, d.new) != nil || w.old.limits(&at, v.Start, c.old, nil, identify, d.old) != nil {
		t.limited += v.Requests
	}
	if v.Queries > 0 && d.lost.Loss == 0 && w.options.losses().WithQuery(v.Crawler, v.Host, v.Path) {
		t.unsaid[unsaid{v.Crawler, stored.Identity, gapQueries}] += v.Queries
	}
	t.add(v.Start, v.Requests, v.Bytes, d.key, v.Path)
}

// pathOf returns the path and query of a request target, like [site.PathOf]. For CONNECT, whose target is a host and a
// port, the path is "/".
func pathOf(target string) (path string, ok bool) {
	if strings.HasPrefix(target, "/") {
		return target, true
	}
	u, err := url.ParseRequestURI(target)
	if err != nil {
		u = &url.URL{} // no server accepts such a target
	}
	if port, err := strconv.Atoi(u.Opaque); err == nil && port > 0 {
		return "/", true
	}
	return site.PathOf(target, u)
}

type decider struct {
	site     *site.Site
	purposes bool // whether the purposes in User-Agents matter to the policy
}

func newDecider(s *site.Site) *decider {
	return &decider{s, slices.ContainsFunc(s.Policy.Spec().Rules, func(r policy.Rule) bool {
		return len(r.UsagePurposes) > 0 || slices.ContainsFunc(r.For, func(a policy.Audience) bool { return a.Kind == policy.ForPurpose })
	})}
}

// verdict is the decision of a policy on a request.
type verdict struct {
	decision activity.Decision
	rule     *policy.Rule
	impostor bool // blocked as an impostor, independently of the rules
}

// decide decides about a request like the server does, and returns the crawler whose rules decided.
func (j *decider) decide(t *site.Target, now time.Time, ids []policy.CrawlerID, purposes []string, identify func(*site.Site, policy.CrawlerID) identity) (policy.CrawlerID, verdict) {
	if len(ids) == 0 {
		return 0, verdict{decision: activity.Allowed}
	}
	by, v := j.site.EdgeOfAll(t, j.clients(ids, identify), policy.Query{Now: now, Purposes: purposes})
	return by.Crawler, verdict{Decision(v), v.Decision.Rule, v.Impostor}
}

// limits returns the rate limits that apply to a request with verdict v. If the policy disallows the request, no limit
// applies, even if the request is not blocked.
func (d *decider) limits(t *site.Target, now time.Time, ids []policy.CrawlerID, purposes []string, identify func(*site.Site, policy.CrawlerID) identity, v verdict) []site.Limit {
	if d == nil || v.decision != activity.Allowed {
		return nil
	}
	return d.site.LimitsOfAll(nil, t, d.clients(ids, identify), policy.Query{Host: t.Host, Path: t.Path, Now: now, Purposes: purposes})
}

func (d *decider) clients(ids []policy.CrawlerID, identify func(*site.Site, policy.CrawlerID) identity) []site.Client {
	clients := make([]site.Client, len(ids))
	for i, id := range ids {
		clients[i] = site.Client{Crawler: id, Identity: identify(d.site, id).Identity}
	}
	return clients
}

// Decision converts the verdict v of a policy to the decision on the request. It assumes that the server enforces the
// policy as the policy file says. The Caddyfile option enforce can make this less strict.
func Decision(v site.Verdict) activity.Decision {
	if !v.Blocked() {
		return activity.Allowed
	}
	switch v.Mode {
	case policy.ModeBlock:
		return activity.Blocked
	case policy.ModeLog:
		return activity.WouldBlock
	case policy.ModeOff, policy.ModeUnset:
	}
	return activity.Disallowed
}

// clientAddress parses an address with or without a port. The result is not valid if b contains no address.
func clientAddress(b []byte) netip.Addr {
	s := string(b)
	if a, err := netip.ParseAddr(s); err == nil {
		return a
	}
	ap, _ := netip.ParseAddrPort(s)
	return ap.Addr()
}
