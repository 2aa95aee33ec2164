// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/evidence"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/fleet"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/optional"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/policies"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/recorders"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// notice describes a problem. It is an alert if the problem already has an effect, and a warning if the problem may
// have an effect later.
type notice struct {
	ID      string
	Alert   bool
	Heading string
	Text    string
	Since   time.Time
	Screen  string // the page that the notice belongs to
	Actions []action
}

// action is a link to a page where the user can solve the problem.
type action struct{ Text, Link string }

// findNotices returns the present problems, alerts first.
func (v *view) findNotices() []notice {
	all := slices.Concat([]notice{}, // an empty slice instead of nil
		v.policyNotices(), v.searchNotices(), v.auditNotices(), v.absenceNotices(), v.listNotices(), v.lackNotices(), v.recorderNotices(), v.coverageNotices())
	rank := map[bool]int{true: 0, false: 1}
	slices.SortStableFunc(all, func(a, b notice) int { return rank[a.Alert] - rank[b.Alert] })
	for i := range all {
		all[i].ID = fmt.Sprintf("notice%d", i+1)
	}
	return all
}

// findNoticesBeside starts to find the notices in the background while the page is computed. It has no effect if
// v.Running is nil.
func (v *view) findNoticesBeside() {
	if v.Running == nil {
		return
	}
	go func() {
		defer func() { _ = recover() }() // the page also calls notices, and handles the panic there
		v.notices()
	}()
}

// count returns the numbers of alerts and warnings. Only the notices that the function holds accepts are counted.
func (v *view) count(holds func(*notice) bool) (alarms, warnings int) {
	for _, n := range v.notices() {
		switch {
		case !holds(&n):
		case n.Alert:
			alarms++
		default:
			warnings++
		}
	}
	return alarms, warnings
}

// failingTests reports whether the diagnostics ds contain a failed test. For a running policy, a failed test is only a
// warning.
func failingTests(ds policyfile.Diagnostics) bool {
	return slices.ContainsFunc(ds, func(d policyfile.Diagnostic) bool { return d.IsFailedTest() })
}

