// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/rfc9309"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

var foreignTokens = append(slices.Clone(tokens), "ThetaBot", "alphabot")

// foreignFile returns a random robots.txt of valid lines. If odd is true, some patterns contain "**" or do not begin
// with "/", and groups can have preferences. A group may then also differ from the previous one only by a missing "/"
// before "*".
func foreignFile(r *rand.Rand, odd bool) string {
	var b strings.Builder
	lines := ""
	for range r.IntN(4) {
		for range 1 + r.IntN(2) {
			b.WriteString("User-agent: " + pick(r, append([]string{"*", "*"}, foreignTokens...)...) + "\n")
		}
		if odd && r.IntN(2) == 0 && strings.Contains(lines, ": /*") {
			lines = strings.ReplaceAll(lines, ": /*", ": *")
		} else {
			lines = foreignLines(r, odd)
		}
		b.WriteString(lines + "\n")
	}
	return b.String()
}

func foreignLines(r *rand.Rand, odd bool) string {
	var b strings.Builder
	for range 1 + r.IntN(4) {
		pattern := policytest.Pattern(r, false)
		switch {
		case !odd:
			pattern = strings.ReplaceAll(pattern, "**", "*b")
		case r.IntN(4) == 0:
			pattern = pick(r, "*", "/*", "/a**", "/***") + pick(r, "a", "b*", "", "**/b", "b$", "a**$")
		}
		b.WriteString(pick(r, "Allow: ", "Disallow: ") + pattern + "\n")
	}
	if odd && r.IntN(3) == 0 { // without the first "/", both lines have the same length
		b.WriteString("Disallow: /*ba/\nAllow: /ba/\n")
	}
	for range r.IntN(3) * r.IntN(2) {
		if odd {
			b.WriteString(pick(r, "Content-Usage: ", "content-usage:") + foreignPath(r) + pick(r, "train-ai=n", "TRAIN-AI = N", "search = y , Train-AI=n;x", "ai-use=n", "train-genai=n") + "\n")
			b.WriteString(pick(r, "Content-Signal: ", "CONTENT-SIGNAL:") + foreignPath(r) + pick(r, "ai-train=no", "Ai-Train = No", "search=yes,ai-input= no", "search=NO") + "\n")
		}
	}
	return b.String()
}

func foreignPath(r *rand.Rand) string { return pick(r, "", "", "/ ", "/\t", "* ", "/a/ ") }

func TestMergeAgreesWithBoth(t *testing.T) {
	r := rand.New(rand.NewPCG(*seed, 11))
	counts := map[string]int{}
	for range *policies {
		spec := policytest.Random(r, policytest.Options{Usages: []policy.Usage{policy.Crawl}})
		publish(t, r, spec)
		p := compile(t, spec)
		other := foreignFile(r, true)
		host := policytest.Hosts[r.IntN(len(policytest.Hosts))]
		f, problems, notes := Merge(p, host, robotstxt.Parse([]byte(other)), Options{})
		checkLayout(t, f.Body)
		checkPreferences(t, p, other, f.Body)
		ours, theirs := crawlertest.ReadRobotsTxt(string(f.Body)), crawlertest.ReadRobotsTxt(other)
		for range 8 {
			path := policytest.Path(r)
			if path == "/robots.txt" {
				continue
			}
			if r.IntN(4) == 0 {
				path = "/ba/"
			}
			for _, token := range foreignTokens {
				d := p.Decide(policy.Query{Crawler: p.Crawler(token), Identity: policy.Verified, Host: host, Path: path})
				want := d.Verdict != policy.Disallowed
				if d.Verdict == policy.Unstated {
					name := obeyedName(p, theirs, token)
					want = name == "" || theirs.Allowed(name, path)
					counts["theirs"]++
				}
				agent := obeyedName(p, ours, token)
				if agent == "" {
					continue
				}
				counts["decisions"]++
				got := ours.Allowed(agent, path)
				if got == want || want && followsAnother(p, token, agent) {
					continue
				}
				if want && (lost(f, token, path) || lost(f, agent, path)) {
					counts["not-flattenable"]++
					continue
				}
				if want && slices.ContainsFunc(notes, func(n robotstxt.Note) bool { return strings.Contains(n.Message, "in the policy") }) {
					counts["stricter, with a note"]++
					continue
				}
				t.Fatalf("%q may fetch %q on %q: the file says %v, want %v (the policy %v)\nmerged\n%s\ntheirs\n%s\n%s\n%v", token, path, host, got, want, d.Verdict, f.Body, other, describe(spec), problems)
			}
		}
	}
	t.Log(counts)
}

