// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// tooLarge and tooMany return files that exceed a limit. They are too large for the folder testdata.
func tooLarge() []byte {
	return []byte("version: 1\n" + strings.Repeat("# a long remark\n", MaxSize/16))
}

func tooMany() []byte {
	var b strings.Builder
	b.WriteString("version: 1\nresources:\n  many:\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "    - /%d/\n", i)
	}
	b.WriteString("rules:\n")
	for range 300 {
		b.WriteString("  - for: everyone\n    disallow:\n      crawl: many\n")
	}
	return []byte(b.String())
}

func TestLimits(t *testing.T) {
	for name, c := range map[string]struct {
		data []byte
		code string
	}{
		"size":       {tooLarge(), "file-too-large"},
		"statements": {tooMany(), "too-many-rules"},
	} {
		f, ds := Load("limit.yaml", c.data)
		if f != nil || len(ds) != 1 || ds[0].Code != c.code {
			t.Errorf("%s: %v, want one %s", name, ds.Error(), c.code)
		}
	}
	if _, ds := Load("limit.yaml", append(tooLarge()[:MaxSize-20], '\n')); ds.HasErrors() {
		t.Errorf("a file just within the limit: %v", ds.Error())
	}
}

// Tens of thousands of overlapping patterns can be loaded, and every allow entry has its effect.
func TestManyCrossingPatterns(t *testing.T) {
	if testing.Short() {
		t.Skip("loads for seconds")
	}
	t.Parallel()
	var b strings.Builder
	b.WriteString("version: 1\nrules:\n")
	for _, rule := range []string{"everyone\n    disallow", "Googlebot\n    allow"} {
		b.WriteString("  - for: " + rule + ":\n      crawl:\n")
		for i := range 20_000 {
			fmt.Fprintf(&b, "        - /*a*%d*b\n", i)
		}
	}
	f, ds := Load("work.yaml", []byte(b.String()))
	if f == nil {
		t.Fatal(ds.Error())
	}
	if d := f.Policy.Decide(policy.Query{Crawler: f.Policy.Crawler("Googlebot"), Path: "/xa/y19999zb"}); d.Verdict != policy.Allowed {
		t.Errorf("what is allowed became %v", d.Verdict)
	}
}

func TestTooManyCombinationsOfCrawlersAndHosts(t *testing.T) {
	var b strings.Builder
	b.WriteString("version: 1\nrules:\n  - for:\n")
	for i := range 2000 {
		fmt.Fprintf(&b, "      - %s\n", strings.Repeat("x", 1+i/26)+string(rune('a'+i%26)))
	}
	b.WriteString("    hosts:\n")
	for i := range 2000 {
		fmt.Fprintf(&b, "      - h%d.example.com\n", i)
	}
	b.WriteString("    disallow:\n      crawl: /a/\n")
	f, ds := Load("limit.yaml", []byte(b.String()))
	if f != nil || !ds.HasErrors() || !strings.Contains(ds.Error(), "too-many-rules") {
		t.Errorf("%v", ds.Error())
	}
}

// If a text was accepted before, too many combinations of crawlers and hosts are only a warning.
func TestTooManyCombinationsOfAnAcceptedPolicy(t *testing.T) {
	for accepted, want := range map[bool]string{false: "too-many-rules", true: "more-than-allowed"} {
		p := newParser("limit.yaml")
		p.spec.Rules = []policy.Rule{{For: make([]policy.Audience, 1001), Hosts: make([]policy.Host, 1000)}}
		p.checkScopes(accepted)
		if len(p.list) != 1 || p.list[0].Code != want || (p.errors == 0) != accepted {
			t.Errorf("accepted %v: %v", accepted, p.list)
		}
	}
}

