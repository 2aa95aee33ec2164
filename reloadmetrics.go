// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"errors"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName("caddy", "robots_policy", name), help, append([]string{"policy"}, labels...), nil)
}

// The label policy is a policy as configurations name it, so it has no more
// values than there are configured policies.
var (
	descReloads = newDesc("reloads_total",
		"Changes of a policy that were found: taken up, or refused as the policy was wrong or could not be read.", "result")
	descSuccessful = newDesc("last_reload_successful", "1 if what is served is what the source holds, 0 if that is wrong or cannot be read; of files for each host, 0 if their directory cannot be read.")
	descLoaded     = newDesc("loaded_timestamp_seconds", "When the policy that is served was taken up.")
	descChecked    = newDesc("checked_timestamp_seconds", "When the source was last looked at.")
	descWarnings   = newDesc("warnings", "Warnings about the policy that is served.")
	descRules      = newDesc("rules", "Rules of the policy that is served.")
	descSites      = newDesc("sites", "Handlers that use the policy.")
	// Its sha256 changes with every edit, but there is one at a time.
	descInfo  = newDesc("info", "1, with the SHA-256 of the policy that is served.", "sha256")
	descHosts = newDesc("hosts", "Hosts of a policy with a file for each: those that have one, those whose file is wrong now, those without.", "state")
)

// collector gives the metrics of all documents and address lists as they are when it is asked. It
// has no state, so that what it counts survives every configuration.
type collector struct{}

// register adds the collector to the registry of a configuration, once.
func register(reg *prometheus.Registry) error {
	if reg == nil {
		return nil
	}
	err := reg.Register(collector{})
	if _, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		return nil
	}
	return err
}

// Describe implements prometheus.Collector.
func (collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descReloads, descSuccessful, descLoaded, descChecked, descWarnings, descRules, descSites, descInfo, descHosts,
		descListTime, descListEntries, descListFailing,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (collector) Collect(ch chan<- prometheus.Metric) {
	seen := map[string]bool{} // a series that is there twice would void all of them
	for _, d := range servedDocuments() {
		if name := label(d.name); !seen[name] {
			seen[name] = true
			d.collect(ch)
		}
	}
	for _, s := range allHostSets() {
		if name := label(s.template.String()); !seen[name] {
			seen[name] = true
			s.collect(ch)
		}
	}
	collectLists(ch)
}

func (s *hostSet) collect(ch chan<- prometheus.Metric) {
	st, name := s.status(), label(s.template.String())
	for result, n := range map[string]uint64{"taken": st.counts.Taken, "refused": st.counts.Refused} {
		ch <- prometheus.MustNewConstMetric(descReloads, prometheus.CounterValue, float64(n), name, result)
	}
	for state, n := range map[string]int{"served": st.held - st.broken, "wrong": st.broken, "missing": st.misses} {
		ch <- prometheus.MustNewConstMetric(descHosts, prometheus.GaugeValue, float64(n), name, state)
	}
	ch <- prometheus.MustNewConstMetric(descSites, prometheus.GaugeValue, float64(st.readers), name)
	ch <- prometheus.MustNewConstMetric(descSuccessful, prometheus.GaugeValue, truth(st.err == nil), name)
}

func (d *document) collect(ch chan<- prometheus.Metric) {
	s := d.status()
	if s.current == nil {
		return
	}
	send := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, kind, value, append([]string{label(d.name)}, labels...)...)
	}
	send(descReloads, prometheus.CounterValue, float64(s.counts.Taken), "taken")
	send(descReloads, prometheus.CounterValue, float64(s.counts.Refused), "refused")
	send(descSuccessful, prometheus.GaugeValue, truth(s.err == nil))
	send(descLoaded, prometheus.GaugeValue, seconds(s.current.since))
	send(descChecked, prometheus.GaugeValue, seconds(s.checked))
	send(descWarnings, prometheus.GaugeValue, float64(len(s.current.warnings)))
	send(descRules, prometheus.GaugeValue, float64(len(s.current.site.File.Spec.Rules)))
	send(descSites, prometheus.GaugeValue, float64(s.readers))
	send(descInfo, prometheus.GaugeValue, 1, s.current.sum)
}

// label makes a name a label, which must be UTF-8; names of files need not be.
func label(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
