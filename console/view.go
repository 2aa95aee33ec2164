// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// view holds a request for a page, with the choices in its URL and the permissions of its sender.
type view struct {
	*server
	ctx     context.Context
	r       *http.Request
	q       url.Values
	options *Console
	person  person
	screen  string
	Now     time.Time // the time of the request

	Host  string // the chosen host; if empty, all hosts that the person may see
	Days  int
	Since string // first day of the period, if the URL has two dates; Until is the last day
	Until string
	since time.Time // Since as a time; zero if the period has no dates
	until time.Time
	may   []string      // the hosts that the person may see; nil means all hosts
	store store.Queries // nil if this server has no store
	node  string        // a server of the fleet; "" means all servers

	Running *running        // the policy that the page is about; nil if no policy is loaded
	notices func() []notice // returns the notices, which are computed once

	asking  sync.Mutex // protects answers
	answers map[string]func() ([]store.Row, error)

	// The following fields keep what was read for a page, so that it is read only once.
	history        func() (*history, error)
	searchedLately func() (claim.Known[searched], error)
	standing       *source.Standing // the contents of the policy's storage
	standingError  error            // the error if the storage could not be read
}

// periods lists the periods that people can choose, in days.
var periods = []int{7, 1, 30, 90, 365}

// dates sets the period from the two dates in the URL, if the URL has them.
func (v *view) dates() {
	since, err := time.Parse(time.DateOnly, v.q.Get("since"))
	until, err2 := time.Parse(time.DateOnly, v.q.Get("until"))
	if days := int(until.Sub(since).Hours()/24) + 1; err == nil && err2 == nil && days > 0 && days < 800 && since.Year() > 2000 && since.Before(v.Now) {
		v.since, v.until, v.Days = since, until, days
		v.Since, v.Until = since.Format(time.DateOnly), until.Format(time.DateOnly)
	}
}

func (s *server) view(r *http.Request) (*view, error) {
	v := &view{server: s, ctx: r.Context(), r: r, q: r.URL.Query(), options: currentOptions(), Now: time.Now().UTC(), Days: periods[0]}
	if n, err := strconv.Atoi(v.q.Get("days")); err == nil && slices.Contains(periods, n) {
		v.Days = n
	} else {
		v.dates()
	}
	switch {
	case s.local || s.all:
	case len(s.hosts) > 0:
		v.may = s.hosts
	default:
		v.may = []string{policy.NormalizeHost(r.Host)}
	}
	if host := policy.NormalizeHost(v.q.Get("host")); v.q.Get("host") != "" && v.allowed(host) {
		v.Host = host
	} else {
		v.q.Del("host")
	}
	v.person = s.who(r, v.options)
	if v.may == nil { // on the pages of a site, people cannot choose one server of the fleet
		v.node = v.q.Get("server")
	}
	v.store = runningStore(v.node)
	v.notices, v.history, v.searchedLately = sync.OnceValue(v.findNotices), sync.OnceValues(v.readHistory), sync.OnceValues(v.readSearched)
	var err error
	v.Running, err = v.choose()
	return v, err
}

// allowed reports whether the person may see a host.
func (v *view) allowed(host string) bool { return v.may == nil || slices.Contains(v.may, host) }

// only is a method that returns the hosts that queries must be limited to. It returns nil if queries can be about all
// hosts.
func (v *view) only() []string {
	if v.Host != "" {
		return []string{v.Host}
	}
	return v.may
}

// span returns the start and the end of the period that the user has chosen: the days between two dates, a number of
// days up to today, or the last 24 hours.
func (v *view) span() (from, to time.Time) {
	if !v.since.IsZero() {
		return v.since, v.until.AddDate(0, 0, 1)
	}
	return since(v.Now, v.Days), v.Now.Truncate(time.Hour).Add(time.Hour)
}

// HistoryError returns a message if the history of published versions could not be read.
func (v *view) HistoryError() string {
	if v.standingError == nil {
		return ""
	}
	return "The history of published versions cannot be read now: " + sentence(firstLine(v.standingError.Error()))
}

// query returns a query for the chosen hosts and period.
func (v *view) query(by ...store.Dimension) store.Query {
	q := store.Query{By: by, Only: map[store.Dimension][]string{}}
	q.From, q.To = v.span()
	if hosts := v.only(); hosts != nil {
		q.Only[store.ByHost] = hosts
	}
	return q
}

// Period returns the chosen period in words.
func (v *view) Period() string {
	switch {
	case !v.since.IsZero() && v.since.Equal(v.until):
		return v.since.Format("2 January 2006")
	case !v.since.IsZero():
		return v.since.Format("2 Jan 2006") + " to " + v.until.Format("2 Jan 2006")
	case v.Days == 1:
		return "last 24 hours"
	case v.Days == 365:
		return "last year"
	}
	return "last " + strconv.Itoa(v.Days) + " days"
}

// inPeriod returns the chosen period as a phrase that can follow a verb.
func (v *view) inPeriod() string {
	switch {
	case v.since.IsZero():
		return "in the " + v.Period()
	case v.since.Equal(v.until):
		return "on " + v.Period()
	}
	return "from " + v.Period()
}

