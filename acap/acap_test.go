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

// overview is a file in the manner of the document's section 2.1.
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
		{"other", "maps", "/public/x", policy.Index, policy.Disallowed, ""}, // equal patterns do not tell
	} {
		got := f.Decide(Query{Crawler: c.crawler, Purpose: c.purpose, Path: c.path, Usage: c.usage})
		texts := got.Qualifiers.Strings()
		slices.Sort(texts)
		if got.Verdict != c.want || strings.Join(texts, " ") != c.qualifiers {
			t.Errorf("%+v: %v %q", c, got.Verdict, texts)
		}
	}
}

func TestCompare_2_4_5(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want Scope
	}{
		{"/news/", "/news/", Undetermined},
		{"/news/2007/", "/news/", First},
		{"/news/", "/news/*.htm", Second},
		{"/news/*.htm", "/news/a", Second},
		{"/news$", "/news", First},
		{"/news$", "/news/", Second},
		{"/news$", "/news*x", Second},
		{"/a*b", "/a*c", Undetermined},
		{"/a*bc", "/a*b", First},
		{"/NEWS/a", "/news/", First},
	} {
		a, _ := fold(c.a)
		b, _ := fold(c.b)
		if got := Compare(a, b); got != c.want {
			t.Errorf("%q and %q: %v, want %v", c.a, c.b, got, c.want)
		}
		want := map[Scope]Scope{First: Second, Second: First, Undetermined: Undetermined}[c.want]
		if got := Compare(b, a); got != want {
			t.Errorf("%q and %q: %v, want %v", c.b, c.a, got, want)
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
		{"/a", policy.Index, policy.Allowed}, {"/b", policy.Index, policy.Disallowed}, {"/b", policy.Crawl, policy.Disallowed},
		{"/p", policy.PresentLink, policy.Allowed}, {"/b", policy.PresentLink, policy.Disallowed}, {"/b", policy.Other, policy.Disallowed},
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

// What is invalid is reported, and allows nothing.
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
