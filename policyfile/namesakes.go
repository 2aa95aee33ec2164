// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"math/bits"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
)

// everyoneWords are what authors write for everyone, squashed.
var everyoneWords = wordSet(`all any every everybody everything anyone anybody default others rest therest
	bots robots crawlers spiders allbots allrobots allcrawlers allspiders wildcard star
	alle jeder tous tout toutlemonde todos todas todo tutti tutte iedereen alla alles wszyscy`)

// groupWords are what authors write for a category, squashed. The names of the
// categories themselves need not be here.
var groupWords = map[string]crawlers.Kind{
	"ai": crawlers.KindAITraining, "aibots": crawlers.KindAITraining, "aibot": crawlers.KindAITraining, "aicrawlers": crawlers.KindAITraining,
	"aiscrapers": crawlers.KindAITraining, "genai": crawlers.KindAITraining, "llm": crawlers.KindAITraining, "llms": crawlers.KindAITraining,
	"training": crawlers.KindAITraining, "searchengine": crawlers.KindSearch, "searchengines": crawlers.KindSearch, "searchbots": crawlers.KindSearch,
	"seobots": crawlers.KindSEO, "seotools": crawlers.KindSEO, "archives": crawlers.KindArchive, "archivers": crawlers.KindArchive,
	"previews": crawlers.KindPreview, "linkpreviews": crawlers.KindPreview,
}

// productWords are products whose names authors write where the tokens of their
// operator's crawlers are meant, squashed. Each token is in the built-in catalogue.
var productWords = map[string][]string{
	"chatgpt": {"GPTBot", "ChatGPT-User", "OAI-SearchBot"}, "gpt": {"GPTBot", "ChatGPT-User", "OAI-SearchBot"},
	"claude": {"ClaudeBot", "Claude-User", "Claude-SearchBot"},
	"gemini": {"Google-Extended"}, "bard": {"Google-Extended"},
	"copilot": {"Bingbot"}, "bing": {"Bingbot"},
	"appleintelligence": {"Applebot-Extended"}, "siri": {"Applebot"},
	"metaai": {"meta-externalagent"}, "llama": {"meta-externalagent"},
}

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}

// squash is a name without case, spaces, hyphens and underscores.
func squash(s string) string {
	return strings.Map(func(c rune) rune {
		if c == ' ' || c == '-' || c == '_' {
			return -1
		}
		return c
	}, strings.ToLower(s))
}

// namesakes finds the crawler that a misspelt token means.
type namesakes struct {
	tokens    []string // lower case
	letters   []uint64
	proper    []string
	operators map[string]string // as written, by squashed name
}

// known is the namesakes of the merged catalogue. It is built when the first rule
// is read, after the file's own crawlers.
func (p *parser) known() *namesakes {
	if p.names != nil {
		return p.names
	}
	p.names = &namesakes{operators: map[string]string{}}
	for i := range p.catalogue.Len() {
		c := p.catalogue.At(i)
		low := strings.ToLower(c.Token)
		p.names.tokens = append(p.names.tokens, low)
		p.names.letters = append(p.names.letters, letters(low))
		p.names.proper = append(p.names.proper, c.Token)
		if c.Operator != "" {
			p.names.operators[squash(c.Operator)] = c.Operator
		}
	}
	return p.names
}

// operator reports whether a crawler of the operator is known.
func (k *namesakes) operator(name string) bool {
	return strings.EqualFold(k.operators[squash(name)], name)
}

// group finds the audience that a name stands for which is no crawler's, and says
// what the name is.
func (k *namesakes) group(name string) (audience, what string) {
	word := squash(name)
	if everyoneWords[word] || nearest(name, []string{"everyone"}) != "" {
		return "everyone", "a word for everyone"
	}
	if kind, ok := groupWords[word]; ok {
		return "category:" + string(kind), "a word for a category of crawlers"
	}
	for _, kind := range crawlers.Kinds() {
		if word == squash(string(kind)) {
			return "category:" + string(kind), "the name of a category of crawlers"
		}
	}
	if operator, ok := k.operators[word]; ok {
		return "operator:" + operator, "the name of an operator"
	}
	return "", ""
}

// longToken is the length from which two slips are likelier than another name.
const longToken = 9

// meant is the token that a misspelt one is nearest to, or empty.
func (k *namesakes) meant(token string) string {
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
