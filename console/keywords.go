// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// keywords are the keys of a policy file, which the editor completes.
var keywords = sync.OnceValue(func() []string {
	var schema any
	if json.Unmarshal(policyfile.Schema(), &schema) != nil {
		return nil
	}
	found := map[string]bool{}
	collectKeys(schema, found)
	return slices.Sorted(maps.Keys(found))
})

// collectKeys adds the names of the properties of a JSON Schema.
func collectKeys(node any, found map[string]bool) {
	switch n := node.(type) {
	case map[string]any:
		if properties, ok := n["properties"].(map[string]any); ok {
			for name := range properties {
				found[name] = true
			}
		}
		for _, child := range n {
			collectKeys(child, found)
		}
	case []any:
		for _, child := range n {
			collectKeys(child, found)
		}
	}
}
