// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/rfc9309"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// googleReader reads a file like Google's parser, which cuts a name at the first byte that cannot be in a product
// token.
type googleReader struct {
	*rfc9309.File

	token string
}

func (r googleReader) Allowed(path string) bool {
	return r.Ask(rfc9309.Crawler{Names: []string{r.token}}, path).Allowed
}

// The site's file names "sistrix", and the policy names "SISTRIX Crawler". Google's parser cuts the second name after
// the first word, so it combines the two groups. A path that the site's file or the policy disallows must not become
// allowed.
func TestNamesThatAreCutOpenNothing(t *testing.T) {
	spec := &policy.Spec{
		Publish:  policy.Publish{AllGroups: true},
		Crawlers: []policy.Crawler{{Token: "SISTRIX Crawler", Category: "seo"}, {Token: "Find2Bot", Category: "seo"}, {Token: "FooBot", Category: "search"}},
		Rules: []policy.Rule{
			{For: []policy.Audience{{Kind: policy.ForCategory, Name: "seo"}}, Statements: []policy.Statement{
				{Usage: policy.Crawl, Pattern: pathpattern.MustParse("/a")},
			}},
			{For: []policy.Audience{{}}, Statements: []policy.Statement{{Usage: policy.Crawl, Pattern: pathpattern.MustParse("/a/b"), Allow: true}}},
		},
	}
	for name, theirs := range map[string]string{
		"its first word":   "User-agent: *\nDisallow: /fs/\nAllow: /fs/pages/1\n\nUser-agent: sistrix\nDisallow: /\nAllow: /a/b/c\n",
		"capitals":         "User-agent: *\nDisallow: /fs/\n\nUser-agent: SISTRIX\nDisallow: /x/\nAllow: /x/a\n",
		"both":             "User-agent: sistrix\nAllow: /a\nDisallow: /x/\n\nUser-agent: SISTRIX Crawler\nDisallow: /y/\n",
		"before a digit":   "User-agent: Find\nAllow: /a/\nDisallow: /x/\n",
		"with more digits": "User-agent: FooBot2\nAllow: /a/\nDisallow: /x/\n\nUser-agent: FooBot\nDisallow: /y/\n",
	} {
		t.Run(name, func(t *testing.T) {
			other := robotstxt.Parse([]byte(theirs))
			f, problems, notes := Merge(compile(t, spec), "", other, Options{})
			if len(problems) > 0 || len(notes) == 0 {
				t.Errorf("%v, notes %v", problems, notes)
			}
			for _, token := range []string{"SISTRIX", "sistrix", "Find"} { // names of groups that readers with Google's parser look for
				read := googleReader{rfc9309.Parse(f.Body, nil), token}
				before := googleReader{rfc9309.Parse([]byte(theirs), nil), token}
				for _, path := range []string{"/a", "/a/b", "/a/b/c", "/a/x"} {
					if read.Allowed(path) {
						t.Errorf("%s may fetch %s:\n%s", token, path, f.Body)
					}
				}
				for _, path := range []string{"/fs/x", "/x/", "/x/a", "/y/", "/z"} {
					if read.Allowed(path) && !before.Allowed(path) && token != "Find" {
						t.Errorf("%s may fetch %s, which the site disallows:\n%s", token, path, f.Body)
					}
				}
			}
		})
	}
}

// If a Disallow line of the site is too long, the merged file has only its beginning. If an Allow line is too long,
// only this line is left out.
func TestLongLinesOfTheSite(t *testing.T) {
	for name, long := range map[string]string{"ASCII": strings.Repeat("a", 17<<10), "beyond ASCII": strings.Repeat("ü", 3000)} {
		theirs := "User-agent: *\nDisallow: /keep/\nDisallow: /" + long + "\nAllow: /keep/" + long + "\n"
		f, problems, notes := Merge(compile(t, &policy.Spec{}), "", robotstxt.Parse([]byte(theirs)), Options{})
		if len(problems) > 0 || len(notes) < 2 {
			t.Errorf("%s: %v, %d notes", name, problems, len(notes))
		}
		read := googleReader{rfc9309.Parse(f.Body, nil), "SomeBot"}
		for path, want := range map[string]bool{"/keep/": false, "/" + long: false, "/keep/" + long: false, "/x": true, "/": true} {
			if read.Allowed(path) != want {
				t.Errorf("%s: allowed %v of %.20s", name, !want, path)
			}
		}
	}
}

