// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/site/edit"
)

// decision is one decision about a crawler that goes into the draft.
type decision struct {
	Who, Do, Place, On string
	Intended           bool
	Problem            string   // why it is not in the draft
	Unmet              []string // crawlers for which it does not hold
}

// decideIn makes the decision of the form, or of a link, in the text of the draft.
func (v *view) decideIn(d *changeData) {
	get := v.Param
	if v.r.Method == "POST" {
		get = v.r.PostFormValue
	}
	c := &d.Decision
	c.Who, c.Do = strings.TrimSpace(get("who")), cmp.Or(get("choose"), string(edit.Refuse))
	c.Place, c.On, c.Intended = strings.TrimSpace(get("place")), get("on"), get("intended") != ""
	if d.Hidden || v.r.Method == "POST" && get("do") != "decide" || v.r.Method != "POST" && get("choose") == "" {
		return
	}
	if c.Do == string(edit.Slow) && (c.Place == "" || c.Place == "/") {
		c.Place = "60/m"
	}
	choice, err := edit.NewChoice(c.Who, edit.Action(c.Do), c.Place, c.On, c.Intended)
	if err != nil {
		c.Problem = err.Error()
		return
	}
	r, err := edit.Apply(d.File, d.Text, choice, v.Now)
	if invalid, ok := errors.AsType[*edit.InvalidError](err); ok {
		i := slices.IndexFunc(invalid.Diagnostics, func(x policyfile.Diagnostic) bool { return x.Severity == policy.Error })
		c.Problem = invalid.Diagnostics[max(i, 0)].Message
		return
	}
	if err != nil {
		c.Problem = err.Error()
		return
	}
	if r.Text == d.Text {
		c.Problem = "the draft decides so already"
	}
	d.Text = r.Text
	for i := range r.Unmet {
		c.Unmet = append(c.Unmet, r.Unmet[i].String())
	}
}

// DecideLink opens a draft with one decision about a crawler, or a category; "" where the
// text may not be shown.
func (v *view) DecideLink(do, who, place, on string) string {
	if !v.showsText() || who == "" {
		return ""
	}
	return v.Link("change", "choose", do, "who", who, "place", place, "on", on, "#", "result")
}

// decideLinks are the decisions that a cell of Who may offers.
type decideLinks struct {
	Label string
	Links []decideLink
}

type decideLink struct{ Text, Href string }

// decideLinks offers a decision for the crawler of a cell and for its category, in the
// section of the cell.
func (v *view) decideLinks(a *asker, s *section) (all []decideLinks) {
	on := ""
	if s.Whole || v.Host != "" {
		on = s.Host
	}
	subjects := [][2]string{{a.Name, a.Name}}
	if a.id == 0 {
		subjects = [][2]string{{"Everyone", "everyone"}}
	} else if a.Kind != "" {
		subjects = append(subjects, [2]string{"All of category:" + a.Kind, "category:" + a.Kind})
	}
	for _, subject := range subjects {
		l := decideLinks{Label: subject[0]}
		for _, do := range [][2]string{{"Allow", "allow"}, {"Ask not to", "ask"}, {"Refuse", "refuse"}} {
			if href := v.DecideLink(do[1], subject[1], s.Path, on); href != "" {
				l.Links = append(l.Links, decideLink{do[0], href})
			}
		}
		if len(l.Links) > 0 {
			all = append(all, l)
		}
	}
	return all
}
