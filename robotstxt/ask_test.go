// SPDX-License-Identifier: Apache-2.0

package robotstxt_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	temoto "github.com/temoto/robotstxt"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

func TestAgent(t *testing.T) {
	t.Parallel()
	const file = "User-agent: *\nDisallow: /\n\nUser-agent: Example-Bot\nCrawl-delay: 1.5\nDisallow: /a+b\nDisallow: /c%2Bd\nDisallow: /private/ # not this\n" +
		"Allow: /private/$\nDisallow: /*.pdf\nDisallow: /%7Eme\nDisallow: /\u00e9\nContent-Usage: train-ai=n\nContent-Usage: /news/ train-ai=y, search=n\nApp-Directives: example;x=1\n"
	f := robotstxt.Parse([]byte(file))
	a := f.Agent(policy.Crawler{Token: "example-bot"})
	for _, c := range []struct {
		url     string
		allowed bool
		line    int
	}{
		{"https://www.example.com", true, 0},
		{"/robots.txt", true, 0},
		{"/a+b", false, 6},
		{"/a%2Bb", true, 0},
		{"/c%2Bd", false, 7},
		{"/c%2bd", false, 7},
		{"/c+d", true, 0},
		{"http://www.example.com/private/#top", true, 9},
		{"/private/x", false, 8},
		{"https://www.example.com/x.pdf?download#page=2", false, 10},
		{"?x.pdf", false, 10},
		{"/~me/", false, 11},
		{"/%7eme/", false, 11},
		{"/%C3%A9", false, 12},
		{"/\u00e9t\u00e9", false, 12},
		{"/go?to=https://example.com/private/", true, 0},
	} {
		if got := a.Ask(c.url); got.Allowed != c.allowed || got.Line != c.line {
			t.Errorf("%s: %+v, want %v by line %d", c.url, got, c.allowed, c.line)
		}
	}
	if got := f.Agent(policy.Crawler{Token: "OtherBot"}).Ask("/x"); got.Allowed || got.Line != 2 || got.Path != "/" {
		t.Errorf("a crawler that no group names: %+v", got)
	}
	for _, rules := range []int{2, 40} { // files with few rules and with many rules use different indexes
		twice := "User-agent: *\n" + strings.Repeat("Disallow: /t\n", rules)
		if got := robotstxt.Parse([]byte(twice)).Agent(policy.Crawler{Token: "x"}).Ask("/t"); got.Line != 2 {
			t.Errorf("of %d equal lines, that of line %d decides", rules, got.Line)
		}
	}
	if got := robotstxt.Parse(nil).Agent(policy.Crawler{Token: "x"}).Ask("/"); !got.Allowed {
		t.Errorf("an empty file: %+v", got)
	}
	if a.CrawlDelay() != 1500*time.Millisecond || a.Said("/news/1").ContentUsage != "train-ai=y, search=n" || a.Said("/").ContentUsage != "train-ai=n" || a.Said("/x").Directives != "example;x=1" {
		t.Errorf("%v %+v %+v %+v", a.CrawlDelay(), a.Said("/news/1"), a.Said("/"), a.Said("/x"))
	}
}

// agentFile returns a random file with the given number of rules for the crawler "example". The path of each rule is
// "/", followed by three random elements of parts.
func agentFile(r *rand.Rand, rules int, parts ...string) string {
	var b strings.Builder
	b.WriteString("User-agent: *\nDisallow: /a\n\nUser-agent: example\n")
	for range rules {
		key := []string{"Allow", "Disallow", "Disallow"}[r.IntN(3)]
		b.WriteString(key + ": /" + parts[r.IntN(len(parts))] + parts[r.IntN(len(parts))] + parts[r.IntN(len(parts))] + []string{"", "", "$"}[r.IntN(3)] + "\n")
	}
	return b.String()
}

// Ask gives the same answers as Google's parser, except for some URLs, which this test does not use: /robots.txt, and
// URLs with escaped unreserved octets, lower-case hexadecimal digits, "*" or "$".
func TestAgentAnswersAsGoogle(t *testing.T) {
	t.Parallel()
	parser := googleReader()
	process, err := parser.Start()
	if err != nil {
		t.Fatal(err)
	}
	if process != nil {
		defer process.Close()
	}
	parts := []string{"a", "b", "ab", "/", "*", "?", "=", "+", "%2B", "%2F", "%C3%A9", ".html", "x*y", ""}
	asked := 0
	for seed := range uint64(testkit.Rounds(60, 120)) {
		r := rand.New(rand.NewPCG(seed, 33))
		body := agentFile(r, []int{3, 12, 60}[seed%3], parts...)
		own, model := robotstxt.Parse([]byte(body)), crawlertest.ReadGoogle(body)
		var asks [][2]string
		var got []bool
		for range 60 {
			path := "/" + strings.ReplaceAll(parts[r.IntN(len(parts))]+parts[r.IntN(len(parts))]+parts[r.IntN(len(parts))]+parts[r.IntN(len(parts))], "*", "z")
			for _, token := range []string{"example", "other"} {
				allowed := own.Agent(policy.Crawler{Token: token}).Allowed("https://www.example.com" + path)
				if want := model.Allowed(token, path); allowed != want {
					t.Fatalf("%s for %s: %v, and Google's parser says %v\n%s", path, token, allowed, want, body)
				}
				asks, got = append(asks, [2]string{token, path}), append(got, allowed)
				asked++
			}
		}
		if process == nil {
			continue
		}
		answers, err := process.Ask(body, asks)
		if err != nil {
			t.Fatal(err)
		}
		for i := range answers {
			if answers[i] != got[i] {
				t.Fatalf("%q: %v, and Google's C++ says %v\n%s", asks[i], got[i], answers[i], body)
			}
		}
	}
	t.Logf("%d questions, also answered by Google's C++: %v", asked, process != nil)
}

func googleReader() *crawlertest.Parser {
	for i := range crawlertest.Parsers {
		if crawlertest.Parsers[i].Name == "Google" {
			return &crawlertest.Parsers[i]
		}
	}
	return nil
}

// This package gives the same answers as temoto/robotstxt, except where the function TemotoException names a
// peculiarity of temoto/robotstxt.
func TestAgentAnswersAsTemoto(t *testing.T) {
	t.Parallel()
	parts := []string{"a", "b", "ab", "/", ".html", "c", "*", ""}
	quirks := map[string]int{}
	asked := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 34))
		body := agentFile(r, []int{3, 12, 60}[seed%3], parts...)
		theirs, err := temoto.FromString(body)
		if err != nil {
			t.Fatal(err)
		}
		agent, read := robotstxt.Parse([]byte(body)).Agent(policy.Crawler{Token: "example"}), crawlertest.ReadRobotsTxt(body)
		for range 60 {
			path := "/" + strings.ReplaceAll(parts[r.IntN(len(parts))]+parts[r.IntN(len(parts))]+parts[r.IntN(len(parts))], "*", "z")
			asked++
			got, want := agent.Allowed(path), theirs.TestAgent(path, "example")
			if got == want {
				continue
			}
			why := crawlertest.TemotoException(read, "example", path, want)
			if why == "" {
				t.Fatalf("%s: %v, and temoto/robotstxt says %v\n%s", path, got, want, body)
			}
			quirks[why]++
		}
	}
	t.Logf("%d questions, quirks of temoto/robotstxt: %v", asked, quirks)
}
