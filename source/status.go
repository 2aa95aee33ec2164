// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
)

// Counts holds the numbers of applied and rejected changes of a source.
type Counts struct {
	Applied  uint64 `json:"applied"`
	Rejected uint64 `json:"rejected"`
}

// counters counts the changes of a source while the server runs; see Counts.
type counters struct{ applied, rejected atomic.Uint64 }

func (c *counters) counts() Counts { return Counts{c.applied.Load(), c.rejected.Load()} }

// Status is the state of a loaded document, in the admin API's form.
type Status struct {
	Policy   string                 `json:"policy"` // the policy's name in the configuration
	SHA256   string                 `json:"sha256"`
	Since    time.Time              `json:"since"`
	Rules    int                    `json:"rules"`
	Warnings policyfile.Diagnostics `json:"warnings"`
	// Error is the reason why the source's present state is not served. It is absent if that state is served.
	Error      string    `json:"error,omitempty"`
	ErrorSince time.Time `json:"error_since,omitzero"`
	// UndoCost describes what search engines lose because of the served undo, and which tests of the policy fail. It is
	// absent if search engines lose nothing and no test fails.
	UndoCost      string    `json:"undo_cost,omitempty"`
	UndoCostSince time.Time `json:"undo_cost_since,omitzero"`
	Before        string    `json:"before_sha256,omitempty"` // SHA-256 of the version served before, if known
	Checked       time.Time `json:"checked"`                 // time when the source was last read
	Reload        string    `json:"reload"`                  // time between checks of the source, or off
	Sites         int       `json:"sites"`                   // number of handlers that use the policy
	Watching      int       `json:"watching"`
	Older         []string  `json:"older_sha256,omitempty"` // versions that handlers with reload off still serve
	Reloads       Counts    `json:"reloads"`
}

// Status returns the present state of the document.
func (d *Document) Status() Status {
	d.mu.RLock()
	defer d.mu.RUnlock()
	now := d.Current()
	s := Status{
		Policy: d.Name, SHA256: now.SHA256, Since: now.Since.UTC(), Rules: len(now.Site.File.Spec.Rules), Warnings: now.Warnings,
		Checked: d.checked.UTC(), Reload: intervalText(d.interval()), Sites: len(d.all), Reloads: d.counts.counts(),
		UndoCost: d.cost, UndoCostSince: d.costSince.UTC(),
	}
	if s.Warnings == nil {
		s.Warnings = policyfile.Diagnostics{}
	}
	if d.err != nil {
		s.Error, s.ErrorSince = d.err.Error(), d.errSince.UTC()
	}
	s.Before = d.previous
	for _, u := range d.all {
		if u.watch {
			s.Watching++
		}
		if u.snapshot != nil && u.snapshot != now && !slices.Contains(s.Older, u.snapshot.SHA256) {
			s.Older = append(s.Older, u.snapshot.SHA256)
		}
	}
	return s
}

// HostsStatus is the state of a Hosts, in the admin API's form.
type HostsStatus struct {
	Policy  string `json:"policy"`
	Loaded  int    `json:"loaded"`          // number of loaded files
	Broken  int    `json:"broken"`          // number of loaded files that have an error now
	Missing int    `json:"missing"`         // number of files known not to exist
	Error   string `json:"error,omitempty"` // why the directory cannot be read, if it cannot
	Reload  string `json:"reload"`          // time between checks of the files, or off
	Sites   int    `json:"sites"`
	Reloads Counts `json:"reloads"`
}