// Names of crawlers take memory even if their rules name no hosts.
func TestTooManyNames(t *testing.T) {
	for names, want := range map[int]int{maxScopes / audienceScopes: 0, maxScopes/audienceScopes + 1: 1, 60_000: 1, 40_000: 0} {
		p := newParser("limit.yaml")
		p.spec.Rules = []policy.Rule{{For: make([]policy.Audience, names)}}
		if p.checkScopes(false); len(p.list) != want {
			t.Errorf("%d names: %v", names, p.list)
		}
	}
}

func TestLengthOfPaths(t *testing.T) {
	file := func(n int) []byte {
		return []byte("version: 1\nrules:\n  - for: everyone\n    disallow:\n      crawl: /" + strings.Repeat("a", n-1) + "\n")
	}
	if f, ds := Load("long.yaml", file(maxPattern)); f == nil || len(ds) > 0 {
		t.Errorf("the longest path: %v", ds.Error())
	}
	if f, ds := Load("long.yaml", file(maxPattern+1)); f != nil || len(ds) != 1 || ds[0].Code != "bad-path" {
		t.Errorf("one byte more: %v", ds.Error())
	}
}

// TestErrorsAmongManyWarnings checks that an error is reported even if many warnings precede it. Load returns at most
// maxDiagnostics warnings. It does not shorten this list, but Summed and Text do.
func TestErrorsAmongManyWarnings(t *testing.T) {
	var b strings.Builder
	b.WriteString("version: 1\nrules:\n  - for:\n")
	for i := range 2 * maxDiagnostics {
		fmt.Fprintf(&b, "      - %s\n", policytest.HostileName(i))
	}
	b.WriteString("    disallow:\n      crawl: a\n")
	f, ds := Load("many.yaml", []byte(b.String()))
	if f != nil || len(ds) != maxDiagnostics+1 || ds[maxDiagnostics].Code != "bad-path" {
		t.Errorf("%d diagnostics, the last %v", len(ds), ds[len(ds)-1])
	}
	summed := ds.Summed()
	if len(summed) != leftOfMany+1 || summed[leftOfMany].Code != "bad-path" || !strings.Contains(summed[leftOfMany-1].Message, fmt.Sprintf("%d more like this", maxDiagnostics-leftOfMany)) {
		t.Errorf("summed up: %v", summed)
	}
	if want := summed.Text(); ds.Text() != want || strings.Count(want, "\n") != 3*(leftOfMany+1) {
		t.Errorf("%s\nwant\n%s", ds.Text(), want)
	}
}

// TestEveryCodeIsShown checks that each code occurs in a golden file, or in a test of this package. TestMessagesPage of
// package site compares the codes with the page that explains them.
func TestEveryCodeIsShown(t *testing.T) {
	// These codes occur in TestLimits, TestTooManyCombinationsOfAnAcceptedPolicy and TestExpectationOfAcceptedBytes.
	shown := map[string]bool{"file-too-large": true, "too-many-rules": true, "more-than-allowed": true, "expectation-no-longer-holds": true}
	mark := regexp.MustCompile(`(?m)^[^ ].*: (error|warning|hint): .* \[([a-z-]+)\]$`)
	for _, path := range filesOf(t, "testdata/bad/*.txt") {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range mark.FindAllStringSubmatch(string(data), -1) {
			shown[m[2]] = true
			if got := severityOf(m[2]).String(); got != m[1] {
				t.Errorf("%s: %s is shown as %s and listed as %s", path, m[2], m[1], got)
			}
		}
	}
	for _, c := range Codes() {
		if !shown[c.Name] {
			t.Errorf("no file under testdata/bad shows %s", c.Name)
		}
	}
}

