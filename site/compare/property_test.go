// SPDX-License-Identifier: Apache-2.0

package compare_test

import (
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
)

var (
	pairs = flag.Int("pairs", testkit.Rounds(4, 10), "how many pairs of random policies are compared")
	seed  = flag.Uint64("seed", 1, "seed of the random policies")
)

// numPairs returns the number of pairs of policies to compare.
func numPairs() int {
	if testing.Short() {
		return min(*pairs, 5)
	}
	return *pairs
}

func mustCompile(t testing.TB, spec *policy.Spec) *policy.Policy {
	t.Helper()
	p := policy.Compile(spec)
	return p
}

func decisions(old, now *policy.Policy) *compare.Diff {
	changes, complete := compare.Decisions(old, now, compare.Options{Now: policytest.Now})
	return &compare.Diff{Changes: changes, Complete: complete}
}

// If two random policies give different answers to a question, the comparison reports a change with both answers. This
// change must apply to the crawler, identity, host, usage and path of the question.
func TestEveryDifferenceIsReported(t *testing.T) {
	r := rand.New(rand.NewPCG(*seed, 1))
	different := 0
	for i := range numPairs() {
		o := policytest.Options{NoWildcards: i%3 == 0, Modes: i%2 == 0}
		old, now := mustCompile(t, policytest.Random(r, o)), mustCompile(t, policytest.Random(r, o))
		d := decisions(old, now)
		if !d.Complete {
			t.Fatal("the comparison is not complete")
		}
		for range 2000 {
			q := question{
				token: policytest.Tokens[r.IntN(len(policytest.Tokens))], identity: policy.Identity(r.IntN(3)),
				host: policytest.Hosts[r.IntN(len(policytest.Hosts))], path: policytest.Path(r),
				usage: policy.Usage(r.IntN(len(policy.Usages()))),
			}
			if q.usage == policy.Other {
				continue
			}
			if r.IntN(4) == 0 {
				q.purpose = []string{"news", "research"}[r.IntN(2)]
			}
			q.named = old.Crawler(q.token)+now.Crawler(q.token) != 0
			q.key = hostKey(slices.Concat(robotsserve.Hosts(old), robotsserve.Hosts(now)), q.host)
			a, b := q.ask(old), q.ask(now)
			if a == b {
				continue
			}
			different++
			if !slices.ContainsFunc(d.Changes, func(c compare.Change) bool { return q.inside(&c, a, b) }) {
				t.Fatalf("pair %d: %+v: %s, then %s; not in\n%s", i, q, a, b, strings.Join(d.Words(), "\n"))
			}
		}
	}
	t.Logf("%d differences", different)
	if different < numPairs() {
		t.Errorf("only %d differences: the policies are too much alike", different)
	}
}

// A policy does not differ from itself. Reversing the order of its rules does not make a difference, either.
func TestNothingChangesBetweenAPolicyAndItself(t *testing.T) {
	r := rand.New(rand.NewPCG(*seed, 2))
	for range numPairs() {
		spec := policytest.Random(r, policytest.Options{Modes: true})
		p := mustCompile(t, spec)
		if d := decisions(p, p); !d.Empty() || !d.Complete {
			t.Fatalf("%+v", d)
		}
		turned := *spec
		turned.Rules = slices.Clone(spec.Rules)
		slices.Reverse(turned.Rules)
		if d := decisions(p, mustCompile(t, &turned)); !d.Empty() {
			t.Fatalf("%v", d.Words())
		}
	}
}

