// SPDX-License-Identifier: Apache-2.0

package console

import (
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/claim"
)

// coverage describes the stored requests of the period between from and to, with the gaps in them. It leaves out the
// details that the user may not see; see the method shown.
func (v *view) coverage(from, to time.Time) (claim.Coverage, error) {
	if v.store == nil {
		return claim.Coverage{}, nil
	}
	c, err := v.store.Coverage(v.ctx, from, to)
	return v.shown(c), err
}

// shown removes the parts of a coverage that the user may not see: the names of servers and advice for operators.
func (v *view) shown(c claim.Coverage) claim.Coverage {
	if v.may == nil {
		return c
	}
	c.Servers = nil
	for i := range c.Gaps {
		g := &c.Gaps[i]
		g.Close = "tell the people who run the server"
		switch g.Name {
		case store.GapNotRecorded:
			g.What += " (of all hosts)"
		case store.GapSilentServer:
			g.What = "a server has stopped sending totals, so its latest requests are missing"
		case store.GapUnsentRows:
			g.What = "a server has not yet sent the totals of all its requests to the fleet database"
		case store.GapClocksApart:
			g.What = "the clock of a server is wrong"
		}
	}
	return c
}

// Unseen returns a text about the requests in the chosen period that the numbers do not include.
func (v *view) Unseen() string {
	from, to := v.span()
	text := v.missing(from, to)
	if v.node != "" {
		text += " The numbers on this page include only requests that the server " + v.node + " received."
	}
	return strings.TrimSpace(text)
}

// missing returns a text with one sentence for each gap in the stored requests of the period between from and to. The
// text begins with a space, unless it is empty, so that a page can append it to another sentence.
func (v *view) missing(from, to time.Time) (text string) {
	c, err := v.coverage(from, to)
	if err != nil {
		return " It is not known which requests are missing here: " + firstLine(err.Error()) + "."
	}
	for _, g := range c.Gaps {
		text += " Gap in the numbers: " + g.What + "."
	}
	return text
}

// coverageNotices returns warnings about requests that the numbers of the last day do not include.
func (v *view) coverageNotices() (all []notice) {
	c, err := v.coverage(v.Now.Add(-24*time.Hour), v.Now)
	see := []action{{"See the recorders", v.Link("health", "#", "rec")}}
	if err != nil {
		return []notice{{Screen: "health", Heading: "It is not known whether all requests were recorded", Text: sentence(firstLine(err.Error())), Actions: see}}
	}
	for _, g := range c.Gaps {
		all = append(all, notice{Screen: "health", Since: g.From, Heading: strings.TrimSuffix(sentence(g.What), "."), Text: sentence("some requests are missing from the totals, or have wrong times. This did not slow down the site. What to do: " + g.Close), Actions: see})
	}
	return all
}