// checkPreferences fails the test if the merged file allows a usage that a line of the site's file disallows. If the
// policy states preferences itself, the merged file may lack the lines of the site's file with a path.
func checkPreferences(t *testing.T, p *policy.Policy, other string, merged []byte) {
	t.Helper()
	states := slices.ContainsFunc(p.Spec().Rules, func(r policy.Rule) bool {
		return slices.ContainsFunc(r.Statements, func(s policy.Statement) bool { return s.Usage == policy.TrainAI })
	})
	var whole []string
	for line := range strings.SplitSeq(other, "\n") {
		if !states || !strings.HasPrefix(strings.ToLower(line), "content-") || !strings.Contains(line, "/a/ ") {
			whole = append(whole, line)
		}
	}
	var crawlers []rfc9309.Crawler
	for _, token := range foreignTokens {
		info := p.CrawlerInfo(p.Crawler(token))
		crawlers = append(crawlers, rfc9309.Crawler{Names: append([]string{token}, info.Follows...), IgnoresStar: info.IgnoresStar})
	}
	old, now := rfc9309.Parse([]byte(strings.Join(whole, "\n")), nil), rfc9309.Parse(merged, nil)
	for _, d := range rfc9309.Compare(old, now, crawlers).Differences {
		// A crawler that ignores "*" does not get a group that would only have preferences.
		obeys := slices.ContainsFunc(d.Crawlers, func(token string) bool { return !p.CrawlerInfo(p.Crawler(token)).IgnoresStar })
		if d.Usage != "" && d.Laxer() && obeys {
			t.Fatalf("%v may use %s for %s: %+v\nmerged\n%s\ntheirs\n%s", d.Crawlers, d.Path, d.Usage, d, merged, other)
		}
	}
}

// obeyedName returns the token of the group that a crawler obeys in a file, or "" if it does not obey any group.
func obeyedName(p *policy.Policy, f *crawlertest.RobotsTxt, token string) string {
	info := p.CrawlerInfo(p.Crawler(token))
	for _, t := range append([]string{token}, info.Follows...) {
		if _, ok := f.Groups[strings.ToLower(t)]; ok {
			return t
		}
	}
	if info.IgnoresStar {
		return "" // the crawler ignores "*"
	}
	return token
}

// The site's file consists almost only of sitemaps, and some are repeated. The time for merging it is proportional to
// its length, and the result is cached.
func TestMergeManySitemaps(t *testing.T) {
	var file strings.Builder
	var want []string
	file.WriteString("User-agent: *\nDisallow: /x\n")
	for i := 0; file.Len() < robotstxt.MaxSize-(10<<10); i++ {
		want = append(want, fmt.Sprintf("https://a.example/%d", i))
		fmt.Fprintf(&file, "Sitemap: %s\n", want[i])
	}
	for _, s := range want[:100] {
		fmt.Fprintf(&file, "Sitemap: %s\n", s)
	}
	s := NewServer(compile(t, &policy.Spec{Sitemaps: []policy.Sitemaps{{Addresses: []string{want[5]}}}}), ServeOptions{})
	want = append([]string{want[5]}, slices.Delete(slices.Clone(want), 5, 6)...)
	other := robotstxt.Parse([]byte(file.String()))
	first, _ := s.mergedContent(t.Context(), s.hosts[0], "www.example.com", Answer{Other: other})
	var got []string
	for line := range strings.SplitSeq(string(slices.Concat(first.identity.parts...)), "\n") {
		if u, ok := strings.CutPrefix(line, "Sitemap: "); ok {
			got = append(got, u)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d sitemaps, want %d", len(got), len(want))
	}
	if again, _ := s.mergedContent(t.Context(), s.hosts[0], "www.example.com", Answer{Other: other}); again != first {
		t.Error("the same file was merged twice")
	}
	few := robotstxt.Parse([]byte("User-agent: *\nDisallow: /x\nSitemap: https://a.example/few\n"))
	if c, _ := s.mergedContent(t.Context(), s.hosts[0], "www.example.com", Answer{Other: few}); !strings.Contains(string(slices.Concat(c.identity.parts...)), "/few\n") {
		t.Error("another file with the same groups is served with the sitemaps of the first")
	}
}

// A group for thousands of crawlers is not stored once for each of them. If such a file is too large to be read
// completely, everything is disallowed for these crawlers.
func TestMergeManyNamesOfManyRules(t *testing.T) {
	var file strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&file, "User-agent: B%d\n", i)
	}
	for i := range 3000 {
		fmt.Fprintf(&file, "Disallow: /%d\n", i)
	}
	other := robotstxt.Parse([]byte(file.String()))
	n := 0
	for _, g := range other.Groups {
		n += len(g.Decisive())
	}
	f, _, notes := Merge(compile(t, &policy.Spec{}), "", other, Options{})
	if n > 1<<18 || !slices.ContainsFunc(notes, func(n robotstxt.Note) bool { return strings.Contains(n.Message, "too many lines") }) {
		t.Errorf("%d rules, %v", n, notes)
	}
	if again := robotstxt.Parse(f.Body); len(again.Groups) < 3000 || len(again.Group("B17").Decisive()) != 1 {
		t.Errorf("not everything is disallowed for crawlers whose group was not read completely: %.300s", f.Body)
	}
}

