// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/crawlers/verify"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/webbotauth"
)

// Status is the state of all verification data. The admin API returns it as JSON.
type Status struct {
	Methods     Methods           `json:"-"` // the methods that at least one handler uses
	Lists       []ListStatus      `json:"address_lists"`
	DNS         *DNSStatus        `json:"dns,omitempty"` // absent if DNS is not used
	Directories []DirectoryStatus `json:"key_directories"`
}

// ListStatus is the state of an address list.
type ListStatus struct {
	URL       string    `json:"url"`
	Entries   int       `json:"entries"`
	Embedded  bool      `json:"embedded"`       // true for a list that is part of the program
	Refreshed bool      `json:"refreshed"`      // true if this server fetches the list regularly
	AsOf      time.Time `json:"as_of,omitzero"` // absent if there is no list
	Age       string    `json:"age,omitempty"`
	Fresh     bool      `json:"fresh"` // true while the list is recent enough to detect impostors
	// Old says what the list can no longer prove because of its age, or will soon no longer prove, such as "from
	// 2026-05-05, too old to verify crawlers". It is empty for a recent list.
	Old        string    `json:"old,omitempty"`
	Incomplete string    `json:"incomplete,omitempty"` // the reason why the list does not detect impostors even if it is fresh
	Error      string    `json:"error,omitempty"`      // the error of the last fetch
	ErrorSince time.Time `json:"error_since,omitzero"`
}

// DirectoryStatus is the state of a key directory.
type DirectoryStatus struct {
	URL        string          `json:"url"`
	Keys       int             `json:"keys"`
	Card       webbotauth.Card `json:"card,omitzero"` // the signer's description of itself, unverified
	Fetched    time.Time       `json:"fetched,omitzero"`
	Age        string          `json:"age,omitempty"`
	Error      string          `json:"error,omitempty"`
	ErrorSince time.Time       `json:"error_since,omitzero"`
}

// DNSStatus is the state of the DNS resolver.
type DNSStatus struct {
	Lookups    uint64    `json:"lookups"`
	Failures   uint64    `json:"failures"`
	Error      string    `json:"error,omitempty"` // absent if the last lookup succeeded
	ErrorSince time.Time `json:"error_since,omitzero"`
}

// CurrentStatus returns the state of the data for verification in all engines in use.
func CurrentStatus() Status {
	inUse, now := engines.All(), time.Now()
	s := Status{Lists: []ListStatus{}, Directories: []DirectoryStatus{}}
	for _, l := range listsOf(inUse) {
		s.Lists = append(s.Lists, ListStatus{
			URL: l.URL, Entries: l.Prefixes, Embedded: l.Snapshot, Refreshed: l.refreshed, AsOf: l.Date.UTC(), Age: age(l.Date, now),
			Fresh: l.Fresh, Old: l.Old(now), Incomplete: l.Incomplete, Error: text(l.Err), ErrorSince: l.Failing.UTC(),
		})
	}
	for _, d := range directoriesOf(inUse) {
		s.Directories = append(s.Directories, DirectoryStatus{
			URL: d.URL, Keys: d.Keys, Card: d.Card, Fetched: d.Date.UTC(), Age: age(d.Date, now), Error: text(d.Err), ErrorSince: d.Failing.UTC(),
		})
	}
	for _, e := range inUse {
		m := &s.Methods
		m.Enabled, m.Lists, m.DNS, m.Signatures = true, m.Lists || e.methods.Lists, m.DNS || e.methods.DNS, m.Signatures || e.methods.Signatures
		if e.methods.DNS {
			s.addDNS(e.sources.dnsState())
		}
	}
	return s
}

// RenewLists starts to use the address lists of a newly installed catalog. Call RenewLists after the catalog was
// installed.
func RenewLists() {
	for _, e := range engines.All() {
		e.lists.Renew()
	}
}

func (s *Status) addDNS(d dnsState) {
	if s.DNS == nil {
		s.DNS = new(DNSStatus)
	}
	s.DNS.Lookups += d.lookups
	s.DNS.Failures += d.failures
	if d.err != nil {
		s.DNS.Error, s.DNS.ErrorSince = d.err.Error(), d.since.UTC()
	}
}

// age returns the time from t to now as text, or "" if t is zero.
func age(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return now.Sub(t).Round(time.Second).String()
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// knownList is a list in the newest state that any engine has.
type knownList struct {
	verify.ListStatus
	refreshed bool
}

// listsOf returns the address lists of all engines, ordered by URL and without duplicates. If several engines have the
// same list, listsOf prefers an engine that fetches the list. If several of these engines fetch the list, or none of
// them does, it prefers the newest copy of the list.
func listsOf(inUse []*engine) (all []knownList) {
	for _, e := range inUse {
		for _, s := range e.lists.Status() {
			all = append(all, knownList{s, e.methods.Lists})
		}
	}
	slices.SortStableFunc(all, func(a, b knownList) int {
		switch {
		case a.URL != b.URL:
			return strings.Compare(a.URL, b.URL)
		case a.refreshed == b.refreshed:
			return b.Date.Compare(a.Date)
		case a.refreshed:
			return -1
		}
		return 1
	})
	return slices.CompactFunc(all, func(a, b knownList) bool { return a.URL == b.URL })
}

// directoriesOf returns the key directories of all engines, ordered by URL and without duplicates. If several engines
// have the same directory, directoriesOf returns the last fetched version.
func directoriesOf(inUse []*engine) (all []webbotauth.DirectoryStatus) {
	for _, e := range inUse {
		if e.signatures != nil {
			all = append(all, e.signatures.Directories()...)
		}
	}
	slices.SortStableFunc(all, func(a, b webbotauth.DirectoryStatus) int {
		return cmp.Or(strings.Compare(a.URL, b.URL), b.Date.Compare(a.Date))
	})
	return slices.CompactFunc(all, func(a, b webbotauth.DirectoryStatus) bool { return a.URL == b.URL })
}
