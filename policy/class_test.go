// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// ClassesOf may leave out a class of Classes only if its crawlers get the same decisions and search engine rules as
// everyone else. Only decisions about crawling may differ.
func TestClassesOf(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	left, kept, rounds := 0, 0, testkit.Rounds(60, 300)
	if testkit.Long() {
		rounds *= 20
	}
	for range rounds {
		spec, _ := policytest.Full(r)
		p := policy.Compile(spec)
		for range 10 {
			q := queryOf(p, question(r))
			q.Purposes = nil
			some := p.ClassesOf(q)
			clear(p.ClassesOf(q)) // the caller may change the result
			p.ClassesOf(policy.Query{Host: "another.example.net", Path: q.Path})
			p.ClassesOf(policy.Query{Host: "*." + q.Host, Path: q.Path})
			if again := p.ClassesOf(q); !reflect.DeepEqual(again, some) {
				t.Fatalf("%s: %v after other hosts, before that %v", q.Host, again, some)
			}
			for i, c := range p.Classes(q.Host) {
				if !slices.IsSorted(c.Crawlers) {
					t.Fatalf("%s: the class of %v is not in order", q.Host, c.Crawlers)
				}
				if i == 0 || slices.ContainsFunc(some, func(s policy.Class) bool { return slices.Equal(s.Crawlers, c.Crawlers) }) {
					kept++
					continue
				}
				left++
				for _, q.Usage = range policy.Usages() {
					everyone := q
					everyone.Crawler, q.Crawler = 0, c.Crawlers[0]
					if got, want := p.Decide(q), p.Decide(everyone); q.Usage != policy.Crawl && (got.Verdict != want.Verdict || got.Statement != want.Statement) {
						t.Fatalf("%+v: %+v and not %+v as everyone in %+v", q, got, want, spec.Rules)
					}
					for _, name := range p.EngineRuleNames() {
						got, _, _ := p.EngineRule(q, name)
						if want, _, _ := p.EngineRule(everyone, name); got != want {
							t.Fatalf("%+v: %s is %v and not %v as for everyone in %+v", q, name, got, want, spec.Rules)
						}
					}
				}
			}
			if n := len(some); n == 0 || len(some[0].Crawlers) > 0 {
				t.Fatalf("%+v: no class of everybody among %d", q, n)
			}
		}
	}
	if left < 1000 || kept < 1000 {
		t.Errorf("%d classes were left out, %d kept", left, kept)
	}
}

// The class of a crawler contains only this crawler. The class of an unlisted client does not contain any crawler.
func TestClassOf(t *testing.T) {
	t.Parallel()
	p := policy.Compile(&policy.Spec{Crawlers: policytest.Crawlers})
	if c := p.ClassOf(0, "example.com"); c.Crawlers != nil {
		t.Errorf("the unknown crawler has a class of %v", c.Crawlers)
	}
	id := p.Crawler("AlphaBot")
	if c := p.ClassOf(id, "example.com"); id == 0 || !slices.Equal(c.Crawlers, []policy.CrawlerID{id}) {
		t.Errorf("AlphaBot is %d, its class %v", id, c.Crawlers)
	}
}
