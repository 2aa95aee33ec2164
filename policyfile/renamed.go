// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/renamed"
)

// renameAll replaces earlier names in a policy that was stored with them, so that the policy can still be loaded.
func renameAll(root *yaml.Node) {
	renameKeys(root)
	eachValue(child(root, "crawlers"), func(crawler *yaml.Node) {
		renameKeys(crawler)
		renameWords(child(crawler, "category"), renamed.PolicyWords)
		renameWords(child(crawler, "intended"), renamed.PolicyWords)
	})
	eachValue(child(root, "rules"), func(rule *yaml.Node) {
		renameWords(child(rule, "identity"), renamed.PolicyWords)
		renameWords(child(rule, "intended"), renamed.PolicyWords)
	})
	if publish := child(root, "publish"); publish != nil {
		renameKeys(publish)
		renameWords(child(publish, "controls"), renamed.Controls)
	}
	tests := child(root, "expect")
	renameTest(tests)
	eachValue(tests, renameTest)
}

func renameTest(n *yaml.Node) {
	if n == nil || n.Kind != yaml.ScalarNode {
		return
	}
	if _, now, ok := earlierTest(n.Value); ok {
		n.Value = now
	}
}

// earlierTest reports whether a test begins with an earlier name. It returns that word, and the test with the
// present name.
func earlierTest(text string) (first, now string, ok bool) {
	first, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	word := renamed.Tests[strings.ToLower(first)]
	return first, word + " " + strings.TrimLeft(rest, " "), word != ""
}

// eachValue calls visit for the elements of a list, or for the values of a map.
func eachValue(n *yaml.Node, visit func(*yaml.Node)) {
	switch {
	case n == nil:
	case n.Kind == yaml.SequenceNode:
		for _, element := range n.Content {
			visit(element)
		}
	case n.Kind == yaml.MappingNode:
		for i := 1; i < len(n.Content); i += 2 {
			visit(n.Content[i])
		}
	}
}

func renameKeys(n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i < len(n.Content); i += 2 {
		if now := renamed.PolicyKeys[n.Content[i].Value]; now != "" {
			n.Content[i].Value = now
		}
	}
}

// renameWords renames a word, or each word of a list.
func renameWords(n *yaml.Node, names renamed.Names) {
	if n == nil {
		return
	}
	if now := names[n.Value]; now != "" && n.Kind == yaml.ScalarNode {
		n.Value = now
	}
	eachValue(n, func(word *yaml.Node) { renameWords(word, names) })
}