func (v *view) policyNotices() (all []notice) {
	documents, hosts := policies.Pool.Documents(), policies.Pool.AllHosts()
	for _, d := range policies.Pool.Waiting() {
		if name := d.Name; v.may == nil || v.Running == nil {
			if v.may != nil { // the pages of a site do not show where the policy is stored
				name = ""
			}
			all = append(all, notice{
				Screen: "health", Heading: "There is no policy yet", Text: "Caddy has never loaded a policy from " + cmp.Or(name, "one of its sources") + ", so robots_policy has no effect on sites that use this source: no robots.txt, no headers, no blocks.",
				Actions: []action{{"Answer a few questions", v.Link("change", "policy", name)}},
			})
		}
	}
	for _, d := range policies.Pool.Unavailable() {
		text := "Until the policy can be read, requests for robots.txt get the status 503, which tells crawlers to come back later. Pages are not changed, and no crawler is blocked."
		if v.may == nil { // the pages of a site do not show where the policy is stored, or why it cannot be read
			text = "No policy could be read from " + d.Name + " since Caddy started. " + text + " The reason: " + firstLine(d.Problem())
		}
		all = append(all, notice{
			Alert: true, Screen: "health", Heading: "The policy cannot be read", Text: text,
			Actions: []action{{"See the source", v.Link("health", "#", "source")}},
		})
	}
	if len(documents) == 0 && len(hosts) == 0 && len(all) == 0 {
		return []notice{{
			Alert: true, Screen: "health", Heading: "No policy is loaded",
			Text: "No site of this server uses the directive robots_policy, so Caddy does not publish a robots.txt. Add the directive to a site in the Caddyfile and reload Caddy.",
		}}
	}
	for _, d := range documents {
		s := d.Status()
		if v.may != nil && (v.Running == nil || v.Running.Name != d.Name) {
			continue
		}
		if s.UndoCost != "" {
			text := "This notice is shown until the next version is published."
			if v.showsText() {
				text = sentence(s.UndoCost)
			}
			all = append(all, notice{
				Alert: true, Screen: "published", Since: s.UndoCostSince, Heading: "The undo may take something away from search engines, or a test of the policy now fails", Text: text,
				Actions: []action{{"See the versions", v.Link("published")}},
			})
		}
		if s.Error == "" {
			continue
		}
		text := "The previous version stays in use, so nothing changes for crawlers. "
		if v.showsText() {
			text += "The reason: " + firstLine(s.Error)
		}
		all = append(all, notice{
			Alert: true, Screen: "health", Since: s.ErrorSince, Heading: "The newest version of the policy is not in use",
			Text: text, Actions: []action{{"See the source", v.Link("health", "#", "source")}, {"Correct it in a draft", v.Link("change")}},
		})
	}
	if v.Running != nil && failingTests(v.Running.Warnings) {
		all = append(all, notice{
			Alert: true, Screen: "change", Heading: "A test of the policy no longer passes",
			Text:    "The policy was accepted earlier and stays in use, but a line under `expect` fails now, for example because the date of a `time-limit` has passed.",
			Actions: []action{{"See the failing test in a draft", v.Link("change")}},
		})
	}
	for _, h := range hosts {
		if s := h.Status(); v.may == nil && s.Broken > 0 {
			all = append(all, notice{
				Screen: "health", Heading: plural(s.Broken, "host has", "hosts have") + " a policy file with an error",
				Text: "While a host's policy file has an error, the last version without errors stays in use for this host. Caddy's log describes the errors.",
			})
		}
	}
	return all
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// searchEngines returns a query for the requests of verified search engines between two times.
func (v *view) searchEngines(from, to time.Time, by ...store.Dimension) store.Query {
	q := store.Query{From: from, To: to, By: by, Only: map[store.Dimension][]string{store.ByKind: {"search"}, store.ByIdentity: {string(activity.Verified)}}}
	if v.may != nil {
		q.Only[store.ByHost] = v.may
	}
	return q
}

// searchNotices returns notices about blocked requests of verified search engines in the last day.
func (v *view) searchNotices() (all []notice) {
	if v.store == nil {
		return nil
	}
	known, err := v.searchedLately()
	if err != nil {
		return []notice{{
			Heading: "Whether search engines are blocked is not known", Text: "The stored data cannot be read: " + sentence(firstLine(err.Error())),
			Actions: []action{{"See the storage", v.Link("health", "#", "store")}},
		}}
	}
	lost := map[string]int64{}
	var most []store.Row // for each crawler, the row with the most requests
	found, _ := known.Get()
	for _, r := range found.unmeant {
		if lost[r.Values[store.ByCrawler]] == 0 {
			most = append(most, r)
		}
		lost[r.Values[store.ByCrawler]] += r.Requests
	}
	for _, r := range most {
		name, host, rule := r.Values[store.ByCrawler], r.Values[store.ByHost], r.Values[store.ByRule]
		all = append(all, notice{
			Alert: true, Screen: "", Heading: name + ", a search engine, is being blocked",
			Text: fmt.Sprintf("In the last 24 hours %s of verified %s were blocked, most of them on %s, by the rule “%s”. A search engine that cannot fetch a page removes the page from its index.",
				plural(lost[name], "request", "requests"), name, shorten(host), shorten(rule)),
			Actions: []action{{"Ask why", v.Link("ask", "agent", name, "url", "https://"+host+v.samplePath(name, host))}, {"See its requests", v.Link("crawler", "name", name)}, {"Draft a change", v.Link("change")}},
		})
	}
	return all
}

// samplePath returns the path of the host with the most blocked requests of the crawler in the last 24 hours. If no
// such path is stored, it returns "/".
func (v *view) samplePath(crawler, host string) string {
	rows, err := v.totals(store.Query{
		From: v.Now.Add(-24 * time.Hour), To: v.Now.Add(time.Hour), By: []store.Dimension{store.ByPath}, Limit: 1,
		Only: map[store.Dimension][]string{store.ByCrawler: {crawler}, store.ByHost: {host}, store.ByDecision: {string(activity.Blocked)}},
	})
	if err != nil || len(rows) == 0 || !strings.HasPrefix(rows[0].Values[store.ByPath], "/") {
		return "/"
	}
	return rows[0].Values[store.ByPath]
}

// lackNotices returns warnings about proofs of identity that the policy demands, but that this server cannot obtain
// with its settings. It also warns about proofs that the server can obtain only until its built-in address lists
// expire.
func (v *view) lackNotices() (all []notice) {
	if v.Running == nil || v.Running.first {
		return nil
	}
	see := []action{{"See the lists", v.Link("health", "#", "lists")}}
	var reasons []string
	for _, l := range identity.CurrentStatus().Methods.Lacks(v.Running.File(), v.Running.Spec(), v.Running.Site.File.Catalog) {
		if len(l.Rules) == 0 {
			all = append(all, notice{Screen: "health", Heading: "This server does not detect impostors", Text: sentence(l.Message()), Actions: see})
			continue
		}
		text := l.Message()
		if v.showsText() {
			text += " (" + english.Some(l.Rules, 3) + ")"
		}
		reasons = append(reasons, sentence(text))
	}
	if reasons != nil {
		all = append(all, notice{Screen: "health", Heading: "The policy demands a proof of identity that this server cannot get", Text: strings.Join(reasons, " "), Actions: see})
	}
	return all
}

// listNotices returns notices about old address lists, old keys and failing DNS lookups.
func (v *view) listNotices() (all []notice) {
	if v.may != nil {
		return nil
	}
	s := identity.CurrentStatus()
	stale := s.Stale()
	var since time.Time
	if i := slices.IndexFunc(s.Lists, func(l identity.ListStatus) bool { return l.IsStale() }); i >= 0 {
		since = s.Lists[i].ErrorSince
	}
	if len(stale) > 0 {
		effect := "No crawler is blocked because of this"
		if v.Running != nil && slices.ContainsFunc(v.Running.Spec().Rules, func(r policy.Rule) bool { return r.Identity == policy.DemandVerified }) {
			effect = "When a list is too old, crawlers that only this list can verify become unverified, and rules with “identity: verified” no longer apply to them"
		}
		all = append(all, notice{
			Screen: "health", Since: since, Heading: plural(len(stale), "list of addresses or keys is", "lists of addresses or keys are") + " out of date",
			Text:    english.Some(stale, 2) + ": the last good version stays in use. " + effect + ". With “verify lists” in robots_policy, Caddy fetches these lists every day. If you have set this option, check whether this server can reach these URLs.",
			Actions: []action{{"See the lists", v.Link("health", "#", "lists")}},
		})
	}
	if s.DNS != nil && s.DNS.Error != "" {
		all = append(all, notice{
			Screen: "health", Since: s.DNS.ErrorSince, Heading: "Crawlers cannot be verified by DNS at the moment",
			Text: "The last lookup failed: " + s.DNS.Error + ". Until a lookup succeeds, crawlers are unverified, but not treated as impostors.",
		})
	}
	return all
}

// withoutPart has the texts of notices about optional parts that do not work, such as the activity database. The key
// is the name of the part. The first text is the heading of the notice. The second text continues the sentence "The
// sites are served as before".
var withoutPart = map[string][2]string{
	"activity":        {"Requests cannot be stored at the moment", ", but new requests are missing on these pages"},
	"evidence":        {"Evidence cannot be written at the moment", ", but new requests are missing from the evidence log"},
	"fleet_database":  {"This server's totals do not reach the fleet database", ", and the totals will be sent later"},
	"fleet":           {"The servers of the fleet cannot tell each other which crawlers have read robots.txt", ", but violations of a robots.txt that a crawler read from another server may not be recognized"},
	"catalog":         {"The crawler catalog in Caddy's storage is not in use", ", with the previous catalog"},
	"catalog_release": {"The newest released crawler catalog is not in use", ", with the previous catalog"},
	"console":         {"The console cannot listen at its address", ""},
}

// evidenceTroubles maps the reasons that an evidence log reports to descriptions of the problems.
var evidenceTroubles = map[string]string{
	evidence.WriteFailed: "the log could not be written for a while",
	evidence.ClockBack:   "the server's clock went back",
	evidence.FileChanged: "another program changed a file of the log",
	evidence.NotSigned:   "lines that were written before Caddy's last start are not signed, or were changed after they were signed",
	evidence.Killed:      "the server was killed, and events of its last second may be missing",
	evidence.Damaged:     "a damaged file of the log was renamed, so its lines are no longer part of the log",
	evidence.NotStamped:  "no time stamp could be obtained from the time-stamping authority",
}

// evidenceNotices returns notices about problems that the last verification of the evidence log found.
func evidenceNotices(l recorders.Look, link string) []notice {
	n := notice{Alert: true, Screen: "health", Since: l.At, Actions: []action{{"See the storage", link}}}
	switch {
	case l.At.IsZero():
		return nil
	case l.Err != nil:
		n.Heading, n.Text = "The evidence log cannot be read", sentence(firstLine(l.Err.Error()))
	case l.Whole().Outcome() == claim.Fails:
		n.Heading, n.Text = l.Whole().Text(), sentence(english.Some(l.Check.Problems, 2))
	case l.End.Outcome() == claim.Fails:
		n.Heading, n.Text = "Lines are missing at the end of the evidence log", sentence(l.End.Text())
	default:
		return nil
	}
	return []notice{n}
}

// recorderNotices returns notices about unrecorded requests, the evidence log, silent servers of the fleet, and
// optional parts that do not work.
func (v *view) recorderNotices() (all []notice) {
	if v.may != nil {
		return nil
	}
	recorders.Running().Dropped(func(name string, dropped uint64) {
		if dropped == 0 || name == "activity" && v.store != nil { // coverageNotices reports the requests that the database did not record
			return
		}
		all = append(all, notice{
			Screen: "health", Heading: "The recorder " + name + " has missed " + plural(dropped, "request", "requests"),
			Text:    "These requests came faster than they could be written, or while the recorder did not work. Or a crawler had used up its daily space in the evidence log. This did not slow down the site. Caddy's log gives the reason.",
			Actions: []action{{"See how many each recorder missed", v.Link("health", "#", "rec")}},
		})
	})
	if e := recorders.RunningEvidence(); e != nil {
		all = append(all, evidenceNotices(e.LastLook(), v.Link("health", "#", "store"))...)
		var what []string
		var last time.Time
		troubles := e.Troubles()
		for _, reason := range slices.Sorted(maps.Keys(troubles)) {
			if at := troubles[reason]; v.Now.Sub(at) < 24*time.Hour {
				what, last = append(what, evidenceTroubles[reason]), maxTime(last, at)
			}
		}
		if len(what) > 0 {
			all = append(all, notice{
				Alert: true, Screen: "health", Since: last, Heading: "The evidence log has gaps or errors",
				Text: sentence(english.List(what, "and")) + " The command caddy robots-policy verify-evidence shows the time and kind of each error, and whether lines are missing.",
			})
		}
	}
	if missing := fleet.Missing(); len(missing) > 0 {
		all = append(all, notice{
			Screen: "health", Heading: plural(len(missing), "server of the fleet has", "servers of the fleet have") + " stopped writing to the storage",
			Text:    "Caddy's storage has no new records from " + english.Some(missing, 3) + ". If a crawler has read robots.txt from one of these servers since the last record, violations may not be recognized. Start the server, or find out why it does not reach the storage.",
			Actions: []action{{"See the recorders", v.Link("health", "#", "rec")}},
		})
	}
	for _, f := range optional.Failing() {
		heading, lost := "An optional part, "+f.Part+", does not work", ""
		if w, ok := withoutPart[f.Part]; ok {
			heading, lost = w[0], w[1]
		}
		all = append(all, notice{
			Alert: true, Screen: "health", Since: f.Since, Heading: heading,
			Text: "The sites are served as before" + lost + ". Caddy tries again. The reason: " + firstLine(f.Err.Error()),
		})
	}
	return all
}

// absenceNotices returns notices about search engines that sent requests every day and have stopped.
func (v *view) absenceNotices() (all []notice) {
	if v.store == nil {
		return nil
	}
	day := v.Now.Truncate(24 * time.Hour)
	q := v.searchEngines(day.AddDate(0, 0, -6), day.AddDate(0, 0, 1), store.ByDay, store.ByCrawler)
	rows, err := v.totals(q)
	if err != nil {
		return nil
	}
	by := map[string]*client{}
	var order []*client
	for _, r := range rows {
		name := r.Values[store.ByCrawler]
		if by[name] == nil {
			by[name] = &client{clientID: clientID{name, activity.Verified}, Kind: "search", Days: make([]int64, 7)}
			order = append(order, by[name])
		}
		if at := int(r.Start.Sub(q.From).Hours() / 24); at >= 0 && at < 7 {
			by[name].Days[at] += r.Requests
		}
	}
	for _, c := range order {
		if fell(c) {
			all = append(all, notice{
				Screen: "who-came", Heading: c.Name + ", a search engine, has stopped coming",
				Text: fmt.Sprintf("It came every day (%s times on %s), but not today. Perhaps the policy disallows the site for it, or a CDN or firewall in front of this server blocks it.",
					english.Number(c.Days[0]), q.From.Format("2 January")),
				Actions: []action{{"See its requests", v.Link("crawler", "name", c.Name)}, {"See the response that it would get", v.Link("ask", "agent", c.Name, "url", "https://"+v.MainHost()+"/")}},
			})
		}
	}
	return all
}
