// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2"
	otlpmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/robotspolicy/caddy-robots-policy/activity"
)

// otlpReceiver receives metrics over OTLP/HTTP. It stores the last value of each series. The keys are the names and
// labels of the series, as Prometheus writes them.
type otlpReceiver struct {
	mu     sync.Mutex
	values map[string]float64
	err    error
}

func (o *otlpReceiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.receive(r); err != nil {
		o.err = err
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (o *otlpReceiver) receive(r *http.Request) error {
	if r.URL.Path != "/v1/metrics" {
		return fmt.Errorf("request for %s", r.URL.Path)
	}
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if body, err = gzip.NewReader(body); err != nil {
			return err
		}
	}
	b, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	var export otlpmetrics.ExportMetricsServiceRequest
	if err := proto.Unmarshal(b, &export); err != nil {
		return err
	}
	for _, resource := range export.GetResourceMetrics() {
		for _, scope := range resource.GetScopeMetrics() {
			for _, m := range scope.GetMetrics() {
				for _, p := range m.GetSum().GetDataPoints() {
					var labels []string
					for _, a := range p.GetAttributes() {
						if v := a.GetValue().GetStringValue(); v != "" {
							labels = append(labels, fmt.Sprintf("%s=%q", a.GetKey(), v))
						}
					}
					slices.Sort(labels)
					o.values[m.GetName()+"{"+strings.Join(labels, ",")+"}"] = p.GetAsDouble()
				}
			}
		}
	}
	return nil
}

var countersRan atomic.Bool

// The counters of requests are exported to Prometheus and over OTLP. They are counted by host, but the number of hosts
// is limited. The admin API reports violations. Requests whose User-Agent names the command audit are counted
// separately.
func TestVisitCounters(t *testing.T) {
	if countersRan.Swap(true) {
		t.Skip("the counters belong to the process, so a second run would not start at zero")
	}
	received := &otlpReceiver{values: map[string]float64{}}
	receiver := httptest.NewServer(received)
	defer receiver.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	t.Setenv("OTEL_METRICS_EXPORTER", "otlp")

	s := newServer(t, t.TempDir(), visitsPolicy, nil)
	admin := freeAddr(t)
	s.load(s.caddyfile(`admin `+admin+`
log {
	output discard
}
metrics {
	otlp
}
robots_policy {
	metrics hosts one.example two.example
	activity DIR/activity
}`, map[string]string{"": "robots_policy POLICY\nrespond hello"}))
	stopped := false
	defer func() {
		if !stopped {
			_ = caddy.Stop()
		}
	}()

	agents := map[string]string{"GPTBot": gptBot, "unlisted": "SomeNewBot/1.0", "audit": gptBot + " " + activity.AuditProduct + "/1"}
	for _, r := range []struct{ agent, host, path string }{
		{"GPTBot", "one.example", "/robots.txt"},
		{"GPTBot", "one.example", "/a"},
		{"GPTBot", "one.example", "/a"},
		{"GPTBot", "made-up.example", "/a"},
		{"GPTBot", "also-made-up.example", "/a"},
		{"unlisted", "two.example", "/b"},
		{"audit", "one.example", "/robots.txt"},
		{"audit", "one.example", "/c"},
	} {
		s.get(r.path, "User-Agent", agents[r.agent], "Host", r.host)
	}
	// The counters may change after the client has received a response, because a request is counted when its response
	// has ended. So wait for the counters.
	want := []string{
		`caddy_robots_policy_requests_total{crawler="GPTBot",decision="blocked",host="one.example",identity="audit"} 1`,
		`caddy_robots_policy_requests_total{crawler="GPTBot",decision="blocked",host="one.example",identity="unverified"} 2`,
		`caddy_robots_policy_requests_total{crawler="GPTBot",decision="blocked",host="other",identity="unverified"} 2`,
		`caddy_robots_policy_requests_total{crawler="unlisted",decision="allowed",host="two.example",identity="unverified"} 1`,
		`caddy_robots_policy_response_bytes_total{crawler="unlisted",decision="allowed",host="two.example",identity="unverified"} 5`,
	}
	var scraped string
	eventually(t, "the counters", func() bool {
		scraped = adminGet(t, admin, "/metrics")
		return !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(scraped, w+"\n") })
	})
	if strings.Contains(scraped, "made-up") {
		t.Error("a host that a client invented is a label value")
	}
	// Requests are in the activity database only after some seconds, so wait for them.
	const violation = `{
      "crawler": "GPTBot",
      "identity": "unverified",
      "host": "one.example",
      "path": "/a",
      "decision": "blocked",
      "requests": 2
    }`
	var violations string
	eventually(t, "the violations", func() bool {
		violations = adminGet(t, admin, "/robots_policy/violations?since=1h")
		return strings.Contains(violations, violation)
	})
	if !strings.Contains(violations, `"identity": "audit",
      "host": "one.example",
      "path": "/c"`) || strings.Count(violations, `"/c"`) != 1 {
		t.Errorf("a request that names this program's audit is not recorded as an audit: %s", violations)
	}
	if got := adminGet(t, admin, "/robots_policy/violations?since=x"); !strings.Contains(got, `invalid since \"x\": must be a duration`) {
		t.Error(got)
	}

	stopped = true
	if err := caddy.Stop(); err != nil { // this sends the pending metrics
		t.Error(err)
	}
	received.mu.Lock()
	defer received.mu.Unlock()
	if received.err != nil {
		t.Error(received.err)
	}
	for _, w := range want {
		name, value, _ := strings.Cut(w, "} ")
		if got, ok := received.values[name+"}"]; !ok || fmt.Sprint(got) != value {
			t.Errorf("over OTLP, %s} is %v (%v), want %s; received %d series", name, got, ok, value, len(received.values))
		}
	}
}

func adminGet(t *testing.T, admin, path string) string {
	t.Helper()
	resp, err := http.Get("http://" + admin + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
