// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/textdiff"
)

// overtaken is that somebody else changed what a draft started from.
type overtaken struct {
	What         string // they did
	Onto         string // what the change can be put onto
	Theirs, Mine *textdiff.Diff
	Clashes      []textdiff.Clash // places at which one of the two must be chosen

	base, theirs string
	known        bool // base is
	draft        bool // theirs is a draft that is saved, not the version in force
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
	o.Theirs, o.Mine = textdiff.Compare(o.base, o.theirs), textdiff.Compare(o.base, d.Text)
	if v.r.PostFormValue("do") != "onto" {
		return
	}
	text, clashes, ok := textdiff.Merge(o.base, d.Text, o.theirs, v.r.PostFormValue)
	if !ok {
		d.Problem = "The texts are too long to put the changes together. Start again from the version in force."
		return
	}
	if slices.ContainsFunc(clashes, func(c textdiff.Clash) bool { return c.Choice == "" }) {
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