func TestMergeReportsWhatItLeavesOut(t *testing.T) {
	other := "\ufeffUser-agent: *\rDisallow: /theirs\rCrawl-delay: 3\rContent-Signal: ai-train=no\rACAP-crawler: *\rSitemap: https://example.org/s.xml\rHost: x\r"
	spec := &policy.Spec{Sitemaps: []policy.Sitemaps{{Addresses: []string{"/ours.xml"}}}, Rules: []policy.Rule{{
		For:        []policy.Audience{{Kind: policy.ForToken, Name: "AlphaBot"}},
		Statements: []policy.Statement{{Usage: policy.Crawl, Pattern: pathpattern.MustParse("/ours")}},
	}}}
	f, _, notes := Merge(compile(t, spec), "www.example.com", robotstxt.Parse([]byte(other)), Options{})
	want := "User-agent: *\n# from the robots.txt of the site\nDisallow: /theirs\nCrawl-delay: 3\nContent-Signal: ai-train=no\n\n" +
		"User-agent: AlphaBot\nDisallow: /ours\n# from the robots.txt of the site\nDisallow: /theirs\nCrawl-delay: 3\nContent-Signal: ai-train=no\n\n" +
		"Sitemap: https://www.example.com/ours.xml\n# from the robots.txt of the site\nSitemap: https://example.org/s.xml\n\n# from the robots.txt of the site\nHost: x\n"
	if string(f.Body) != want {
		t.Errorf("got\n%s\nwant\n%s", f.Body, want)
	}
	if len(notes) != 1 { // one note, about the ACAP record
		t.Errorf("%+v", notes)
	}
	spec.Rules[0].Statements = append(spec.Rules[0].Statements, policy.Statement{Usage: policy.TrainAI, Pattern: pathpattern.All})
	other = strings.Replace(other, "ai-train=no", "/x search=yes", 1)
	f, _, notes = Merge(compile(t, spec), "www.example.com", robotstxt.Parse([]byte(other)), Options{})
	if strings.Contains(string(f.Body), "Signal") || len(notes) != 2 {
		t.Errorf("with preferences in the policy: %+v\n%s", notes, f.Body)
	}
}

// A disallow entry for "other" also disallows AI usages and search. No line of the site's file may replace this.
func TestMergePreferencesBesideOther(t *testing.T) {
	spec := &policy.Spec{Publish: policy.Publish{ContentUsage: policy.On}, Rules: []policy.Rule{{
		For: []policy.Audience{{}}, Statements: []policy.Statement{{Usage: policy.Other, Pattern: pathpattern.All}},
	}}}
	other := "User-agent: *\nAllow: /\nContent-Usage: /open/ train-ai=y\nContent-Signal: ai-train=yes\n"
	f, _, notes := Merge(compile(t, spec), "", robotstxt.Parse([]byte(other)), Options{})
	if got, _ := crawlertest.ReadRobotsTxt(string(f.Body)).Extension("content-usage", "AlphaBot", "/open/x"); got != "train-ai=n, ai-use=n, search=n" || len(notes) != 2 {
		t.Errorf("%q, notes %v, in\n%s", got, notes, f.Body)
	}
}

func TestImportAgreesWithFile(t *testing.T) {
	r := rand.New(rand.NewPCG(*seed, 12))
	for range *policies {
		file := foreignFile(r, false)
		spec := mustImport(t, []byte(file))
		p := compile(t, spec)
		naive := crawlertest.ReadRobotsTxt(file)
		for range 8 {
			path := policytest.Path(r)
			if path == "/robots.txt" {
				continue
			}
			for _, token := range foreignTokens {
				if got, want := decide(p, token, "", path), naive.Allowed(token, path); got != want {
					t.Fatalf("%q may fetch %q: imported %v, the file says %v\n%s\n%s", token, path, got, want, file, describe(spec))
				}
			}
		}
	}
}

func mustImport(t *testing.T, data []byte) *policy.Spec {
	t.Helper()
	im, err := robotstxt.Import(data, nil)
	if errors.Is(err, robotstxt.ErrNoLines) {
		return &policy.Spec{}
	}
	if err != nil {
		t.Fatal(err)
	}
	return im.Spec
}

