// SPDX-License-Identifier: Apache-2.0

package acap

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// overview is a file that resembles the example in section 2.1 of the specification.
const overview = `##ACAP version=1.0
User-agent: *
Disallow: /
ACAP-ignore-conventional-records
ACAP-resource-set: crawlable /public/ /promotion/ *.gif
acap-qualified-usage: Cache preserve time-limit=until-recrawl
ACAP-qualified-usage: teaser present-snippet max-length = 250-chars time-limit=3-days
ACAP-composite-usage: basic crawl index present (teaser)

ACAP-crawler: *
ACAP-disallow-crawl: /
Disallow: /ignored
ACAP-allow-crawl: /robots/ # with a comment

ACAP-crawler: named-crawler

ACAP-crawler: Other
ACAP-allow-(BASIC): the-acap:resource-set:Crawlable
ACAP-disallow-present-thumbnail: /public/
ACAP-usage-purpose: news
ACAP-usage-purpose: http://news.search.*/*
ACAP-allow-(cache): /public/
ACAP-usage-purpose: maps
ACAP-disallow-index: /public/

ACAP-crawler: ReferredBot
ACAP-permissions-reference: /referred.txt
`

func TestParseOverview(t *testing.T) {
	for _, eol := range []string{"\n", "\r\n", "\r"} {
		f := Parse([]byte(strings.ReplaceAll(overview, "\n", eol)))
		if f.Version != "1.0" || !f.IgnoreConventional || len(f.Sets) != 1 || len(f.Usages) != 3 || len(f.Records) != 3 || len(f.Problems) != 0 {
			t.Fatalf("%+v", f)
		}
		if r := f.Records[1]; !slices.Equal(r.Crawlers, []string{"named-crawler", "Other"}) || len(r.Fields) != 2 || len(r.Subs) != 2 || len(r.Subs[0].Purposes) != 2 {
			t.Errorf("%+v", r)
		}
		if r := f.Records[2]; r.PermissionsReference != "/referred.txt" {
			t.Errorf("%+v", r)
		}
	}
}

func TestDecideOverview(t *testing.T) {
	f := Parse([]byte(overview))
	for _, c := range []struct {
		crawler, purpose, path string
		usage                  policy.Usage
		want                   policy.Verdict
		qualifiers             string
	}{
		{"any", "", "/x", policy.Crawl, policy.Disallowed, ""},
		{"any", "", "/robots/x", policy.Crawl, policy.Allowed, ""},
		{"any", "", "/ROBOTS/x", policy.Crawl, policy.Allowed, ""},
		{"any", "", "/x", policy.Index, policy.Unstated, ""},
		{"NAMED-crawler", "", "/public/x", policy.Crawl, policy.Allowed, ""},
		{"named-crawler", "", "/else/", policy.Crawl, policy.Disallowed, ""},
		{"named-crawler", "", "/else/x.gif", policy.Crawl, policy.Allowed, ""},
		{"named-crawler", "", "/public/x", policy.PresentSnippet, policy.Allowed, "max-length=250-chars time-limit=3-days"},
		{"named-crawler", "", "/public/x", policy.PresentThumbnail, policy.Disallowed, ""},
		{"named-crawler", "", "/public/x", policy.PresentLink, policy.Allowed, ""},
		{"other", "", "/public/x", policy.Preserve, policy.Unstated, ""},
		{"other", "News", "/public/x", policy.Preserve, policy.Allowed, "time-limit=until-recrawled"},
		{"other", "http://news.search.example/uk", "/public/x", policy.Preserve, policy.Allowed, "time-limit=until-recrawled"},
		{"other", "newsletter", "/public/x", policy.Preserve, policy.Unstated, ""},
		{"other", "maps", "/public/x", policy.Index, policy.Disallowed, ""}, // for equal patterns, the order is undetermined
	} {
		got := f.Decide(Query{Crawler: c.crawler, Purpose: c.purpose, Path: c.path, Usage: c.usage})
		texts := got.Qualifiers.Strings()
		slices.Sort(texts)
		if got.Verdict != c.want || strings.Join(texts, " ") != c.qualifiers {
			t.Errorf("%+v: %v %q", c, got.Verdict, texts)
		}
	}
}

