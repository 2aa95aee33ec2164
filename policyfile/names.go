// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"math/bits"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
)

// everyoneWords are words for everyone, squashed.
var everyoneWords = wordSet(`all any every everybody everything anyone anybody default
	bots robots crawlers spiders allbots allrobots allcrawlers allspiders wildcard star
	alle jeder tous tout toutlemonde todos todas todo tutti tutte iedereen alla alles wszyscy`)

// elseWords are words for everyone-else, squashed.
var elseWords = wordSet(`others rest therest everybodyelse everyother allothers anyoneelse`)

// groupWords are words for a category, squashed. The names of the categories
// themselves need not be here.
var groupWords = map[string]crawlers.Kind{
	"ai": crawlers.KindAITraining, "aibots": crawlers.KindAITraining, "aibot": crawlers.KindAITraining, "aicrawlers": crawlers.KindAITraining,
	"aiscrapers": crawlers.KindAITraining, "genai": crawlers.KindAITraining, "llm": crawlers.KindAITraining, "llms": crawlers.KindAITraining,
	"training": crawlers.KindAITraining, "searchengine": crawlers.KindSearch, "searchengines": crawlers.KindSearch, "searchbots": crawlers.KindSearch,
	"seobots": crawlers.KindSEO, "seotools": crawlers.KindSEO, "archives": crawlers.KindArchive, "archivers": crawlers.KindArchive,
	"previews": crawlers.KindPreview, "linkpreviews": crawlers.KindPreview,
}

// productWords are the names of products, squashed, and the crawlers of their
// operators. Each crawler is in the built-in catalogue.
var productWords = map[string][]string{
	"chatgpt": {"GPTBot", "ChatGPT-User", "OAI-SearchBot"}, "gpt": {"GPTBot", "ChatGPT-User", "OAI-SearchBot"},
	"claude": {"ClaudeBot", "Claude-User", "Claude-SearchBot"},
	"gemini": {"Google-Extended"}, "bard": {"Google-Extended"},
	"copilot": {"Bingbot"}, "bing": {"Bingbot"},
	"appleintelligence": {"Applebot-Extended"}, "siri": {"Applebot"},
	"facebook": {"facebookexternalhit", "meta-externalagent"}, "metaai": {"meta-externalagent"}, "llama": {"meta-externalagent"},
}

func wordSet(words string) map[string]bool { return setOf(strings.Fields(words)) }

// squash is a name without case, spaces, hyphens and underscores.
func squash(s string) string {
	return strings.Map(func(c rune) rune {
		if c == ' ' || c == '-' || c == '_' {
			return -1
		}
		return c
	}, strings.ToLower(s))
}

// nameIndex finds what a name means that is not a crawler's.
type nameIndex struct {
	tokens    []string // lower case
	letters   []uint64
	proper    []string
	operators map[string]string // as written, by squashed name
}

// known returns the names of the catalogue with the file's crawlers. It is built when
// the first rule is read.
func (p *parser) known() *nameIndex {
	if p.names != nil {
		return p.names
	}
	p.names = &nameIndex{operators: map[string]string{}}
	for i := range p.catalogue.Len() {
		c := p.catalogue.At(i)
		if c.Kind != crawlers.KindUnclassified { // those are rarely meant, and near to many a name
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

// operator reports whether a crawler of the operator is known.
func (k *nameIndex) operator(name string) bool {
	return strings.EqualFold(k.operators[squash(name)], name)
}

// group returns the audience that a name means, and says what to call it. It is
// empty for what may be a crawler's name.
func (k *nameIndex) group(name string) (audience, what string) {
	word := squash(name)
	if elseWords[word] || Nearest(name, []string{"everyone-else"}) != "" {
		return "everyone-else", "the crawlers that no rule names are called everyone-else"
	}
	if everyoneWords[word] || Nearest(name, []string{"everyone"}) != "" {
		return "everyone", "all crawlers together are called everyone"
	}
	if kind, ok := groupWords[word]; ok {
		return "category:" + string(kind), "crawlers of this kind are called category:" + string(kind)
	}
	for _, kind := range crawlers.Kinds() {
		if word == squash(string(kind)) {
			return "category:" + string(kind), "crawlers of this kind are called category:" + string(kind)
		}
	}
	if operator, ok := k.operators[word]; ok {
		return "operator:" + operator, "the crawlers of this operator are called operator:" + operator
	}
	return "", ""
}

// longToken is the length from which two slips are likelier than another name.
const longToken = 9

// crawlerOf returns the best known crawler whose name starts with an operator's, or
// "": Googlebot for Google.
func (k *nameIndex) crawlerOf(operator string) string {
	word := strings.ToLower(operator)
	for _, suffix := range []string{"bot", "-bot", "spider"} {
		for i, t := range k.tokens {
			if t == word+suffix {
				return k.proper[i]
			}
		}
	}
	return ""
}

// meant returns the token that a misspelt one is nearest to, or "".
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