// The merged file would be larger than crawlers read. It keeps the groups of "*" and of search engines, and the other
// groups that fit. For the crawlers of the remaining groups, everything is disallowed.
func TestMergeTooLarge(t *testing.T) {
	var file strings.Builder
	for i := range 60 {
		fmt.Fprintf(&file, "User-agent: Some%c%cBot\n", 'a'+i%26, 'a'+i/26)
		for j := range 120 {
			fmt.Fprintf(&file, "Disallow: /%d/%d/%s\n", i, j, strings.Repeat("x", 40))
		}
	}
	file.WriteString("\nUser-agent: Bingbot\nDisallow: /not-for-bing/\n\nUser-agent: *\nDisallow: /not-for-all/\n")
	var known []policy.Crawler // the search engine last
	for i := range 60 {
		known = append(known, policy.Crawler{Token: fmt.Sprintf("Some%c%cBot", 'a'+i%26, 'a'+i/26)})
	}
	p := compile(t, &policy.Spec{
		Crawlers: append(known, policy.Crawler{Token: "Bingbot", Category: "search"}),
		Rules: []policy.Rule{{For: []policy.Audience{{}}, Statements: []policy.Statement{
			{Usage: policy.Crawl, Pattern: pathpattern.MustParse("/" + strings.Repeat("ours", 400) + "/")},
		}}},
	})
	for i := range 60 { // each group repeats the rules of the policy for everyone
		p.Spec().Rules[0].Statements = append(p.Spec().Rules[0].Statements, policy.Statement{
			Usage: policy.Crawl, Pattern: pathpattern.MustParse(fmt.Sprintf("/%s/%d", strings.Repeat("more", 60), i)),
		})
	}
	p = compile(t, p.Spec())
	f, problems, _ := Merge(p, "www.example.com", robotstxt.Parse([]byte(file.String())), Options{})
	if len(f.Body) > robotstxt.MaxSize {
		t.Fatalf("%d bytes", len(f.Body))
	}
	if !slices.ContainsFunc(problems, func(p policy.Problem) bool { return p.Code == "merge-too-large" && p.Severity == policy.Warning }) {
		t.Errorf("%+v", problems)
	}
	read := crawlertest.ReadRobotsTxt(string(f.Body))
	closed := 0
	for _, c := range []struct {
		token, path string
		open        bool
	}{{"nobody", "/not-for-all/", false}, {"nobody", "/x", true}, {"Bingbot", "/not-for-bing/", false}, {"Bingbot", "/not-for-all/", true}} {
		if read.Allowed(c.token, c.path) != c.open {
			t.Errorf("%+v", c)
		}
	}
	for i := range 60 {
		if !read.Allowed(fmt.Sprintf("Some%c%cBot", 'a'+i%26, 'a'+i/26), "/x") {
			closed++
		}
	}
	if closed == 0 || closed == 60 {
		t.Errorf("%d of 60 groups are disallowed", closed)
	}
}

// A full URL in a Disallow line does not disallow any path, because Google's parser does not match any path with it.
// One note reports the line as wrong, even if it is in the group of several crawlers.
func TestMergeURLInDisallow(t *testing.T) {
	file := "User-agent: Bingbot\nUser-agent: *\nDisallow: https://other.example/\nDisallow: /x/\n"
	f, problems, notes := Merge(compile(t, &policy.Spec{}), "www.example.com", robotstxt.Parse([]byte(file)), Options{})
	if len(problems) > 0 {
		t.Errorf("%+v", problems)
	}
	read := crawlertest.ReadRobotsTxt(string(f.Body))
	for path, open := range map[string]bool{"/": true, "/a": true, "/x/": false} {
		if read.Allowed("Bingbot", path) != open || read.Allowed("nobody", path) != open {
			t.Errorf("%s: want open %v in\n%s", path, open, f.Body)
		}
	}
	if len(notes) != 1 || notes[0].Line != 3 || !notes[0].Wrong {
		t.Errorf("%+v", notes)
	}
}

// The policy names a sitemap by its path. In the merged file, the URL of the sitemap contains the requested host.
func TestMergeForEachHost(t *testing.T) {
	s := NewServer(compile(t, &policy.Spec{Sitemaps: []policy.Sitemaps{{Addresses: []string{"/s.xml"}}}}), ServeOptions{})
	other := robotstxt.Parse([]byte("User-agent: *\nDisallow: /x\n"))
	for _, host := range []string{"a.example", "b.example"} {
		c, _ := s.mergedContent(t.Context(), s.hosts[0], host, Answer{Other: other})
		if body := string(slices.Concat(c.identity.parts...)); !strings.Contains(body, "Sitemap: https://"+host+"/s.xml\n") {
			t.Errorf("%s:\n%s", host, body)
		}
	}
}
