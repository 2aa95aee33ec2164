// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aryann/difflib"
)

// overtaken is that somebody else changed what a draft started from.
type overtaken struct {
	What         string // they did
	Onto         string // what the change can be put onto
	Theirs, Mine *textDiff
	Clashes      []clash // places at which one of the two must be chosen

	base, theirs string
	known        bool // base is
	draft        bool // theirs is a draft that is saved, not the version in force
}

// clash is lines that both have changed.
type clash struct {
	Name                 string // of its choice in the form
	Before, Mine, Theirs string
	Choice               string // mine, theirs or empty
}

// overtake finds what somebody else changed in the meantime.
func (v *view) overtake(d *changeData) {
	o := &overtaken{base: d.baseText, known: d.baseKnown}
	switch {
	case d.Base != d.Live:
		o.theirs, o.Onto, o.What = v.Running.Text, "the version in force", "Another version was published since this draft was begun"
		if all := v.published(); len(all) > 0 && all[0].SHA256 == d.Live {
			o.Onto = fmt.Sprintf("version %d", all[0].Number)
			o.What = fmt.Sprintf("Version %d was published since this draft was begun%s", all[0].Number, signedWords(all[0].Signed))
		}
	case d.Saved != nil && d.SavedID != d.Saved.ID() && d.Saved.Text != d.Text && d.Saved.Base == d.Base:
		o.theirs, o.draft, o.Onto, o.What = d.Saved.Text, true, "that draft", "Another draft was saved in the meantime"+signedWords(d.Saved.Signed)
	default:
		return
	}
	d.Overtaken = o
	if !o.known {
		return
	}
	o.Theirs, o.Mine = diffTexts(o.base, o.theirs), diffTexts(o.base, d.Text)
	if v.r.PostFormValue("do") != "onto" {
		return
	}
	text, clashes := mergeTexts(o.base, d.Text, o.theirs, v.r.PostFormValue)
	if slices.ContainsFunc(clashes, func(c clash) bool { return c.Choice == "" }) {
		o.Clashes = clashes
		return
	}
	d.Text, d.Moved = text, "Your change now stands on "+o.Onto+"."
	if d.Overtaken = nil; o.draft {
		d.SavedID = d.Saved.ID()
	} else {
		d.Base = d.Live
	}
}

// mergeTexts makes both changes of a text: mine and theirs. Where both changed the same lines, it
// takes those that choice names for the clash.
func mergeTexts(base, mine, theirs string, choice func(name string) string) (string, []clash) {
	b, m, t := lines(base), lines(mine), lines(theirs)
	inMine, inTheirs := matches(b, m), matches(b, t)
	var out []string
	var clashes []clash
	i, j, k := 0, 0, 0
	for i < len(b) || j < len(m) || k < len(t) {
		if i < len(b) && inMine[i] == j && inTheirs[i] == k {
			out = append(out, b[i])
			i, j, k = i+1, j+1, k+1
			continue
		}
		end := i // of lines that are not in all three
		for end < len(b) && (inMine[end] < 0 || inTheirs[end] < 0) {
			end++
		}
		toMine, toTheirs := len(m), len(t)
		if end < len(b) {
			toMine, toTheirs = inMine[end], inTheirs[end]
		}
		rows, ok := both(b[i:end], m[j:toMine], t[k:toTheirs])
		if !ok {
			c := clash{Name: fmt.Sprintf("clash%d", len(clashes)+1), Before: strings.Join(b[i:end], "\n"), Mine: strings.Join(m[j:toMine], "\n"), Theirs: strings.Join(t[k:toTheirs], "\n")}
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
		return "", clashes
	}
	return strings.Join(out, "\n") + "\n", clashes
}

// both makes two changes of the same lines, if they are one change, or one of them only adds
// lines before or after.
func both(base, mine, theirs []string) ([]string, bool) {
	switch n := len(base); {
	case slices.Equal(mine, theirs), slices.Equal(base, theirs):
		return mine, true
	case slices.Equal(base, mine):
		return theirs, true
	case hasPrefix(mine, base):
		return slices.Concat(theirs, mine[n:]), true
	case hasPrefix(theirs, base):
		return slices.Concat(mine, theirs[n:]), true
	case hasSuffix(theirs, base):
		return slices.Concat(theirs[:len(theirs)-n], mine), true
	case hasSuffix(mine, base):
		return slices.Concat(mine[:len(mine)-n], theirs), true
	}
	return nil, false
}

func hasPrefix(a, prefix []string) bool {
	return len(a) >= len(prefix) && slices.Equal(a[:len(prefix)], prefix)
}

func hasSuffix(a, suffix []string) bool {
	return len(a) >= len(suffix) && slices.Equal(a[len(a)-len(suffix):], suffix)
}

// matches are the places in b of the lines of a, -1 for those that it does not have.
func matches(a, b []string) []int {
	at := make([]int, 0, len(a))
	n := 0
	for _, r := range difflib.Diff(a, b) {
		switch r.Delta {
		case difflib.Common:
			at = append(at, n)
			n++
		case difflib.LeftOnly:
			at = append(at, -1)
		case difflib.RightOnly:
			n++
		}
	}
	return at
}
