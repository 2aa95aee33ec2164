// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/robotspolicy/caddy-robots-policy/crawlers/verify"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/webbotauth"
)

// verificationAnswer is what the admin API says about the sources of verification.
type verificationAnswer struct {
	Lists       []listAnswer      `json:"address_lists"`
	DNS         *dnsAnswer        `json:"dns,omitempty"` // absent: nobody is verified by DNS
	Directories []directoryAnswer `json:"key_directories"`
}

type listAnswer struct {
	URL     string `json:"url"`
	Entries int    `json:"entries"`
	// Embedded is true for the list that came with the program.
	Embedded bool `json:"embedded"`
	// Refreshed says whether it is fetched at all.
	Refreshed bool       `json:"refreshed"`
	AsOf      *time.Time `json:"as_of,omitempty"` // absent: there is no list
	Age       string     `json:"age,omitempty"`
	// Fresh is true while it may say that somebody is an impostor.
	Fresh      bool       `json:"fresh"`
	Error      string     `json:"error,omitempty"` // of the last fetch
	ErrorSince *time.Time `json:"error_since,omitempty"`
}

type directoryAnswer struct {
	URL        string     `json:"url"`
	Keys       int        `json:"keys"`
	Fetched    *time.Time `json:"fetched,omitempty"`
	Age        string     `json:"age,omitempty"`
	Error      string     `json:"error,omitempty"`
	ErrorSince *time.Time `json:"error_since,omitempty"`
}

type dnsAnswer struct {
	Lookups    uint64     `json:"lookups"`
	Failures   uint64     `json:"failures"`
	Error      string     `json:"error,omitempty"` // absent if the last look-up had an answer
	ErrorSince *time.Time `json:"error_since,omitempty"`
}

// heldCheckers are those that a configuration uses.
func heldCheckers() (all []*checker) {
	checkers.Range(func(_, value any) bool {
		if c, ok := value.(*checker); ok {
			all = append(all, c)
		}
		return true
	})
	return all
}

// knownList is a list as the best informed checker knows it.
type knownList struct {
	verify.ListStatus
	refreshed bool
}

// better orders what two checkers know of one list: one that is fetched tells more
// than one that is not, and of two the later.
func (l knownList) better(than knownList) bool {
	if l.refreshed != than.refreshed {
		return l.refreshed
	}
	return l.Date.After(than.Date)
}

// knownLists are the address lists of all checkers, once each, by URL.
func knownLists(checkers []*checker) []knownList {
	best := map[string]knownList{}
	for _, c := range checkers {
		for _, s := range c.lists.Status() {
			l := knownList{s, c.verification.lists}
			if old, ok := best[s.URL]; !ok || l.better(old) {
				best[s.URL] = l
			}
		}
	}
	all := make([]knownList, 0, len(best))
	for _, l := range best {
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b knownList) int { return strings.Compare(a.URL, b.URL) })
	return all
}

// knownDirectories are the key directories of all checkers, once each, by URL.
func knownDirectories(checkers []*checker) (all []webbotauth.DirectoryStatus) {
	best := map[string]webbotauth.DirectoryStatus{}
	for _, c := range checkers {
		if c.signatures == nil {
			continue
		}
		for _, d := range c.signatures.Directories() {
			if old, ok := best[d.URL]; !ok || d.Date.After(old.Date) {
				best[d.URL] = d
			}
		}
	}
	for _, d := range best {
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b webbotauth.DirectoryStatus) int { return strings.Compare(a.URL, b.URL) })
	return all
}

// verification answers how old what crawlers are verified by is, and what went
// wrong with fetching it.
func (adminAPI) verification(w http.ResponseWriter, _ *http.Request) error {
	held, now := heldCheckers(), time.Now()
	a := verificationAnswer{Lists: []listAnswer{}, Directories: []directoryAnswer{}}
	for _, l := range knownLists(held) {
		entry := listAnswer{URL: l.URL, Entries: l.Prefixes, Embedded: l.Snapshot, Refreshed: l.refreshed, Fresh: l.Fresh}
		entry.AsOf, entry.Age = since(l.Date, now)
		entry.Error, entry.ErrorSince = failure(l.Err, l.Failing)
		a.Lists = append(a.Lists, entry)
	}
	for _, d := range knownDirectories(held) {
		entry := directoryAnswer{URL: d.URL, Keys: d.Keys}
		entry.Fetched, entry.Age = since(d.Date, now)
		entry.Error, entry.ErrorSince = failure(d.Err, d.Failing)
		a.Directories = append(a.Directories, entry)
	}
	for _, c := range held {
		if !c.dns {
			continue
		}
		if a.DNS == nil {
			a.DNS = new(dnsAnswer)
		}
		s := c.state.resolverState()
		a.DNS.Lookups += s.lookups
		a.DNS.Failures += s.failures
		if s.err != nil {
			a.DNS.Error, a.DNS.ErrorSince = failure(s.err, s.since)
		}
	}
	return answer(w, http.StatusOK, a)
}

// since is a time as the API tells it, and how long ago it is.
func since(t, now time.Time) (*time.Time, string) {
	if t.IsZero() {
		return nil, ""
	}
	utc := t.UTC()
	return &utc, now.Sub(t).Round(time.Second).String()
}

func failure(err error, at time.Time) (string, *time.Time) {
	if err == nil {
		return "", nil
	}
	utc := at.UTC()
	return err.Error(), &utc
}

func newListDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName("caddy", "robots_policy", name), help, []string{"list"}, nil)
}

// The label list is the URL of a list of the catalogue or of a policy. Past
// maxLabelLists there are none.
var (
	descListTime    = newListDesc("address_list_timestamp_seconds", "When the address list of crawlers was fetched, or embedded.")
	descListEntries = newListDesc("address_list_entries", "Address ranges in the list.")
	descListFailing = newListDesc("address_list_failing", "1 if the last fetch of the list failed, and the one before is used.")
)

const maxLabelLists = 500

// collectLists gives the metrics of the address lists.
func collectLists(ch chan<- prometheus.Metric) {
	for i, l := range knownLists(heldCheckers()) {
		if i == maxLabelLists {
			return
		}
		failing, at := 0.0, 0.0
		if l.Err != nil {
			failing = 1
		}
		if !l.Date.IsZero() {
			at = seconds(l.Date)
		}
		ch <- prometheus.MustNewConstMetric(descListTime, prometheus.GaugeValue, at, l.URL)
		ch <- prometheus.MustNewConstMetric(descListEntries, prometheus.GaugeValue, float64(l.Prefixes), l.URL)
		ch <- prometheus.MustNewConstMetric(descListFailing, prometheus.GaugeValue, failing, l.URL)
	}
}
