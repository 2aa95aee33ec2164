// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// alarmSubject holds the data that [noAlarm] judges.
type alarmSubject struct {
	Notices  []notice
	Recorded claim.Known[struct{}] `gap:"not-read" what:"the stored requests could not be read" close:"see the page Health"`
}

var noAlarm = claim.Register("no-alarm", func(s alarmSubject) claim.Finding {
	f := claim.Finding{
		Text:     "No alert and no warning. The checks are listed below",
		Unjudged: "No alert and no warning in the available data, which is incomplete",
	}
	if len(s.Notices) == 0 {
		return f
	}
	alarms := 0
	for _, n := range s.Notices {
		alarms += map[bool]int{true: 1}[n.Alert]
	}
	warnings := len(s.Notices) - alarms
	text := plural(alarms, "alert", "alerts")
	switch {
	case alarms == 0:
		text = plural(warnings, "warning", "warnings")
	case warnings > 0:
		text += " and " + plural(warnings, "warning", "warnings")
	}
	f.Fails, f.Text = true, text+": "+map[bool]string{true: "first, "}[len(s.Notices) > 1]+strings.TrimSuffix(sentence(s.Notices[0].Heading), ".")
	return f
})

// summary returns the claim that there is no alert and no warning. The Overview page begins with the sentence of this
// claim.
func (v *view) summary() claim.Claim {
	s := alarmSubject{Notices: v.notices()}
	if c, err := v.coverage(v.Now.Add(-24*time.Hour), v.Now); err == nil {
		s.Recorded = claim.Read(struct{}{}, c)
	}
	return claim.Judge(noAlarm, s)
}

// searched holds the requests of verified search engines in a period.
type searched struct {
	requests int64
	unmeant  []store.Row // rows with blocked requests that no rule declares as intended
	blocks   bool        // true if the policy in force has a rule that blocks crawlers
}

// blockedSubject holds the data that [noneBlocked] judges.
type blockedSubject struct {
	Requests claim.Known[searched] `gap:"not-read" what:"the stored requests could not be read" close:"see the page Health"`
}

var noneBlocked = claim.Register("none-blocked-unmeant", func(s blockedSubject) claim.Finding {
	all, _ := s.Requests.Get()
	return claim.Finding{
		Fails:    len(all.unmeant) > 0,
		Text:     plural(all.requests, "request", "requests") + " of verified search engines in the last 24 hours. None was blocked, except by rules with the key “intended”",
		Unjudged: "Whether verified search engines were blocked in the last 24 hours cannot be judged",
		Matters:  func(claim.Gap) bool { return all.blocks || !s.Requests.WasRead() },
	}
})

// readSearched returns the requests of verified search engines in the last day.
func (v *view) readSearched() (claim.Known[searched], error) {
	none := claim.Known[searched]{}
	from, to := v.Now.Add(-24*time.Hour), v.Now.Add(time.Hour)
	rows, err := v.totals(v.searchEngines(from, to, store.ByCrawler, store.ByRule, store.ByHost, store.ByDecision))
	if err != nil {
		return none, err
	}
	s := searched{blocks: v.Running != nil && blocksAnyone(v.Running.Spec())}
	for _, r := range rows {
		s.requests += r.Requests
		if r.Values[store.ByDecision] != string(activity.Blocked) {
			continue
		}
		if r.Requests, err = v.unmeant(r, from, to); err != nil {
			return none, err
		}
		if r.Requests > 0 {
			s.unmeant = append(s.unmeant, r)
		}
	}
	c, err := v.coverage(from, to)
	return claim.Read(s, c), err
}

// blocksAnyone reports whether a policy has any rule that blocks crawlers.
func blocksAnyone(s *policy.Spec) bool {
	return s.Enforcement.Mode == policy.ModeBlock || slices.ContainsFunc(s.Rules, func(r policy.Rule) bool { return r.Enforce == policy.ModeBlock })
}

