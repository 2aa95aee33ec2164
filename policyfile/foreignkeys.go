// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// What readMap calls the maps whose foreign keys are explained.
const (
	theFile = "the file"
	aRule   = "a rule"
)

// audienceKeys are what other formats call "for", squashed.
var audienceKeys = wordSet(`useragent useragents agent agents bot bots robot robots crawler crawlers who whom audience client`)

// prohibitions are keys of other formats that prohibit something, squashed, and the
// usages that they prohibit.
var prohibitions = map[string]policy.Usage{
	"noindex": policy.Index, "nofollow": policy.Follow, "noarchive": policy.Preserve, "nosnippet": policy.PresentSnippet,
	"notrain": policy.TrainAI, "noai": policy.TrainAI, "notraining": policy.TrainAI,
	"block": policy.Crawl, "blocked": policy.Crawl, "deny": policy.Crawl, "denied": policy.Crawl, "forbid": policy.Crawl, "refuse": policy.Crawl, "reject": policy.Crawl,
	"path": policy.Crawl, "paths": policy.Crawl, "url": policy.Crawl, "urls": policy.Crawl,
}

// modeKeys are what other formats call "enforce", squashed.
var modeKeys = wordSet(`action do effect mode then enforcement verdict block deny refuse reject`)

// exceptionKeys are what an exception is called, squashed.
var exceptionKeys = wordSet(`except exceptfor exception exceptions excepting excluding exclude excludes unless but`)

// nearestKey returns the key that another one most likely stands for, or "".
func nearestKey(word, what string, known []string) string {
	if what == aRule && audienceKeys[squash(word)] {
		return "for"
	}
	return Nearest(word, known)
}

// foreignKey says what to write instead of a key that other formats have, or nothing.
func (p *parser) foreignKey(key, within *yaml.Node, what string) (near, advice string) {
	word := squash(key.Value)
	usage, prohibits := prohibitions[word]
	stated, isUsage := policy.ParseUsage(key.Value)
	switch {
	case what == theFile && (p.ofRules[key.Value] || audienceKeys[word] && word != "crawler" || prohibits || isUsage):
		return "", `it belongs in a rule, under rules; a rule starts with "- for: everyone", or with the name of a crawler instead of everyone`
	case what != aRule:
		return "", ""
	case modeKeys[word] && modeOf(within, key) != "":
		return unless(within, "enforce", "enforce: "+modeOf(within, key)), `what the server does is called enforce, and the paths are written under disallow`
	case exceptionKeys[word]:
		return exception(within, key)
	case prohibits:
		return prohibition(within, key, usage)
	case isUsage:
		return "", fmt.Sprintf(`a usage stands under allow or disallow; write "disallow: {%s: /}" to prohibit it on the whole site, or "allow: {%s: /}"`, stated, stated)
	}
	return "", ""
}

// modeOf is what the value of a key asks the server to do, or "".
func modeOf(within, key *yaml.Node) string {
	if value := valueOf(within, key); value != nil && value.Kind == yaml.ScalarNode {
		words := []string{"off", "log", "block"}
		if containsFold(words, value.Value) {
			return strings.ToLower(value.Value)
		}
		return sameMeaning(value.Value, words)
	}
	return ""
}

// prohibition is a key that prohibits a usage, as this format has it.
func prohibition(within, key *yaml.Node, usage policy.Usage) (near, advice string) {
	return statement(within, key, "disallow", usage), fmt.Sprintf(`write "%s:" with its paths under disallow`, usage)
}

// exception is a key that takes paths out of a rule, as this format has it: the longer path
// under the opposite key.
func exception(within, key *yaml.Node) (near, advice string) {
	opposite, stated := "disallow", "allow"
	if child(within, "disallow") != nil {
		opposite, stated = stated, opposite
	}
	return statement(within, key, opposite, policy.Crawl),
		fmt.Sprintf("an exception to %s is written under %s, in the same rule; the longer path overrides the shorter one", stated, opposite)
}

// statement is allow or disallow with the paths of a key on one line, if they fit there.
func statement(within, key *yaml.Node, verb string, usage policy.Usage) string {
	value := valueOf(within, key)
	if value == nil || value.Line != key.Line {
		return ""
	}
	near := ""
	switch {
	case value.Kind == yaml.ScalarNode && isPath(value.Value):
		near = fmt.Sprintf("%s: %s", usage, asWritten(value.Value))
	case value.Kind == yaml.SequenceNode:
		near = shortList(usage.String(), value)
	}
	if near == "" {
		return ""
	}
	return unless(within, verb, verb+": {"+near+"}")
}

func valueOf(within, key *yaml.Node) *yaml.Node {
	for i := 0; i+1 < len(within.Content); i += 2 {
		if within.Content[i] == key {
			return within.Content[i+1]
		}
	}
	return nil
}

// unless is a suggestion for a map that does not have the suggested key yet.
func unless(within *yaml.Node, key, suggestion string) string {
	if child(within, key) != nil {
		return ""
	}
	return suggestion
}

// child is the value of a key with a name in a map, or nil.
func child(within *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(within.Content); i += 2 {
		if within.Content[i].Value == name {
			return within.Content[i+1]
		}
	}
	return nil
}
