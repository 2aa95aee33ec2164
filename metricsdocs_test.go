// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/policies"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/recorders"
)

var update = flag.Bool("update", false, "rewrite docs/reference/metrics-events-api.md")

// TestMetricsPage compares docs/reference/metrics-events-api.md with the metrics of the code.
func TestMetricsPage(t *testing.T) {
	descs := make(chan *prometheus.Desc, 100)
	for _, c := range append(append(collectors(), policies.Pool), recorders.Collectors()...) {
		c.Describe(descs)
	}
	close(descs)
	parse := regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: "((?:[^"\\]|\\.)*)", (?:unit: "[^"]*", )?constLabels: \{[^}]*\}, variableLabels: \{([^}]*)\}\}$`)
	var rows []string
	for d := range descs {
		m := parse.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("cannot read %s", d)
		}
		labels := "-"
		if m[3] != "" {
			labels = "`" + strings.ReplaceAll(m[3], ",", "`, `") + "`"
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", m[1], labels, m[2]))
	}
	slices.Sort(rows)
	const name, head = "docs/reference/metrics-events-api.md", "| metric | labels | meaning |\n| --- | --- | --- |\n"
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), head)
	_, after, found := strings.Cut(rest, "\n\n")
	if !ok || !found {
		t.Fatalf("%s has no table", name)
	}
	want := before + head + strings.Join(rows, "") + "\n" + after
	if string(page) == want {
		return
	}
	if !*update {
		t.Fatalf("%s is out of date: go test -run TestMetricsPage -update .", name)
	}
	if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
