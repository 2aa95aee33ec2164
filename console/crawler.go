// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/recorders"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

type crawlerData struct {
	Obeyed string // a text about whether the crawler obeyed the robots.txt that it had read
	*client
	Row       *crawlers.Crawler // nil if the crawler is not in the catalog
	Card      string            // the crawler's description of itself, if it signs requests
	Others    []*client         // clients with other identities under the same name
	Chart     *chart
	Sections  []sectionCounts
	Reads     []readEvent
	Violating []violationDay
	Refused   int64 // number of violations that the server blocked or limited
	Evidence  bool
	Controls  []site.ControlState
}

// sectionCounts holds the numbers of requests for one section of the site.
type sectionCounts struct {
	Path string
	counts
	Meter meter
}

// readEvent records that a crawler read a robots.txt.
type readEvent struct {
	store.Read
	Current bool
}

// violationDay holds the violations of one rule on one day.
type violationDay struct {
	Day        time.Time
	Rule       string
	Decision   string
	Violations int64
	Line       int
}

func crawlerPage(v *view) (*page, error) {
	name := v.Param("name")
	if name == "" || v.store == nil {
		return nil, failed(http.StatusNotFound, "this page needs stored totals of requests and the name of a crawler; choose a crawler on the page “Who came”")
	}
	rows, err := v.totals(v.traffic(name, ""))
	if err != nil {
		return nil, err
	}
	d := &crawlerData{Row: v.lookup(name), Evidence: recorders.RunningEvidence() != nil}
	if d.Row != nil {
		d.Card = identity.CardOf(d.Row.Verification).String()
	}
	v.chooseIdentity(d, name, v.clients(rows))
	if d.Row != nil {
		d.Controls = v.controls(d.Row.Token)
	}
	rows = slices.DeleteFunc(slices.Clone(rows), func(r store.Row) bool { return idOf(&r) != d.clientID })
	d.Chart = v.newChart(d.Label()+", requests", v.series(rows))
	v.addSeen([]*client{d.client})
	if err := cmp.Or(v.crawlerReads(d), v.crawlerPaths(d)); err != nil {
		return nil, err
	}
	return &page{template: "crawler", Title: d.Label(), Lead: v.crawlerLead(d), Scope: scope{Host: true, Period: true}, Data: d}, nil
}

// chooseIdentity sets d.client to one of the clients called name, and adds the clients with other identities to
// d.Others. It chooses the client with the identity in the URL of the page or, if the URL does not have an identity,
// the client with the best proof of identity.
func (v *view) chooseIdentity(d *crawlerData, name string, clients []*client) {
	chosen := activity.Identity(v.Param("identity"))
	for _, id := range []activity.Identity{activity.Verified, activity.Unverified, activity.Audit, activity.Impostor} {
		for _, c := range clients {
			switch {
			case c.Name != name || c.Identity != id:
			case d.client == nil && (chosen == "" || chosen == id):
				d.client = c
			default:
				d.Others = append(d.Others, c)
			}
		}
	}
	if d.client == nil {
		d.client = &client{clientID: clientID{name, cmp.Or(chosen, activity.Unverified)}, Days: make([]int64, v.bars())}
		v.describe(d.client)
	}
}

// crawlerLead returns sentences about what the crawler may do, when it sent requests, and whether it is verified.
func (v *view) crawlerLead(d *crawlerData) string {
	in := " " + v.inPeriod()
	switch {
	case d.Impostor() && d.All > 0:
		return plural(d.All, "request", "requests") + in + " under a false name."
	case d.All == 0:
		return v.mayWords(d.Name) + sentences(v.judgeAsked(askedSubject{Name: d.Label(), Site: true}, nil))
	}
	text := v.mayWords(d.Name) + "It came " + plural(d.All, "time", "times") + in
	if !d.Last.IsZero() && v.since.IsZero() {
		text += ", most recently within the past " + within(v.Now.Sub(d.Last)) // the store has only the hour of a request
	}
	switch {
	case d.Identity == activity.Verified:
		text += "; its identity is proven"
	case !d.IsUnknown():
		text += "; its identity is not proven"
	}
	if d.IsUnknown() {
		return text + "."
	}
	d.Obeyed = sentences(v.judgeBehavior(behavior{d.Judged(), d.Violations, d.Refused}))
	text += ". " + d.Obeyed
	if d.Unread > 0 && d.Judged() > 0 {
		text += " " + plural(d.Unread, "request", "requests") + " cannot be judged."
	}
	return text
}

// within returns d in words, rounded up to whole hours or days.
func within(d time.Duration) string {
	switch hours := int((d + time.Hour - 1) / time.Hour); {
	case hours <= 1:
		return "hour"
	case hours <= 48:
		return plural(hours, "hour", "hours")
	default:
		return plural((hours+23)/24, "day", "days")
	}
}

