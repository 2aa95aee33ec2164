// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"net/http"
	"strings"
	"testing"
)

// The off switch stops blocking until someone removes it or Caddy loads a configuration. The log and the metrics
// show that it is on.
func TestOffSwitch(t *testing.T) {
	s := startReloading(t, "", slicePolicy, htmlUpstream(page("")), "metrics\nrobots_policy POLICY\nreverse_proxy UPSTREAM")
	status := func() int { return s.get("/", "User-Agent", gptBot).StatusCode }
	post := func(query string) response { return s.ask(http.MethodPost, "/robots_policy/enforce"+query, nil) }
	if got := status(); got != http.StatusForbidden {
		t.Fatalf("before: %d", got)
	}
	for _, mode := range []string{"log", "off"} {
		if r := post("?mode=" + mode); r.StatusCode != http.StatusOK || !strings.Contains(r.body, `"mode": "`+mode+`"`) {
			t.Fatalf("%s %s", r.Status, r.body)
		}
		if got := status(); got != http.StatusOK {
			t.Errorf("mode %s: %d", mode, got)
		}
		if text := s.ask(http.MethodGet, "/metrics", nil).body; !strings.Contains(text, `caddy_robots_policy_enforce_override{mode="`+mode+`"} 1`) {
			t.Errorf("mode %s is not in the metrics", mode)
		}
	}
	if r := post("?mode=block"); r.StatusCode != http.StatusOK {
		t.Fatalf("%s %s", r.Status, r.body)
	}
	if got := status(); got != http.StatusForbidden {
		t.Errorf("lifted: %d", got)
	}
	set, removed := s.log("enforcement limited through the admin API until the next reload of Caddy"), s.log("limit of enforcement removed through the admin API")
	if len(set) != 2 || len(removed) != 1 {
		t.Errorf("the log says %d times that a limit was set, and %d times that it was removed", len(set), len(removed))
	}
	post("?mode=off")
	if err := s.reconfigure("robots_policy POLICY\nreverse_proxy UPSTREAM\n# another"); err != nil {
		t.Fatal(err)
	}
	if got := status(); got != http.StatusForbidden {
		t.Errorf("after a reload of Caddy: %d", got)
	}
	for _, query := range []string{"", "?mode=", "?mode=never"} {
		if r := post(query); r.StatusCode != http.StatusBadRequest || !strings.Contains(r.body, "must be off, log or block") {
			t.Errorf("%s: %s %s", query, r.Status, r.body)
		}
	}
	if r := s.ask(http.MethodGet, "/robots_policy/enforce?mode=off", nil); r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %s", r.Status)
	}
}
