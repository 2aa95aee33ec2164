// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/policies"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/recorders"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// healthData holds the data of the Health page.
type healthData struct {
	Notices    []notice
	Policies   []policyRow
	Lists      []listRow
	Good       int // number of lists that the page leaves out; see maxLists
	DNS        *identity.DNSStatus
	Dropped    []droppedBy
	Storage    *store.Bounds
	MaxBytes   int64          // maximum size of the storage in bytes
	Evidence   recorders.Look // zero if there is no evidence log, or if the log was not verified yet
	Write      bool
	Nodes      []fleetNode
	NodesError string // the reason why Nodes could not be read
}

// lookAgain is the maximum age of the last verification of the evidence log. If the verification is older, the Health
// page starts a new verification.
const lookAgain = 10 * time.Minute

// hostFiles describes a folder that contains one policy file for each host.
const hostFiles = "a file for each host"

// policyRow is a policy on this server, or a folder of policies, with its source.
type policyRow struct {
	source.Status
	Kind     string
	Files    int // number of files in a folder
	Writable bool
}

// listRow is a list of addresses or a directory of keys.
type listRow struct {
	Of, How string
	Entries int
	AsOf    time.Time
	State   string // good, built in, not fetched or stale
	Problem string
}

type droppedBy struct {
	Recorder string
	Visits   uint64
}

func health(v *view) (*page, error) {
	d := &healthData{Write: v.lacks(publisher) == ""}
	for _, n := range v.notices() {
		if n.Screen == "health" {
			d.Notices = append(d.Notices, n)
		}
	}
	p := &page{template: "health", Title: "Health", Data: d}
	for _, doc := range policies.Pool.Documents() {
		if v.may == nil || v.Running != nil && v.Running.Name == doc.Name {
			d.addDocument(doc)
		}
	}
	for _, h := range policies.Pool.AllHosts() {
		s := h.Status()
		row := policyRow{Status: source.Status{Policy: s.Policy, Reload: s.Reload, Sites: s.Sites}, Kind: hostFiles}
		switch {
		case v.may == nil:
			row.Reloads, row.Error, row.Files = s.Reloads, s.Error, s.Loaded
		case v.Running != nil && v.Running.document == nil && v.Running.Name == s.Policy:
			row.SHA256, row.Since, row.Rules = v.Running.SHA256, v.Running.Since, len(v.Running.Spec().Rules)
		default:
			continue
		}
		d.Policies = append(d.Policies, row)
	}
	if v.may == nil {
		d.addLists(v)
		recorders.Running().Dropped(func(name string, n uint64) { d.Dropped = append(d.Dropped, droppedBy{name, n}) })
		d.addStorage(v)
	}
	p.Lead = d.lead(v)
	if len(d.Lists) > maxLists && v.Param("lists") == "" {
		d.Good, d.Lists = len(d.Lists)-maxLists, d.Lists[:maxLists]
	}
	return p, nil
}

// lead returns sentences about the number of loaded policies, the recorded requests and the address lists.
func (d *healthData) lead(v *view) string {
	loaded, folders := 0, 0
	for i := range d.Policies {
		loaded += min(len(d.Policies[i].SHA256), 1) + d.Policies[i].Files
		folders += map[bool]int{true: 1}[d.Policies[i].Kind == hostFiles]
	}
	text := plural(loaded, "policy is", "policies are") + " loaded. "
	if folders > 0 {
		text += "The policy file of a host is loaded at the first request for this host. "
	}
	if v.may != nil {
		return text + "All sites of this server share the recorders, the address lists and the storage, so only the console in Caddy's global options shows them."
	}
	text += sentence(v.recorded().Text()) + " "
	status := identity.CurrentStatus()
	return text + sentences(status.ListsCurrent())
}

// recorded returns the claim that all requests of the last 24 hours were recorded.
func (v *view) recorded() claim.Claim {
	day := v.Now.Add(-24 * time.Hour)
	c, err := v.coverage(day, v.Now)
	totals := "this server does not store totals"
	if v.store != nil && err == nil {
		var bounds store.Bounds
		bounds, err = v.store.Bounds(v.ctx)
		totals = totalsSince(bounds, day)
	}
	return judgeRecorded(c, totals, err)
}