// Link returns the URL of a page for the host and period that v shows. parameters are alternating names and values. The
// name "#" sets the fragment, and parameters with an empty value are left out.
func (v *view) Link(screen string, parameters ...string) string {
	q := url.Values{}
	if v.Host != "" {
		q.Set("host", v.Host)
	}
	if v.Since != "" {
		q.Set("since", v.Since)
		q.Set("until", v.Until)
	} else if v.Days != periods[0] {
		q.Set("days", strconv.Itoa(v.Days))
	}
	if name := v.q.Get("policy"); name != "" {
		q.Set("policy", name)
	}
	if v.node != "" {
		q.Set("server", v.node)
	}
	fragment := ""
	for i := 0; i+1 < len(parameters); i += 2 {
		if parameters[i] == "#" {
			fragment = "#" + parameters[i+1]
		} else if parameters[i+1] != "" {
			q.Set(parameters[i], parameters[i+1])
		}
	}
	link := "./" + screen
	if len(q) > 0 {
		link += "?" + q.Encode()
	}
	return link + fragment
}

// maxRows limits the number of rows in a list on a page.
const maxRows = 40

// pageOf returns the part of a long list that the URL selects, and the link to the next part.
func pageOf[T any](v *view, all []T, parameter string, size int) ([]T, string) {
	first, _ := strconv.Atoi(v.Param(parameter))
	first = max(0, min(first, len(all)))
	if end := first + size; end < len(all) {
		return all[first:end], v.With(parameter, strconv.Itoa(end))
	}
	return all[first:], ""
}

// With returns the URL of this page with one parameter changed. An empty value removes the parameter.
func (v *view) With(name, value string) string {
	q := maps.Clone(v.q)
	q.Del(name)
	if value != "" {
		q.Set(name, value)
	}
	if len(q) == 0 {
		return "./" + v.screen
	}
	return "./" + v.screen + "?" + q.Encode()
}

// Param returns a parameter of the request's URL.
func (v *view) Param(name string) string { return v.q.Get(name) }

// page is the data for executing a template.
type page struct {
	*view
	template string
	Title    string
	Lead     string // one sentence that answers the question of the page
	Scope    scope
	Status   int
	redirect string // the URL to redirect to instead of a page
	Data     any
}

// scope says whether a page lets the user choose the host and the period.
type scope struct{ Host, Period bool }

func (p *page) write(w http.ResponseWriter, v *view) error {
	p.view = v
	if p.redirect != "" {
		w.Header().Set("Location", p.redirect)
		w.WriteHeader(http.StatusSeeOther)
		return nil
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if p.Status != 0 {
		w.WriteHeader(p.Status)
	}
	return templates()[p.template].Execute(w, p)
}

// tab is an entry of the navigation.
type tab struct {
	Name, Title      string
	Current          bool
	Alerts, Warnings int
}

// Tabs returns the entries of the navigation.
func (p *page) Tabs() []tab {
	all := make([]tab, 0, 7)
	for _, t := range [][2]string{
		{"", "Overview"}, {"who-may", "Who may"}, {"who-came", "Who came"}, {"ask", "Ask"}, {"change", "What would change"}, {"published", "Published"}, {"health", "Health"},
	} {
		alarms, warnings := p.count(func(n *notice) bool { return n.Screen == t[0] })
		all = append(all, tab{t[0], t[1], t[0] == p.screen || t[0] == "who-came" && p.screen == "crawler", alarms, warnings})
	}
	return all
}

// SiteName returns the name at the top of each page.
func (v *view) SiteName() string {
	if v.options.Title != "" {
		return v.options.Title
	}
	if hosts := v.Hosts(); len(hosts) > 0 {
		return hosts[0]
	}
	return "robots_policy"
}

// Hosts returns the hosts that people can choose. These are the hosts with requests, and the hosts that the policy
// names.
func (v *view) Hosts() []string {
	if v.may != nil {
		return v.may
	}
	var hosts []string
	add := func(h string) {
		if h != "" && !strings.Contains(h, "*") && !slices.Contains(hosts, h) && len(hosts) < 1000 {
			hosts = append(hosts, h)
		}
	}
	for _, host := range v.busiestHosts() {
		add(host)
	}
	if v.Running != nil {
		// the hosts in tests come first, because rules often name only hosts that are exceptions
		for _, e := range v.Running.Spec().Expect {
			add(e.Host)
		}
		for _, r := range v.Running.Spec().Rules {
			for _, h := range r.Hosts {
				add(string(h))
			}
		}
	}
	return hosts
}

// Periods returns the periods that people can choose, in days.
func (v *view) Periods() []int { return periods }

// MainHost returns the host that answers are about. This is the host that the person has chosen or, without a choice,
// the first of Hosts.
func (v *view) MainHost() string {
	if v.Host != "" {
		return v.Host
	}
	if hosts := v.Hosts(); len(hosts) > 0 {
		return hosts[0]
	}
	return "www.example.com"
}

// Limited reports whether this person may see only some hosts.
func (v *view) Limited() bool { return v.may != nil }