// If the two policies are exchanged, a loss becomes a gain, and the reverse.
func TestOldAndNewMirror(t *testing.T) {
	r := rand.New(rand.NewPCG(*seed, 3))
	mirror := map[compare.Effect]compare.Effect{compare.Loss: compare.Gain, compare.Gain: compare.Loss}
	for range numPairs() {
		a, b := mustCompile(t, policytest.Random(r, policytest.Options{})), mustCompile(t, policytest.Random(r, policytest.Options{}))
		there := decisions(a, b)
		back := decisions(b, a)
		for _, c := range there.Changes {
			if c.Old != "disallowed" && c.New != "disallowed" {
				continue
			}
			for _, u := range c.Usages { // one direction may combine more usages and paths than the other
				for _, path := range c.Paths {
					if !slices.ContainsFunc(back.Changes, func(m compare.Change) bool {
						return m.Effect == mirror[c.Effect] && slices.Contains(m.Usages, u) && slices.Contains(m.Paths, path)
					}) {
						t.Fatalf("%s\nis not in\n%s", &c, strings.Join(back.Words(), "\n"))
					}
				}
			}
		}
	}
}

type question struct {
	token, host, path, purpose string
	identity                   policy.Identity
	usage                      policy.Usage
	named                      bool   // true if one of the policies has the crawler
	key                        string // the host in the form that the comparison uses
}

func (q *question) ask(p *policy.Policy) string {
	query := policy.Query{Crawler: p.Crawler(q.token), Identity: q.identity, Host: q.host, Path: q.path, Usage: q.usage, Now: policytest.Now}
	if q.purpose != "" {
		query.Purposes = []string{q.purpose}
	}
	d := p.Decide(query)
	switch {
	case d.Verdict == policy.Disallowed:
		return "disallowed"
	case d.Verdict == policy.Unstated && q.usage != policy.Crawl:
		return "unstated"
	}
	return strings.Join(append([]string{"allowed"}, d.Qualifiers().Strings()...), ", ")
}

// inside reports whether a change covers the question and has the answers old and now.
func (q *question) inside(c *compare.Change, old, now string) bool {
	identities := map[string][]policy.Identity{
		"": {policy.Unknown, policy.Impostor, policy.Verified}, "verified": {policy.Verified}, "unverified": {policy.Unknown}, "impostor": {policy.Impostor},
		"unverified or impostor": {policy.Unknown, policy.Impostor}, "not-impostor": {policy.Unknown, policy.Verified}, "verified or impostor": {policy.Verified, policy.Impostor},
	}
	says := c.Old == old && c.New == now
	switch {
	case now == "disallowed":
		says = c.Effect == compare.Loss && c.New == now
	case old == "disallowed":
		says = c.Effect == compare.Gain && c.Old == old
	case old == "unstated" || now == "unstated":
		says = c.Effect == compare.Stated && (c.Old == "unstated") == (old == "unstated")
	}
	if !says || !slices.Contains(c.Usages, q.usage.String()) || !slices.Contains(identities[c.Identity], q.identity) {
		return false
	}
	if c.Purpose != "" && c.Purpose != q.purpose {
		return false
	}
	if q.token != "" && !slices.ContainsFunc(c.Kinds, func(k compare.Kind) bool {
		return slices.ContainsFunc(k.Crawlers, func(t string) bool { return strings.EqualFold(t, q.token) })
	}) {
		if q.token != "EpsilonBot" || q.named { // EpsilonBot is only in policies that name it
			return false
		}
	}
	if (q.token == "" || q.token == "EpsilonBot" && !q.named) && !slices.Contains(c.Crawlers, compare.Everyone) && !slices.Contains(c.Crawlers, compare.EveryoneElse) {
		return false
	}
	return q.matches(c)
}

// matches reports whether the change is about the host and path of the question.
func (q *question) matches(c *compare.Change) bool {
	if c.Hosts != nil && !slices.Contains(c.Hosts, q.key) {
		return false
	}
	path := pathpattern.NormalizePath(q.path)
	return slices.ContainsFunc(c.Paths, func(p string) bool { return pathpattern.MustParse(p).Match(path) })
}

// hostKey returns the narrowest host in hosts that covers a host.
func hostKey(hosts []policy.Host, host string) string {
	host = policy.NormalizeHost(host)
	best := ""
	for _, h := range hosts {
		suffix, wild := strings.CutPrefix(string(h), "*")
		if string(h) == host {
			return host
		}
		if wild && strings.HasSuffix(host, suffix) && len(h) > len(best) {
			best = string(h)
		}
	}
	return best
}