func TestNarrower_2_4_5(t *testing.T) {
	for _, c := range []struct {
		a, b        string
		wins, loses bool // whether a is narrower than b, and b than a
	}{
		{"/news/", "/news/", false, false},
		{"/news/2007/", "/news/", true, false},
		{"/news/", "/news/*.htm", false, true},
		{"/news/*.htm", "/news/a", false, true},
		{"/news$", "/news", true, false},
		{"/news$", "/news/", false, true},
		{"/news$", "/news*x", false, true},
		{"/a*b", "/a*c", false, false},
		{"/a*bc", "/a*b", true, false},
		{"/NEWS/a", "/news/", true, false},
	} {
		a, _ := fold(c.a)
		b, _ := fold(c.b)
		for name, narrower := range map[string]func(a, b pathpattern.Pattern) bool{"the reader": Narrower, "the writer": beats} {
			if narrower(a, b) != c.wins || narrower(b, a) != c.loses {
				t.Errorf("%s: %q and %q: %v and %v", name, c.a, c.b, narrower(a, b), narrower(b, a))
			}
		}
	}
}

func TestOther_2_5_6(t *testing.T) {
	f := Parse([]byte("ACAP-crawler: *\nACAP-disallow-other: /\nACAP-allow-index: /a\nACAP-allow-present: /p\n"))
	for _, c := range []struct {
		path  string
		usage policy.Usage
		want  policy.Verdict
	}{
		{"/a", policy.Index, policy.Allowed},
		{"/b", policy.Index, policy.Disallowed},
		{"/b", policy.Crawl, policy.Disallowed},
		{"/p", policy.PresentLink, policy.Allowed},
		{"/b", policy.PresentLink, policy.Disallowed},
		{"/b", policy.Other, policy.Disallowed},
	} {
		if got := f.Decide(Query{Crawler: "x", Path: c.path, Usage: c.usage}); got.Verdict != c.want {
			t.Errorf("%+v: %v", c, got.Verdict)
		}
	}
}

func TestTimeLimit(t *testing.T) {
	f := Parse([]byte("ACAP-crawler: *\nACAP-allow-index: / time-limit=until-2027-01-31\n"))
	last := time.Date(2027, 1, 31, 23, 59, 59, 0, time.UTC)
	if d := f.Decide(Query{Path: "/", Usage: policy.Index, Now: last}); d.Verdict != policy.Allowed || d.Expired {
		t.Errorf("%+v", d)
	}
	if d := f.Decide(Query{Path: "/", Usage: policy.Index, Now: last.Add(time.Second)}); d.Verdict != policy.Disallowed || !d.Expired {
		t.Errorf("%+v", d)
	}
}

// Invalid lines are reported, and do not permit anything.
func TestProblems(t *testing.T) {
	for _, line := range []string{
		"ACAP-allow-crawl /", "ACAP-allow-crawl:", "ACAP-allow-train-ai: /", "ACAP-allow-(nothing): /", "ACAP-disallow-(nothing): /",
		"ACAP-allow-crawl: the-acap:resource-set:nothing", "ACAP-allow-index: / time-limit=forever", "ACAP-allow-index: / noindex",
		"ACAP-allow-crawl: / time-limit=3-days", "ACAP-allow-index: / time-limit=3-days time-limit=4-days", "ACAP-something: x",
		"ACAP-qualified-usage: x", "ACAP-qualified-usage: x index time-limit=never", "ACAP-composite-usage: x (nothing)",
		"ACAP-composite-usage: x", "ACAP-resource-set: x", "ACAP-allow-index: /\x01",
	} {
		f := Parse([]byte("ACAP-crawler: *\n" + line + "\n"))
		if len(f.Problems) != 1 || f.Problems[0].Line != 2 {
			t.Errorf("%q: %+v", line, f.Problems)
		}
		for _, u := range policy.Usages() {
			if d := f.Decide(Query{Path: "/", Usage: u}); d.Verdict == policy.Allowed {
				t.Errorf("%q: %v is allowed", line, u)
			}
		}
	}
	f := Parse([]byte("ACAP-disallow-crawl: /\nACAP-crawler: *\nACAP-disallow-index: / time-limit=3-days\n"))
	if len(f.Problems) != 2 || f.Decide(Query{Path: "/", Usage: policy.Index}).Verdict != policy.Disallowed {
		t.Errorf("%+v", f)
	}
}

