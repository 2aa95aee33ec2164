// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/site/edit"
)

// decision has the fields of the form on the Change page that adds a decision to the draft, such as blocking a crawler.
// It also has the result of adding the decision.
type decision struct {
	Who, Do, Place, Much, On string
	Intended                 bool
	Problems                 []string // the reasons why the decision, or a reservation, could not be added to the draft
	Unmet                    []string // the crawlers that the decision does not apply to
}

// Choices returns the decisions that the form offers, with the values that the form sends.
func (*changeData) Choices() [][2]string {
	return [][2]string{
		{"allow", "Allow"}, {"ask", "Ask not to (robots.txt)"}, {"block", "Block"}, {"slow", "Slow down"}, {"snippet", "Set the length of snippets"}, {"ask train-ai", "Reserve rights: no AI training"}, {"ask ai-use", "Reserve rights: no AI use"},
	}
}

// decideIn adds the decision from a form or a link to the text of the draft.
func (v *view) decideIn(d *changeData) {
	get, do := v.Param, ""
	if v.r.Method == http.MethodPost {
		get, do = v.r.PostFormValue, v.r.PostFormValue("do")
	}
	c := &d.Decision
	c.Who, c.Do, c.On, c.Intended = strings.TrimSpace(get("who")), cmp.Or(get("choose"), string(edit.Refuse)), get("on"), get("intended") != ""
	c.Place, c.Much = strings.TrimSpace(get("place")), strings.TrimSpace(get("much"))
	switch {
	case d.Hidden:
	case do == "rights":
		v.reserveIn(d, get)
	case do == "decide", v.r.Method == http.MethodGet && get("choose") != "":
		what, place := c.Do, c.Place
		switch edit.Action(what) {
		case edit.Slow:
			if place != "" && place != "/" {
				c.Problems = append(c.Problems, "a rate limit applies to the whole site, not to "+shorten(place)+": leave “Where” empty, or choose Block for a section")
				return
			}
			c.Much = cmp.Or(c.Much, "60/m")
			place = c.Much
		case edit.Snippet:
			c.Much = cmp.Or(c.Much, "160")
			what += " " + c.Much
		case edit.Allow, edit.Ask, edit.Refuse:
		}
		choice, err := edit.NewChoice(c.Who, edit.Action(what), place, c.On, c.Intended)
		if err != nil {
			c.Problems = append(c.Problems, err.Error())
			return
		}
		before := d.Text
		r, err := edit.Apply(d.File, d.Text, choice, v.Now)
		d.put("", "some of the chosen crawlers are not affected", r, err)
		if len(c.Problems) == 0 && d.Text == before {
			c.Problems = append(c.Problems, "the draft already has this decision")
		}
	}
}

// put updates d after an edit of the draft that returned r and err. If err is nil, the text in r becomes the draft, and
// put notes the crawlers that the edit does not affect, each with the text unmet in front. Otherwise put notes a
// problem: the text what, which names the edit, and the message of err.
func (d *changeData) put(what, unmet string, r *edit.Result, err error) {
	if invalid, ok := errors.AsType[*edit.InvalidError](err); ok {
		i := slices.IndexFunc(invalid.Diagnostics, func(x policyfile.Diagnostic) bool { return x.Severity == policy.Error })
		err = errors.New(invalid.Diagnostics[max(i, 0)].Message)
	}
	c := &d.Decision
	if err != nil {
		c.Problems = append(c.Problems, what+err.Error())
		return
	}
	d.Text = r.Text
	for i := range r.Unmet {
		c.Unmet = append(c.Unmet, unmet+": "+r.Unmet[i].String())
	}
}

// DecideLink returns a link to the Change page. The link opens a draft that contains one more decision. The parameters
// do, who, place and on are the action, the crawlers, the path and the host of this decision. DecideLink returns "" if
// who is empty, or if the user may not see the policy's text.
func (v *view) DecideLink(do, who, place, on string) string {
	if !v.showsText() || who == "" {
		return ""
	}
	return v.Link("change", "choose", do, "who", who, "place", place, "on", on, "#", "result")
}

// decideLinks holds the decision links that a cell of the page "Who may" offers.
type decideLinks struct {
	Label string
	Links []action
}

// decideLinks returns links to decisions about the section s. There are links for the crawler a, for its category and,
// if a is a crawler for AI, for all crawlers for AI. If a is not a crawler of the policy, there are only links for
// everyone.
func (v *view) decideLinks(a *asker, s *section) (all []decideLinks) {
	on := ""
	if s.Whole || v.Host != "" {
		on = s.Host
	}
	subjects := [][2]string{{a.Name, a.Name}}
	if a.id == 0 {
		subjects = [][2]string{{"Everyone", "everyone"}}
	} else {
		if crawlers.Category(a.Kind).Valid() {
			subjects = append(subjects, [2]string{"All crawlers in category:" + a.Kind, "category:" + a.Kind})
		}
		if v.Running.Site.Policy.CrawlerInfo(a.id).AI {
			subjects = append(subjects, [2]string{"All crawlers for AI", "category:ai"})
		}
	}
	for _, subject := range subjects {
		l := decideLinks{Label: subject[0]}
		for _, do := range [][2]string{{"Allow", "allow"}, {"Ask not to", "ask"}, {"Block", "block"}, {"Slow down everywhere", "slow"}} {
			place := s.Path
			if do[1] == string(edit.Slow) { // rate limits apply only to whole sites
				if place = ""; on != "" {
					do[0] = "Slow down on the whole host"
				}
			}
			if href := v.DecideLink(do[1], subject[1], place, on); href != "" {
				l.Links = append(l.Links, action{do[0], href})
			}
		}
		if len(l.Links) > 0 {
			all = append(all, l)
		}
	}
	return all
}