// Status returns the present state of the per-host policies.
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
	for _, d := range h.files {
		if d.broken() {
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

// ReloadReport is the result of reloading a policy, in the admin API's form.
type ReloadReport struct {
	Policy  string        `json:"policy"`
	Result  string        `json:"result"` // applied, unchanged or rejected
	SHA256  string        `json:"sha256,omitempty"`
	Error   string        `json:"error,omitempty"`
	Changes []string      `json:"changes,omitempty"`
	Details *compare.Diff `json:"details,omitempty"`
}

// Report returns the outcome in the admin API's form. name is the name of the policy in the configuration.
func (o Outcome) Report(name string) ReloadReport {
	result := ReloadReport{Policy: name, Result: "unchanged"}
	switch {
	case o.Err != nil:
		result.Result, result.Error = "rejected", o.Err.Error()
	case o.Now != o.Before:
		result.Result, result.Details = "applied", o.Changes
		if o.Changes != nil {
			result.Changes = o.Changes.Words()
		}
	}
	if o.Now != nil {
		result.SHA256 = o.Now.SHA256
	}
	return result
}

// newDesc returns the description of a metric. The label "policy" is the policy's name in the configuration, and never
// a host, because a label should have few values.
func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName("caddy", "robots_policy", name), help, append([]string{"policy"}, labels...), nil)
}

var (
	descReloads    = newDesc("reloads_total", "Number of changes of the policy, by result: applied, or rejected because of an error.", "result")
	descSuccessful = newDesc("last_reload_successful", "1 if Caddy serves the policy as it is in the source, 0 if the source has an error or cannot be read. For per-host files, 0 if their directory cannot be read.")
	descLoaded     = newDesc("loaded_timestamp_seconds", "When the version in force was loaded, in Unix seconds.")
	descChecked    = newDesc("checked_timestamp_seconds", "When the source of the policy was last read, in Unix seconds.")
	descWarnings   = newDesc("warnings", "Number of warnings about the version in force.")
	descRules      = newDesc("rules", "Number of rules in the version in force.")
	descSites      = newDesc("sites", "Number of handlers (directives such as robots_policy) that use the policy.")
	descInfo       = newDesc("info", "Always 1; the label sha256 identifies the version in force.", "sha256")
	descUndoCost   = newDesc("undo_cost", "1 while an undo is in force that made search engines lose something or made a test of the policy fail; otherwise 0.")
	descHosts      = newDesc("hosts", "Number of per-host policy files, by state: served, broken (with an error) or missing.", "state")
)

// Describe implements prometheus.Collector.
func (p *Pool) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descReloads, descSuccessful, descLoaded, descChecked, descWarnings, descRules, descSites, descInfo, descUndoCost, descHosts,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. It uses the counters of the documents, so that the counts continue after a
// reload of Caddy's configuration.
func (p *Pool) Collect(ch chan<- prometheus.Metric) {
	seen := map[string]bool{} // a duplicate series would make the entire scrape fail
	send := func(policy string, samples []sample) {
		policy = strings.ToValidUTF8(policy, "\uFFFD") // names of files need not be UTF-8
		if seen[policy] {
			return
		}
		seen[policy] = true
		for _, s := range samples {
			kind := prometheus.GaugeValue
			if s.desc == descReloads {
				kind = prometheus.CounterValue
			}
			ch <- prometheus.MustNewConstMetric(s.desc, kind, s.value, append([]string{policy}, s.labels...)...)
		}
	}
	for _, d := range p.Documents() {
		s := d.Status()
		send(d.Name, append(commonSamples(s.Reloads, s.Sites, s.Error), []sample{
			{descLoaded, unixSeconds(s.Since), nil},
			{descChecked, unixSeconds(s.Checked), nil},
			{descWarnings, float64(len(s.Warnings)), nil},
			{descRules, float64(s.Rules), nil},
			{descInfo, 1, []string{s.SHA256}},
			{descUndoCost, float64(min(len(s.UndoCost), 1)), nil},
		}...))
	}
	for _, d := range p.Unavailable() {
		send(d.Name, []sample{{descSuccessful, 0, nil}})
	}
	for _, h := range p.AllHosts() {
		s := h.Status()
		send(s.Policy, append(commonSamples(s.Reloads, s.Sites, s.Error), []sample{
			{descHosts, float64(s.Loaded - s.Broken), []string{"served"}},
			{descHosts, float64(s.Broken), []string{"broken"}},
			{descHosts, float64(s.Missing), []string{"missing"}},
		}...))
	}
}

// sample is the value of a metric for a policy. labels holds the values of the metric's labels, except for "policy".
type sample struct {
	desc   *prometheus.Desc
	value  float64
	labels []string
}

