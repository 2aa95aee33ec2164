// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// The dashboard and the alerts use only metrics and labels that exist.
func TestDashboardAndAlerts(t *testing.T) {
	s := startReloading(t, "robots_policy {\nevidence DIR/evidence\nmetrics\n}", soakPolicy(1), nil, "respond hello")
	if err := os.Mkdir(filepath.Join(s.dir, "hosts"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.reconfigure("handle /x {\nrobots_policy DIR/hosts/{host}.yaml\n}\nrobots_policy POLICY\nrespond hello"); err != nil {
		t.Fatal(err)
	}
	s.get("/robots.txt", "User-Agent", gptBot)
	s.get("/", "User-Agent", gptBot) // violates the robots.txt that GPTBot has just read
	metrics := s.ask(http.MethodGet, "/metrics", nil).body

	var dashboard struct {
		Title         string
		SchemaVersion int
		Panels        []struct {
			ID      int
			Title   string
			Type    string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	text, err := os.ReadFile("../docs/grafana-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	var asked []string
	seen := map[int]bool{}
	for _, p := range dashboard.Panels {
		if seen[p.ID] || p.Title == "" || p.Type == "" || p.GridPos.W == 0 || p.GridPos.X+p.GridPos.W > 24 || len(p.Targets) == 0 {
			t.Errorf("%+v", p)
		}
		seen[p.ID] = true
		for _, target := range p.Targets {
			asked = append(asked, target.Expr)
		}
	}
	var alerts struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if text, err = os.ReadFile("../docs/alerts.yaml"); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &alerts); err != nil {
		t.Fatal(err)
	}
	for _, g := range alerts.Groups {
		for _, r := range g.Rules {
			asked = append(asked, r.Expr)
		}
	}
	if len(asked) < 12 || dashboard.SchemaVersion == 0 {
		t.Fatalf("%d questions", len(asked))
	}
	page, err := os.ReadFile("../docs/reference/metrics-events-api.md")
	if err != nil {
		t.Fatal(err)
	}
	// later lists metrics that exist only if an audit runs, if the server belongs to a fleet, or if enforcement is
	// limited. The configuration of this test has none of these.
	later := []string{
		"caddy_robots_policy_audit_errors", "caddy_robots_policy_audit_timestamp_seconds", "caddy_robots_policy_fleet_servers", "caddy_robots_policy_enforce_override",
	}
	name := regexp.MustCompile(`caddy_robots_policy_\w+`)
	value := regexp.MustCompile(`\b(channel|decision|identity)=~?"([^"]*)"`)
	values := map[string][]string{
		"channel":  {"blocking", "robots_txt", "headers", "page"},
		"decision": {"allowed", "disallowed", "would_block", "blocked", "would_limit", "limited", "served", "sent"},
		"identity": {"verified", "unverified", "impostor", "audit"},
	}
	label := regexp.MustCompile(`(?:by \(([^)]*)\)|(\w+)(?:=~?|!=)")`)
	for _, expr := range asked {
		names := name.FindAllString(expr, -1)
		if len(names) == 0 {
			t.Errorf("%s does not use any metric of this module", expr)
		}
		for _, m := range value.FindAllStringSubmatch(expr, -1) {
			for v := range strings.SplitSeq(m[2], "|") {
				if known := values[m[1]]; !slices.Contains(known, v) {
					t.Errorf("%s: %s has no value %s, but %q", expr, m[1], v, known)
				}
			}
		}
		for _, n := range names {
			sample := regexp.MustCompile(`(?m)^` + n + `(?:\{(.*)\})? `).FindStringSubmatch(metrics)
			labels := ""
			if sample != nil {
				labels = sample[1]
			} else if row := regexp.MustCompile("\\| `" + n + "` \\| (.*?) \\|").FindStringSubmatch(string(page)); row != nil && slices.Contains(later, n) {
				labels = regexp.MustCompile("`(\\w+)`").ReplaceAllString(row[1], `$1="`)
			} else {
				t.Errorf("%s: the metric %s does not exist", expr, n)
				continue
			}
			for _, m := range label.FindAllStringSubmatch(expr, -1) {
				for l := range strings.SplitSeq(m[1]+m[2], ",") {
					l = strings.TrimSpace(l)
					if own := []string{"instance"}; !slices.Contains(own, l) && !strings.Contains(labels, l+`="`) {
						t.Errorf("%s: %s has no label %s", expr, n, l)
					}
				}
			}
		}
	}
}

// If Prometheus is installed, it loads the alert rules, and a test makes each of them fire.
func TestAlertsFire(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed; on Debian: apt-get install prometheus")
	}
	for _, args := range [][]string{{"check", "rules", "../docs/alerts.yaml"}, {"test", "rules", "testdata/alerts.yaml", "testdata/alertsofdays.yaml"}} {
		if args[0] == "test" && !testkit.Thorough() {
			continue
		}
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	rules, err := os.ReadFile("../docs/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var fired []byte
	for _, name := range []string{"testdata/alerts.yaml", "testdata/alertsofdays.yaml"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		fired = append(fired, text...)
	}
	for _, m := range regexp.MustCompile(`alert: (\w+)`).FindAllSubmatch(rules, -1) {
		if !bytes.Contains(fired, fmt.Appendf(nil, `alertname="%s",alertstate="firing"`, m[1])) {
			t.Errorf("no test makes %s fire", m[1])
		}
	}
}
