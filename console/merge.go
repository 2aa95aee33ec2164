// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/textdiff"
)

// overtaken reports that another person changed the text that a draft started from.
type overtaken struct {
	What         string // describes the change of the other person, as a sentence
	Onto         string // names the text that the user's change can be applied to
	Theirs, Mine *textdiff.Diff
	Clashes      []textdiff.Clash // conflicts, where the user must choose one of the two texts
}

// overtake finds the changes that other people made after the draft was started.
func (v *view) overtake(d *changeData) {
	o, theirs := new(overtaken), v.Running.Text
	switch {
	case d.Base != d.Live:
		o.Onto, o.What = "the version in force", "Since this draft was begun, another version was published"
		if all := v.stands().History; len(all) > 0 && all[0].SHA256 == d.Live {
			o.Onto = fmt.Sprintf("version %d", all[0].Number)
			o.What = fmt.Sprintf("Since this draft was begun, version %d was published%s", all[0].Number, signedWords(all[0].Signed))
		}
	case d.Saved != nil && d.SavedID != d.Saved.ID() && d.Saved.Text != d.Text && d.Saved.Base == d.Base:
		theirs, o.Onto, o.What = d.Saved.Text, "that draft", "Another draft was saved in the meantime"+signedWords(d.Saved.Signed)
	default:
		return
	}
	d.Overtaken = o
	if !d.baseKnown {
		return
	}
	o.Theirs, o.Mine = textdiff.Compare(d.baseText, theirs), textdiff.Compare(d.baseText, d.Text)
	if v.r.PostFormValue("do") != "onto" {
		return
	}
	text, clashes, ok := textdiff.Merge(d.baseText, d.Text, theirs, v.r.PostFormValue)
	if !ok {
		d.Problem = "The policy is too long to combine your change with the other change. Start again from the version in force."
		return
	}
	if slices.ContainsFunc(clashes, func(c textdiff.Clash) bool { return c.Choice == "" }) {
		o.Clashes = clashes
		return
	}
	d.Text, d.Moved = text, "Your change is now based on "+o.Onto+"."
	if d.Overtaken = nil; d.Base == d.Live {
		d.SavedID = d.Saved.ID()
		d.Continues = d.SavedID
	}
	d.Base = d.Live
}
