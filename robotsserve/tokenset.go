// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"maps"
	"slices"
)

// tokenSet finds tokens that are part of others. Those of a file that is merged can be
// thousands of any length.
type tokenSet struct {
	all     map[string]bool
	heads   map[string]bool // what they start with: headLen bytes, or the whole of a shorter one
	lengths []int
}

const headLen = 4

func newTokenSet(of map[string]*group) *tokenSet {
	s := &tokenSet{all: make(map[string]bool, len(of)), heads: map[string]bool{}}
	lengths := map[int]bool{}
	for t := range of {
		s.all[t] = true
		s.heads[t[:min(len(t), headLen)]] = true
		lengths[len(t)] = true
	}
	s.lengths = slices.Sorted(maps.Keys(lengths))
	return s
}

// within lists the other tokens that a token has within it, each once.
func (s *tokenSet) within(token string) (parts []string) {
	seen := map[string]bool{token: true}
	for i := range len(token) {
		rest := token[i:]
		for _, n := range s.lengths {
			if n > len(rest) || n > headLen && !s.heads[rest[:headLen]] {
				break
			}
			if part := rest[:n]; s.all[part] && !seen[part] {
				seen[part] = true
				parts = append(parts, part)
			}
		}
	}
	return parts
}
