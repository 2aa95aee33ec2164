// SPDX-License-Identifier: Apache-2.0

package compare_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
)

// If a search engine loses a page, Sites finds a loss with a pattern that matches this page, and reports a change with
// this loss. It does not need recorded requests for this.
func TestEveryLossIsFoundWithoutTraffic(t *testing.T) {
	t.Parallel()
	pairs := testkit.Rounds(5, 8)
	if testkit.Long() {
		pairs = 2000
	}
	r := rand.New(rand.NewPCG(29, 4))
	lost := 0
	for n := 0; n < pairs; {
		var sites [2]*site.Site
		var specs [2]*policy.Spec
		for i := range sites {
			specs[i] = lossSpec(r)
			sites[i], _ = site.Load("random.yaml", policyfile.Print(specs[i]))
		}
		if sites[0] == nil || sites[1] == nil {
			continue // a policy that blocks all search engines everywhere does not load
		}
		n++
		d := compare.Sites(sites[0], sites[1], compare.Options{Now: policytest.Now})
		found := d.Losses
		for _, f := range found.Found {
			if strings.HasPrefix(f.Path.String(), "//") {
				continue // the server also evaluates the path after "//host"; the change lists this path in its usual form
			}
			var said effect.Loss
			for _, c := range d.Changes {
				if slices.ContainsFunc(c.Paths, func(p string) bool { return pathpattern.MustParse(p).Covers(f.Path) }) {
					said |= c.Lost
				}
			}
			if said&f.Loss != f.Loss {
				t.Fatalf("pair %d: no change says that %s loses %s: %s\n%s\nold:\n%s\nnew:\n%s", n, f.Crawler, f.Path, f.Loss, strings.Join(d.Words(), "\n"), policyfile.Print(specs[0]), policyfile.Print(specs[1]))
			}
		}
		for range 60 {
			token := []string{"AlphaBot", "AlphaBot-Image", "ZetaBot"}[r.IntN(3)]
			q := policy.Query{Host: policytest.Hosts[r.IntN(len(policytest.Hosts))], Path: oneSlash(policytest.Path(r)), Identity: policy.Verified, Now: policytest.Now}
			was, is := q, q
			was.Crawler, is.Crawler = sites[0].Policy.Crawler(token), sites[1].Policy.Crawler(token)
			l := effect.Compare(sites[0].Engine, sites[1].Engine, was, is, effect.Counted).Lost(effect.Counted)
			if l.Loss == 0 {
				continue
			}
			lost++
			if !slices.ContainsFunc(found.Found, func(f compare.Found) bool {
				return f.Crawler == token && f.Path.Match(pathpattern.NormalizePath(q.Path))
			}) {
				t.Fatalf("pair %d: %s of %s%s is %s, and is not in\n%q\nold:\n%s\nnew:\n%s", n, token, q.Host, q.Path, l.Loss, found.Words(), policyfile.Print(specs[0]), policyfile.Print(specs[1]))
			}
		}
	}
	t.Logf("%d pairs, %d losses", pairs, lost)
	if lost < pairs {
		t.Errorf("only %d losses", lost)
	}
}

// lossSpec returns a random policy with statements that can cause losses of search engines.
func lossSpec(r *rand.Rand) *policy.Spec {
	spec := policytest.Random(r, policytest.Options{
		Usages: []policy.Usage{policy.Crawl, policy.Crawl, policy.Crawl, policy.Index, policy.Search, policy.Present, policy.PresentSnippet, policy.PresentLink},
		Modes:  true, NoPurposes: true, Limits: []string{"until-2001-02-03", "until-2999-12-31"},
	})
	spec.Rules = spec.Rules[:min(len(spec.Rules), 1+r.IntN(4))]
	if r.IntN(3) == 0 {
		policytest.AddDirectives(r, spec, true)
	}
	for i := range spec.Rules { // the server treats several slashes as one slash
		for j := range spec.Rules[i].Statements {
			pattern := &spec.Rules[i].Statements[j].Pattern
			*pattern = pathpattern.MustParse(oneSlash(pattern.String()))
		}
		for j := range spec.Rules[i].EngineRules {
			pattern := &spec.Rules[i].EngineRules[j].Pattern
			*pattern = pathpattern.MustParse(oneSlash(pattern.String()))
		}
	}
	spec.Enforcement.Mode = []policy.Mode{policy.ModeOff, policy.ModeBlock}[r.IntN(2)]
	return spec
}

func oneSlash(path string) string {
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return path
}

// The new policy verifies a search engine with another proof than the old policy. If the real search engine does not
// have this proof, the server treats it as an impostor. It is not known which of its requests would be blocked.
func TestVerifiedOtherwise(t *testing.T) {
	t.Parallel()
	const rules = "rules:\n  - for: everyone\n    disallow: {crawl: /x/}\n"
	bogus := "crawlers:\n  Googlebot: {reverse-dns: [.nobody.example]}\n"
	for _, c := range []struct {
		name, more string
		want       bool
	}{
		{"impostors are blocked", "enforcement: {mode: block, impostors: block}\n" + bogus, true},
		{"a rule demands identity", "  - for: Bingbot\n    identity: verified\n    allow: {crawl: /x/}\n" + bogus, true},
		{"nobody is asked for proof", bogus, false},
		{"the same proof", "enforcement: {mode: block, impostors: block}\n", false},
	} {
		d := compare.Sites(load(t, rules), load(t, rules+c.more), compare.Options{})
		said := strings.Contains(strings.Join(d.Words(), "\n"), "Googlebot is now verified in a different way")
		if got := len(d.Losses.Reverified) > 0; got != c.want || said != c.want {
			t.Errorf("%s: %q", c.name, d.Words())
		}
	}
}

// The requests of a search engine match the user-agent of a blocked crawler. Several changes have this cause, but the
// search engine is named only once.
func TestCaughtEngineIsNamedOnce(t *testing.T) {
	t.Parallel()
	old := load(t, "rules:\n  - for: everyone\n    allow: {crawl: /}\n")
	now := load(t, "crawlers: {Scraper: {user-agent: Googlebot/2.1}}\nrules:\n  - for: Scraper\n    disallow: {crawl: /a/}\n    enforce: block\n")
	d := compare.Sites(old, now, compare.Options{})
	for i := range d.Changes {
		if names := d.Changes[i].Crawlers; len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) {
			t.Errorf("%q are named more than once", names)
		}
	}
	if !slices.Contains(d.Losses.Names(), "Googlebot") {
		t.Errorf("Googlebot loses nothing: %q", d.Losses.Names())
	}
}
