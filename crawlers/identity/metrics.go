// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/robotspolicy/caddy-robots-policy/crawlers/verify"
)

// fetches counts the fetches of the whole process, so a reload does not reset the counter. All combinations of labels
// exist from the start, so the first failure is visible as an increase.
var fetches = func() *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "caddy", Subsystem: "robots_policy", Name: "verification_fetches_total",
		Help: "Fetches of address lists and key directories, and DNS lookups of addresses, by source and result.",
	}, []string{"source", "result"})
	for _, source := range []string{"address_list", "dns", "key_directory"} {
		v.WithLabelValues(source, "ok")
		v.WithLabelValues(source, "failed")
	}
	return v
}()

func countFetch(source string, err error) {
	result := "ok"
	if err != nil {
		result = "failed"
	}
	fetches.WithLabelValues(source, result).Inc()
}

// Collectors returns the Prometheus collectors of this package. They are the same for every configuration, so that
// counters survive reloads.
func Collectors() []prometheus.Collector { return []prometheus.Collector{fetches, listCollector{}} }

func newListDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName("caddy", "robots_policy", name), help, []string{"list"}, nil)
}

// These metrics have a label "list", whose value is the URL of an address list.
var (
	descListTime    = newListDesc("address_list_timestamp_seconds", "When the address list was fetched, in Unix seconds. For a list embedded in the program: when it was collected.")
	descListEntries = newListDesc("address_list_entries", "Number of address ranges in the address list.")
	descListFailing = newListDesc("address_list_failing", "1 if the last fetch of the address list failed, otherwise 0. While it is 1, Caddy uses an older list, or no list.")
	descSnapshot    = prometheus.NewDesc(prometheus.BuildFQName("caddy", "robots_policy", "embedded_address_lists_timestamp_seconds"),
		"When the address lists in the program were collected, in Unix seconds.", nil, nil)
)

// maxListSeries limits the number of different values of the label "list".
const maxListSeries = 500

// listCollector exports the state of the address lists at the time of a scrape.
type listCollector struct{}

// Describe implements prometheus.Collector.
func (listCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- descListTime
	ch <- descListEntries
	ch <- descListFailing
	ch <- descSnapshot
}

// Collect implements prometheus.Collector.
func (listCollector) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(descSnapshot, prometheus.GaugeValue, unixSeconds(verify.SnapshotDate()))
	lists := slices.DeleteFunc(listsOf(engines.All()), func(l knownList) bool { return l.Prefixes == 0 && l.Err == nil })
	for _, l := range lists[:min(len(lists), maxListSeries)] {
		failing := 0.0
		if l.Err != nil {
			failing = 1
		}
		if l.Prefixes == 0 {
			ch <- prometheus.MustNewConstMetric(descListFailing, prometheus.GaugeValue, failing, l.URL)
			continue
		}
		ch <- prometheus.MustNewConstMetric(descListTime, prometheus.GaugeValue, unixSeconds(l.Date), l.URL)
		ch <- prometheus.MustNewConstMetric(descListEntries, prometheus.GaugeValue, float64(l.Prefixes), l.URL)
		ch <- prometheus.MustNewConstMetric(descListFailing, prometheus.GaugeValue, failing, l.URL)
	}
}

func unixSeconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}
