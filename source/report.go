// SPDX-License-Identifier: Apache-2.0

package source

import (
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
)

// Report is the status of a policy, as the admin API shows it.
type Report struct {
	Policy   string                 `json:"policy"` // its name in the configuration
	SHA256   string                 `json:"sha256"`
	Since    time.Time              `json:"since"`
	Rules    int                    `json:"rules"`
	Warnings policyfile.Diagnostics `json:"warnings"`
	// Why the current state of the source is not served; absent if it is.
	Error      string     `json:"error,omitempty"`
	ErrorSince *time.Time `json:"error_since,omitempty"`
	Checked    time.Time  `json:"checked"`
	Reload     string     `json:"reload"` // how often the source is checked, or off
	Sites      int        `json:"sites"`  // the handlers that use the policy
	Watching   int        `json:"watching"`
	Older      []string   `json:"older_sha256,omitempty"` // versions that handlers with reload off still serve
	Reloads    Counts     `json:"reloads"`
}

// ReportOf returns the status of a policy.
func ReportOf(d *Document) Report {
	s := d.Status()
	p := Report{
		Policy: d.Name, SHA256: s.Current.SHA256, Since: s.Current.Since.UTC(), Rules: len(s.Current.Site.File.Spec.Rules),
		Warnings: s.Current.Warnings, Checked: s.Checked.UTC(), Reload: intervalText(s.Interval),
		Sites: s.Subscribers, Watching: s.Watching, Older: s.Older, Reloads: s.Counts,
	}
	if p.Warnings == nil {
		p.Warnings = policyfile.Diagnostics{}
	}
	if s.Err != nil {
		since := s.ErrSince.UTC()
		p.Error, p.ErrorSince = s.Err.Error(), &since
	}
	return p
}

// HostsReport is the status of a policy with a file for each host.
type HostsReport struct {
	Policy  string `json:"policy"`
	Loaded  int    `json:"loaded"`          // files in memory
	Broken  int    `json:"broken"`          // of them, those with an error now
	Missing int    `json:"missing"`         // files known not to exist
	Error   string `json:"error,omitempty"` // of their directory; absent if it can be read
	Reload  string `json:"reload"`
	Sites   int    `json:"sites"`
	Reloads Counts `json:"reloads"`
}

// ReportOfHosts returns the status of a policy with a file for each host.
func ReportOfHosts(h *Hosts) HostsReport {
	s := h.Status()
	p := HostsReport{
		Policy: h.Name(), Loaded: s.Loaded, Broken: s.Broken, Missing: s.Missing,
		Reload: intervalText(s.Interval), Sites: s.Subscribers, Reloads: s.Counts,
	}
	if s.Err != nil {
		p.Error = s.Err.Error()
	}
	return p
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
