// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// ControlState says what a policy makes of one control of an operator against one usage that it disallows.
type ControlState struct {
	Usage    string   `json:"usage"`
	Operator string   `json:"operator"`
	Sent     string   `json:"sent,omitempty"`    // what carries it; empty if nothing does
	Where    []string `json:"where,omitempty"`   // the patterns that it is sent for
	Costs    string   `json:"costs,omitempty"`   // what it takes away that the policy does not disallow
	ByHand   string   `json:"by_hand,omitempty"` // what remains to be done
}

// ControlScope limits ControlStates. Empty fields do not.
type ControlScope struct {
	Crawler string // the token of one that a control concerns
	Host    string
	Path    string // of Host
}

// ControlStates lists the operators' own controls against AI training and AI answers, for what the policy disallows.
// It also lists what preserve takes away besides, because an operator may read noarchive as its control.
func (s *Site) ControlStates(in ControlScope, now time.Time) (all []ControlState) {
	controls := s.File.Catalog.Controls()
	if in.Crawler != "" {
		controls = s.File.Catalog.ControlsOf(in.Crawler)
	}
	for _, u := range []policy.Usage{policy.TrainAI, policy.AIUse, policy.Preserve} {
		for _, x := range controls {
			if !slices.Contains(x.Takes, u.String()) && (u != policy.Preserve || x.Kind != crawlers.ControlRule) {
				continue
			}
			state, wanted := s.controlState(x, u, in, now)
			told := slices.ContainsFunc(all, func(o ControlState) bool { return o.Operator == x.Operator && o.Sent != "" })
			if wanted && (u != policy.Preserve || state.Sent != "" && state.Costs != "" && !told) {
				all = append(all, state)
			}
		}
	}
	return all
}

func (s *Site) controlState(x crawlers.Control, u policy.Usage, in ControlScope, now time.Time) (state ControlState, wanted bool) {
	state = ControlState{Usage: u.String(), Operator: x.Operator}
	costs := map[string]bool{}
	asked := policy.Query{Crawler: s.Policy.Crawler(x.Crawlers[0]), Identity: policy.Verified, Usage: u, Host: in.Host, Path: in.Path, Now: now}
	for q, where := range s.controlQueries(x, asked) {
		wanted = true
		if s.controlSent(x, q) && !slices.Contains(state.Where, where) {
			state.Where = append(state.Where, where)
		}
		for _, taken := range x.Takes {
			if q.Usage, _ = policy.ParseUsage(taken); s.Policy.Decide(q).Verdict != policy.Disallowed && q.Usage != u {
				costs[taken] = true
			}
		}
	}
	var more []string
	for _, taken := range x.Takes {
		if costs[taken] {
			more = append(more, taken)
		}
	}
	if x.Also != "" {
		more = append(more, x.Also)
	}
	state.Costs = strings.Join(more, ", ")
	switch {
	case len(state.Where) > 0 && x.Kind == crawlers.ControlToken:
		state.Sent = x.Value + " in robots.txt"
	case len(state.Where) > 0:
		state.Sent = x.Value + " to " + english.List(x.Crawlers, "and")
	case x.Kind == crawlers.ControlToken:
		state.ByHand = `write "controls: auto" under publish`
		if s.File.Spec.Publish.Controls != policy.Off {
			state.ByHand = `delete "` + x.Value + `: off" under publish`
		}
	case x.Kind == crawlers.ControlRule:
		state.ByHand = fmt.Sprintf(`write "controls: {%s: %s}" under publish`, x.Crawlers[0], x.Value)
	default:
		state.ByHand = x.Value + ": " + x.Docs
	}
	return state, wanted
}

// maxControlHosts bounds the hosts of a rule whose controls are shown.
const maxControlHosts = 100

// controlQueries yields the query itself if it has a path and a control is wanted there. Otherwise it yields a query for an
// example of each pattern, on each host or on the query's, for which a rule decides that the control is wanted. It names
// the places.
func (s *Site) controlQueries(x crawlers.Control, q policy.Query) iter.Seq2[policy.Query, string] {
	return func(yield func(policy.Query, string) bool) {
		if q.Path != "" {
			if s.controlWanted(x, q) != nil {
				yield(q, q.Path)
			}
			return
		}
		for i := range s.File.Spec.Rules {
			r := &s.File.Spec.Rules[i]
			for q, where := range ruleQueries(r, x, q) {
				if by := s.controlWanted(x, q); by != nil && (by == r || s.decides(r, x, q)) && !yield(q, where) {
					return
				}
			}
		}
	}
}

// ruleQueries yields a query for an example of each pattern and host where a rule disallows the query's usage, or another
// one that the control takes away. It names both.
func ruleQueries(r *policy.Rule, x crawlers.Control, q policy.Query) iter.Seq2[policy.Query, string] {
	hosts := r.Hosts[:min(len(r.Hosts), maxControlHosts)]
	if len(hosts) == 0 || q.Host != "" {
		hosts = []policy.Host{""}
	}
	return func(yield func(policy.Query, string) bool) {
		for i := range r.Statements {
			s := &r.Statements[i]
			if s.Allow || !s.Usage.Covers(q.Usage) && !slices.Contains(x.Takes, s.Usage.String()) {
				continue
			}
			for _, host := range hosts {
				where := s.Pattern.String()
				if q.Path = s.Pattern.Example(); host != "" {
					q.Host, where = host.Example(), where+" on "+string(host)
				}
				if !yield(q, where) {
					return
				}
			}
		}
	}
}

// controlWanted returns the rule that disallows the query's usage to the main crawler of a control, or to its token; nil if
// no rule does.
func (s *Site) controlWanted(x crawlers.Control, q policy.Query) *policy.Rule {
	d := s.Policy.Decide(q)
	if x.Kind == crawlers.ControlToken {
		token := s.Policy.ControlToken(s.Policy.Crawler(x.Value), q.Host)
		d = token.Decide(q)
	}
	if d.Verdict != policy.Disallowed || x.Kind != crawlers.ControlToken && s.Policy.StaysOut(q) {
		return nil
	}
	return d.Rule
}

// decides reports whether a rule decides about one of the usages that a control takes away.
func (s *Site) decides(r *policy.Rule, x crawlers.Control, q policy.Query) bool {
	return slices.ContainsFunc(x.Takes, func(name string) bool {
		q.Usage, _ = policy.ParseUsage(name)
		return s.Policy.Decide(q).Rule == r
	})
}

// controlSent reports whether an operator gets a control, for whatever reason.
func (s *Site) controlSent(x crawlers.Control, q policy.Query) bool {
	switch x.Kind {
	case crawlers.ControlToken:
		return s.File.Spec.Publish.SendsControl(x.Value)
	case crawlers.ControlRule:
		sent := s.File.Effect.Shown(q)
		return sent.Union(robotsrule.Of(x.Value)) == sent
	case crawlers.ControlForm:
	}
	return false
}

// ControlsText is a table of states, or "" if there is none.
func ControlsText(all []ControlState) string {
	if len(all) == 0 {
		return ""
	}
	const patterns = 3
	var b strings.Builder
	b.WriteString("the controls that operators offer against AI, and which of them are sent:\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  USAGE\tOPERATOR\tSENT\tWHERE\tALSO TAKES AWAY\tTO BE DONE BY HAND")
	or := func(text, none string) string {
		if text == "" {
			return none
		}
		return text
	}
	for _, x := range all {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t%s\n", x.Usage, x.Operator, or(x.Sent, "nothing"), or(english.Some(x.Where, patterns), "-"), or(x.Costs, "-"), or(x.ByHand, "-"))
	}
	w.Flush()
	return b.String()
}
