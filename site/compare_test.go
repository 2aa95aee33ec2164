// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

func mustLoad(t testing.TB, text string) *Site {
	t.Helper()
	s, ds := Load("p.yaml", []byte(text), robotsserve.ServeOptions{})
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	return s
}

func TestCompare(t *testing.T) {
	const base = "version: 1\nrules:\n  - for: everyone\n    disallow:\n      crawl: /admin/\n"
	for _, c := range []struct {
		name, before, now string
		want              []string
	}{
		{"nothing", base, base, []string{"no decision about a path that either policy names has changed", "robots.txt is the same"}},
		{
			"a comment", base, "# hello\n" + base,
			[]string{"no decision about a path that either policy names has changed", "robots.txt is the same"},
		},
		{
			"everyone", base, base + "      index: /drafts/\n",
			[]string{"everyone: newly disallowed: index of /drafts/", "robots.txt has changed"},
		},
		{
			"one crawler is shut out and refused", base, base + "  - for: GPTBot\n    disallow:\n      crawl: /\n    enforce: block\n",
			[]string{
				"GPTBot: newly disallowed: crawl of /", "GPTBot: requests for /, /admin/ are now refused", "robots.txt has changed",
			},
		},
		{
			"and let in again", base + "  - for: GPTBot\n    disallow:\n      crawl: /\n    enforce: block\n", base,
			[]string{
				"GPTBot: newly allowed: crawl of /", "GPTBot: requests for /, /admin/ are no longer refused or logged", "robots.txt has changed",
			},
		},
		{
			"an exemption", base, base + "  - for: Bingbot\n    allow:\n      crawl: /admin/\n",
			[]string{"Bingbot: newly allowed: crawl of /admin/", "robots.txt has changed"},
		},
		{
			"on one host", base, base + "  - for: everyone\n    hosts: old.example.com\n    disallow:\n      index: /\n",
			[]string{"everyone: newly disallowed: index of /, /admin/ on old.example.com", "robots.txt has changed"},
		},
		{
			"only the sitemap", base, "version: 1\nsitemaps:\n  - /s.xml\n" + strings.TrimPrefix(base, "version: 1\n"),
			[]string{"no decision about a path that either policy names has changed", "robots.txt has changed"},
		},
		{
			"only what is done about it", base + "  - for: GPTBot\n    disallow:\n      crawl: /x\n    enforce: log\n",
			base + "  - for: GPTBot\n    disallow:\n      crawl: /x\n    enforce: block\n",
			[]string{"GPTBot: requests for /x are now refused", "robots.txt is the same"},
		},
		{
			"no longer said", base + "    allow:\n      search: /\n", base,
			[]string{"everyone: nothing is said any more about search of /, /admin/", "robots.txt has changed"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			changes := Compare(mustLoad(t, c.before), mustLoad(t, c.now))
			if got := changes.Words(); !slices.Equal(got, c.want) {
				t.Errorf("\n got %q\nwant %q", got, c.want)
			}
			if !changes.Complete {
				t.Error("not complete")
			}
		})
	}
}

// A change that Compare tells is one that Decide knows of, and the same changes
// the other way round are told when the policies change places.
func TestCompareAgreesWithDecide(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	tokens := []string{"everyone", "GPTBot", "Bingbot", "category:ai-training"}
	text := func() string {
		var b strings.Builder
		b.WriteString("version: 1\nrules:\n")
		for _, i := range rng.Perm(len(tokens))[:1+rng.IntN(len(tokens))] {
			fmt.Fprintf(&b, "  - for: %s\n    disallow:\n      crawl: /%c\n", tokens[i], 'a'+rune(rng.IntN(3)))
			if rng.IntN(2) == 0 {
				fmt.Fprintf(&b, "      index: /%c\n", 'a'+rune(rng.IntN(3)))
			}
		}
		return b.String()
	}
	for range 60 {
		before, now := mustLoad(t, text()), mustLoad(t, text())
		for _, ch := range Compare(before, now).Decisions {
			if ch.Usage == UsageEdge {
				continue
			}
			u, _ := policy.ParseUsage(ch.Usage)
			for _, token := range ch.Crawlers {
				for _, p := range ch.Paths {
					ask := func(s *Site) policy.Verdict {
						return s.Policy.Decide(policy.Query{Crawler: s.Policy.Crawler(token), Path: samplePath(p), Usage: u, Now: time.Now()}).Verdict
					}
					b, n := ask(before), ask(now)
					if b == n || n.String() != ch.Now && (ch.Now != "allowed" || n == policy.Disallowed) {
						t.Fatalf("%v: %s of %s: before %s, now %s", ch, token, p, b, n)
					}
				}
			}
		}
		if there, back := Compare(before, now), Compare(now, before); len(there.Decisions) == 0 != (len(back.Decisions) == 0) || there.RobotsTxt != back.RobotsTxt {
			t.Fatalf("%v\n%v", there, back)
		}
	}
}

// A hostile policy cannot make a comparison long.
func TestCompareIsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("version: 1\nrules:\n")
	for i := range 400 {
		fmt.Fprintf(&b, "  - for: Bot%c%c\n    hosts: h%d.example.com\n    disallow:\n      index: /%d\n", 'a'+i%26, 'a'+i/26, i, i)
	}
	big := mustLoad(t, b.String())
	c := &comparison{before: big, now: big, left: 1000}
	c.host("h1.example.com", "", patternsOf(big.Policy))
	if c.left > 0 || c.left < -2 {
		t.Errorf("%d decisions left", c.left)
	}
	if ch := Compare(big, mustLoad(t, "version: 1\nrules:\n  - for: everyone\n    disallow:\n      crawl: /x\n")); ch.Complete {
		t.Error("400 hosts were compared")
	}
}