func commonSamples(reloads Counts, sites int, err string) []sample {
	successful := 1.0
	if err != "" {
		successful = 0
	}
	return []sample{
		{descReloads, float64(reloads.Applied), []string{"applied"}},
		{descReloads, float64(reloads.Rejected), []string{"rejected"}},
		{descSuccessful, successful, nil},
		{descSites, float64(sites), nil},
	}
}

func unixSeconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

func (o *Options) emit(event string, data map[string]any) {
	if o.Emit != nil {
		o.Emit(event, data)
	}
}

// report logs an outcome and emits events about it.
func (o *Options) report(src *source, out Outcome) {
	policy := zap.String("policy", src.name)
	switch now := out.Now; out.news {
	case loaded:
		o.reportLoaded(policy, out)
	case rejected:
		failed := map[string]any{"policy": src.name, "error": out.Err.Error()}
		if now == nil { // no version was ever accepted
			o.Logger.Error("policy not loaded; until it is loaded, requests for robots.txt get status 503, and all other requests pass unchanged", policy, zap.Error(out.Err))
		} else {
			o.Logger.Error("policy not reloaded; the last good version stays in force", policy, zap.Error(out.Err),
				zap.String("serving_sha256", now.SHA256), zap.Time("serving_since", now.Since))
			failed["serving_sha256"], failed["serving_since"] = now.SHA256, now.Since
		}
		o.emit("robots_policy.reload_failed", failed)
	case recovered:
		o.Logger.Info("policy recovered: the source again contains the version that Caddy serves", policy, zap.String("sha256", now.SHA256))
		o.emitReloaded(policy.String, now, now, []string{}, false)
	case nothing:
	}
}

func (o *Options) emitReloaded(policy string, now, before *Snapshot, changes []string, robotsTxt bool) {
	o.emit("robots_policy.reloaded", map[string]any{
		"policy": policy, "sha256": now.SHA256, "previous_sha256": before.SHA256, "warnings": len(now.Warnings),
		"changes": changes, "robots_txt_changed": robotsTxt,
	})
}

const maxLoggedChanges = 20

func (o *Options) reportLoaded(policy zap.Field, out Outcome) {
	for _, d := range out.Now.Warnings {
		o.Logger.Warn("policy file: "+d.Message, zap.String("place", fmt.Sprintf("%s:%d:%d", d.File, d.Pos.Line, d.Pos.Column)), zap.String("code", d.Code))
	}
	log := o.Logger.With(policy, zap.String("sha256", out.Now.SHA256),
		zap.Int("rules", len(out.Now.Site.File.Spec.Rules)), zap.Int("warnings", len(out.Now.Warnings)))
	if out.Before == nil {
		log.Info("policy loaded")
		return
	}
	changes := out.Changes.Words()
	logged := changes
	if len(logged) > maxLoggedChanges {
		logged = append(logged[:maxLoggedChanges:maxLoggedChanges], fmt.Sprintf("and %d more", len(changes)-maxLoggedChanges))
	}
	log.Info("policy reloaded", zap.Strings("changes", logged), zap.Bool("robots_txt_changed", out.Changes.RobotsTxt))
	o.emitReloaded(policy.String, out.Now, out.Before, changes, out.Changes.RobotsTxt)
}

// recoverPanic must be deferred. It keeps a panic in a watcher from ending the program.
func (o *Options) recoverPanic() {
	if p := recover(); p != nil {
		o.Logger.Error("panic while reloading a policy", zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
	}
}

const guardTimeout = time.Minute

// below returns a function that returns the robots.txt of the site behind the server, in the version that a handler has
// last fetched for a host. The function asks all handlers that use the document. If the document is the policy file of
// a single host, it asks only the handler with the options o.
func (d *Document) below(o *Options) site.Below {
	if below := d.Upstream(); below != nil {
		return below
	}
	return o.Upstream
}

// allows asks Options.Guard whether a new version may be served. Losses of the search engines in accepted do not
// matter.
func (d *Document) allows(o *Options, src *source, before, after *Snapshot, accepted []string) error {
	if o.Guard == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), guardTimeout)
	defer cancel()
	return o.Guard(ctx, src.name, before.Site, after.Site, d.below(o), accepted)
}