// The number of parts of a named usage or set is limited. A definition with exactly the maximum is valid.
func TestLimits(t *testing.T) {
	usages := func(n int) string { return "ACAP-composite-usage: x" + strings.Repeat(" index", n) + "\n" }
	for _, c := range []struct {
		text             string
		sets, names, bad int
	}{
		{usages(64), 0, 1, 0},
		{usages(65), 0, 0, 1},
		{usages(63) + "ACAP-composite-usage: y (x) crawl\n", 0, 2, 0},
		{usages(64) + "ACAP-composite-usage: y (x) crawl\n", 0, 1, 1},
		{usages(64) + "ACAP-composite-usage: y crawl (x)\n", 0, 1, 1},
		{"ACAP-resource-set: x" + strings.Repeat(" /a", 10000) + "\n", 1, 0, 0},
		{"ACAP-resource-set: x" + strings.Repeat(" /a", 10001) + "\n", 0, 0, 1},
	} {
		f := Parse([]byte(c.text))
		if len(f.Sets) != c.sets || len(f.Usages) != c.names || len(f.Problems) != c.bad {
			t.Errorf("%.80q: %d sets, %d usages, %d problems", c.text, len(f.Sets), len(f.Usages), len(f.Problems))
		}
	}
}

// Each text has a mistake or a special case in its records, definitions or action requests. bad is the number of
// problems that Parse must report.
func TestRecords(t *testing.T) {
	for _, c := range []struct {
		text string
		bad  int
	}{
		{"ACAP-crawler: *\nACAP-crawler: x\nACAP-allow-crawl: /\n", 1},
		{"ACAP-crawler: x\nACAP-crawler: y\nACAP-allow-crawl: /\n", 0},
		{"ACAP-crawler: x\nACAP-allow-crawl: /\nACAP-permissions-reference: /a\n", 1},
		{"ACAP-crawler: x\nACAP-permissions-reference: /a\nACAP-allow-crawl: /\n", 1},
		{"ACAP-crawler: x\nACAP-request-take-down: /a\n", 0},
		{"ACAP-crawler: x\nACAP-request-re-crawl: /a\n", 0},
		{"ACAP-crawler: x\nACAP-request-burn: /a\n", 1},
		{"ACAP-crawler: x\nACAP-request-take-down: /a /b\n", 1},
		{"ACAP-crawler: x\nACAP-request-take-down: /a*\n", 1},
		{"ACAP-crawler: x\nACAP-request-take-down: a\n", 1},
		{"ACAP-crawler: x\nACAP-usage-purpose: news\nACAP-request-take-down: /a\n", 1},
		{"ACAP-resource-set: x /a\nACAP-resource-set: X /b\n", 1},
		{"ACAP-qualified-usage: x index time-limit=3-days\nACAP-composite-usage: X index\n", 1},
		{"ACAP-qualified-usage: x train-ai time-limit=3-days\n", 1},
		{"ACAP-qualified-usage: x preserve\n", 1},
		{"ACAP-composite-usage: x index train-ai\n", 1},
		{"ACAP-qualified-usage: x preserve time-limit=3-days\nACAP-crawler: *\nACAP-disallow-(x): /\n", 1},
		{"ACAP-qualified-usage: x preserve time-limit=3-days\nACAP-crawler: *\nACAP-allow-(x): / time-limit=2-days\n", 1},
		{"ACAP-crawler: *\nACAP-allow-present: / prohibited-modification=format prohibited-modification=style\n", 0},
	} {
		if f := Parse([]byte(c.text)); len(f.Problems) != c.bad {
			t.Errorf("%q: %+v", c.text, f.Problems)
		}
	}
	f := Parse([]byte("ACAP-crawler: x\nACAP-crawler: y\nACAP-allow-crawl: /\nACAP-crawler: z\nACAP-usage-purpose: a\nACAP-usage-purpose: b\nACAP-allow-crawl: /\nACAP-usage-purpose: c\n"))
	if len(f.Records) != 2 || f.Records[1].Line != 4 || len(f.Records[1].Subs) != 2 || len(f.Records[1].Fields) != 0 {
		t.Errorf("%+v", f.Records)
	}
}

