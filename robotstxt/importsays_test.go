// SPDX-License-Identifier: Apache-2.0

package robotstxt_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// cutFile is a file that is cut off after 500 KiB, within a line. The remaining part of the line is "Disallow: /".
var cutFile = func() string {
	text := "User-agent: *\nDisallow: /a\n#"
	return text + strings.Repeat("x", robotstxt.MaxSize-len(text)-len("\nDisallow: /")) + "\nDisallow: /only/this\n"
}()

// Import also converts the lines of ACAP 1.0 and of drafts. If it cannot convert a line, there is a note.
func TestImportSaysWhatDocumentsSay(t *testing.T) {
	type ask struct {
		agent, purpose, path string
		may                  bool
	}
	for _, c := range []struct {
		name, section, file string
		asks                []ask
		note                string
	}{
		{
			"a group of a purpose is not everyone's", "draft-illyes-rep-purpose-00, starter of rule groups",
			"User-agent: *\nDisallow: /a/\n\nUser-Agent-Purpose: training\nDisallow: /t/\n\nUser-Agent-Purpose: search\nDisallow: /b/\n",
			[]ask{
				{"", "", "/x", true},
				{"", "", "/a/x", false},
				{"", "", "/b/x", true},
				{"", "training", "/t/x", false},
				{"", "training", "/a/x", true},
				{"", "", "/t/x", true},
				{"", "search", "/b/x", false},
				{"", "search", "/a/x", true},
				{"", "search", "/x", true},
			},
			"",
		},
		{
			"of the same pattern, the record decides", "ACAP 2.9.2",
			"##ACAP version=1.0\nUser-agent: *\nAllow: /a/\n\nACAP-crawler: *\nACAP-disallow-crawl: /a/\n",
			[]ask{{"", "", "/a/x", false}, {"", "", "/b", true}},
			"",
		},
		{
			"records alone count", "ACAP 2.9.1",
			"##ACAP version=1.0\nUser-agent: *\nAllow: /\n\nACAP-ignore-conventional-records\nACAP-crawler: *\nACAP-disallow-crawl: /a/\n",
			[]ask{{"", "", "/a/x", false}, {"", "", "/b", true}},
			"",
		},
		{
			"what a Disallow closes stays disallowed for those who do not know ACAP", "ACAP 2.9.2",
			"##ACAP version=1.0\nUser-agent: *\nDisallow: /a/\n\nACAP-crawler: *\nACAP-allow-crawl: /a/\n",
			[]ask{{"", "", "/a/x", false}},
			"in the policy, it remains disallowed",
		},
		{
			"an Allow for other paths does not open a disallowed path", "ACAP 2.9.2",
			"##ACAP version=1.0\nUser-agent: *\nDisallow: /a/\nAllow: /long-other-path/\n\nACAP-crawler: *\nACAP-allow-crawl: /a/b/\n",
			[]ask{{"", "", "/a/b/x", false}, {"", "", "/long-other-path/", true}},
			"in the policy, it remains disallowed",
		},
		{
			"an Allow for all of the paths opens them", "ACAP 2.9.2",
			"##ACAP version=1.0\nUser-agent: *\nDisallow: /a/\nAllow: /a/b/\n\nACAP-crawler: *\nACAP-allow-crawl: /a/b/c/\n",
			[]ask{{"", "", "/a/b/c/x", true}, {"", "", "/a/x", false}},
			"",
		},
		{
			"a longer Disallow closes only its own paths", "ACAP 2.9.2",
			"##ACAP version=1.0\nUser-agent: *\nDisallow: /a/b/c\n\nACAP-crawler: *\nACAP-disallow-crawl: /a/\nACAP-allow-crawl: /a/b/\n",
			[]ask{{"", "", "/a/b/x", true}, {"", "", "/a/b/c", false}, {"", "", "/a/x", false}},
			"",
		},
		{
			"letters in upper and lower case", "ACAP 2.8",
			"##ACAP version=1.0\nACAP-crawler: *\nACAP-disallow-index: /News/\n",
			nil,
			"ignores letter case",
		},
		{
			"records count although conventional ones are to be ignored", "ACAP 2.9.1",
			"##ACAP version=1.0\nACAP-ignore-conventional-records\nUser-agent: *\nAllow: /a/\n\nACAP-crawler: *\nACAP-disallow-crawl: /a/\nACAP-allow-crawl: /a/b/\n",
			[]ask{{"", "", "/a/x", false}, {"", "", "/a/b/x", true}},
			"",
		},
		{
			"a record is for its crawler", "ACAP 2.3.1",
			"##ACAP version=1.0\nACAP-crawler: GPTBot\nACAP-disallow-crawl: /a/\n",
			[]ask{{"GPTBot", "", "/a/x", false}, {"Other", "", "/a/x", true}},
			"",
		},
		{
			"what a record says to everyone applies to crawlers with a group, but for those that a record of their own allows it", "ACAP 2.2",
			"##ACAP version=1.0\nUser-agent: *\nDisallow: /x/\n\nUser-agent: Bingbot\nAllow: /\n\nUser-agent: GPTBot\nDisallow: /g/\n\nUser-agent: CCBot\nDisallow:\n\n" +
				"ACAP-crawler: *\nACAP-disallow-crawl: /a/\n\nACAP-crawler: CCBot\nACAP-allow-crawl: /\n",
			[]ask{
				{"Bingbot", "", "/a/x", false},
				{"Bingbot", "", "/x/", true},
				{"GPTBot", "", "/a/x", false},
				{"GPTBot", "", "/g/", false},
				{"GPTBot", "", "/x/", true},
				{"CCBot", "", "/a/x", true},
				{"CCBot", "", "/x/", true},
				{"", "", "/a/x", false},
				{"", "", "/x/", false},
				{"", "", "/b", true},
			},
			"are disallowed for all crawlers",
		},
		{
			"of crawlers with one group, a record is for one", "ACAP 2.3.1",
			"##ACAP version=1.0\nUser-agent: Bingbot\nUser-agent: GPTBot\nAllow: /a/\nDisallow: /\n\nACAP-crawler: GPTBot\nACAP-disallow-crawl: /a/\n",
			[]ask{{"Bingbot", "", "/a/x", true}, {"GPTBot", "", "/a/x", false}, {"Bingbot", "", "/b", false}},
			"",
		},
		{
			"of an allow entry and a disallow entry of one pattern, the disallow entry stays", "ACAP 2.4.5",
			"##ACAP version=1.0\nACAP-crawler: *\nACAP-allow-crawl: /a/\nACAP-disallow-crawl: /a/\n",
			[]ask{{"", "", "/a/x", false}, {"", "", "/b", true}},
			"",
		},
		{
			"what any crawler is prohibited for a purpose stays prohibited, if a named one is permitted it for others", "ACAP 2.2",
			"##ACAP version=1.0\nACAP-crawler: *\nACAP-usage-purpose: news\nACAP-disallow-crawl: /a/\n\nACAP-crawler: GPTBot\nACAP-allow-crawl: /a/b/\nACAP-allow-crawl: /\n",
			[]ask{
				{"GPTBot", "news", "/a/x", false}, {"GPTBot", "news", "/a/b/x", true}, {"GPTBot", "", "/a/x", true}, {"GPTBot", "news", "/b", true},
				{"Other", "news", "/a/x", false},
			},
			"",
		},
		{
			"fields with the same purpose override those for any crawler", "ACAP 2.2",
			"##ACAP version=1.0\nACAP-crawler: *\nACAP-usage-purpose: news\nACAP-disallow-crawl: /a/\n\nACAP-crawler: GPTBot\nACAP-usage-purpose: news\nACAP-allow-crawl: /\n",
			[]ask{{"GPTBot", "news", "/a/x", true}, {"Other", "news", "/a/x", false}, {"Other", "", "/a/x", true}},
			"",
		},
		{
			"a permission for a purpose does not permit the same for all", "ACAP 2.5.6",
			"##ACAP version=1.0\nACAP-crawler: GPTBot\nACAP-disallow-other: /a/\nACAP-usage-purpose: news\nACAP-allow-crawl: /a/b/\n",
			[]ask{{"GPTBot", "", "/a/x", false}, {"GPTBot", "", "/a/b/x", false}, {"GPTBot", "", "/b", true}},
			"(section 2.5.6)",
		},
		{
			"a set that is defined below the records permits nothing", "ACAP 2.7",
			"##ACAP version=1.0\nACAP-crawler: *\nACAP-allow-crawl: the-acap:resource-set:s\nACAP-disallow-crawl: /\nACAP-resource-set: s /a/\n",
			[]ask{{"", "", "/a/x", false}},
			"definitions must be above all records",
		},
		{
			"an allow entry with a qualifier that is none is no permission", "ACAP 2.5",
			"##ACAP version=1.0\nACAP-crawler: *\nACAP-allow-crawl: /a/ time-limit=for-a-while\n",
			[]ask{{"", "", "/a/x", false}, {"", "", "/b", true}},
			"",
		},
		{
			"a group of a purpose that allows a part of what everyone may not crawl", "draft-illyes-rep-purpose-00, starter of rule groups",
			"User-agent: *\nDisallow: /a/\n\nUser-Agent-Purpose: training\nDisallow: /a/b/\n",
			[]ask{{"", "training", "/a/b/x", false}, {"", "training", "/a/x", false}, {"", "", "/a/x", false}},
			"this line also applies to clients that name the purpose training",
		},
		{
			"a no-break space is a part of the path", "Google's parser",
			"User-agent: *\nDisallow:\xa0/x\nDisallow: \u00a0/y\nDisallow: /z\n\nUser-agent:\u00a0Foo\nDisallow: /foo\n",
			[]ask{{"", "", "/x", true}, {"", "", "/y", true}, {"", "", "/z", false}, {"Foo", "", "/foo", true}, {"Foo", "", "/z", false}},
			"Write /x in the policy if you meant this path",
		},
		{
			"the line that 500 KiB cut is left out", "RFC 9309 section 2.5",
			cutFile,
			[]ask{{"", "", "/other", true}, {"", "", "/a", false}},
			"do not read this line",
		},
		{
			"an Allow in another spelling allows nothing", "RFC 9309 section 2.2.2",
			"User-agent: *\nAllow: /%3d*b\nDisallow: /=b\n",
			[]ask{{"", "", "/=b", false}, {"", "", "/=", true}},
			"import and merge leave out",
		},
		{
			"a star is as long as a slash", "RFC 9309 section 2.2.2",
			"User-agent: *\nAllow: *\nDisallow: /$\n",
			[]ask{{"", "", "/", false}, {"", "", "/a", true}},
			"",
		},
	} {
		t.Run(c.name+", "+c.section, func(t *testing.T) {
			data := []byte(c.file)
			for _, from := range []string{"the file", "what it is rendered as"} {
				im, err := robotstxt.Import(data, nil)
				if err != nil {
					t.Fatal(err)
				}
				noted := slices.ContainsFunc(im.Notes, func(n robotstxt.Note) bool { return strings.Contains(n.Message, c.note) })
				if from == "the file" && c.note != "" && !noted {
					t.Errorf("%s: want %q in %+v", from, c.note, im.Notes)
				}
				p := compile(t, im.Spec)
				for _, a := range c.asks {
					q := policy.Query{Crawler: p.Crawler(a.agent), Path: a.path, Identity: policy.Verified}
					if a.purpose != "" {
						q.Purposes = []string{a.purpose}
					}
					if got := p.Decide(q).Verdict != policy.Disallowed; got != a.may {
						t.Errorf("%s: %+v: %v\n%+v", from, a, got, im.Spec.Rules)
					}
				}
				data = render(t, p, "").Body
			}
		})
	}
}

