// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/policytest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// words calls yield with every path over few letters up to a length.
func words(n int, yield func(string)) {
	var grow func(s string)
	grow = func(s string) {
		yield(s)
		if len(s) <= n {
			for _, c := range "ab/" {
				grow(s + string(c))
			}
		}
	}
	grow("/")
}

// TestScopesAgreeWithMatching: covers, overlap and sample say what matching all
// short paths says.
func TestScopesAgreeWithMatching(t *testing.T) {
	const seed = 11
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var paths []string
	words(7, func(s string) { paths = append(paths, s) })
	covering, meeting := 0, 0
	for range 600 {
		p, q := pathpattern.MustParse(policytest.Pattern(r, false)), pathpattern.MustParse(policytest.Pattern(r, false))
		all, some := true, false
		for _, path := range paths {
			inP, inQ := p.Match(path), q.Match(path)
			all = all && (inP || !inQ)
			some = some || inP && inQ
		}
		// The paths are too short for some pairs of long patterns to meet in.
		if got := overlap(p.String(), q.String()); some && !got || got && !some && p.Len()+q.Len() <= 8 {
			t.Errorf("overlap(%v, %v) = %v", p, q, got)
		}
		if covers(p, q) {
			covering++
			if !all {
				t.Errorf("%v does not cover %v", p, q)
			}
		} else if !p.Wild() && !p.Anchored() && !q.Wild() && all {
			t.Errorf("%v covers %v", p, q)
		}
		if some {
			meeting++
		}
		if !p.Match(pathpattern.NormalizePath(sample(p))) || sample(p) != pathpattern.NormalizePath(sample(p)) {
			t.Errorf("%v does not match its sample %q", p, sample(p))
		}
		if q.Match(sample(p)) && !covers(q, p) {
			t.Errorf("%v matches the sample of %v, which it does not cover", q, p)
		}
	}
	if covering < 100 || meeting < 100 {
		t.Errorf("%d covering and %d meeting pairs: the generator is too narrow", covering, meeting)
	}
}

// TestACAPSection2_4_5 has the cases of the method for comparing scopes.
func TestACAPSection2_4_5(t *testing.T) {
	for _, c := range []struct {
		p, q string
		want int
	}{
		{"/news/", "/", -1}, {"/", "/news/", 1}, {"/a", "/a", 0}, // one runs out of characters
		{"/a$", "/ab", 1}, {"/a$", "/a*", 1}, {"/a", "/a$", 1}, // a dollar sign where the other has a character
		{"/a*", "/ab", 1}, {"/*x", "/a", 1}, {"/ab*", "/a*b", -1}, // an asterisk where the other has one
		{"/a", "/b", 0},                                    // they match no common resource
		{"/News/", "/news/", 0}, {"/NEWS/a", "/news/", -1}, // case does not matter (section 2.8)
	} {
		if got := narrower(c.p, c.q); got != c.want {
			t.Errorf("narrower(%q, %q) = %d, want %d", c.p, c.q, got, c.want)
		}
		if got := narrower(c.q, c.p); got != -c.want {
			t.Errorf("narrower(%q, %q) = %d, want %d", c.q, c.p, got, -c.want)
		}
	}
}

