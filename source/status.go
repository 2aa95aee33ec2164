// SPDX-License-Identifier: Apache-2.0

package source

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
)

// Counts says how many changes of a source were applied, and how many rejected.
type Counts struct {
	Applied  uint64 `json:"applied"`
	Rejected uint64 `json:"rejected"`
}

// counters are Counts that still change.
type counters struct{ applied, rejected atomic.Uint64 }

func (c *counters) counts() Counts { return Counts{c.applied.Load(), c.rejected.Load()} }

// Status describes a document that is loaded, as the admin API shows it.
type Status struct {
	Policy   string                 `json:"policy"` // its name in the configuration
	SHA256   string                 `json:"sha256"`
	Since    time.Time              `json:"since"`
	Rules    int                    `json:"rules"`
	Warnings policyfile.Diagnostics `json:"warnings"`
	// Why the current state of the source is not served; absent if it is.
	Error      string     `json:"error,omitempty"`
	ErrorSince *time.Time `json:"error_since,omitempty"`
	Checked    time.Time  `json:"checked"` // when the source was last read
	Reload     string     `json:"reload"`  // how often the source is checked, or off
	Sites      int        `json:"sites"`   // the handlers that use the policy
	Watching   int        `json:"watching"`
	Older      []string   `json:"older_sha256,omitempty"` // versions that handlers with reload off still serve
	Reloads    Counts     `json:"reloads"`
}

// Status returns the present status.
func (d *Document) Status() Status {
	d.mu.RLock()
	defer d.mu.RUnlock()
	now := d.Current()
	s := Status{
		Policy: d.Name, SHA256: now.SHA256, Since: now.Since.UTC(), Rules: len(now.Site.File.Spec.Rules), Warnings: now.Warnings,
		Checked: d.checked.UTC(), Reload: intervalText(d.interval()), Sites: len(d.all), Reloads: d.counts.counts(),
	}
	if s.Warnings == nil {
		s.Warnings = policyfile.Diagnostics{}
	}
	if d.err != nil {
		since := d.errSince.UTC()
		s.Error, s.ErrorSince = d.err.Error(), &since
	}
	for _, u := range d.all {
		if u.watch {
			s.Watching++
		}
		if u.snapshot != now && !slices.Contains(s.Older, u.snapshot.SHA256) {
			s.Older = append(s.Older, u.snapshot.SHA256)
		}
	}
	return s
}

// HostsStatus describes a Hosts, as the admin API shows it.
type HostsStatus struct {
	Policy  string `json:"policy"`
	Loaded  int    `json:"loaded"`          // files in memory
	Broken  int    `json:"broken"`          // of them, those with an error now
	Missing int    `json:"missing"`         // files known not to exist
	Error   string `json:"error,omitempty"` // of their directory; absent if it can be read
	Reload  string `json:"reload"`          // how often the files are checked, or off
	Sites   int    `json:"sites"`
	Reloads Counts `json:"reloads"`
}

// Status returns the present status.
func (h *Hosts) Status() HostsStatus {
	h.mu.RLock()
	defer h.mu.RUnlock()
	s := HostsStatus{
		Policy: h.Name(), Loaded: len(h.files), Missing: len(h.misses),
		Reload: intervalText(h.interval()), Sites: len(h.all), Reloads: h.counts.counts(),
	}
	if h.dirErr != nil {
		s.Error = h.dirErr.Error()
	}
	for _, f := range h.files {
		if f.broken() {
			s.Broken++
		}
	}
	return s
}

func intervalText(d time.Duration) string {
	if d == 0 {
		return "off"
	}
	return d.String()
}

// ReloadReport is the result of loading a policy anew.
type ReloadReport struct {
	Policy  string        `json:"policy"`
	Result  string        `json:"result"` // applied, unchanged or rejected
	SHA256  string        `json:"sha256,omitempty"`
	Error   string        `json:"error,omitempty"`
	Changes []string      `json:"changes,omitempty"`
	Details *compare.Diff `json:"details,omitempty"`
}

// Report returns what happened to the policy of this name.
func (o Outcome) Report(name string) ReloadReport {
	result := ReloadReport{Policy: name, Result: "unchanged"}
	switch {
	case o.Err != nil:
		result.Result, result.Error = "rejected", o.Err.Error()
	case o.Now != o.Before:
		result.Result, result.Changes, result.Details = "applied", o.Changes.Words(), o.Changes
	}
	if o.Now != nil {
		result.SHA256 = o.Now.SHA256
	}
	return result
}
