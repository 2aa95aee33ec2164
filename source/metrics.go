// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// newDesc returns the description of a metric. The label policy is a policy as
// configurations name it, so it has few values.
func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName("caddy", "robots_policy", name), help, append([]string{"policy"}, labels...), nil)
}

var (
	descReloads    = newDesc("reloads_total", "Changes of the policy, by result: applied, or rejected because of an error.", "result")
	descSuccessful = newDesc("last_reload_successful", "1 if the current state of the source is served, 0 if it has an error. Of per-host files, 0 if their directory cannot be read.")
	descLoaded     = newDesc("loaded_timestamp_seconds", "When the served version was loaded.")
	descChecked    = newDesc("checked_timestamp_seconds", "When the source was last read.")
	descWarnings   = newDesc("warnings", "Warnings about the served version.")
	descRules      = newDesc("rules", "Rules of the served version.")
	descSites      = newDesc("sites", "Handlers that use the policy.")
	descInfo       = newDesc("info", "1, labelled with the SHA-256 of the served version.", "sha256")
	descHosts      = newDesc("hosts", "Per-host policy files, by state: served, broken (an error now), missing.", "state")
)

// Describe implements prometheus.Collector.
func (p *Pool) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descReloads, descSuccessful, descLoaded, descChecked, descWarnings, descRules, descSites, descInfo, descHosts,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. It has no state of its own, so that counters
// survive a reload.
func (p *Pool) Collect(ch chan<- prometheus.Metric) {
	seen := map[string]bool{} // a duplicate series would void the whole scrape
	for _, d := range p.Documents() {
		if name := label(d.Name); !seen[name] {
			seen[name] = true
			d.collect(ch)
		}
	}
	for _, h := range p.AllHosts() {
		if name := label(h.Name()); !seen[name] {
			seen[name] = true
			h.collect(ch)
		}
	}
}

func (h *Hosts) collect(ch chan<- prometheus.Metric) {
	s := h.Status()
	send := newSender(ch, label(h.Name()))
	send.reloads(s.Reloads)
	send(descHosts, prometheus.GaugeValue, float64(s.Loaded-s.Broken), "served")
	send(descHosts, prometheus.GaugeValue, float64(s.Broken), "broken")
	send(descHosts, prometheus.GaugeValue, float64(s.Missing), "missing")
	send(descSites, prometheus.GaugeValue, float64(s.Sites))
	send(descSuccessful, prometheus.GaugeValue, boolGauge(s.Error == ""))
}

func (d *Document) collect(ch chan<- prometheus.Metric) {
	s := d.Status()
	send := newSender(ch, label(d.Name))
	send.reloads(s.Reloads)
	send(descSuccessful, prometheus.GaugeValue, boolGauge(s.Error == ""))
	send(descLoaded, prometheus.GaugeValue, unixSeconds(s.Since))
	send(descChecked, prometheus.GaugeValue, unixSeconds(s.Checked))
	send(descWarnings, prometheus.GaugeValue, float64(len(s.Warnings)))
	send(descRules, prometheus.GaugeValue, float64(s.Rules))
	send(descSites, prometheus.GaugeValue, float64(s.Sites))
	send(descInfo, prometheus.GaugeValue, 1, s.SHA256)
}

type sender func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string)

func newSender(ch chan<- prometheus.Metric, policy string) sender {
	return func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, kind, value, append([]string{policy}, labels...)...)
	}
}

func (send sender) reloads(c Counts) {
	send(descReloads, prometheus.CounterValue, float64(c.Applied), "applied")
	send(descReloads, prometheus.CounterValue, float64(c.Rejected), "rejected")
}

// label returns a valid label: names of files need not be UTF-8.
func label(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

func boolGauge(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func unixSeconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
