// SPDX-License-Identifier: Apache-2.0

package textdiff

import (
	"fmt"
	"slices"
	"strings"
)

// Clash is a group of lines that two edited versions of the same text, Mine and Theirs, have changed in different ways.
type Clash struct {
	Name                 string // the argument of Merge's function choice
	Before, Mine, Theirs string
	Choice               string // mine, theirs or, before the choice, empty
}

// Merge combines mine and theirs, two edited versions of the text base. Where only one version changes lines, Merge
// takes these changes. If the versions change the same lines in different ways, Merge calls choice with the name of
// this Clash. choice returns the version to use, "mine" or "theirs". If it returns another text, the lines are left
// out. The last result is false if the texts are too long to compare.
func Merge(base, mine, theirs string, choice func(name string) string) (string, []Clash, bool) {
	b, m, t := lines(base), lines(mine), lines(theirs)
	inMine, ok := matches(base, mine)
	inTheirs, ok2 := matches(base, theirs)
	if !ok || !ok2 {
		return "", nil, false
	}
	var out []string
	var clashes []Clash
	i, j, k := 0, 0, 0
	for i < len(b) || j < len(m) || k < len(t) {
		if i < len(b) && inMine[i] == j && inTheirs[i] == k {
			out = append(out, b[i])
			i, j, k = i+1, j+1, k+1
			continue
		}
		end := i // end of the lines that differ between the three texts
		for end < len(b) && (inMine[end] < 0 || inTheirs[end] < 0) {
			end++
		}
		toMine, toTheirs := len(m), len(t)
		if end < len(b) {
			toMine, toTheirs = inMine[end], inTheirs[end]
		}
		rows, ok := both(b[i:end], m[j:toMine], t[k:toTheirs])
		if !ok {
			c := Clash{Name: fmt.Sprintf("clash%d", len(clashes)+1), Before: strings.Join(b[i:end], "\n"), Mine: strings.Join(m[j:toMine], "\n"), Theirs: strings.Join(t[k:toTheirs], "\n")}
			switch c.Choice = choice(c.Name); c.Choice {
			case "mine":
				rows = m[j:toMine]
			case "theirs":
				rows = t[k:toTheirs]
			default:
				c.Choice = ""
			}
			clashes = append(clashes, c)
		}
		out = append(out, rows...)
		i, j, k = end, toMine, toTheirs
	}
	if len(out) == 0 {
		return "", clashes, true
	}
	return strings.Join(out, "\n") + "\n", clashes, true
}

// both combines mine and theirs, two versions of the lines in base. This is possible if the versions are equal, if one
// of them equals base, or if one of them only adds lines before or after the lines of base. Otherwise the second result
// is false.
func both(base, mine, theirs []string) ([]string, bool) {
	switch n := len(base); {
	case slices.Equal(mine, theirs), slices.Equal(base, theirs):
		return mine, true
	case slices.Equal(base, mine):
		return theirs, true
	case slices.Equal(mine[:min(n, len(mine))], base):
		return slices.Concat(theirs, mine[n:]), true
	case slices.Equal(theirs[:min(n, len(theirs))], base):
		return slices.Concat(mine, theirs[n:]), true
	case slices.Equal(theirs[max(0, len(theirs)-n):], base):
		return slices.Concat(theirs[:len(theirs)-n], mine), true
	case slices.Equal(mine[max(0, len(mine)-n):], base):
		return slices.Concat(mine[:len(mine)-n], theirs), true
	}
	return nil, false
}

// matches returns, for each line of a, the index of its counterpart in b, or -1 if the line changed or is missing in b.
// ok is false if the texts are too long.
func matches(a, b string) (at []int, ok bool) {
	rows, ok := Rows(a, b)
	for _, r := range rows {
		switch r.Kind {
		case "same":
			at = append(at, r.NewNo-1)
		case "del":
			at = append(at, -1)
		}
	}
	return at, ok
}
