// SPDX-License-Identifier: Apache-2.0

package site

import (
	"strings"
	"sync"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// known is what a policy knows of crawlers, apart from its rules. It is large
// and the same for all policies that add no crawler to the built-in catalogue,
// so they share one.
type known struct {
	recognizer *crawlers.Recognizer
	facts      []crawlers.Verification // by crawler
	tokens     map[string]struct{}     // in lower case, whose elements are recognised in a page
	identities *crawlers.Identities
}

func knownOf(f *policyfile.File) *known {
	if builtIn, err := crawlers.Default(); err == nil && f.Catalogue == builtIn && len(tokensOf(f.Policy)) == builtIn.Len() {
		return builtInKnown(f)
	}
	return newKnown(f)
}

// builtInKnown works out once what is known of the built-in catalogue.
var builtInKnown = func() func(*policyfile.File) *known {
	var once sync.Once
	var k *known
	return func(f *policyfile.File) *known {
		once.Do(func() { k = newKnown(f) })
		return k
	}
}()

func newKnown(f *policyfile.File) *known {
	k := &known{tokens: map[string]struct{}{}, identities: crawlers.NewIdentities(f.Catalogue)}
	var patterns []crawlers.Pattern
	for id, c := range f.Policy.Crawlers {
		names, facts := []string{c.Token}, crawlers.Verification{}
		if row, ok := f.Catalogue.Lookup(c.Token); ok {
			names, facts = row.Patterns(), row.Verification
		}
		k.facts = append(k.facts, facts)
		if !c.RobotsOnly {
			k.tokens[strings.ToLower(c.Token)] = struct{}{}
		}
		patterns = append(patterns, patternsFor(names, id)...)
	}
	k.recognizer = crawlers.NewRecognizer(patterns)
	return k
}

// patternsFor looks for a crawler by the strings that the catalogue knows of it,
// else by its token.
func patternsFor(names []string, id policy.CrawlerID) (all []crawlers.Pattern) {
	for _, n := range names {
		all = append(all, crawlers.Pattern{Token: n, Index: int(id)})
	}
	return all
}

// tokensOf lists the product tokens of a policy's crawlers.
func tokensOf(p *policy.Policy) (tokens []string) {
	for _, c := range p.Crawlers {
		tokens = append(tokens, c.Token)
	}
	return tokens
}
