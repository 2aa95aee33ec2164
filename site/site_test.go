// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"encoding/json"
	"flag"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

var update = flag.Bool("update", false, "write the golden files")

var june = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)

func load(t *testing.T, text string) *site.Site {
	t.Helper()
	s, ds := site.Load("policy.yaml", []byte(text))
	if s == nil {
		t.Fatal(ds.Text())
	}
	return s
}

// Each case is a policy in testdata/explain. Its comments have the form "# ask: AGENT URL", and contain the questions.
func TestExplain(t *testing.T) {
	files, err := filepath.Glob("testdata/explain/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := load(t, string(data))
			var got strings.Builder
			for line := range strings.Lines(string(data)) {
				ask, ok := strings.CutPrefix(line, "# ask: ")
				if !ok {
					continue
				}
				i := strings.LastIndexByte(strings.TrimSpace(ask), ' ')
				u, err := url.Parse(strings.TrimSpace(ask[i:]))
				if err != nil {
					t.Fatal(err)
				}
				e := s.Explain(site.Question{Agent: ask[:i], URL: u, Now: june})
				got.WriteString("==== " + ask)
				if err := e.WriteText(&got); err != nil {
					t.Fatal(err)
				}
				checkJSON(t, e, &got)
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", got.String(), want)
			}
		})
	}
}

// checkJSON checks that the JSON output has all data of the text output.
func checkJSON(t *testing.T, e *site.Explanation, text *strings.Builder) {
	t.Helper()
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var back site.Explanation
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	var again strings.Builder
	if err := back.WriteText(&again); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(text.String(), again.String()) {
		t.Errorf("the JSON says something else:\n%s", again.String())
	}
}

func TestEdgeOnlyKnownCrawlers(t *testing.T) {
	s := load(t, `version: 1
rules:
  - for: everyone
    disallow:
      crawl: /private/
    enforce: block
`)
	for agent, want := range map[string]bool{
		"Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0": false,
		"curl/8.5.0":          false,
		"":                    false,
		"BrandNewUnknownBot/": false,
		"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)": true,
	} {
		v := s.Edge(policy.Query{Crawler: recognize(s, agent), Host: "example.com", Path: "/private/x", Now: june})
		if v.Blocked() != want || want && v.Mode != policy.ModeBlock {
			t.Errorf("%q: %+v", agent, v)
		}
	}
}

func TestEdgeOpenPaths(t *testing.T) {
	s := load(t, `version: 1
publish: {license: "https://www.example.com/terms/license.xml"}
rules:
  - for: GPTBot
    disallow:
      crawl: /
    enforce: block
`)
	id := recognize(s, "GPTBot/1.2")
	for path, open := range map[string]bool{
		"/robots.txt": true, "/robots.txt?a=b": true, "/.well-known/x": true, "/terms/license.xml": true, "/terms/license.xml?x": true,
		"/.well-known/..%2Fx": false, "/.well-known/..;/x": false, "/.well-known/%2e%2e/x": false, "/.well-known/a%2Fb": true,
		"/": false, "/robots.txt/": false, "/robots.txtx": false, "/.well-known/../x": false, "/.well-known": false, "/terms/": false,
	} {
		if v := s.Edge(policy.Query{Crawler: id, Host: "www.example.com", Path: path, Now: june}); v.Blocked() == open {
			t.Errorf("%s: blocked %v", path, v.Blocked())
		}
	}
}

// A target that is too long to compare with patterns is blocked if some rule on the host blocks the crawler. Otherwise
// it is not blocked.
func TestEdgeLongPaths(t *testing.T) {
	s := load(t, `version: 1
rules:
  - for: everyone
    disallow:
      crawl: /private/
  - for: GPTBot
    hosts: www.example.com
    disallow:
      crawl: [/premium/, "/*.pdf$"]
    enforce: block
`)
	long := strings.Repeat("x", effect.MaxPath)
	for _, c := range []struct {
		host, path string
		want       policy.Mode
	}{
		{"www.example.com", strings.Repeat("/x/..", effect.MaxPath) + "/premium/a", policy.ModeBlock},
		{"www.example.com", "/" + long + ".pdf", policy.ModeBlock},
		{"www.example.com", "/news/" + long, policy.ModeBlock},
		{"www.example.com", "/robots.txt?" + long, policy.ModeUnset},
		{"example.com", "/news/" + long, policy.ModeUnset},
	} {
		v := s.Edge(policy.Query{Crawler: recognize(s, "GPTBot"), Host: c.host, Path: c.path, Now: june})
		if v.Mode != c.want || v.Blocked() != (c.want == policy.ModeBlock) {
			t.Errorf("%s%.20s… (%d): mode %v, blocked %v", c.host, c.path, len(c.path), v.Mode, v.Blocked())
		}
	}
}