// unmeant returns the number of blocked requests in r that no rule declares as intended. Several rules can have the
// rule name that r contains. If only some of these rules declare the blocking as intended, unmeant applies the policy
// to each path again to find out which rule blocks it.
func (v *view) unmeant(r store.Row, from, to time.Time) (int64, error) {
	if v.Running == nil {
		return r.Requests, nil
	}
	var named, meant int
	for _, rule := range v.Running.Spec().Rules {
		if v.Running.Site.RuleName(&rule) == r.Values[store.ByRule] {
			named++
			meant += map[bool]int{true: 1}[means(&rule)]
		}
	}
	switch meant {
	case 0:
		return r.Requests, nil
	case named:
		return 0, nil
	}
	q := v.searchEngines(from, to, store.ByPath)
	for _, d := range []store.Dimension{store.ByCrawler, store.ByRule, store.ByHost, store.ByDecision} {
		q.Only[d] = []string{r.Values[d]}
	}
	rows, err := v.totals(q)
	left := r.Requests
	for _, at := range rows {
		e := v.Running.Site.Edge(policy.Query{
			Crawler: v.Running.Site.Policy.Crawler(r.Values[store.ByCrawler]), Identity: policy.Verified,
			Host: r.Values[store.ByHost], Path: at.Values[store.ByPath], Now: v.Now,
		})
		if e.Blocked() && e.Decision.Rule != nil && means(e.Decision.Rule) {
			left -= at.Requests
		}
	}
	return left, err
}

// means reports whether a rule declares that it blocks search engines intentionally.
func means(r *policy.Rule) bool {
	return r.Intended || slices.Contains(r.IntendedChecks, "blocks-search")
}

// inForceSubject holds the data that [inForce] judges.
type inForceSubject struct {
	History claim.Known[*history] `gap:"history" what:"the stored versions could not be read" close:"see the page Health"`
	File    string
	Tests   claim.Claim `gap:"-"`
}

var inForce = claim.Register("in-force", func(s inForceSubject) claim.Finding {
	f := claim.Finding{Fails: true, Text: "No policy is in force", Unjudged: "It is not known which version is in force"}
	h, _ := s.History.Get()
	if h == nil {
		return claim.Finding{Unjudged: f.Unjudged}
	}
	if live := h.live(); live != nil {
		f.Fails = false
		f.Text = fmt.Sprintf("%s of %s has been in force since %s UTC", live.Label(), s.File, live.Since().UTC().Format("2 Jan 2006, 15:04"))
		if s.Tests.Holds() {
			f.Text += "; " + s.Tests.Text() + " when it was loaded"
		}
	}
	return f
})

// recordedSubject holds the data that [noneUnrecorded] judges.
type recordedSubject struct {
	Recorders int
	Missing   []string            // the recorders that did not record everything
	Totals    string              // the end of the sentence, about the stored totals
	Recorded  claim.Known[uint64] `gap:"not-read" what:"the stored requests could not be read" close:"see the page Health"`
}

var noneUnrecorded = claim.Register("none-unrecorded", func(s recordedSubject) claim.Finding {
	missed, _ := s.Recorded.Get()
	f := claim.Finding{Unjudged: "The totals of the last 24 hours may be incomplete"}
	switch {
	case s.Recorders == 0:
		f.Fails, f.Text = true, "Nothing is recorded, because robots_policy has no option that records requests, such as “activity”"
	case missed > 0:
		f.Fails, f.Text = true, plural(missed, "request was", "requests were")+" not recorded by "+english.List(s.Missing, "and")+" since the recorders were opened"
	default:
		f.Text = "No request is missing: " + plural(s.Recorders, "recorder has", "recorders have") + " recorded all requests since Caddy started, and " + s.Totals
	}
	return f
})

// inOrder returns the claims that are true or cannot be judged. The Overview page lists them as checks.
func (v *view) inOrder() (all []claim.Claim) {
	if v.Running != nil && !v.Running.first {
		s := inForceSubject{File: v.Running.File()}
		if h, err := v.history(); err == nil {
			s.History = claim.Read(h, claim.Coverage{})
		}
		s.Tests = policyfile.TestsPass(v.Running.Spec().Expect, v.Running.Warnings)
		all = append(all, claim.Judge(inForce, s))
	}
	if v.store != nil {
		known, _ := v.searchedLately()
		if s, _ := known.Get(); s.requests > 0 {
			all = append(all, claim.Judge(noneBlocked, blockedSubject{known}))
		}
		if v.may == nil {
			all = append(all, v.recorded())
		}
	}
	return slices.DeleteFunc(all, func(c claim.Claim) bool { return c.Outcome() == claim.Fails }) // failed claims are shown as alerts
}
