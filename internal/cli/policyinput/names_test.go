// SPDX-License-Identifier: Apache-2.0

package policyinput

import (
	"slices"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/rfc9309"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// A group of a robots.txt may have any name, even one that means something else in a policy file or in YAML. The policy
// made from this robots.txt disallows the paths of the group for the crawler with this name, and not for other
// crawlers.
func TestImportKeepsEveryName(t *testing.T) {
	t.Parallel()
	names := []string{
		"everyone", "everyone-else", "Everyone", "everyone2", "all", "any", "bots", "others", "unlisted", "default",
		"crawler", "signed", "none", "null", "true", "no", "on", "y", "1", "1e3", "0x1F", "-", "_", "x-", "X", "Google", "Mozilla", "Chrome",
		"purpose", "purpose-ai", "may", "not", "verified",
	}
	for _, kind := range crawlers.Categories() {
		names = append(names, string(kind), string(kind)+"2")
	}
	catalog, _ := crawlers.Default()
	for _, operator := range catalog.Operators() {
		names = append(names, operator)
	}
	for _, name := range names {
		data := []byte("User-agent: *\nDisallow: /all/\n\nUser-agent: " + name + "\nDisallow: /own/\n")
		c, err := Convert(name, data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if q := c.Judge(); q.Differ > 0 || !q.Complete {
			t.Errorf("%s: %s\n%s", name, q.Sentence(), c.Text)
		}
	}
}

// The commands import, explain, check and diff read the same name from a User-agent line, and so does a server that
// merges the file.
func TestOneReaderOfNames(t *testing.T) {
	t.Parallel()
	catalog := policy.Compile(&policy.Spec{Crawlers: policyfile.CatalogCrawlers()})
	for written, name := range map[string]string{
		"Google Bot": "Google", "search": "search", "sistrix": "sistrix", "SISTRIX Crawler": "SISTRIX Crawler", "sistrix  crawler/1.2": "sistrix crawler",
		"GPTBot2": "GPTBot2", "GPTBot/1.0": "GPTBot", "gptbot": "gptbot", "AI2Bot": "AI2Bot", "ai": "ai", "archive.org_bot": "archive.org_bot", "archive": "archive",
		"Mediapartners-Google*": "Mediapartners-Google", "Mozilla/5.0 (compatible; bingbot/2.0)": "Mozilla", "ltx71 - (http://ltx71.com/)": "ltx71",
		"everyone": "everyone", "Foo Bar": "Foo", "Foo,Bar": "Foo", "foo.bar": "foo", "42bot": "42bot", "_x-": "_x-", "Bytespider; x": "Bytespider", "FooBot\tx": "FooBot",
		"*bot": "", "\u00dcber": "", "(x)": "", "": "",
	} {
		data := []byte("User-agent: *\nDisallow: /all/\n\nUser-agent: " + written + "\nDisallow: /own/\nAllow: /own/x\n")
		file := robotstxt.Parse(data)
		if got := file.Names(); !slices.Equal(got, slices.DeleteFunc([]string{name}, func(s string) bool { return s == "" })) {
			t.Errorf("check reads %q in %q, want %q", got, written, name)
		}
		c, err := Convert("robots.txt", data)
		if err != nil {
			t.Fatal(err)
		}
		if q := c.Judge(); q.Differ > 0 {
			t.Errorf("diff, %q: %s", written, q.Sentence())
		}
		merged, problems, _ := robotsserve.Merge(catalog, "", file, robotsserve.Options{})
		if len(problems) > 0 {
			t.Errorf("merge, %q: %v", written, problems)
		}
		old := &Input{Name: "robots.txt", Policy: catalog, Robots: data}
		if q := AskBoth(old, &Input{Name: "merged", Policy: catalog, Robots: merged.Body}, ""); q.Differ > 0 {
			t.Errorf("merge, %q: %s\n%s", written, q.Sentence(), merged.Body)
		}
		if name == "" {
			continue
		}
		for _, own := range []bool{true, false} {
			path := map[bool]string{true: "/own/", false: "/all/"}[own]
			below := file.Below(catalog).Policy
			for way, allowed := range map[string]bool{
				"import":  c.File.Policy.Decide(policy.Query{Crawler: c.File.Policy.Crawler(name), Path: path}).Verdict != policy.Disallowed,
				"merge":   below.Decide(policy.Query{Crawler: below.Crawler(name), Path: path}).Verdict != policy.Disallowed,
				"printed": robotstxt.Parse(merged.Body).Agent(policy.Crawler{Token: name}).Allowed(path),
				"explain": file.Agent(policyfile.Recognize(name, file.Names())).Allowed(path),
			} {
				if allowed == own {
					t.Errorf("%s: %q, read in %q, may crawl %s: %v", way, name, written, path, allowed)
				}
			}
		}
	}
}

// Google's parser reads a name only up to the first character that is not a letter, "-" or "_". So several crawlers of
// the catalog have the same name for it, such as "Yahoo". Nevertheless, this parser must find the same answers in a
// robots.txt and in the robots.txt of the converted policy.
func TestImportKeepsNamesThatAreCutAlike(t *testing.T) {
	t.Parallel()
	const star = "User-agent: *\nDisallow: /all/\n"
	group := func(name, path string) string { return "\nUser-agent: " + name + "\nDisallow: " + path + "\n" }
	for _, file := range []string{
		group("Yahoo Link Preview", "/own/"),
		group("Yahoo Link Preview", "/own/") + group("Yahoo Ad monitoring", "/ads/"),
		group("Yahoo", "/own/"),
		group("Yahoo", "/own/") + group("Yahoo Ad monitoring", "/ads/"),
		group("SISTRIX Crawler", "/own/") + group("sistrix", "/sis/"),
		group("Google Bot", "/own/"),
		group("GPTBot2", "/two/") + group("GPTBot", "/own/"),
	} {
		c := mustConvert(t, []byte(star+file))
		text, _ := c.File.Effect.Robots.Text("")
		q := rfc9309.Compare(rfc9309.Parse([]byte(star+file), nil), rfc9309.Parse([]byte(text), nil), nil)
		for _, d := range q.Differences {
			t.Errorf("%q: %s for %s: allowed %t before, %t now\n%s", file, d.Path, d.Crawlers, d.Old.Allowed, d.New.Allowed, text)
		}
		if q := c.Judge(); q.Differ > 0 {
			t.Errorf("%q: %s", file, q.Sentence())
		}
	}
}
