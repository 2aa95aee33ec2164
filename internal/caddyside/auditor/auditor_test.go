// SPDX-License-Identifier: Apache-2.0

package auditor

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/robotspolicy/caddy-robots-policy/audit"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

func TestParse(t *testing.T) {
	for args, want := range map[string]string{
		"1h https://www.example.com":       "",
		"1d http://10.0.0.5:8080/x":        "",
		"1h":                               "audit takes an interval",
		"often https://www.example.com":    `invalid audit interval "often"`,
		"1m https://www.example.com":       "must be at least 10m0s",
		"1h www.example.com":               `invalid audit address "www.example.com"`,
		"1h ftp://www.example.com":         "must be like https://www.example.com/",
		"1h https://www.example.com extra": "audit takes an interval",
	} {
		t.Run(args, func(t *testing.T) {
			_, err := Parse(strings.Fields(args))
			if got := fmt.Sprint(err); err != nil && want == "" || want != "" && !strings.Contains(got, want) {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
}

// TestReportsChanges runs seven audits and expects a log line and an event for each result that
// differs from the previous one.
func TestReportsChanges(t *testing.T) {
	fault := func(code string) *audit.Report {
		return &audit.Report{Findings: []audit.Finding{{Severity: audit.Error, Code: code, Message: "m"}, {Severity: audit.Hint, Code: "n"}}}
	}
	results := []struct {
		report *audit.Report
		err    error
		gauge  float64
		emits  bool
		log    string
	}{
		{&audit.Report{}, nil, 0, false, ""},
		{fault("headers-lost"), nil, 1, true, "the audit found errors"},
		{fault("headers-lost"), nil, 1, false, ""},
		{fault("meta-lost"), nil, 1, true, "the audit found errors"},
		{nil, errors.New("no way"), -1, true, "the audit could not be carried out"},
		{&audit.Report{}, nil, 0, true, "the audit found no errors"},
		{&audit.Report{
			Pages:    []audit.PageInfo{{Readings: []audit.Reading{{Crawler: "any other crawler"}}}},
			Findings: []audit.Finding{{Severity: audit.Warning, Code: "page-unreachable"}},
		}, nil, -1, true, "the audit could not read all pages"},
	}
	core, logs := observer.New(zap.DebugLevel)
	config := &Config{Interval: 1, URL: "https://www.example.com/"}
	var delays []time.Duration
	n, emitted := 0, 0
	check := func() {
		if n == 0 {
			return
		}
		want := results[n-1]
		lines := logs.TakeAll()
		if (len(lines) > 0) != want.emits || (emitted > 0) != want.emits || want.emits && lines[0].Message != want.log {
			t.Errorf("audit %d: %d events, log %v", n, emitted, lines)
		}
		if got := gauges(t); len(got) != 1 || got[0] != want.gauge {
			t.Errorf("audit %d: gauge %v, want %v", n, got, want.gauge)
		}
		emitted = 0
	}
	a := &auditor{
		config: config, address: &url.URL{Scheme: "https", Host: "www.example.com"}, logger: zap.New(core),
		policy: func(context.Context, string) *site.Site { return nil },
		emit: func(name string, data map[string]any) {
			emitted++
			if name != event || data["url"] != config.URL {
				t.Errorf("event %s %v", name, data)
			}
		},
		wait: func(_ context.Context, d time.Duration) error {
			check()
			delays = append(delays, d)
			if n == len(results) {
				return context.Canceled
			}
			return nil
		},
		run: func(context.Context, *url.URL, audit.Options) (*audit.Report, error) {
			n++
			return results[n-1].report, results[n-1].err
		},
	}
	a.loop(t.Context())
	if want := []time.Duration{firstDelay, 1, 1, 1, 1, 1, 1, 1}; !slices.Equal(delays, want) {
		t.Errorf("waited %v", delays)
	}
	if got := gauges(t); len(got) != 0 {
		t.Errorf("%v remain", got)
	}
}

// gauges returns the values of the metric for the number of errors.
func gauges(t *testing.T) (values []float64) {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(faults)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			values = append(values, m.GetGauge().GetValue())
		}
	}
	return values
}