// If a crawler has its own group, the App-Directives of "*" do not apply to it (draft-nottingham-plan-b, Applying
// Application Directives).
func TestImportOfDirectivesOfNamedGroups(t *testing.T) {
	data := []byte("User-agent: *\nApp-Directives: example;x\nApp-Directives: /a/ \"no application\", example;y, other;z\nDisallow: /a/\n\n" +
		"User-agent: GPTBot\nDisallow: /b/\n\nUser-agent: CCBot\nApp-Directives: other;w\nDisallow: /b/\n")
	for _, from := range []string{"the file", "what it is rendered as"} {
		im, err := robotstxt.Import(data, nil)
		if err != nil {
			t.Fatal(err)
		}
		p := compile(t, im.Spec)
		for _, c := range []struct{ token, app, path, want string }{
			{"", "example", "/", "example;x"},
			{"", "example", "/a/", "example;y"},
			{"", "other", "/a/", "other;z"},
			{"GPTBot", "example", "/", "example"},
			{"GPTBot", "example", "/a/", "example"},
			{"GPTBot", "other", "/a/", "other"},
			{"CCBot", "example", "/a/", "example"},
			{"CCBot", "other", "/a/", "other;w"},
			{"CCBot", "other", "/", "other;w"},
		} {
			got := ""
			if d := p.AppDirective(policy.Query{Crawler: p.Crawler(c.token), Path: c.path, Identity: policy.Verified}, c.app); d != nil {
				got = d.Text
			}
			if got != c.want {
				t.Errorf("%s: %+v: %q\n%+v", from, c, got, im.Spec.Rules)
			}
		}
		if n := len(im.Notes); from == "the file" && n != 1 || slices.ContainsFunc(im.Notes, func(n robotstxt.Note) bool { return strings.Contains(n.Message, "too") }) {
			t.Errorf("%s: %+v", from, im.Notes)
		}
		data = render(t, p, "").Body
	}
}