// TestNeverDecidesIsTrue: no random question is decided by a rule of which lint
// says that it never decides.
func TestNeverDecidesIsTrue(t *testing.T) {
	const seed = 5
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	found := 0
	for range 400 {
		spec := policytest.Random(r, policytest.Options{MaxRules: 16, Usages: []policy.Usage{policy.Crawl, policy.PresentLink, policy.Present}, NoHosts: r.IntN(2) == 0})
		f, ds := LoadWith("random.yaml", Print(spec), Options{Now: policytest.Now})
		if f == nil {
			continue
		}
		for i := range f.Spec.Rules {
			rule := &f.Spec.Rules[i]
			if !slices.ContainsFunc(ds, func(d Diagnostic) bool { return d.Code == "never-decides" && d.Pos == rule.Pos }) {
				continue
			}
			found++
			for range 3000 {
				q := policy.Query{
					Crawler: f.Policy.Crawler(policytest.Tokens[r.IntN(len(policytest.Tokens))]), Identity: policy.Identity(r.IntN(3)),
					Host: policytest.Hosts[r.IntN(len(policytest.Hosts))], Path: policytest.Path(r),
					Usage: policy.Usages()[r.IntN(len(policy.Usages()))], Now: policytest.Now,
				}
				if r.IntN(3) == 0 {
					q.Purposes = []string{"news"}
				}
				if d := f.Policy.Decide(q); d.Rule == rule {
					t.Fatalf("%+v is decided by the rule in line %d:\n%s", q, rule.Pos.Line, f.Print())
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d rules never decide", found)
	}
}

// TestUnusualFindsWhatACAPRanksDifferently: among pairs that the check passes over,
// ACAP and RFC 9309 agree.
func TestUnusualFindsWhatACAPRanksDifferently(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 0))
	for range 20000 {
		p, q := pathpattern.MustParse(policytest.Pattern(r, true)), pathpattern.MustParse(policytest.Pattern(r, true))
		if unusual(p) || unusual(q) || p == q || !overlap(p.String(), q.String()) {
			continue
		}
		if longer := p.Len() > q.Len(); longer != (narrower(p.String(), q.String()) < 0) {
			t.Fatalf("%v and %v", p, q)
		}
	}
}

// TestQuietPolicies: ordinary policies get no warning.
func TestQuietPolicies(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":         "version: 1\n",
		"admin":           "rules:\n- for: everyone\n  disallow: {crawl: [/admin/, /login]}\n",
		"allow inside":    "rules:\n- for: everyone\n  disallow: {crawl: /shop/}\n  allow: {crawl: /shop/products/}\n",
		"no snippet":      "rules:\n- for: everyone\n  disallow: {present-snippet: /paid/, preserve: /paid/}\n",
		"category":        "rules:\n- for: category:seo\n  disallow: {crawl: /}\n  enforce: block\n",
		"named":           "rules:\n- for: [GPTBot, CCBot, Google-Extended]\n  disallow: {crawl: /}\n",
		"intended":        "rules:\n- for: everyone\n  hosts: staging.example.com\n  disallow: {crawl: /}\n  intended: true\n",
		"noindex drafts":  "rules:\n- for: everyone\n  disallow: {index: /drafts/, crawl: /admin/}\n",
		"noindex above":   "rules:\n- for: everyone\n  disallow: {index: /a/, crawl: /a/b/}\n",
		"one host each":   "rules:\n- for: everyone\n  hosts: a.example\n  disallow: {crawl: /x/}\n- for: everyone\n  hosts: b.example\n  allow: {crawl: /x/}\n",
		"allow list":      "rules:\n- for: everyone\n  disallow: {crawl: /}\n- for: [category:search, category:preview]\n  allow: {crawl: /}\n",
		"token elsewhere": "rules:\n- for: everyone\n  hosts: a.example\n  disallow: {crawl: /x/}\n- for: Googlebot\n  allow: {crawl: /y/}\n",
		"both say so":     "rules:\n- for: category:search\n  disallow: {crawl: /x/}\n- for: operator:Google\n  disallow: {crawl: /x/}\n",
		"narrower token":  "rules:\n- for: everyone\n  disallow: {crawl: /x/}\n- for: Bingbot\n  disallow: {crawl: /x/y/}\n",
	} {
		if !strings.HasPrefix(text, "version") {
			text = "version: 1\n" + text
		}
		if _, ds := LoadWith(name, []byte(text), Options{Now: testNow}); len(ds) > 0 {
			t.Errorf("%s:\n%s", name, fmt.Sprint(ds.Text()))
		}
	}
}
