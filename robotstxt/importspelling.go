// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"fmt"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// spellingNote says that the policy and what is published close paths in several spellings,
// while readers that compare URLs as they come take a Disallow of the file for one of them.
// It returns nil where no path has a reserved octet.
func (f *File) spellingNote() *Note {
	lines := map[int]bool{}
	var first Rule
	for _, g := range f.Groups {
		for _, r := range g.rules {
			if r.Allow || lines[r.number] || pathpattern.Spell(r.Pattern, r.Written).Octets == 0 {
				continue
			}
			if lines[r.number] = true; first.number == 0 || r.number < first.number {
				first = r
			}
		}
	}
	more := ""
	switch n := len(lines) - 1; {
	case n < 0:
		return nil
	case n > 0:
		more = fmt.Sprintf(", and those of %d more lines,", n)
	}
	return &Note{Line: first.number, Message: fmt.Sprintf("the path %q%s can be written in several ways, such as : and %%3A; "+
		"robots.txt is published with up to four of them, and the server takes all for the same path, while some readers take this line for one", first.text(), more)}
}