// Several crawlers of the catalog can have names that Google's parser reads as one name, here "Foo". If the site's file
// has a group for this name, the group also disallows everything that the policy disallows for at least one of these
// crawlers.
func TestNamesThatAreCutAlike(t *testing.T) {
	entry := func(path string, allow bool) policy.Statement {
		return policy.Statement{Usage: policy.Crawl, Pattern: pathpattern.MustParse(path), Allow: allow}
	}
	p := compile(t, &policy.Spec{
		Publish:  policy.Publish{AllGroups: true, ContentUsage: policy.On},
		Crawlers: []policy.Crawler{{Token: "Foo Preview", Category: "preview"}, {Token: "Foo Ads", Category: "ads"}, {Token: "Foo Search", Category: "search"}},
		Rules: []policy.Rule{
			{For: []policy.Audience{{}}, Statements: []policy.Statement{entry("/all/", false)}},
			{For: []policy.Audience{{Kind: policy.ForCategory, Name: "preview"}}, Statements: []policy.Statement{entry("/all/", true), entry("/p/", false)}},
			{For: []policy.Audience{{Kind: policy.ForToken, Name: "Foo Ads"}}, CrawlDelay: 9e9, Statements: []policy.Statement{
				entry("/a/", false), entry("/a/x/", true), {Usage: policy.TrainAI, Pattern: pathpattern.MustParse("/t/")}}},
		},
	})
	theirs := "User-agent: Foo\nAllow: /p/1\nAllow: /a/x/\nDisallow: /f/\nAllow: /f/x/\n"
	f, problems, notes := Merge(p, "", robotstxt.Parse([]byte(theirs)), Options{})
	if len(problems) > 0 || len(notes) != 1 || !strings.Contains(notes[0].Message, `"Foo" and Foo Preview, Foo Ads and Foo Search as the same name`) {
		t.Errorf("%v, notes %v", problems, notes)
	}
	foo := robotstxt.Parse(f.Body).Agent(policy.Crawler{Token: "Foo"})
	for path, want := range map[string]bool{
		"/": true, "/f/": false, "/f/x/": true, "/p/": false, "/p/1": false, "/a/": false, "/a/x/": true, "/all/": false,
	} {
		if foo.Allowed(path) != want {
			t.Errorf("Foo may fetch %s: %v in\n%s", path, !want, f.Body)
		}
		if joined := (googleReader{rfc9309.Parse(f.Body, nil), "Foo"}); joined.Allowed(path) && !want {
			t.Errorf("Google's parser lets Foo fetch %s in\n%s", path, f.Body)
		}
	}
	if said := foo.Said("/").ContentUsage; said != "train-ai=n" || foo.CrawlDelay() != 9e9 {
		t.Errorf("%q, %v in\n%s", said, foo.CrawlDelay(), f.Body)
	}
}

// The site's file has a group for Yahoo Link Preview. Google's parser reads this name and the name Yahoo Ad monitoring
// as the same name. So the group also disallows what the policy disallows for Yahoo Ad monitoring. It does not get the
// lines of the group of "*".
func TestNamesOfTheCatalogThatAreCutAlike(t *testing.T) {
	p := compile(t, &policy.Spec{
		Crawlers: []policy.Crawler{{Token: "Yahoo Link Preview", Category: "preview"}, {Token: "Yahoo Ad monitoring", Category: "ads"}},
		Rules: []policy.Rule{{For: []policy.Audience{{Kind: policy.ForToken, Name: "Yahoo Ad monitoring"}}, Statements: []policy.Statement{
			{Usage: policy.Crawl, Pattern: pathpattern.MustParse("/a/")}}}},
	})
	theirs := "User-agent: *\nDisallow: /s/\n\nUser-agent: Yahoo Link Preview\nAllow: /a/b\nDisallow: /a\n"
	f, problems, _ := Merge(p, "", robotstxt.Parse([]byte(theirs)), Options{})
	if len(problems) > 0 {
		t.Error(problems)
	}
	joined := googleReader{rfc9309.Parse(f.Body, nil), "Yahoo"}
	preview := robotstxt.Parse(f.Body).Agent(policy.Crawler{Token: "Yahoo Link Preview"})
	if joined.Allowed("/a/b") || joined.Allowed("/a/") || preview.Allowed("/a/b") || preview.Allowed("/a") || !preview.Allowed("/s/") {
		t.Errorf("%s", f.Body)
	}
}
