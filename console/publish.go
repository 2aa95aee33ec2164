// SPDX-License-Identifier: Apache-2.0

package console

import (
	"slices"
	"strconv"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/activity/replay"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/site/edit"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// publishBox returns the form that publishes the draft, or the reasons why the draft cannot be published.
func (v *view) publishBox(d *changeData) publishBox {
	b := publishBox{Token: token(v.Now, d.Base, v.person.Name), ReadOnly: v.readOnly(d)}
	b.MayPublish = v.lacks(publisher)
	b.MaySave = b.ReadOnly == "" && (d.Saved == nil || d.Saved.Text != d.Text)
	b.MayApprove = b.ReadOnly == "" && v.options.Approval > 1 && d.mayApprove(v)
	add := func(passes bool, good, bad string) {
		text := good
		if !passes {
			text = bad
			if b.WhyNot == "" {
				b.WhyNot = bad
			}
		}
		b.Conditions = append(b.Conditions, condition{passes, text})
	}
	good := "No errors"
	if d.Draft.Failing > 0 {
		good = "No errors, apart from failed tests"
	}
	add(d.Draft.Errors-d.Draft.Failing <= 0, good, plural(d.Draft.Errors-d.Draft.Failing, "error", "errors")+" in the draft")
	if c := d.Draft.TestsPass; c.Made() {
		add(c.Holds() || d.Returns == source.Undo, c.Text(), sentences(c))
	}
	if unknown := edit.UnknownCrawlers(d.Draft.Diagnostics, v.Running.Warnings); len(unknown) > 0 {
		add(false, "", "line "+strconv.Itoa(unknown[0].Pos.Line)+": "+unknown[0].Message)
	}
	if d.Draft.site != nil {
		d.searchLoss(&b, add)
	}
	if d.Draft.site != nil && v.may != nil {
		add(v.staysInside(v.Running.Site, d.Draft.site), "Changes only rules and tests for "+english.Some(v.may, 3), outsideWords(v.may))
	}
	add(d.Base == d.Live, "The draft is still based on the version in force", "Another version was published in the meantime. Apply your change to that version.")
	add(!d.Same, "Differs from the version in force", "The draft is the same as the version in force.")
	if n := v.options.Approval; n > 1 && b.ReadOnly == "" {
		others := d.behind(v)
		good := "Approved by " + english.List(shortenAll(others), "and")
		add(len(others)+1 >= n, good, plural(n-1-len(others), "other person", "other people")+" must approve the draft. Save it, so that they can approve or publish it.")
	}
	if b.ReadOnly == "" {
		add(b.MayPublish == "", "You may publish", b.MayPublish)
	}
	b.Ready = b.ReadOnly == "" && b.WhyNot == ""
	return b
}

// searchLoss adds a condition to the form. The draft can be published only if search engines do not lose anything
// because of it. An undo always meets the condition. If the draft restores an earlier version, the condition is also
// met if the user accepts the losses and gaps in b.Losers.
func (d *changeData) searchLoss(b *publishBox, add func(passes bool, good, bad string)) {
	text := strings.Join(append([]string{d.Keeps.Text()}, d.Keeps.Lines()...), "; ")
	switch {
	case d.Keeps.Holds():
		if b.Losers = d.losers(); d.Returns == source.Earlier && len(b.Losers) > 0 {
			b.Accepted = true
		}
		add(true, text, "")
	case d.Returns == source.Undo:
		add(true, "Losses do not stop an undo: "+text, "")
	case d.Returns == source.Earlier:
		b.Losers = d.losers()
		add(false, "", text+". To go back to this version anyway, accept the losses below")
	default:
		add(false, "", text)
	}
}

// losers returns the names that the user must accept: the search engines that lose something because of the draft, and
// the gaps in the data about such losses.
func (d *changeData) losers() []string {
	names := d.Losses.Names()
	for _, g := range d.Keeps.Gaps() {
		names = append(names, g.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// judgeKeeps returns the claim that search engines do not lose anything because of the draft. It uses the replay of the
// stored traffic or, without a complete replay, the comparison of the draft with the policy in force. If the draft
// restores an earlier version, judgeKeeps always uses the comparison, because the user must then accept all losses,
// even on pages that received no requests.
func (d *changeData) judgeKeeps(v *view) claim.Claim {
	if d.Returns == source.Earlier {
		return replay.KeepsBy(d.Losses, false, d.Accept)
	}
	if r := d.Replay; r != nil && r.Error == "" && !r.TooLong && !v.Running.first {
		return r.Keeps(0, nil)
	}
	return replay.KeepsBy(d.Losses, v.Running.first, nil)
}

// readOnly returns the reason why a draft can neither be saved nor published here. If the draft can be saved or
// published, it returns "".
func (v *view) readOnly(d *changeData) string {
	switch {
	case d.Hidden:
		return "The policy also has rules for other hosts, so you cannot publish it here. Download the file."
	case v.Running.document == nil || !v.Running.document.Writable():
		return "The policy is a file, and the console does not write files. Download the draft and replace the file with it. The server loads it automatically."
	}
	return v.lacks(editor)
}

// outsideWords returns the message for a draft that changes decisions about hosts that the user may not change. The
// message names the hosts in may, which are the hosts that the user may change.
func outsideWords(may []string) string {
	return "the draft changes rules for hosts other than " + english.Some(may, 3) + ". Limit each changed rule to " + english.Some(may, 3) + " with the key `hosts`, or add `hosts *` to the directive robots_policy_console."
}

// readySubject holds the data that [ready] judges.
type readySubject struct {
	Keeps claim.Claim `gap:"search-keeps" what:"the losses of search engines were not computed"`
	Unmet string      // a condition for publishing that is not met
}

// ready is the claim that a draft can be published.
var ready = claim.Register("ready", func(s readySubject) claim.Finding {
	f := claim.Finding{Text: "Ready to go live", Unjudged: s.Keeps.Text(), Details: []string{sentence(s.Keeps.Text())}}
	switch {
	case s.Keeps.Outcome() == claim.Fails:
		f.Fails, f.Text = true, s.Keeps.Text()
		f.Details = nil
	case s.Keeps.Holds() && s.Unmet != "":
		f.Fails, f.Text = true, "Not ready: "+s.Unmet
	}
	for _, line := range s.Keeps.Details() {
		f.Details = append(f.Details, sentence(line))
	}
	return f
})

// headline is a short text that says whether the draft can be published, and if not, why.
type headline struct {
	Class, Text string
	Lines       []string
}

// Headline returns the headline for the template.
func (d *changeData) Headline() headline {
	switch wrong := d.Draft.Errors > 0 && (d.Returns != source.Undo || d.Draft.Errors > d.Draft.Failing); {
	case wrong:
		return headline{Class: "alert", Text: "Not ready: " + d.Publish.WhyNot}
	case d.Returns == source.Undo && d.Publish.WhyNot == "":
		h := headline{Class: "fine", Text: "Ready to undo"}
		if !d.Keeps.Holds() {
			h.Class, h.Lines = "warning", append([]string{sentence(d.Keeps.Text())}, d.Keeps.Lines()...)
		}
		return h
	}
	c := claim.Judge(ready, readySubject{d.Keeps, d.Publish.WhyNot})
	h := headline{c.Class(), c.Text(), append(c.Lines(), d.Replay.missing()...)}
	if d.Keeps.Holds() && !c.Holds() { // search engines keep everything, but another condition is not met
		h.Class = "warning"
	}
	return h
}
