// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"iter"

	"go.yaml.in/yaml/v3"
)

// mapping yields the keys and values of a mapping. A repeated key, a key that is
// no plain word, or a node that is no mapping is reported and left out.
func (p *fileParser) mapping(n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(_, _ *yaml.Node) bool) {
		if n.Kind != yaml.MappingNode {
			p.errorf(n, "expected a mapping")
			return
		}
		seen := make(map[string]bool, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			if key.Kind != yaml.ScalarNode || key.Value == "" || key.Tag == "!!merge" {
				p.errorf(key, "expected a name")
				continue
			}
			if seen[key.Value] {
				p.errorf(key, "%q stands here twice", key.Value)
				continue
			}
			seen[key.Value] = true
			if !yield(key, value) {
				return
			}
		}
	}
}

// text returns a scalar's source text.
func (p *fileParser) text(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Value == "" {
		p.errorf(n, "expected some text")
		return ""
	}
	return n.Value
}

// list returns the texts of a sequence, or the only text.
func (p *fileParser) list(n *yaml.Node) []string {
	if n.Kind != yaml.SequenceNode {
		if s := p.text(n); s != "" {
			return []string{s}
		}
		return nil
	}
	list := make([]string, 0, len(n.Content))
	for _, item := range n.Content {
		if s := p.text(item); s != "" {
			list = append(list, s)
		}
	}
	return list
}

func (p *fileParser) boolean(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode || n.Value != "true" && n.Value != "false" {
		p.errorf(n, "expected true or false")
	}
	return n.Value == "true"
}