// A rendered robots.txt can be imported. Rendering the result produces the same preferences and directives for
// everyone.
func TestImportOfExtensions(t *testing.T) {
	file := "User-agent: *\nAllow: /\nContent-Usage: train-ai=n, search=y\nContent-Usage: /open/ train-ai=y, search=y\n" +
		"App-Directives: examplesearch;widgets=?0\nApp-Directives: /images/ other;x=1, examplesearch;widgets=?0\nCrawl-delay: 2.5\n\nSitemap: https://example.com/s.xml\n"
	im, err := robotstxt.Import([]byte(file), nil)
	if err != nil {
		t.Fatal(err)
	}
	spec := im.Spec
	f := render(t, compile(t, spec), "")
	want := "User-agent: *\nDisallow:\nCrawl-delay: 2.5\nApp-Directives: examplesearch;widgets=?0\nApp-Directives: /images/ examplesearch;widgets=?0, other;x\n" +
		"Content-Usage: train-ai=n, search=y\nContent-Usage: /open/ train-ai=y, search=y\n\nSitemap: https://example.com/s.xml\n"
	if got := string(f.Body); got != strings.Replace(want, "other;x\n", "other;x=1\n", 1) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestImportOfACAP(t *testing.T) {
	file := "##ACAP version=1.0\r\n\r\nUser-agent: *\r\nDisallow:\r\n\r\nACAP-ignore-conventional-records\r\nACAP-resource-set: premium /premium/ /archive/\r\n" +
		"ACAP-qualified-usage: short present-snippet max-length=250-chars\r\n\r\nACAP-crawler: *\r\nACAP-disallow-index: /drafts/\r\n" +
		"ACAP-allow-(short): the-acap:resource-set:premium\r\n\r\nACAP-crawler: PartnerBot\r\nACAP-usage-purpose: news\r\nACAP-allow-preserve: /news/ time-limit=3-days\r\n\r\n" +
		"ACAP-crawler: ArchiveBot\r\nACAP-permissions-reference: /archivebot.txt\r\n"
	im, err := robotstxt.Import([]byte(file), nil)
	if err != nil {
		t.Fatal(err)
	}
	f := render(t, compile(t, im.Spec), "")
	want := file
	if string(f.Body) != want {
		t.Errorf("got\n%s\nwant\n%s", f.Body, want)
	}
}

// In robots.txt, the directives of the longest path replace the directives of shorter paths (draft-nottingham-plan-b,
// Applying Application Directives). In the imported policy, they also replace them, because Import adds entries that
// have only the name of an application, which cancel the directives of shorter paths.
func TestImportOfDirectivesWithPaths(t *testing.T) {
	data := []byte("User-agent: *\nApp-Directives: a;w=1\nApp-Directives: /x/ b;v=2\nApp-Directives: /y/ c;w=1, c;w=2;v=3\nDisallow: /z/\n")
	for _, from := range []string{"the file", "what it is rendered as"} {
		im, err := robotstxt.Import(data, nil)
		if err != nil {
			t.Fatal(err)
		}
		p := compile(t, im.Spec)
		for _, c := range []struct{ app, path, want string }{
			{"a", "/", "a;w=1"}, {"a", "/x/", "a"}, {"b", "/x/", "b;v=2"}, {"b", "/", ""}, {"c", "/y/", "c;w=1"}, {"a", "/y/", "a"},
		} {
			got := ""
			if d := p.AppDirective(policy.Query{Path: c.path, Identity: policy.Verified}, c.app); d != nil {
				got = d.Text
			}
			if got != c.want {
				t.Errorf("%s: %+v: %q", from, c, got)
			}
		}
		if from == "the file" && (len(im.Notes) != 1 || !strings.Contains(im.Notes[0].Message, "so combine them")) {
			t.Errorf("%+v", im.Notes)
		}
		data = render(t, p, "").Body
	}
}

func compile(t *testing.T, spec *policy.Spec) *policy.Policy {
	t.Helper()
	p := policy.Compile(spec)
	return p
}

// render renders a policy. It fails the test if there are problems that are errors.
func render(t *testing.T, p *policy.Policy, host string) *robotsserve.File {
	t.Helper()
	f, problems := robotsserve.Render(p, host, robotsserve.Options{})
	for _, pr := range problems {
		if pr.Severity == policy.Error {
			t.Fatalf("%+v", pr)
		}
	}
	return f
}
