// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/bench/internal/workload"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// TestCompare builds a Caddy, and compares robots_policy with a Caddy that does not use it, in one short period of
// measurement.
func TestCompare(t *testing.T) {
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("builds a Caddy, and the command runs only on Linux")
	}
	o := options{rows: ourRow, rounds: 1, parts: 1, duration: 200 * time.Millisecond, limit: time.Minute, maxForeign: 1, paired: true, sameBinary: true}
	scenarios, err := workload.ByName([]string{"json"})
	if err != nil {
		t.Fatal(err)
	}
	rep := newReport(o)
	if err := compare(t.Context(), o, scenarios, t.TempDir(), rep); err != nil {
		t.Fatal(err)
	}
	if len(rep.Pairs) != 2 || rep.Pairs[0].Ratio <= 0 || rep.Pairs[0].CPU <= 0 {
		t.Errorf("pairs: %+v", rep.Pairs)
	}
	if text := rep.markdown(); !strings.Contains(text, "| json | `robots_policy` | unused |") {
		t.Errorf("the report has no line of the pair:\n%s", text)
	}
	for _, r := range rep.Rows {
		if r.cmd != nil {
			t.Errorf("the process of %s was not ended", r.Name)
		}
	}
}

// TestPolicies checks that the generated policies load without errors, and have as many rules and crawlers as their
// sizes say.
func TestPolicies(t *testing.T) {
	for _, size := range []workload.PolicySize{workload.Small, workload.Large} {
		f, diagnostics := policyfile.Load("policy.yaml", []byte(workload.Policy(size)))
		if diagnostics.HasErrors() {
			t.Fatal(diagnostics)
		}
		named := map[string]bool{}
		for _, r := range f.Spec.Rules {
			for _, a := range r.For {
				named[a.String()] = true
			}
		}
		if got := len(f.Spec.Rules); got != size.Rules {
			t.Errorf("%d rules, want %d", got, size.Rules)
		}
		// The rules name everyone, Googlebot and Bingbot in addition to the crawlers that size.Crawlers counts.
		if got := len(named) - 3; got != size.Crawlers {
			t.Errorf("rules name %d crawlers, want %d", got, size.Crawlers)
		}
	}
}

// A row is a configuration of Caddy that must do certain work in each scenario, such as adding headers. TestMissing
// checks that work.missing reports each scenario in which a row did not do its work.
func TestMissing(t *testing.T) {
	good := map[string]string{"json": "200, 1024 octets, 3 headers", "page": "200, 51240 octets, 3 headers, 1 meta", "blocked": "403"}
	if lacks := (&work{Row: "x", Did: good}).missing(); len(lacks) > 0 {
		t.Errorf("complete work has problems: %q", lacks)
	}
	bad := map[string]string{"json": "200, 1024 octets", "page": "200, 51240 octets, chunked, 3 headers, 1 meta", "blocked": "200, 51200 octets", "robots-304": "200"}
	if lacks := (&work{Row: "x", Did: bad}).missing(); len(lacks) != len(bad) {
		t.Errorf("%q, want one problem for each of %d scenarios", lacks, len(bad))
	}
}

func TestMedianError(t *testing.T) {
	values := []float64{1, 1.02, 0.98, 1.01, 0.99, 7}
	if m, e := median(values), medianError(values); m != 1.005 || e < 0.005 || e > 0.02 {
		t.Errorf("median %v, error %v: one disturbed value changes it", m, e)
	}
	if got := quantile([]float64{3, 1, 2}, 1); got != 3 {
		t.Errorf("the greatest is %v", got)
	}
}

func TestRequestsDiffer(t *testing.T) {
	for _, s := range workload.Scenarios {
		requests := s.Requests(`"tag"`)
		texts := make([]string, len(requests))
		for i, r := range requests {
			texts[i] = string(r)
		}
		slices.Sort(texts)
		if n := len(slices.Compact(texts)); n < len(requests)/2 && s.Crawler == "" {
			t.Errorf("%s: only %d different requests", s.Name, n)
		}
		if s.Revalidate != strings.Contains(texts[0], "If-None-Match: \"tag\"\r\n") {
			t.Errorf("%s: %q", s.Name, texts[0])
		}
	}
}