func TestValuesAreSourceText(t *testing.T) {
	f, ds := Load("text.yaml", []byte(`version: 1
rules:
  - for: [1e3, yes, 0x1F]
    name: on
    disallow:
      crawl: /a/
  - for: everyone
    name: 2027-01-31
    allow:
      index:
        - {paths: /b/, time-limit: until-2027-01-31}
    usage-purposes: no
publish: {content-usage: on, content-signal: on, acap: off}
`))
	if f == nil {
		t.Fatal(ds.Error())
	}
	r := f.Spec.Rules
	got := fmt.Sprint(r[0].For, r[0].Name, r[1].Name, r[1].UsagePurposes, f.Spec.Publish.ContentUsage, f.Spec.Publish.ACAP)
	if want := fmt.Sprint("[1e3 yes 0x1F]on2027-01-31[no]", policy.On, policy.Off); strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(want, " ", "") {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestDefaultsAreFilledIn(t *testing.T) {
	f, ds := Load("empty.yaml", []byte("version: 1\n"))
	if f == nil {
		t.Fatal(ds.Error())
	}
	if !reflect.DeepEqual(f.Spec.Publish, defaultPublish) {
		t.Errorf("publish: %+v", f.Spec.Publish)
	}
	if f.Spec.Enforcement != (policy.Enforcement{Mode: policy.ModeOff, Status: 403, Impostors: policy.ModeOff}) {
		t.Errorf("enforcement: %+v", f.Spec.Enforcement)
	}
	if len(f.Spec.Crawlers) != f.Catalog.Len() || f.Policy.Crawler("googlebot") == 0 {
		t.Errorf("%d crawlers in the Spec, %d in the catalog", len(f.Spec.Crawlers), f.Catalog.Len())
	}
}

func TestCrawlersOfTheFile(t *testing.T) {
	f, ds := Load("crawlers.yaml", []byte(`version: 1
crawlers:
  PartnerBot: {operator: Partner Ltd, category: feed, user-agent: PartnerFetcher, purposes: news, follows: Googlebot, ignores-star: true}
  gptbot: {operator: Somebody Else}
  QuietBot: {}
rules:
  - for: "operator:partner ltd"
    disallow:
      crawl: /a/
`))
	if f == nil || len(ds) > 0 {
		t.Fatal(ds.Error())
	}
	c, ok := f.Catalog.Lookup("PartnerBot")
	if !ok || c.Patterns()[0] != "PartnerFetcher" || !c.FromPolicy {
		t.Errorf("%+v", c)
	}
	info := f.Policy.CrawlerInfo(f.Policy.Crawler("PartnerBot"))
	if want := "{PartnerBot Partner Ltd feed false [news] [Googlebot] true false false false false false false  <nil> []}"; fmt.Sprint(info) != want {
		t.Errorf("got %v, want %s", info, want)
	}
	if info := f.Policy.CrawlerInfo(f.Policy.Crawler("GPTBot")); info.Operator != "Somebody Else" || info.Category != "ai-training" || info.Token != "GPTBot" {
		t.Errorf("%+v", info)
	}
	if d := f.Policy.Decide(policy.Query{Crawler: f.Policy.Crawler("PartnerBot"), Path: "/a/b"}); d.Verdict != policy.Disallowed || d.Rule.Pos.Line != 7 || d.Statement.Pos != (policy.Pos{Line: 9, Column: 14}) {
		t.Errorf("%+v", d)
	}
}

func TestAdd(t *testing.T) {
	f, _ := Load("add.yaml", []byte("version: 1\nrules:\n  - for: everyone\n    disallow:\n      crawl: /a/\n"))
	ds := f.Add([]policy.Problem{
		{Severity: policy.Error, Code: "robots-txt-too-large", Message: "too much"},
		{Severity: policy.Warning, Code: "not-flattenable", Pos: policy.Pos{Line: 5, Column: 14}, Message: "cannot be said"},
	})
	want := "add.yaml: error: too much [robots-txt-too-large]\nadd.yaml:5:14: warning: cannot be said [not-flattenable]\n          crawl: /a/\n                 ^\n"
	if got := ds.Text(); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
	if !ds.HasErrors() || ds[1:].HasErrors() {
		t.Error("HasErrors")
	}
}

func TestDiagnosticsAsJSON(t *testing.T) {
	_, ds := Load("json.yaml", []byte("version: 1\nrule: []\nrules: [{for: everyone, disallow: {crawl: /}, intended: true}]\n"))
	got, err := json.Marshal(ds)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"file":"json.yaml","line":2,"column":1,"severity":"error","code":"unknown-key",` +
		`"message":"unknown key \"rule\" in the file: must be version, catalog, sitemaps, resources, usages, crawlers, rules, enforcement, publish, rights or expect",` +
		`"did_you_mean":"rules","source":"rule: []","url":"` + explanation("unknown-key") + `"}]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestDiagnosticsError(t *testing.T) {
	var ds Diagnostics
	for i := range 30 {
		ds = append(ds, Diagnostic{File: "f", Pos: policy.Pos{Line: 30 - i, Column: 1}, Severity: policy.Warning + policy.Severity(i%2), Code: fmt.Sprint("c", i%4), Message: "m"})
	}
	lines := strings.Split(ds.Error(), "\n")
	if len(lines) != 21 || lines[0] != "f:1:1: error: m [c1]" || lines[20] != "and 10 more" {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
}

func TestWriteInColor(t *testing.T) {
	ds := Diagnostics{{File: "f", Pos: policy.Pos{Line: 1, Column: 4}, Severity: policy.Error, Code: "c", Message: "m", Line: "\té\x1bx" + strings.Repeat("y", 300)}}
	text := ds.Colored(true)
	if !strings.HasPrefix(text, "\x1b[1mf:1:4\x1b[0m: \x1b[1;31merror\x1b[0m: m [c]\n     é xy") || strings.Count(text, "\x1b") != 6 || !strings.Contains(text, "…") {
		t.Errorf("%q", text)
	}
}

// TestCaretInLongLines checks that the caret points at the place of the problem.
func TestCaretInLongLines(t *testing.T) {
	for _, column := range []int{1, 60, 61, 119, 120, 121, 180, 199, 200, 201} {
		line := strings.Repeat(".", column-1) + "é" + strings.Repeat(".", 200)
		shown, indent := excerpt(line, column)
		if c := []rune(shown); len(c) <= len(indent) || c[len(indent)] != 'é' {
			t.Errorf("column %d: %q %q", column, shown, indent)
		}
	}
}

// TestExcerptOfFileInOneLine has a file that is a single long line. Showing a part of the line must not copy the whole
// line.
func TestExcerptOfFileInOneLine(t *testing.T) {
	line := strings.Repeat("x", MaxSize)
	for _, column := range []int{1, MaxSize / 2, MaxSize, MaxSize + 9} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		shown, indent := excerpt(line, column)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 16*maxExcerpt {
			t.Errorf("column %d: %d bytes are allocated to show %q at %d", column, n, shown, len(indent))
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"crawl", "index", "follow", "for", "hosts"}
	for word, want := range map[string]string{"crawll": "crawl", "Index": "index", "idnex": "index", "fr": "", "foor": "for", "host": "hosts", "wholly different": "", "": ""} {
		if got := Nearest(word, names); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

// TestDistanceWithin compares distanceWithin with a simple implementation of the definition.
func TestDistanceWithin(t *testing.T) {
	words := []string{"", "a", "ab", "ba", "abc", "acb", "bca", "gptbot", "gptbott", "gtpbot", "claudebot", "claudbot", "abcd", "badc"}
	for _, a := range words {
		for _, b := range words {
			for limit := range 4 {
				want := min(plainDistance(a, b), limit+1)
				if got := distanceWithin(a, b, limit); got != want {
					t.Errorf("%q %q within %d: %d, want %d", a, b, limit, got, want)
				}
			}
		}
	}
}

func plainDistance(a, b string) int {
	switch {
	case a == "" || b == "":
		return len(a) + len(b)
	case a[0] == b[0]:
		return plainDistance(a[1:], b[1:])
	}
	n := 1 + min(plainDistance(a[1:], b), plainDistance(a, b[1:]), plainDistance(a[1:], b[1:]))
	if len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] {
		n = min(n, 1+plainDistance(a[2:], b[2:]))
	}
	return n
}
