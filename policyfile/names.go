// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

type nameIndex struct {
	tokens    []string // lower case
	letters   []uint64
	proper    []string
	operators map[string]string // operators by squashed name
}

// known returns the names of the catalog and of the file's crawlers. It collects the names in its first call.
func (p *parser) known() *nameIndex {
	if p.names != nil {
		return p.names
	}
	p.names = &nameIndex{operators: map[string]string{}}
	for i := range p.catalog.Len() {
		c := p.catalog.At(i)
		// Authors rarely mean a crawler without a category, and the names of these crawlers resemble many other names.
		if c.Category != crawlers.CategoryNone {
			low := strings.ToLower(c.Token)
			p.names.tokens = append(p.names.tokens, low)
			p.names.letters = append(p.names.letters, letters(low))
			p.names.proper = append(p.names.proper, c.Token)
		}
		if c.Operator != "" {
			p.names.operators[squash(c.Operator)] = c.Operator
		}
	}
	return p.names
}

func (k *nameIndex) operator(name string) bool {
	return strings.EqualFold(k.operators[squash(name)], name)
}

// group returns the audience that a name means, with an explanation. It returns "" if the name may be a crawler's.
func (k *nameIndex) group(name string) (audience, what string) {
	word := squash(name)
	if elseWords[word] || Nearest(name, []string{"everyone-else"}) != "" {
		return "everyone-else", "for the crawlers that no rule names, write everyone-else"
	}
	if everyoneWords[word] || Nearest(name, []string{"everyone"}) != "" {
		return "everyone", "for all crawlers, write everyone"
	}
	switch kind, ok := groupWords[word]; {
	case kind == crawlers.CategoryAIInput:
		return "category:ai-input", "crawlers that collect pages for AI answers are in category:ai-input, and assistants that fetch a page for a person are in category:ai-assistant. Search engines for AI, such as PerplexityBot, are in category:search and in category:ai"
	case ok:
		return "category:" + string(kind), "for all crawlers of this category, write category:" + string(kind)
	case word == "badbots" || word == "scrapers" || word == "spam":
		return "[category:ai-training, category:seo]", "there is no list of bad crawlers; name the crawlers that you do not want, or their categories"
	}
	for _, kind := range crawlers.Categories() {
		if word == squash(string(kind)) {
			return "category:" + string(kind), "for all crawlers of this category, write category:" + string(kind)
		}
	}
	if operator, ok := k.operators[word]; ok {
		return "operator:" + operator, "for all crawlers of this operator, write operator:" + operator
	}
	return "", ""
}

// longToken is a length in bytes. If a name of at least this length has two differences from a known name, it is
// probably a misspelling, and not another name.
const longToken = 9

// crawlerOf returns the crawler whose name is an operator's name with "bot" or "spider", such as Googlebot for Google.
// It returns "" if there is none.
func (k *nameIndex) crawlerOf(operator string) string {
	word := strings.ToLower(operator)
	for _, suffix := range []string{"bot", "-bot", "spider"} {
		if i := slices.Index(k.tokens, word+suffix); i >= 0 {
			return k.proper[i]
		}
	}
	return ""
}

// meant returns the token that is most similar to a misspelled one, or "".
func (k *nameIndex) meant(token string) string {
	low := strings.ToLower(token)
	name, _, versioned := strings.Cut(low, "/")
	limit := 1
	if len(low) >= longToken {
		limit = 2
	}
	if len(low) < 5 {
		limit = 0
	}
	best, distance := "", limit+1
	set := letters(low)
	for i, t := range k.tokens {
		if versioned && t == name {
			return k.proper[i]
		}
		if bits.OnesCount64(set^k.letters[i]) > 2*(distance-1) {
			continue
		}
		if n := distanceWithin(low, t, distance-1); n < distance {
			best, distance = k.proper[i], n
		}
	}
	return best
}

// Recognize returns the crawler that agent names, which is a User-Agent or a product token. If the catalog has no such
// crawler, Recognize returns a crawler with the longest name of others that agent contains. If agent does not contain
// any of them, the crawler's token is the part of agent before "/".
func Recognize(agent string, others []string) policy.Crawler {
	catalog, _ := crawlers.Default() // the built-in catalog is valid
	if i, ok := crawlers.NewRecognizer(catalog.Patterns()).Recognize(agent); ok {
		return convert(catalog).Crawlers()[i]
	}
	var patterns []crawlers.Pattern
	for i, name := range others {
		patterns = append(patterns, crawlers.Pattern{Token: name, Index: i})
	}
	if i, ok := crawlers.NewRecognizer(patterns).Recognize(agent); ok {
		return policy.Crawler{Token: others[i]}
	}
	token, _, _ := strings.Cut(agent, "/")
	return policy.Crawler{Token: token}
}

// CatalogCrawlers returns the crawlers of the catalog in use (see crawlers.Default).
func CatalogCrawlers() []policy.Crawler {
	catalog, _ := crawlers.Default() // the built-in catalog is valid
	return slices.Clone(convert(catalog).Crawlers())
}

// Nearest returns the name that the author probably meant when the author wrote word. It returns "" if no name is
// similar enough. It ignores letter case. Short words must be more similar to a name than long ones.
func Nearest(word string, names []string) string {
	best, distance := "", tolerance(len(word))+1
	folded := strings.ToLower(word)
	for _, name := range names {
		if n := distanceWithin(folded, strings.ToLower(name), distance-1); n < distance {
			best, distance = name, n
		}
	}
	return best
}

func tolerance(n int) int {
	switch {
	case n < 3:
		return 0
	case n < 5:
		return 1
	}
	return 2
}

// letters returns the set of bytes of a word, folded into 64 bits.
func letters(s string) uint64 {
	var set uint64
	for i := range len(s) {
		set |= 1 << (s[i] & 63)
	}
	return set
}

const maxWord = 64

// distanceWithin returns the number of insertions, deletions, substitutions and swaps of neighboring letters
// between two words. If it is above limit, it returns limit+1.
func distanceWithin(a, b string, limit int) int {
	if limit < 0 || len(a) > maxWord || len(b) > maxWord || len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	var rows [3][maxWord + 1]int
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		least := row[0]
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			n := min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				n = min(n, before[j-1]+1)
			}
			row[j+1] = n
			least = min(least, n)
		}
		if least > limit {
			return limit + 1
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], limit+1)
}
