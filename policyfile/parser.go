// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"cmp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile/lint"
)

type parser struct {
	reporter
	skip     map[*yaml.Node]bool // nodes already reported
	keys     map[string]bool     // all keys of the format
	ofRules  map[string]bool     // the keys of rules
	settings map[string][]string

	spec             *policy.Spec
	sources          []lint.Source // the places of the parts of each rule in Spec.Rules
	sets             map[string]*resourceSet
	usages           map[string]*localUsage
	base             *crawlers.Catalog
	catalog          *crawlers.Catalog
	names            *nameIndex
	misspellings     []misspelling
	intended         map[string][]string // safety checks that a crawler's entry waives, by token in lower case
	ruleTokens       map[string]bool     // names under "for", in lower case
	statements       int                 // number of statements in all rules; at most maxStatements
	enforcementAt    policy.Pos          // place of the enforcement mode
	rslAt, licenseAt policy.Pos
	tokenAt          [3]policy.Pos // places of the keys under "usage-tokens"
	full             bool
}

func (p *parser) unknownKey(within, key, value *yaml.Node, what string, known []string) {
	if p.isGlued(key, value) {
		return
	}
	unknown := "unknown key " + quote(key.Value) + " in " + what
	if advice := p.misplaced(within, key, value, what); advice != "" {
		p.reportAdvice(posOf(key), "unknown-key", "", unknown, advice)
		return
	}
	p.reportChoice(posOf(key), "unknown-key", nearestKey(key.Value, what, known), unknown, known)
}

func child(within *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(within.Content); i += 2 {
		if within.Content[i].Value == name {
			return within.Content[i+1]
		}
	}
	return nil
}

func (p *parser) duplicate(key, first *yaml.Node, also string) {
	p.report(posOf(key), "duplicate-key", "", "%s appears twice%s (first in line %d); put everything under one of them",
		quote(key.Value), also, first.Line)
}

// eachPair calls visit for the pairs of a map. The keys of the map are names that the author has chosen, such as names
// of crawlers. eachPair reports keys that are equal or differ only by case.
func (p *parser) eachPair(n *yaml.Node, what string, visit func(key, value *yaml.Node)) {
	if !p.isMap(n, what) {
		return
	}
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if p.skip[key] || p.skip[value] {
			continue
		}
		folded := strings.ToLower(key.Value)
		if first := seen[folded]; first != nil {
			also := ""
			if first.Value != key.Value {
				also = " (upper and lower case make no difference here)"
			}
			p.duplicate(key, first, also)
			continue
		}
		seen[folded] = key
		visit(key, value)
	}
}

func (p *parser) isMap(n *yaml.Node, what string) bool {
	if n.Kind == yaml.MappingNode {
		if len(n.Content) == 0 {
			p.report(posOf(n), "no-value", "", "%s is empty; fill it in, or delete it", what)
		}
		return len(n.Content) > 0
	}
	if p.skip[n] || p.isJoined(n) {
		return false
	}
	if word, rest, ok := strings.Cut(n.Value, " "); ok && n.Kind == yaml.ScalarNode && p.keys[word] {
		return p.refuse(n, "wrong-type", p.pair(n, word+": "+strings.TrimSpace(rest)), "a colon is missing after %s", quote(word))
	}
	return p.refuse(n, "wrong-type", "", `%s must be written as "key: value" lines, not %s`, what, kindOf(n))
}

// isJoined reports a problem if YAML has read a "key:value" without a space as a text.
func (p *parser) isJoined(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode || n.Style != 0 {
		return false
	}
	g := joinedKey.FindStringSubmatch(n.Value)
	if g == nil || !p.keys[g[1]] {
		return false
	}
	value, _, _ := strings.Cut(g[2], " ")
	p.report(posOf(n), "missing-space", p.pair(n, g[1]+": "+value), "a space is missing after the colon")
	return true
}

// isGlued reports a problem if YAML has read a key and its value as one longer key, because the space between them is
// missing, as in "disallow:{crawl: /}".
func (p *parser) isGlued(key, value *yaml.Node) bool {
	g := joinedKey.FindStringSubmatch(key.Value)
	if g == nil || !p.keys[g[1]] {
		return false
	}
	near := ""
	if value.Kind == yaml.ScalarNode && g[2][0] == '{' {
		near = g[1] + ": " + g[2] + ": " + value.Value
	}
	p.report(posOf(key), "missing-space", near, "a space is missing after the colon")
	return true
}

