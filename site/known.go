// SPDX-License-Identifier: Apache-2.0

package site

import (
	"net/url"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// known holds data about the crawlers that a policy knows. The data does not depend on the policy's rules. It is large,
// so all policies that do not add crawlers to the catalog share one copy.
type known struct {
	recognizer *crawlers.Recognizer
	facts      []crawlers.Verification // by crawler
	tokens     map[string]struct{}     // lower-case tokens of the crawlers that read the meta tags with their own name
	identities *crawlers.Identities
}

var current crawlers.Derived[*known]

func knownOf(f *policyfile.File) *known {
	if len(tokensOf(f.Policy)) == f.Catalog.Len() {
		if k, ok := current.Get(f.Catalog, func() *known { return newKnown(f) }); ok {
			return k
		}
	}
	return newKnown(f)
}

func newKnown(f *policyfile.File) *known {
	k := &known{tokens: map[string]struct{}{}, identities: crawlers.NewIdentities(f.Catalog)}
	var patterns []crawlers.Pattern
	for id, c := range f.Policy.Crawlers {
		names, facts := []string{c.Token}, crawlers.Verification{}
		if row, ok := f.Catalog.Lookup(c.Token); ok {
			names, facts = row.Patterns(), row.Verification
		}
		if c.InTags() {
			k.tokens[strings.ToLower(c.Token)] = struct{}{}
		}
		k.facts = append(k.facts, facts)
		for _, n := range names { // the names in the catalog or, if there are none, the token
			patterns = append(patterns, crawlers.Pattern{Token: n, Index: int(id)})
		}
	}
	k.recognizer = crawlers.NewRecognizer(patterns)
	return k
}

// readable returns a URL in its original spelling, whereas url.URL would escape non-ASCII letters. It leaves out a user
// name and password.
func readable(u *url.URL) string {
	return u.Scheme + "://" + u.Host + pathpattern.Target(u)
}

// meant returns the token of a crawler with a name similar to agent, which may be a misspelled name. If there is none,
// it returns "". If agent is a whole User-Agent, meant only examines words with "bot", "crawler" or "spider", because
// most other words belong to browsers' names.
func (s *Site) meant(agent string) string {
	words := strings.FieldsFunc(agent, func(c rune) bool { return strings.ContainsRune(" \t;,()/+", c) })
	whole := strings.ContainsAny(agent, " \t;(")
	for _, word := range words {
		lower := strings.ToLower(word)
		if whole && (len(word) < 6 || !strings.Contains(lower, "bot") && !strings.Contains(lower, "crawler") && !strings.Contains(lower, "spider")) {
			continue
		}
		if name := policyfile.Nearest(word, tokensOf(s.Policy)); name != "" {
			return name
		}
		if !whole {
			break // the rest is a version
		}
	}
	return ""
}

func tokensOf(p *policy.Policy) (tokens []string) {
	for _, c := range p.Crawlers {
		tokens = append(tokens, c.Token)
	}
	return tokens
}
