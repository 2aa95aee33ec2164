// SPDX-License-Identifier: Apache-2.0

package site

import (
	"net/url"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// known holds the crawlers that a policy knows, apart from its rules. It is large and the same for all policies that
// add no crawler to the catalog in use, so they share one.
type known struct {
	recognizer *crawlers.Recognizer
	facts      []crawlers.Verification // by crawler
	tokens     map[string]struct{}     // in lower case, of the crawlers that read elements with their names
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
		for _, n := range names { // the strings that the catalog knows, else the token
			patterns = append(patterns, crawlers.Pattern{Token: n, Index: int(id)})
		}
	}
	k.recognizer = crawlers.NewRecognizer(patterns)
	return k
}

// readable is a URL with its host as it was asked for, where url.URL would write
// letters beyond ASCII as escapes. It is without a user's name and password.
func readable(u *url.URL) string {
	return u.Scheme + "://" + u.Host + u.RequestURI()
}

// meant returns the token of the crawler that an unknown agent may be a misspelling of, or "". In a whole User-Agent
// only words that call themselves a crawler are looked at, because most others are parts of browsers' names.
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
			break // what follows is a version
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
