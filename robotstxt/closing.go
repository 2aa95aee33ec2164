// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// shut is the rule of a group that closes everything.
func shut(number int) []Rule {
	return []Rule{{Pattern: pathpattern.All, Size: len(pathpattern.All.String()), number: number}}
}

// Closing returns a shorter file for where the whole one has no room: no group opens
// anything, that of "*" has its first n Disallow lines, and a group with more than n is
// closed. left is how many lines of "*" are left out.
func (f *File) Closing(n int) (closing *File, left int) {
	c := *f
	c.Groups, c.byName = nil, map[string]*Group{}
	for _, g := range f.Groups {
		h := *g
		h.rules = slices.DeleteFunc(slices.Clone(g.rules), func(r Rule) bool { return r.Allow })
		switch {
		case len(h.rules) <= n:
		case g.Name == "*":
			left, h.rules = len(h.rules)-n, h.rules[:n]
		default:
			h.rules = shut(g.number)
		}
		c.Groups = append(c.Groups, &h)
		c.byName[strings.ToLower(h.Name)] = &h
	}
	return &c, left
}
