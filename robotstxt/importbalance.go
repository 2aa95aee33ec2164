// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// balance adds or removes a "*" at the end of patterns, which changes only their length, until the same rules win in the
// policy as in the file. If the change for two rules makes others lose, balance leaves these two as they were.
func balance(rules []Rule) []Rule {
	b := balancer{rules: rules, moved: make([]bool, len(rules))}
	for i := range rules {
		for j := range rules {
			if rules[i].normal() {
				break
			}
			for _, m := range b.moves(i, j) {
				if b.try(m) {
					break
				}
			}
		}
	}
	return b.rules
}

// balancer changes lengths of rules, of each once.
type balancer struct {
	rules []Rule
	moved []bool
	pairs int
}

// move is a rule and whether it gets longer.
type move struct {
	rule   int
	longer bool
}

// moves are those that could let the right one of two rules win, if the wrong one does.
func (b *balancer) moves(i, j int) []move {
	r, s := b.rules[i], b.rules[j]
	if b.pairs++; r.Allow == s.Allow || b.pairs > maxPairs || winsAsWritten(r, s) == winsInPolicy(r, s) || !r.Pattern.Overlaps(s.Pattern) || !r.meets(&s) {
		return nil
	}
	if winsAsWritten(s, r) {
		i, j = j, i
	}
	return []move{{i, true}, {j, false}}
}

// try makes a move, and those that other rules then need, or none.
func (b *balancer) try(first move) bool {
	before := map[int]Rule{}
	for need := []move{first}; len(need) > 0; need = need[1:] {
		m := need[0]
		if _, done := before[m.rule]; done {
			continue
		}
		r, ok := b.rules[m.rule].moved(m.longer)
		ok = ok && !b.moved[m.rule]
		if ok {
			before[m.rule] = b.rules[m.rule]
			b.rules[m.rule], b.moved[m.rule] = r, true
			for j := range b.rules {
				for _, other := range b.moves(m.rule, j) {
					if other.rule != m.rule {
						need, ok = append(need, other), ok && !b.moved[other.rule]
					}
				}
			}
		}
		if !ok {
			for i, r := range before {
				b.rules[i], b.moved[i] = r, false
			}
			return false
		}
	}
	return true
}

// moved is the rule with a "*" more or less at the end.
func (r Rule) moved(longer bool) (Rule, bool) {
	text := r.Pattern.String()
	open, has := strings.CutSuffix(text, "*")
	switch {
	case longer == has, r.Pattern.Anchored(), open == "":
		return r, false
	case longer:
		open += "*"
	}
	p, err := pathpattern.Parse(open)
	if err != nil || p.Len() > maxPath {
		return r, false
	}
	r.Pattern = p
	if r.Written != "" {
		r.Written = strings.TrimSuffix(r.Written, "*")
		if longer {
			r.Written += "*"
		}
	}
	return r, true
}
