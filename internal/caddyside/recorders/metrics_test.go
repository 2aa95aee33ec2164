// SPDX-License-Identifier: Apache-2.0

package recorders

import (
	"fmt"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/robotspolicy/caddy-robots-policy/activity"
)

// A client can send any bytes as the host. They must not get into labels, because counters panic on labels that are not
// valid UTF-8.
func TestHostLabels(t *testing.T) {
	m := &Metrics{Hosts: true}
	hostLabels.SetLimit(2)
	defer hostLabels.SetLimit(defaultHostLabels)
	for _, host := range []string{"a\xff.example", strings.Repeat("a", 10_000)} {
		m.Record(activity.Request{Crawler: "GPTBot", Host: host})
	}
	if l := hostLabels.Label("b.example"); l != "b.example" {
		t.Errorf("the second of two hosts has the label %q: a host that is too long has used one label", l)
	}
}

// Even with very many crawlers and hosts, the number of series is limited, and all requests are counted.
func TestSeriesAreBounded(t *testing.T) {
	const limit = 3000
	m := &Metrics{Hosts: true, MaxHosts: 200, Series: limit}
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = (&Metrics{MaxHosts: defaultHostLabels, Series: defaultSeries}).Start() })
	count := func(c prometheus.Collector) (n int, sum float64) {
		r := prometheus.NewRegistry()
		r.MustRegister(c)
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				n++
				sum += m.GetCounter().GetValue()
			}
		}
		return n, sum
	}
	_, before := count(visitsTotal)
	visits := 0
	for crawler := range 100 {
		for host := range 50 {
			for _, decision := range []activity.Decision{activity.Allowed, activity.Blocked, activity.Disallowed} {
				m.Record(activity.Request{Crawler: fmt.Sprint("c", crawler), Category: "search", Identity: activity.Unverified, Decision: decision, Host: fmt.Sprint(host, ".example")})
				visits++
			}
		}
	}
	total, after := count(visitsTotal)
	sizes, _ := count(visitBytes)
	if total+sizes > limit || total < limit/4 {
		t.Errorf("%d series, want at most %d", total+sizes, limit)
	}
	if n := after - before; n != float64(visits) {
		t.Errorf("%v requests are counted, want %d", n, visits)
	}
	_, folded := count(visitsFolded)
	if folded < float64(visits-limit/2) || folded >= float64(visits) {
		t.Errorf("%v of %d requests were folded", folded, visits)
	}
}

func TestMetricsOptions(t *testing.T) {
	for text, want := range map[string]Metrics{
		"metrics":                              {},
		"metrics hosts":                        {Hosts: true},
		"metrics hosts 50":                     {Hosts: true, MaxHosts: 50},
		"metrics hosts 50 {\nseries 5000\n}":   {Hosts: true, MaxHosts: 50, Series: 5000},
		"metrics hosts a.example b.example":    {Hosts: true, HostNames: []string{"a.example", "b.example"}},
		"metrics {\nseries 5000\n}":            {Series: 5000},
		"metrics hosts {\nseries many\n}":      {MaxHosts: -1},
		"metrics hosts {\nserie 5000\n}":       {MaxHosts: -1},
		"metrics hosts {\nseries 5000 6000\n}": {MaxHosts: -1},
	} {
		var m Metrics
		err := m.UnmarshalCaddyfile(caddyfile.NewTestDispenser(text))
		if want.MaxHosts < 0 != (err != nil) || err == nil && fmt.Sprint(m) != fmt.Sprint(want) {
			t.Errorf("%s: %+v, %v", text, m, err)
		}
	}
}
