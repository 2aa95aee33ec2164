// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/policies"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/recorders"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// healthData is what the page of the machinery shows.
type healthData struct {
	Notices  []notice
	This     []policyRow
	Lists    []listRow
	Good     int // lists that are not shown, as all is well
	DNS      *identity.DNSStatus
	Dropped  []droppedBy
	Storage  *storage
	Sources  []sourceRow
	Evidence string
	Write    bool
	Nodes    []fleetNode
	// NodesError is why they are not known.
	NodesError string
}

// policyRow is a policy on this server.
type policyRow struct {
	Name, SHA256 string
	Since        time.Time
	Rules, Sites int
	Older        int
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

// storage is the state of the store.
type storage struct {
	store.Bounds
	MaxBytes int64
	Percent  string
}

// sourceRow is where a policy comes from.
type sourceRow struct {
	Name, Kind, Every string
	Checked           time.Time
	Problem           string
	Applied, Rejected uint64
	Writable          bool
}

func health(v *view) (*page, error) {
	d := &healthData{Write: v.options.Write && v.admin}
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
		if v.may == nil {
			d.Sources = append(d.Sources, sourceRow{Name: h.Name(), Kind: "a file for each host", Every: s.Reload, Applied: s.Reloads.Applied, Rejected: s.Reloads.Rejected})
		}
	}
	if v.may == nil {
		d.addLists(v)
		recorders.Running().Dropped(func(name string, n uint64) { d.Dropped = append(d.Dropped, droppedBy{name, n}) })
		d.addStorage(v)
	}
	p.Lead = d.lead()
	return p, nil
}

func (d *healthData) lead() string {
	text := plural(len(d.This), "policy is", "policies are") + " loaded on this server"
	var lost uint64
	for _, r := range d.Dropped {
		lost += r.Visits
	}
	if lost == 0 {
		text += ", nothing was lost"
	}
	stale := 0
	for _, l := range d.Lists {
		if l.State == "stale" {
			stale++
		}
	}
	if stale > 0 {
		return text + ". " + plural(stale, "list is", "lists are") + " out of date."
	}
	if len(d.Notices) == 0 && d.NodesError == "" && !slices.ContainsFunc(d.Nodes, func(n fleetNode) bool { return n.Silent }) {
		return text + ". Everything works."
	}
	return text + "."
}

func (d *healthData) addDocument(doc *source.Document) {
	s := doc.Status()
	d.This = append(d.This, policyRow{
		Name: doc.Name, SHA256: s.SHA256, Since: s.Since, Rules: s.Rules, Sites: s.Sites, Older: len(s.Older),
	})
	x := sourceRow{Name: doc.Name, Kind: "a file", Checked: s.Checked, Every: "only when Caddy reloads", Applied: s.Reloads.Applied, Rejected: s.Reloads.Rejected}
	switch {
	case strings.HasPrefix(doc.Name, source.StoragePrefix):
		x.Kind, x.Writable = "Caddy's storage", true
	case source.IsWebAddress(doc.Name):
		x.Kind = "a file on a web server"
	}
	if s.Reload != "off" {
		x.Every = "every " + s.Reload
	}
	if s.Error != "" {
		x.Problem = firstLine(s.Error)
	}
	d.Sources = append(d.Sources, x)
}

// maxLists bounds the lists that are spelled out; those with a problem come first.
const maxLists = 12

func (d *healthData) addLists(v *view) {
	s := identity.CurrentStatus()
	d.DNS = s.DNS
	owners := v.owners()
	for _, l := range s.Lists {
		row := listRow{Of: cmp.Or(owners[l.URL], l.URL), How: "address list", Entries: l.Entries, AsOf: timeOf(l.AsOf), State: "good", Problem: l.Incomplete}
		switch {
		case l.Old != "" || l.Refreshed && (l.Error != "" || !l.Fresh && l.AsOf != nil):
			row.State, row.Problem = "stale", cmp.Or(l.Error, l.Old)
		case l.AsOf == nil:
			row.State = "not fetched"
		case l.Embedded:
			row.State = "built in"
		}
		d.Lists = append(d.Lists, row)
	}
	for _, k := range s.Directories {
		row := listRow{Of: cmp.Or(owners[k.URL], k.URL), How: "signing keys", Entries: k.Keys, AsOf: timeOf(k.Fetched), State: "good"}
		switch {
		case k.Error != "":
			row.State, row.Problem = "stale", k.Error
		case k.Fetched == nil:
			row.State = "not fetched"
		}
		d.Lists = append(d.Lists, row)
	}
	rank := map[string]int{"stale": 0, "good": 1, "built in": 2, "not fetched": 3}
	slices.SortStableFunc(d.Lists, func(a, b listRow) int { return rank[a.State] - rank[b.State] })
	if len(d.Lists) > maxLists && v.Param("lists") == "" {
		d.Good = len(d.Lists) - maxLists
		d.Lists = d.Lists[:maxLists]
	}
}

// timeOf is the zero time for nil.
func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// owners are the crawlers that lists and keys are of, by address.
func (v *view) owners() map[string]string {
	by := map[string]string{}
	if v.Running == nil {
		return by
	}
	for _, c := range v.Running.Site.File.Catalogue.All() {
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
		if b, err := a.Reader().Bounds(v.ctx); err == nil {
			s := &storage{Bounds: b, MaxBytes: cmp.Or(a.MaxBytes, 512<<20)}
			s.Percent = short(min(100, 100*float64(b.Bytes)/float64(s.MaxBytes)))
			d.Storage = s
		}
	}
	if e := recorders.RunningEvidence(); e != nil {
		d.Evidence = evidenceText(e)
	}
}

// evidenceText says how much evidence there is.
func evidenceText(e *recorders.Evidence) string {
	entries, err := os.ReadDir(e.Directory)
	if err != nil {
		return "cannot be read: " + err.Error()
	}
	days, signed := 0, 0
	for _, f := range entries {
		switch {
		case strings.HasSuffix(f.Name(), ".sig"):
			signed++
		case strings.HasPrefix(f.Name(), "evidence-"):
			days++
		}
	}
	return plural(days, "day", "days") + ", " + english.Number(int64(signed)) + " of them signed"
}
