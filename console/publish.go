// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// publishBox says what can be done with a draft.
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
		good = "No errors, apart from the tests"
	}
	add(d.Draft.Errors-d.Draft.Failing <= 0, good, plural(d.Draft.Errors-d.Draft.Failing, "error", "errors")+" in the draft")
	if len(d.Draft.Tests) > 0 {
		add(d.Draft.Failing == 0 || d.Returns == source.Undo, "All "+plural(len(d.Draft.Tests), "test", "tests")+" pass", plural(d.Draft.Failing, "test fails", "tests fail"))
	}
	if d.Draft.site != nil {
		d.searchLoss(&b, add)
	}
	if d.Draft.site != nil && v.may != nil {
		add(v.staysInside(v.Running.Site, d.Draft.site), "Changes nothing outside "+english.Some(v.may, 3), outsideWords(v.may))
	}
	add(d.Base == d.Live, "Still based on the version in force", "Another version was published in the meantime. Put the change onto it.")
	add(!d.Same, "Differs from the version in force", "The draft is the version in force.")
	if n := v.options.Approval; n > 1 && b.ReadOnly == "" {
		others := d.behind(v)
		good := "Approved by " + english.List(shortenAll(others), "and")
		add(len(others)+1 >= n, good, plural(n-1-len(others), "other person", "other people")+" must approve it: save the draft, and let them approve or publish it.")
	}
	if b.ReadOnly == "" {
		add(b.MayPublish == "", "You may publish", b.MayPublish)
	}
	b.Ready = b.ReadOnly == "" && b.WhyNot == ""
	return b
}

// searchLoss says what search engines lose by the draft, and whether that is a reason not to publish it. An undo is not
// stopped by it; a version that was served earlier needs it accepted by name.
func (d *changeData) searchLoss(b *publishBox, add func(passes bool, good, bad string)) {
	good, bad := d.guard()
	switch {
	case bad == "":
		add(true, "Search-loss limit: "+good, "")
	case d.Returns == source.Undo:
		add(true, "An undo, which the search-loss limit does not stop: "+bad, "")
	case d.Returns == source.Earlier:
		b.Losers = d.losers()
		accepted := !slices.ContainsFunc(b.Losers, func(name string) bool { return !slices.Contains(d.Accept, name) })
		b.Accepted = accepted
		add(accepted, "Accepted: "+bad, "Search-loss limit: "+bad+". To go back to this version in spite of this, accept the losses below")
	default:
		add(false, "", "Search-loss limit: "+bad)
	}
}

// losers are the search engines that may lose something by the draft.
func (d *changeData) losers() []string {
	names := d.Losses.Names()
	if r := d.Replay; r.judges() {
		for _, c := range r.Loss.Crawlers {
			if !c.Intended {
				names = append(names, c.Crawler)
			}
		}
		if r.TooLong || len(r.Loss.Undecided) > 0 {
			names = append(names, compare.Undecided)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// readOnly says why nothing can be done here with a draft, "" if something can.
func (v *view) readOnly(d *changeData) string {
	switch {
	case d.Hidden:
		return "The policy has rules for other hosts, so it is changed where these are shown, too. Download the file."
	case v.Running.document == nil || !v.Running.document.Writable():
		return "The policy is read from a file, which the console does not write. Download the draft and put it there; the server loads it automatically."
	}
	return v.lacks(editor)
}

// outsideWords says that a draft decides more than pages of a site may.
func outsideWords(may []string) string {
	return "the draft changes rules for hosts other than " + english.Some(may, 3) + ". Name the hosts in each rule that changes, or let the directive robots_policy_console have `hosts *`."
}

// guard says what search engines lose by the draft; bad is empty if that is nothing, and good shows it.
func (d *changeData) guard() (good, bad string) {
	r := d.Replay
	switch {
	case d.First != nil:
		return "this is the first policy, so there is none to compare with", ""
	case !r.judges() && d.Losses.Any():
		return "", "search engines lose something: " + strings.Join(d.Losses.Words(), "; ")
	case r == nil:
		return "no traffic is stored; " + byComparison, ""
	case r.Error != "":
		return "the stored traffic cannot be read (" + r.Error + "); " + byComparison, ""
	case !r.judges():
		return "no request of the last " + plural(r.Days, "day", "days") + " is stored; " + byComparison + strings.TrimSuffix("."+r.Unsent, "."), ""
	case r.TooLong:
		return "", "whether search engines lose anything cannot be judged: there was no time to replay the traffic. Choose fewer days, and check again"
	case r.Loss.Requests > 0:
		return "", "search engines lose " + plural(r.Loss.Requests, "request", "requests") + ": " + r.Loss.Who()
	case len(r.Loss.Undecided) > 0:
		return "", "whether search engines lose anything cannot be judged: " + r.Loss.Unsaid()
	}
	good = fmt.Sprintf("%s of the last %s replayed, and search engines lose none that is not intended", plural(r.Requests, "request", "requests"), plural(r.Days, "day", "days"))
	if d.Losses.Any() {
		good += ". They lose paths that none of them requested: " + strings.Join(d.Losses.Words(), "; ")
	}
	return good + strings.TrimSuffix("."+r.Unsent, "."), ""
}

const byComparison = "by comparison of the two policies, search engines lose nothing that is not intended"

// headline is the answer to what the draft would change.
type headline struct {
	Class, Text string
	Lines       []string
}

// Headline is for the template.
func (d *changeData) Headline() headline {
	wrong := d.Draft.Errors > 0 && (d.Returns != source.Undo || d.Draft.Errors > d.Draft.Failing)
	good, bad := "", ""
	if !wrong {
		good, bad = d.guard()
	}
	switch r := d.Replay; {
	case !wrong && d.Returns == source.Undo && d.Publish.WhyNot == "":
		h := headline{Class: "fine", Text: "Ready to undo"}
		if bad != "" {
			h.Class, h.Lines = "warning", []string{sentence(bad)}
		}
		return h
	case wrong || bad == "" && d.Publish.WhyNot != "":
		h := headline{Class: "warning", Text: "Not ready: " + d.Publish.WhyNot}
		if wrong {
			h.Class = "alert"
		}
		return h
	case bad == "":
		return headline{"fine", "Ready to go live", []string{sentence(good)}}
	case r != nil && r.Loss.Requests > 0:
		return headline{"alert", "Search engines lose " + plural(r.Loss.Requests, "request", "requests") + " of the last " + plural(r.Days, "day", "days"), []string{sentence(r.Loss.Who())}}
	case r.judges():
		return headline{"warning", "Cannot be judged", []string{sentence(bad)}}
	}
	return headline{"alert", "Search engines lose something", d.Losses.Words()}
}