// Decode removes the byte order mark, which also determines how UTF-16 is decoded.
func TestDecode(t *testing.T) {
	for in, want := range map[string]string{
		"a": "a", "\ufeffa": "a", "\xff\xfea\x00\xe9\x00": "a\u00e9", "\xfe\xff\x00a\x00\xe9": "a\u00e9", "\xff\xfea": "", "": "",
	} {
		if got := string(Decode([]byte(in))); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(overview, "/public/x.gif", "other", "news")
	f.Add("ACAP-crawler: *\nACAP-allow-present: /*a*b$ time-limit=3-days", "/AxB", "x", "")
	f.Fuzz(func(t *testing.T, text, path, crawler, purpose string) {
		file := Parse([]byte(text))
		for i := range file.Records {
			for _, field := range file.Records[i].Fields {
				for _, p := range field.Patterns {
					if _, ok := fold(p); !ok {
						t.Fatalf("%q is kept as a pattern", p)
					}
				}
			}
		}
		for _, u := range policy.Usages() {
			q := Query{Crawler: crawler, Purpose: purpose, Path: path, Usage: u}
			d := file.Decide(q)
			if d.Verdict != policy.Unstated && d.Field == nil {
				t.Fatalf("%v without a field", d)
			}
			if d.Verdict == policy.Allowed && (!d.Field.Allow || d.Field.Unreadable) {
				t.Fatalf("%+v is allowed by %+v", q, d.Field)
			}
			q.Path = strings.ToUpper(path)
			if pathpattern.NormalizePath(path) == path && !strings.ContainsAny(path, "%") {
				if e := file.Decide(q); e.Verdict != d.Verdict {
					t.Fatalf("%q is %v, in upper case %v", path, d.Verdict, e.Verdict)
				}
			}
		}
		if again := Parse([]byte(strings.ReplaceAll(text, "\n", "\r\n"))); !strings.Contains(text, "\r") && len(again.Records) != len(file.Records) {
			t.Fatalf("%d records, with CRLF %d", len(file.Records), len(again.Records))
		}
	})
}

// If a line violates a rule of the specification, its prohibitions remain, but its permissions have no effect.
func TestMisplacedLinesPermitNothing(t *testing.T) {
	for _, c := range []struct {
		name, text, crawler, path string
		want                      policy.Verdict
	}{
		{"2.7: a late set prohibits", "ACAP-crawler: *\nACAP-disallow-index: the-acap:resource-set:s\nACAP-allow-index: /\nACAP-resource-set: s /a/\n", "x", "/a/b", policy.Disallowed},
		{"2.7: and permits nothing", "ACAP-crawler: *\nACAP-allow-index: the-acap:resource-set:s\nACAP-allow-index: /\nACAP-resource-set: s /a/\n", "x", "/a/b", policy.Disallowed},
		{"2.7: an early set permits", "ACAP-resource-set: s /a/\nACAP-crawler: *\nACAP-allow-index: the-acap:resource-set:s\nACAP-disallow-index: /\n", "x", "/a/b", policy.Allowed},
		{"2.7: a late usage permits nothing", "ACAP-crawler: *\nACAP-allow-(u): /a/\nACAP-allow-index: /\nACAP-qualified-usage: u index time-limit=5-days\n", "x", "/a/b", policy.Disallowed},
		{"2.4.2: a prohibition of a local usage", "ACAP-composite-usage: u crawl index\nACAP-crawler: *\nACAP-disallow-(u): /a/\nACAP-allow-index: /\n", "x", "/a/b", policy.Disallowed},
		{"2.3.1: any crawler and a named one", "ACAP-crawler: *\nACAP-crawler: x\nACAP-allow-index: /a/\nACAP-crawler: x\nACAP-disallow-index: /\n", "x", "/a/b", policy.Disallowed},
		{"2.3.1: any crawler", "ACAP-crawler: *\nACAP-crawler: x\nACAP-allow-index: /a/\nACAP-crawler: x\nACAP-disallow-index: /\n", "y", "/a/b", policy.Allowed},
		{"2.3.1: prohibitions are for both", "ACAP-crawler: *\nACAP-crawler: x\nACAP-disallow-index: /a/\nACAP-crawler: x\nACAP-allow-index: /\n", "x", "/a/b", policy.Disallowed},
		{"2.3.1: in sub-records too", "ACAP-crawler: x\nACAP-crawler: *\nACAP-usage-purpose: p\nACAP-disallow-index: /a/\nACAP-allow-index: /b/\nACAP-crawler: x\nACAP-allow-index: /\n", "x", "/a/b", policy.Disallowed},
	} {
		f := Parse([]byte(c.text))
		if d := f.Decide(Query{Crawler: c.crawler, Purpose: "p", Path: c.path, Usage: policy.Index}); d.Verdict != c.want {
			t.Errorf("%s: %v", c.name, d.Verdict)
		}
	}
}