// Different servers may understand the path of a request as different paths. If the policy disallows several of these
// paths, the strictest decision applies, so that an unusual spelling does not avoid a rule.
func TestEdgeStrictestReading(t *testing.T) {
	s := load(t, `version: 1
rules:
  - for: everyone
    disallow:
      crawl: //
    enforce: log
  - for: everyone
    disallow:
      crawl: /members/
    enforce: block
    intended: true
`)
	id := recognize(s, "GPTBot/1.2")
	for path, want := range map[string]policy.Mode{"//x": policy.ModeLog, "/members/": policy.ModeBlock, "//members/": policy.ModeBlock, "/x": policy.ModeUnset} {
		if v := s.Edge(policy.Query{Crawler: id, Host: "example.com", Path: path, Now: june}); v.Mode != want {
			t.Errorf("%s: %v, want %v", path, v.Mode, want)
		}
	}
}

// The server's decision depends on the identity of the client: verified, unverified or impostor.
func TestEdgeIdentity(t *testing.T) {
	s := load(t, `version: 1
enforcement: {mode: log, impostors: block}
rules:
  - for: everyone
    disallow:
      crawl: /members/
  - for: Googlebot
    identity: verified
    allow:
      crawl: /members/
`)
	id := recognize(s, "Googlebot/2.1")
	for _, c := range []struct {
		identity policy.Identity
		path     string
		mode     policy.Mode
		impostor bool
	}{
		{policy.Verified, "/members/", policy.ModeUnset, false},
		{policy.Unknown, "/members/", policy.ModeLog, false},
		{policy.Impostor, "/members/", policy.ModeBlock, true},
		{policy.Verified, "/", policy.ModeUnset, false},
		{policy.Unknown, "/", policy.ModeUnset, false},
		{policy.Impostor, "/", policy.ModeBlock, true},
		{policy.Impostor, "/robots.txt", policy.ModeUnset, false},
	} {
		v := s.Edge(policy.Query{Crawler: id, Identity: c.identity, Host: "example.com", Path: c.path, Now: june})
		if v.Mode != c.mode || v.Impostor != c.impostor || v.Blocked() != (c.mode != policy.ModeUnset) {
			t.Errorf("identity %v, %s: %+v", c.identity, c.path, v)
		}
	}
	if v := s.Edge(policy.Query{Identity: policy.Impostor, Path: "/members/", Now: june}); v.Blocked() {
		t.Errorf("no known crawler: %+v", v)
	}
}

func TestPurposes(t *testing.T) {
	s := load(t, `version: 1
rules:
  - for: "purpose:ai-training"
    disallow:
      crawl: /
  - for: PartnerBot
    usage-purposes: [News, "ne*"]
    disallow:
      crawl: /x/
`)
	for agent, want := range map[string][]string{
		"PartnerBot/1.0 (AI-Training; news)": {"ai-training", "news"},
		"PartnerBot/1.0 (newsletter)":        nil,
		"PartnerBot/1.0":                     nil,
	} {
		if got := s.Purposes([]string{agent}); !slices.Equal(got, want) {
			t.Errorf("%s: %q", agent, got)
		}
	}
	id := recognize(s, "PartnerBot/1.0")
	if v := s.Edge(policy.Query{Crawler: id, Purposes: []string{"ai-training"}, Path: "/y", Now: june}); !v.Blocked() {
		t.Error("the purpose that the client names is not heard")
	}
}

// Crawlers may always fetch the license of a site. This exception does not apply to a license on another site, or at
// the root of the site.
func TestEdgeOtherLicense(t *testing.T) {
	for _, license := range []string{"https://rslcollective.org/", "https://other.example/terms.xml"} {
		s := load(t, `version: 1
publish: {license: "`+license+`"}
rules:
  - for: GPTBot
    disallow:
      crawl: /
    enforce: block
`)
		id := recognize(s, "GPTBot/1.2")
		for _, path := range []string{"/", "/terms.xml"} {
			if v := s.Edge(policy.Query{Crawler: id, Host: "www.example.com", Path: path, Now: june}); !v.Blocked() {
				t.Errorf("%s: %s is allowed", license, path)
			}
		}
	}
}

// Different servers may understand the path of a request as different paths. Its page has the rules for all of these
// paths.
func TestPageReadings(t *testing.T) {
	s := load(t, `version: 1
rules:
  - for: everyone
    disallow:
      index: /premium/
`)
	for _, path := range []string{"/premium/d", "//premium/d", "/x/../premium/d", "/premium%2Fd", "/" + strings.Repeat("x", effect.MaxPath)} {
		p := s.Page("www.example.com", path, june)
		if p.Values == nil || !strings.HasPrefix(p.Values.XRobotsTag[0], "noindex") || p.Elements.IsEmpty() {
			t.Errorf("%.30s: %+v", path, p.Values)
		}
	}
	if p := s.Page("www.example.com", "/premiumd", june); p.Values != nil {
		t.Errorf("%+v", p.Values)
	}
}