// mayWords describes which pages a crawler may read. It asks the policy about each pattern in the policy's rules.
func (v *view) mayWords(name string) string {
	if v.Running == nil {
		return ""
	}
	a := asker{Name: name, id: v.Running.Site.Policy.Crawler(name)}
	a.identity = v.likely(a.id)
	s := section{Host: v.MainHost(), Path: "/"}
	s.probe(v.patterns(policy.Crawl), nil)
	_, parts := v.evaluate(&a, &s, policy.Crawl)
	said := map[bool][]string{} // allowed patterns (true) and disallowed patterns (false)
	for _, p := range parts[1:] {
		said[p.Verdict == "allowed"] = append(said[p.Verdict == "allowed"], shorten(p.shows))
	}
	text := "On " + shorten(s.Host) + " it may read "
	switch open := parts[0].Verdict == "allowed"; {
	case open && len(said[false]) == 0:
		text += "everything"
	case open:
		text += "everything except " + english.Some(said[false], 4)
	case len(said[true]) == 0:
		text += "nothing"
	default:
		text += "only " + english.Some(said[true], 4)
	}
	if len(parts) == maxProbes {
		text += ". There may be exceptions, because the policy has too many path patterns to check all of them"
	}
	return text + ". "
}

// controls returns the controls against AI training and AI answers that operators of crawlers offer. The result says
// for each control whether the policy uses it on the main host of the view. If token is not "", only the controls for
// the crawler with this product token are returned.
func (v *view) controls(token string) []site.ControlState {
	if v.Running == nil {
		return nil
	}
	return v.Running.Site.ControlStates(site.ControlScope{Crawler: token, Host: v.MainHost()}, v.Now)
}

// onlyClient returns a query for the requests of one client.
func (v *view) onlyClient(c *client, by ...store.Dimension) store.Query {
	q := v.query(by...)
	// the audit sends requests under the names of several crawlers, so its name is not a condition
	if q.Only[store.ByIdentity] = []string{string(c.Identity)}; c.Identity != activity.Audit {
		q.Only[store.ByCrawler] = []string{c.Name}
	}
	return q
}

// pathsOf returns a query for the paths that a client requested most often in the chosen period. If the period is
// longer than 30 days, the query covers only the last 30 days of this period.
func (v *view) pathsOf(c *client) store.Query {
	q := v.onlyClient(c, store.ByPath, store.ByDecision)
	q.From, q.Limit = maxTime(q.From, q.To.AddDate(0, 0, -30)), 5000
	return q
}

// sectionOf returns the first folder of a path, such as "/news/" for "/news/2026/a.html", or "/" for a page that is not
// in a folder. It returns "/robots.txt" and store.OtherPath unchanged.
func sectionOf(path string) string {
	if path == store.OtherPath {
		return path
	}
	path, _, _ = strings.Cut(path, "?")
	if i := strings.IndexByte(strings.TrimPrefix(path, "/"), '/'); i >= 0 {
		return path[:i+2]
	}
	if path == "/robots.txt" {
		return path
	}
	return "/"
}

func (v *view) crawlerPaths(d *crawlerData) error {
	rows, err := v.totals(v.pathsOf(d.client))
	if err != nil {
		return err
	}
	by := map[string]*sectionCounts{}
	for _, r := range rows {
		section := sectionOf(r.Values[store.ByPath])
		if by[section] == nil {
			by[section] = &sectionCounts{Path: section}
		}
		r.Values[store.ByKind] = d.Kind
		addRow(&by[section].counts, &r)
	}
	for _, s := range by {
		d.Sections = append(d.Sections, *s)
	}
	slices.SortFunc(d.Sections, func(a, b sectionCounts) int {
		return cmp.Or(cmp.Compare(b.All, a.All), strings.Compare(a.Path, b.Path))
	})
	d.Sections = d.Sections[:min(len(d.Sections), 12)]
	for i := range d.Sections {
		d.Sections[i].Meter = newMeter(&d.Sections[i].counts, d.Sections[0].All)
	}
	if d.Violations == 0 {
		return nil
	}
	q := v.onlyClient(d.client, store.ByDay, store.ByRule, store.ByDecision)
	q.Violating = true
	if rows, err = v.totals(q); err != nil {
		return err
	}
	for _, r := range slices.Backward(rows) {
		if decision := activity.Decision(r.Values[store.ByDecision]); decision == activity.Blocked || decision == activity.Limited {
			d.Refused += r.Violations
		}
		if r.Violations > 0 && len(d.Violating) < 40 {
			d.Violating = append(d.Violating, violationDay{
				Day: r.Start, Rule: r.Values[store.ByRule], Decision: r.Values[store.ByDecision], Violations: r.Violations,
				Line: v.lineOf(r.Values[store.ByRule]),
			})
		}
	}
	return nil
}

// lineOf returns the line number of the rule with the given name in the policy in force. It returns 0 if the policy
// does not have the rule.
func (v *view) lineOf(rule string) int {
	if v.Running == nil {
		return 0
	}
	for _, r := range v.Running.Spec().Rules {
		if v.Running.Site.RuleName(&r) == rule {
			return r.Pos.Line
		}
	}
	return 0
}

func (v *view) crawlerReads(d *crawlerData) error {
	reads, err := v.store.Reads(v.ctx)
	if err != nil {
		return err
	}
	h, err := v.history()
	if err != nil {
		return err
	}
	for _, x := range reads {
		if x.Crawler == d.Name && activity.Identity(x.Identity) == d.Identity && v.allowed(x.Host) && (v.Host == "" || x.Host == v.Host) && len(d.Reads) < 12 {
			d.Reads = append(d.Reads, readEvent{x, h.isCurrent(&x)})
		}
	}
	return nil
}
