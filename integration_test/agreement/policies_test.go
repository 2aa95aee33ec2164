// SPDX-License-Identifier: Apache-2.0

package agreement

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// loaded is a policy that this process has loaded, with everything that the tests need to know about it.
type loaded struct {
	name        string // name of the file, or a number
	text        []byte
	kind        policytest.PatternKind // "" for a policy that people wrote
	site        *site.Site
	diagnostics policyfile.Diagnostics
	// the policy for the naive evaluator, with only those crawlers of the catalog that the questions name
	spec   *policy.Spec
	cache  map[string]any
	tokens []string // crawlers in the questions
	theirs string   // the robots.txt of the upstream, or "" if there is none
	now    time.Time
}

func load(name string, text []byte, tokens []string) (*loaded, policyfile.Diagnostics) {
	s, diagnostics := site.Load(name, text)
	if s == nil {
		return nil, diagnostics
	}
	p := &loaded{name: name, text: text, site: s, diagnostics: diagnostics, cache: map[string]any{}, tokens: tokens, now: time.Now()}
	spec := *s.File.Spec
	spec.Crawlers = slices.DeleteFunc(slices.Clone(spec.Crawlers), func(c policy.Crawler) bool {
		return !slices.ContainsFunc(tokens, func(t string) bool { return strings.EqualFold(t, c.Token) })
	})
	p.spec = &spec
	return p, nil
}

// again returns the policy with an empty cache and the present time, so that it can be examined once more.
func (p *loaded) again() *loaded {
	fresh := *p
	fresh.cache, fresh.now = map[string]any{}, time.Now()
	return &fresh
}

// askedTokens lists the crawlers in the questions about random policies.
var askedTokens = slices.Concat(policytest.Tokens[:len(policytest.Tokens)-1], policytest.RealTokens, []string{"ThetaBot", "ZetaBot", "SiteBot"})

// info returns the information about a crawler from the policy file or the catalog.
func (p *loaded) info(token string) (policy.Crawler, bool) {
	for _, c := range p.spec.Crawlers {
		if strings.EqualFold(c.Token, token) {
			return c, true
		}
	}
	for _, r := range p.spec.Rules {
		for _, a := range r.For {
			if a.Kind == policy.ForToken && strings.EqualFold(a.Name, token) {
				return policy.Crawler{Token: a.Name}, true
			}
		}
	}
	return policy.Crawler{}, false
}

// visitor returns the crawler that the server must recognize if a client sends this token in its User-Agent. It returns
// "" for an unlisted client, and for a control token, because crawlers do not send control tokens.
func (p *loaded) visitor(token string) string {
	if c, known := p.info(token); known && !c.RobotsOnly {
		return token
	}
	return ""
}

// naive returns the answer of the naive evaluator (package policytest), at the time p.now.
func (p *loaded) naive(q policytest.Question) policytest.Answer {
	q.Now = p.now
	return policytest.Decide(p.spec, q)
}

// ruleOf returns the rule that contains a statement.
func (p *loaded) ruleOf(s *policy.Statement) *policy.Rule {
	for i := range p.spec.Rules {
		for j := range p.spec.Rules[i].Statements {
			if &p.spec.Rules[i].Statements[j] == s {
				return &p.spec.Rules[i]
			}
		}
	}
	panic("a statement of no rule")
}

// decide returns the decision of package policy about a question. The tests compare it with the answer of naive.
func (p *loaded) decide(q policytest.Question) policy.Decision {
	return p.site.Policy.Decide(policy.Query{
		Crawler: p.site.Policy.Crawler(q.Token), Identity: q.Identity, Purposes: q.Purposes, Host: q.Host, Path: q.Path, Usage: q.Usage, Now: p.now,
	})
}

// cached returns the cached result for a key. If there is none, it calls work and caches the result.
func cached[T any](p *loaded, key string, work func() T) T {
	if v, ok := p.cache[key]; ok {
		return v.(T)
	}
	v := work()
	p.cache[key] = v
	return v
}

// randomPolicy returns a random policy that can be loaded. It depends only on the seed and the number of the policy.
func randomPolicy(r *rand.Rand, number int, t *tally) (*loaded, error) {
	for range 50 {
		spec, kind := policytest.Full(r)
		policytest.AddLifts(kind, spec)
		if *registers {
			policytest.AllRegisters(spec)
		}
		text := policyfile.PrintWith(spec, policyfile.PrintOptions{Catalog: ownCatalog()})
		p, diagnostics := load(fmt.Sprintf("policy %d", number), text, askedTokens)
		if p == nil {
			for _, d := range diagnostics {
				if d.Severity == policy.Error && !slices.Contains(refusedCodes, d.Code) {
					return nil, fmt.Errorf("policy %d does not load:\n%s\n%s", number, diagnostics.Text(), text)
				}
			}
			t.count("policies that do not load")
			continue
		}
		p.kind, p.theirs = kind, theirFile(r, kind)
		return p, nil
	}
	return nil, fmt.Errorf("policy %d: the generator made no policy that can be loaded", number)
}

// refusedCodes lists the errors that do not fail the test if a random policy has them. Such a policy is replaced by the
// next random one.
var refusedCodes = []string{"contradiction", "blocks-search", "app-directives-cross", "header-too-large", "robots-txt-too-large"}

// writtenPolicies returns the policies that people wrote.
func writtenPolicies() (all []*loaded, err error) {
	files := []string{"../../examples/site-policy.yaml"}
	for _, pattern := range []string{"../../examples/policies/*.yaml", "testdata/*.yaml"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		tokens := slices.Clone(askedTokens)
		for _, m := range regexp.MustCompile(`[A-Z][A-Za-z]*[Bb]ot[A-Za-z]*`).FindAllString(string(text), -1) {
			if !slices.Contains(tokens, m) {
				tokens = append(tokens, m)
			}
		}
		p, diagnostics := load(filepath.Base(file), text, tokens)
		if p == nil {
			return nil, fmt.Errorf("%s: %s", file, diagnostics.Text())
		}
		all = append(all, p)
	}
	return all, nil
}
