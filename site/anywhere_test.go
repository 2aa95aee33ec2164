// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// unread holds request targets that are too expensive to compare with patterns. The first one is too long. The second
// one has many escapes and separators that different servers interpret differently, so it could mean too many different
// paths.
var unread = []string{"/" + strings.Repeat("x", effect.MaxPath), "/x;v%2Fy//a%252F..%5Cb;c/./d%2525"}

// fieldsOf returns the response fields of a page.
func fieldsOf(p *site.Page) http.Header {
	h := http.Header{}
	if p.Values != nil {
		robotstag.Apply(h, p.Values, robotstag.AllChannels)
	}
	p.Declare(h)
	return h
}

// Some targets need too much work to be compared with patterns. Their pages get each restriction that at least one path
// on the host has, and nothing else.
func TestUnreadTargets(t *testing.T) {
	s := load(t, `version: 1
publish: {tdmrep: on}
rules:
  - for: everyone
    disallow: {train-ai: /art/}
    allow: {ai-use: /}
  - for: everyone
    hosts: shop.example.com
    robots-tag: ["noimageindex", {rules: "max-image-preview:none", paths: /cart/}]
  - for: GPTBot
    hosts: other.example.com
    disallow: {index: /drafts/}
    allow: {present-snippet: [{paths: /news/, max-length: 50-chars}]}
  - for: everyone
    hosts: other.example.com
    disallow: {other: /x/}
    usage-purposes: [news]
`)
	for _, target := range unread {
		if all, complete := pathpattern.Readings(nil, target); complete && len(target) <= effect.MaxPath {
			t.Fatalf("%.30s has %d readings", target, len(all))
		}
		for host, want := range map[string][2]string{
			"www.example.com":    {"", ""},
			"shop.example.com":   {"max-image-preview:none, noimageindex", ""},
			"shop.example.com.":  {"max-image-preview:none, noimageindex", ""},
			"other.example.com":  {"", "gptbot: noindex, max-snippet:50"},
			"other.example.com.": {"", "gptbot: noindex, max-snippet:50"},
		} {
			h := fieldsOf(s.Page(host, target, june))
			everyone, gptbot := robotsrule.Set{}, robotsrule.Set{}
			for _, line := range h[robotstag.XRobotsTagField] {
				if own, ok := strings.CutPrefix(line, "gptbot: "); ok {
					gptbot = gptbot.Union(robotsrule.Parse(own))
				} else if line != "amazonbot: noarchive" { // this is Amazon's own control, which is sent because train-ai is disallowed
					everyone = everyone.Union(robotsrule.Parse(line))
				}
			}
			if everyone != robotsrule.Parse(want[0]) || gptbot != robotsrule.Parse(strings.TrimPrefix(want[1], "gptbot: ")) ||
				h.Get("Content-Usage") != "train-ai=n" || h.Get("Tdm-Reservation") != "1" {
				t.Errorf("%s%.20s: %v", host, target, h)
			}
			upstream := http.Header{"Content-Usage": {"train-ai=y, search=y"}}
			robotstag.Apply(upstream, s.Page(host, target, june).Values, robotstag.AllChannels)
			if got := upstream.Get("Content-Usage"); got != "train-ai=n, search=y" {
				t.Errorf("%s%.20s: an upstream's permission becomes %q", host, target, got)
			}
		}
	}
	if h := fieldsOf(load(t, "version: 1\npublish: {tdmrep: on}\nrules:\n  - for: everyone\n    disallow: {crawl: /, index: /x/}\n    hosts: x.example.com\n    intended: true\n").Page("example.com", unread[0], june)); len(h) > 0 {
		t.Errorf("the policy says nothing on that host: %v", h)
	}
}

// If a target is too expensive to compare with patterns, its page gets the strictest restrictions. So it must have
// every restriction that the page of any ordinary target on the same host has.
func TestUnreadTargetsAreStrictest(t *testing.T) {
	compared, restricted, rounds := 0, 0, testkit.Rounds(6, 12)
	if testkit.Long() {
		rounds = 400
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 46))
		spec, kind := policytest.Full(r)
		if r.IntN(2) == 0 {
			policytest.AllRegisters(spec)
		}
		text := string(policyfile.Print(spec))
		s, _ := site.LoadWith("policy.yaml", []byte(text), policyfile.Options{Now: june})
		if s == nil { // some random policies have too many overlapping paths
			continue
		}
		for _, host := range policytest.Hosts {
			for _, token := range []string{"", "AlphaBot", "GPTBot", "EpsilonBot"} {
				page := func(target string) http.Header {
					if token == "" {
						return fieldsOf(s.Page(host, target, june))
					}
					at := site.NewTarget(host, target)
					return fieldsOf(s.Tailored(s.Policy.Crawler(token), &at, june))
				}
				unread := page(unread[r.IntN(len(unread))])
				for range 20 {
					path := policytest.PathFor(r, kind)
					if lax := laxer(t, unread, page(path)); lax != "" {
						t.Fatalf("seed %d: %s%s says %s, and it is not said where any path may be meant: %v\nunlike %v\n%s", seed, host, path, lax, unread, page(path), text)
					}
					compared++
					restricted += min(len(page(path)), 1)
				}
			}
		}
	}
	t.Logf("%d pages, %d with fields", compared, restricted)
	if restricted < compared/10 {
		t.Errorf("only %d of %d pages have fields", restricted, compared)
	}
}

// laxer returns a restriction that is in the response fields some, but not in the response fields all. It returns "" if
// there is none.
func laxer(t *testing.T, all, some http.Header) string {
	t.Helper()
	for _, agent := range []string{"otherbot", "alphabot", "alphabot-image", "betabot", "gammabot", "deltabot", "epsilonbot", "zetabot", "gptbot", "googlebot", "ccbot"} {
		if !crawlertest.EvaluateX(all[robotstag.XRobotsTagField], agent).Within(crawlertest.EvaluateX(some[robotstag.XRobotsTagField], agent)) {
			return robotstag.XRobotsTagField + " to " + agent
		}
		strict, err := crawlertest.EvaluateTag(all[robotstag.RobotsTagField], agent)
		if err != nil {
			t.Fatal(err)
		}
		one, err := crawlertest.EvaluateTag(some[robotstag.RobotsTagField], agent)
		if err != nil {
			t.Fatal(err)
		}
		if !strict.Within(one) {
			return robotstag.RobotsTagField + " to " + agent
		}
	}
	for _, u := range policy.RightsUsages() {
		no := u.String() + "=n"
		if strings.Contains(some.Get("Content-Usage"), no) && !strings.Contains(all.Get("Content-Usage"), no) {
			return no
		}
	}
	if some.Get("Tdm-Reservation") == "1" && (all.Get("Tdm-Reservation") != "1" || all.Get("Tdm-Policy") != some.Get("Tdm-Policy")) {
		return "Tdm-Reservation"
	}
	if all.Get("Link") != some.Get("Link") {
		return "Link"
	}
	return ""
}