// pair returns a text such as "key: value" in the form that is valid at the place of the node n. If n follows its own
// key on the same line, the text is in braces, because YAML does not allow a second colon there.
func (p *parser) pair(n *yaml.Node, text string) string {
	if n.Line > len(p.lines) {
		return text
	}
	before := []rune(p.lines[n.Line-1])
	if before = before[:min(n.Column-1, len(before))]; strings.HasSuffix(strings.TrimRight(string(before), " "), ":") {
		return "{" + text + "}"
	}
	return text
}

func (p *parser) eachItem(n *yaml.Node, what string, visit func(item *yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		visit(n)
		return
	}
	if len(n.Content) == 0 {
		p.report(posOf(n), "no-value", "", "%s is an empty list; add a value, or delete it", what)
	}
	for _, c := range n.Content {
		if !p.skip[c] {
			visit(c)
		}
	}
}

func (p *parser) text(n *yaml.Node, what string) (string, bool) {
	switch {
	case n.Kind == yaml.MappingNode && len(n.Content) == 2 && n.Style&yaml.FlowStyle == 0 && n.Content[0].Kind == yaml.ScalarNode && n.Content[1].Kind == yaml.ScalarNode:
		whole := n.Content[0].Value + ": " + n.Content[1].Value
		return "", p.refuse(n, "needs-quotes", "", `%s must be one value, but YAML reads a text with ": " as a key and its value. If this is one text, put quotes around it: %s`, what, quote(whole))
	case n.Kind != yaml.ScalarNode:
		return "", p.refuse(n, "wrong-type", "", "%s must be one value, not %s", what, kindOf(n))
	case strings.TrimSpace(n.Value) == "":
		return "", p.refuse(n, "no-value", "", "%s has no value; write one, or delete the line", what)
	case strings.ContainsFunc(n.Value, func(c rune) bool { return c < ' ' || c == 0x7f || c == 0x85 || c == 0x2028 || c == 0x2029 }):
		return "", p.refuse(n, "bad-value", "", "%s must be one line of text, without tabs and line breaks", what)
	}
	if n.Style == 0 && strings.IndexAny(n.Value, typographic) == 0 {
		bare := strings.Trim(n.Value, typographic)
		return "", p.refuse(n, "needs-quotes", "", "in YAML, curly quotation marks are part of the text; type straight quotation marks: %s", quote(bare))
	}
	return n.Value, true
}

// typographic holds the quotation marks that word processors insert.
const typographic = "“”„‟«»‘’‚‹›"

func (p *parser) texts(n *yaml.Node, what string, visit func(n *yaml.Node, text string)) {
	p.eachItem(n, what, func(item *yaml.Node) {
		if text, ok := p.text(item, what); ok {
			visit(item, text)
		}
	})
}

func (p *parser) choice(n *yaml.Node, what string, words ...string) (string, bool) {
	text, ok := p.text(n, what)
	if !ok {
		return "", false
	}
	if slices.Contains(words, text) {
		return text, true
	}
	near := cmp.Or(sameMeaning(text, words), Nearest(text, words))
	p.reportChoice(posOf(n), "bad-value", near, "invalid "+what+" "+quote(text), words)
	return "", false
}

// meanings holds sets of words with a similar meaning, because authors often write one instead of another.
var meanings = [][]string{
	{"on", "true", "yes"},
	{"full", "on", "true", "yes"},
	{"off", "false", "no", "none"},
	{"none", "off", "no", "false", "0"},
	{"block", "true", "yes", "on", "deny", "refuse", "reject", "forbid", "enforce", "drop", "disallow", "403", "401", "404", "410", "429", "451"},
	{"log", "warn", "monitor", "report", "dry-run", "test"},
}

// sameMeaning returns the valid word with the same meaning as a text, or "".
func sameMeaning(text string, words []string) string {
	for _, group := range meanings {
		if slices.Contains(words, group[0]) && containsFold(group, text) {
			return group[0]
		}
	}
	return ""
}

func containsFold(words []string, text string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, text) })
}

func kindOf(n *yaml.Node) string {
	if n.Kind == yaml.MappingNode {
		return `"key: value" lines`
	}
	if n.Kind == yaml.SequenceNode {
		return "a list"
	}
	return "the text " + quote(n.Value)
}
