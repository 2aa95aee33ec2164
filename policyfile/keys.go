// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Keys holds the values of the keys of a policy file, such as enforcement.status, in the form that [File.Print] writes.
type Keys map[string][]string

// RuleKeys holds the keys of a rule that have no influence on decisions. Its first two fields describe the rule.
type RuleKeys struct {
	Scope   string // the rule's audiences, hosts and conditions
	Decides string // the rule's other keys, as a text
	Keys    Keys
}

// Keys returns all keys that Print writes, except the keys of rules and crawlers.
func (f *File) Keys() Keys {
	spec := *f.Spec
	spec.Crawlers, spec.Rules = nil, nil
	keys := Keys{}
	keys.add("", printed(&spec))
	delete(keys, "enforcement") // the short form of enforcement.mode
	keys["enforcement.mode"] = []string{max(f.Spec.Enforcement.Mode, policy.ModeOff).String()}
	return keys
}

// RuleKeys returns the keys of rules, except those that allow or disallow something.
func (f *File) RuleKeys() []RuleKeys {
	all := make([]RuleKeys, 0, len(f.Spec.Rules))
	for _, r := range f.Spec.Rules {
		decides := r
		decides.Name, decides.Intended, decides.IntendedChecks, decides.Requests, decides.PermissionsReference = "", false, nil, nil, ""
		r.AppDirectives, r.EngineRules, r.Enforce = nil, nil, policy.ModeUnset
		r.Statements = slices.DeleteFunc(slices.Clone(r.Statements), func(s policy.Statement) bool { return !s.OverSite })
		r.CrawlDelay, r.NoCrawlDelay, r.Limit, r.NoLimit = 0, false, policy.Limit{}, false
		k := RuleKeys{Keys: Keys{}, Decides: string(Print(&policy.Spec{Rules: []policy.Rule{decides}}))}
		k.Keys.add("", child(printed(&policy.Spec{Rules: []policy.Rule{r}}), "rules").Content[0])
		var scope []string
		for _, key := range []string{"for", "hosts", "identity", "usage-purposes"} {
			if values := k.Keys[key]; values != nil {
				slices.Sort(values)
				scope = append(scope, strings.Join(values, ", "))
				delete(k.Keys, key)
			}
		}
		k.Scope = strings.Join(scope, "; ")
		all = append(all, k)
	}
	return all
}

func printed(spec *policy.Spec) *yaml.Node {
	root, _, err := decode(bytes.NewReader(Print(spec)))
	if err != nil {
		panic("policyfile: a printed policy cannot be read: " + err.Error()) // cannot happen: there are only scalars, lists and maps
	}
	return root.Content[0]
}

// add adds the values of a node and of all nodes below it. at is the key of the node.
func (k Keys) add(at string, n *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			k.add(strings.TrimPrefix(at+"."+n.Content[i].Value, "."), n.Content[i+1])
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			if item.Kind == yaml.ScalarNode {
				k[at] = append(k[at], item.Value)
				continue
			}
			k.add(fmt.Sprintf("%s[%d]", at, i+1), item)
		}
	case yaml.ScalarNode:
		k[at] = append(k[at], n.Value)
	case yaml.DocumentNode, yaml.AliasNode:
	}
}