// totalsSince returns a clause that says since when the totals in the database are complete. If the totals begin before
// day, which is the time 24 hours ago, the clause is "the totals of the last 24 hours are complete". If the totals
// begin later, the clause names the time when they begin.
func totalsSince(b store.Bounds, day time.Time) string {
	switch {
	case b.FirstHour.IsZero() && b.FirstDay.IsZero():
		return "the totals are still empty"
	case b.FirstHour.After(day) && !b.FirstDay.Before(day.Truncate(24*time.Hour)):
		return "the totals since " + b.FirstHour.UTC().Format("2 Jan 2006, 15:04") + " UTC are complete"
	}
	return "the totals of the last 24 hours are complete"
}

// judgeRecorded returns the claim that no request is missing: the recorders did not drop any requests, and the totals
// have no gaps. The parameter c is the coverage of the totals, totals is the clause that totalsSince returns, and err
// is not nil if c is not known.
func judgeRecorded(c claim.Coverage, totals string, err error) claim.Claim {
	s := recordedSubject{Totals: totals}
	var missed uint64
	recorders.Running().Dropped(func(name string, n uint64) {
		if s.Recorders, missed = s.Recorders+1, missed+n; n > 0 {
			s.Missing = append(s.Missing, name)
		}
	})
	if err == nil {
		s.Recorded = claim.Read(missed, c)
	}
	return claim.Judge(noneUnrecorded, s)
}

func (d *healthData) addDocument(doc *source.Document) {
	row := policyRow{Status: doc.Status(), Kind: "a file"}
	switch {
	case strings.HasPrefix(doc.Name, source.StoragePrefix):
		row.Kind, row.Writable = "Caddy's storage", true
	case source.IsWebAddress(doc.Name):
		row.Kind = "a file on a web server"
	}
	row.Error = firstLine(row.Error)
	d.Policies = append(d.Policies, row)
}

// maxLists limits the number of address lists and key directories that the Health page shows. Lists and directories
// with a problem are shown first.
const maxLists = 12

func (d *healthData) addLists(v *view) {
	s := identity.CurrentStatus()
	d.DNS = s.DNS
	owners := v.owners()
	for _, l := range s.Lists {
		row := listRow{Of: cmp.Or(owners[l.URL], l.URL), How: "address list", Entries: l.Entries, AsOf: l.AsOf, State: "good", Problem: l.Incomplete}
		switch {
		case l.IsStale():
			row.State, row.Problem = "stale", cmp.Or(l.Error, l.Old)
		case l.AsOf.IsZero():
			row.State = "not fetched"
		case l.Embedded:
			row.State = "built in"
		}
		d.Lists = append(d.Lists, row)
	}
	for _, k := range s.Directories {
		row := listRow{Of: cmp.Or(owners[k.URL], k.URL), How: "signing keys", Entries: k.Keys, AsOf: k.Fetched, State: "good"}
		switch {
		case k.Error != "":
			row.State, row.Problem = "stale", k.Error
		case k.Fetched.IsZero():
			row.State = "not fetched"
		}
		d.Lists = append(d.Lists, row)
	}
	rank := map[string]int{"stale": 0, "good": 1, "built in": 2, "not fetched": 3}
	slices.SortStableFunc(d.Lists, func(a, b listRow) int { return rank[a.State] - rank[b.State] })
}

// owners maps the URLs of address lists and key directories to the names of their crawlers.
func (v *view) owners() map[string]string {
	by := map[string]string{}
	if v.Running == nil {
		return by
	}
	for _, c := range v.Running.Site.File.Catalog.All() {
		for _, u := range append(slices.Clone(c.Verification.AddressLists), c.Verification.WebBotAuth) {
			if u != "" && by[u] == "" {
				by[u] = c.Token
			}
		}
	}
	return by
}

func (d *healthData) addStorage(v *view) {
	var err error
	if d.Nodes, err = v.nodes(); err != nil {
		d.NodesError = firstLine(err.Error())
	}
	if a := runningActivity(); a != nil && a.Reader() != nil {
		d.MaxBytes = cmp.Or(a.MaxBytes, 512<<20)
		if b, err := a.Reader().Bounds(v.ctx); err == nil {
			d.Storage = &b
		}
	}
	if e := recorders.RunningEvidence(); e != nil {
		d.Evidence = e.LastLook()
		if !d.Evidence.At.IsZero() && v.Now.Sub(d.Evidence.At) > lookAgain {
			go e.LookNow() // the page shows the result of the previous verification, with its time
		}
	}
}