func TestPageChangesWhenADatePasses(t *testing.T) {
	s := load(t, `version: 1
rules:
  - for: everyone
    allow:
      index:
        - {paths: /events/, time-limit: until-2026-06-15}
`)
	for _, c := range [][2]string{
		{"2026-06-15T12:00:00Z", "unavailable_after: 15 Jun 2026 23:59:59 GMT"},
		{"2026-06-16T00:00:00Z", "noindex"},
	} {
		at, want := c[0], c[1]
		now, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/events/x", unread[0], unread[1]} {
			if got := s.Page("example.com", path, now).Values.XRobotsTag; !slices.Equal(got, []string{want}) {
				t.Errorf("%.20s at %s: %q, want %q", path, at, got, want)
			}
		}
	}
}

func TestTailored(t *testing.T) {
	s := load(t, `version: 1
rules:
  - for: everyone
    disallow:
      index: /
      train-ai: /
  - for: Googlebot
    allow:
      index: /
      train-ai: /
`)
	google := recognize(s, "Googlebot/2.1")
	root := site.NewTarget("example.com", "/")
	if p := s.Tailored(google, &root, june); p.Values.XRobotsTag != nil || p.Elements.Send() || p.Values.Preferences[0][0] != "train-ai=y" {
		t.Errorf("the exempted crawler: %+v", p.Values)
	}
	if p := s.Tailored(0, &root, june); p.Values.XRobotsTag[0] != "noindex" || p.Values.Preferences[0][0] != "train-ai=n" {
		t.Errorf("everybody else: %+v", p.Values)
	}
	if p := s.Page("example.com", "/", june); p.Values.XRobotsTag[0] != "noindex" {
		t.Errorf("untailored: %+v", p.Values)
	}
}

// Requests for many paths that match different patterns do not fill the cache without limit.
func TestPagesAreBounded(t *testing.T) {
	var text strings.Builder
	text.WriteString("version: 1\nrules:\n  - for: everyone\n    disallow:\n      index:\n")
	for i := range 16 {
		text.WriteString("        - \"/*" + string(rune('a'+i)) + "\"\n")
	}
	s := load(t, text.String())
	for i := range 1 << 13 {
		path := "/"
		for b := range 16 {
			if i>>b&1 == 1 {
				path += string(rune('a' + b))
			}
		}
		p := s.Page("example.com", path, june)
		if (p.Values != nil) != (i > 0) {
			t.Fatalf("%s: %+v", path, p)
		}
	}
}

func BenchmarkPage(b *testing.B) {
	s, ds := site.Load("policy.yaml", []byte(`version: 1
rules:
  - for: everyone
    disallow:
      index: /drafts/
      preserve: /premium/
      train-ai: /
  - for: category:ai-training
    disallow:
      present-snippet: "/*.pdf$"
`))
	if s == nil {
		b.Fatal(ds.Text())
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Page("www.example.com", "/premium/letters/2026/06/from-the-harbour.html", june)
	}
}

// A policy does not load if the headers of its responses would be too large for the programs that receive them.
func TestHeadersTooLarge(t *testing.T) {
	named := func(says func(i int) string) string {
		var b strings.Builder
		b.WriteString("version: 1\nrules:\n")
		for i := range 300 {
			b.WriteString("  - for: examplebot-" + strings.Repeat(string(rune('a'+i%26)), 1+i/26) + "\n" + says(i))
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"one by one": named(func(int) string { return "    disallow:\n      index: /\n" }),
		"engines' rules alone": named(func(int) string {
			return "    robots-tag: \"max-image-preview:none\"\n"
		}),
		"where patterns meet": named(func(i int) string {
			if i%2 == 0 {
				return "    disallow:\n      index: /a/\n"
			}
			return "    disallow:\n      index: \"/*.pdf\"\n"
		}),
	} {
		s, ds := site.Load("policy.yaml", []byte(text))
		if s != nil || !strings.Contains(ds.Text(), "[header-too-large]") {
			t.Errorf("%s: it loads", name)
		}
	}
}

// A browser is never recognized as a crawler, even if a rule names a word of its User-Agent.
func TestBrowsersAreNoCrawlers(t *testing.T) {
	s, ds := site.Load("policy.yaml", []byte("version: 1\nrules:\n  - for: [Mozilla, Chrome, chrome, OtherBot]\n    disallow:\n      crawl: /\n    enforce: block\n"))
	if s == nil {
		t.Fatal(ds.Text())
	}
	if id := recognize(s, "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"); id != 0 {
		t.Errorf("a browser is taken for %s", s.Policy.CrawlerInfo(id).Token)
	}
	if id := recognize(s, "Mozilla/5.0 (compatible; OtherBot/1.0)"); s.Policy.CrawlerInfo(id).Token != "OtherBot" {
		t.Error("a crawler is not recognized")
	}
}
