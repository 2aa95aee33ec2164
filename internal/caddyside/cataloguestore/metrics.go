// SPDX-License-Identifier: Apache-2.0

package cataloguestore

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Collector exports the state of the catalogue at the time of a scrape. It is the same
// for every configuration.
var Collector prometheus.Collector = collector{}

type collector struct{}

func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName("caddy", "robots_policy", name), help, labels, nil)
}

var (
	descTime = newDesc("catalogue_timestamp_seconds", "The date of the catalogue of crawlers in use, by source: embedded or storage.", "source")
	descSize = newDesc("catalogue_crawlers", "Crawlers in the catalogue in use.")
)

// Describe implements prometheus.Collector.
func (collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- descTime
	ch <- descSize
}

// Collect implements prometheus.Collector.
func (collector) Collect(ch chan<- prometheus.Metric) {
	s := CurrentStatus()
	source, date := "storage", 0.0
	if s.Source == SourceEmbedded {
		source = SourceEmbedded
	}
	if t, err := time.Parse(time.DateOnly, s.AsOf); err == nil {
		date = float64(t.Unix())
	}
	ch <- prometheus.MustNewConstMetric(descTime, prometheus.GaugeValue, date, source)
	ch <- prometheus.MustNewConstMetric(descSize, prometheus.GaugeValue, float64(s.Crawlers))
}
