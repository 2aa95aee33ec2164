// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// Sitemaps are only hints, so the sitemaps of the site that do not fit are left out. The groups of the site's file are
// never left out.
func TestMergeLeavesOutSitemapsFirst(t *testing.T) {
	var file strings.Builder
	file.WriteString("User-agent: *\nDisallow: /theirs/\n")
	for i := 0; file.Len() < robotstxt.MaxSize-100; i++ {
		fmt.Fprintf(&file, "Sitemap: https://www.example.com/%d\n", i)
	}
	other := robotstxt.Parse([]byte(file.String()))
	var ours []policy.Statement
	for i := range 100 {
		ours = append(ours, policy.Statement{Usage: policy.Crawl, Pattern: pathpattern.MustParse(fmt.Sprintf("/ours/%d/", i))})
	}
	p := compile(t, &policy.Spec{Sitemaps: []policy.Sitemaps{{Addresses: []string{"/ours.xml"}}}, Rules: []policy.Rule{{For: []policy.Audience{{}}, Statements: ours}}})
	check := func(body string, problems []policy.Problem) {
		t.Helper()
		read := crawlertest.ReadRobotsTxt(body)
		if len(body) > robotstxt.MaxSize || read.Allowed("nobody", "/theirs/") || read.Allowed("nobody", "/ours/7/") {
			t.Errorf("the file has %d bytes, and is too large or lacks rules", len(body))
		}
		if n := strings.Count(body, "Sitemap: "); n < 10000 || !strings.Contains(body, "/ours.xml\n") || !strings.Contains(body, "/0\n") {
			t.Errorf("%d sitemaps are left", n)
		}
		if i := slices.IndexFunc(problems, func(p policy.Problem) bool { return p.Code == "merge-too-large" }); i < 0 || !strings.Contains(problems[i].Message, "sitemaps are left out") {
			t.Errorf("%+v", problems)
		}
	}
	f, problems, _ := Merge(p, "www.example.com", other, Options{})
	check(string(f.Body), problems)
	s := NewServer(p, ServeOptions{})
	var notes []policy.Problem
	c, _ := s.mergedContent(t.Context(), s.hosts[0], "www.example.com", Answer{Other: other, Report: func(ps []policy.Problem, _ []robotstxt.Note) { notes = ps }})
	if c == nil {
		t.Fatal("the site's file is left out")
	}
	check(string(slices.Concat(c.identity.parts...)), notes)
}

// The policy's license line and sitemaps contain the requested host, so they are added after merging. There is always
// room for the license line, but the policy's sitemaps are left out if the site's rules need the room.
func TestMergeLeavesRoomForThePolicy(t *testing.T) {
	training := []policy.Rule{{For: []policy.Audience{{}}, Statements: []policy.Statement{{Usage: policy.TrainAI, Pattern: pathpattern.All}}}}
	var maps []string
	for i := range 3000 {
		maps = append(maps, fmt.Sprintf("/%d/%s.xml", i, strings.Repeat("m", 100)))
	}
	for _, c := range []struct {
		name string
		spec policy.Spec
	}{
		{"a license", policy.Spec{Rules: training, Publish: policy.Publish{RSL: "/" + strings.Repeat("license", 100) + ".xml"}}},
		{"sitemaps", policy.Spec{Rules: training, Sitemaps: []policy.Sitemaps{{Addresses: maps}}}},
	} {
		for _, size := range []int{robotstxt.MaxSize - 30_000, robotstxt.MaxSize - 2_000, robotstxt.MaxSize - 1_000, robotstxt.MaxSize - 10} {
			var file strings.Builder
			file.WriteString("User-agent: *\nDisallow: /theirs/\n")
			for i := 0; file.Len() < size-1_000; i++ {
				fmt.Fprintf(&file, "\nUser-agent: Some%dBot\nDisallow: /%d%s\n", i, i, strings.Repeat("x", 900))
			}
			fmt.Fprintf(&file, "Disallow: /%s\n", strings.Repeat("y", size-file.Len()-len("Disallow: /\n")))
			other := robotstxt.Parse([]byte(file.String()))
			s := NewServer(compile(t, &c.spec), ServeOptions{})
			for _, host := range []string{"a.example", strings.Repeat("a.", 120) + "example"} {
				var problems []policy.Problem
				served, _ := s.mergedContent(t.Context(), s.hosts[0], host, Answer{Other: other, Report: func(ps []policy.Problem, _ []robotstxt.Note) { problems = ps }})
				if served == nil {
					t.Errorf("%s, %d bytes, %.9s: the site's file is left out: %+v", c.name, size, host, problems)
					continue
				}
				body := string(slices.Concat(served.identity.parts...))
				read := crawlertest.ReadRobotsTxt(body)
				if len(body) > robotstxt.MaxSize || read.Allowed("nobody", "/theirs/") || read.Allowed("Some3Bot", "/3"+strings.Repeat("x", 900)) || read.Allowed("Some400Bot", "/400"+strings.Repeat("x", 900)) {
					t.Errorf("%s, %d bytes, %.9s: the merged file has %d bytes, and is too large or lacks rules", c.name, size, host, len(body))
				}
				if c.spec.Publish.RSL != "" && !strings.HasPrefix(body, "License: https://"+host) {
					t.Errorf("%.50q", body)
				}
			}
		}
	}
}

// The site's file has a group with a User-Agent-Purpose line (draft-illyes-rep-purpose-00). Clients without a purpose
// must not obey it, so it is left out and reported.
func TestMergeReportsPurposes(t *testing.T) {
	file := "User-agent: *\nDisallow: /all/\n\nUser-Agent-Purpose: training\nDisallow: /\n"
	f, _, notes := Merge(compile(t, &policy.Spec{}), "www.example.com", robotstxt.Parse([]byte(file)), Options{})
	if want := "User-agent: *\n# from the robots.txt of the site\nDisallow: /all/\n"; string(f.Body) != want {
		t.Errorf("got\n%s\nwant\n%s", f.Body, want)
	}
	if len(notes) != 1 || notes[0].Line != 4 || !strings.Contains(notes[0].Message, `"training"`) {
		t.Errorf("%+v", notes)
	}
}

// In a policy, words such as "everyone" stand for several crawlers. A group of the site with such a name applies only
// to a crawler that has this name.
func TestMergeKeepsNamesOfSeveralCrawlers(t *testing.T) {
	for _, name := range []string{"everyone", "everyone-else", "Everyone-Else", "category", "operator", "purpose"} {
		file := "User-agent: *\nDisallow: /\n\nUser-agent: " + name + "\nDisallow: /a/\n"
		f, _, notes := Merge(compile(t, &policy.Spec{}), "www.example.com", robotstxt.Parse([]byte(file)), Options{})
		read := crawlertest.ReadRobotsTxt(string(f.Body))
		if read.Allowed("SomeBot", "/x") || read.Allowed("Googlebot", "/x") || read.Allowed(name, "/a/x") || !read.Allowed(name, "/x") {
			t.Errorf("%s:\n%s", name, f.Body)
		}
		if len(notes) > 0 {
			t.Errorf("%s: %+v", name, notes)
		}
	}
}
