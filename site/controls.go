// SPDX-License-Identifier: Apache-2.0

package site

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// ControlState describes whether a policy uses an operator's control against a usage that the policy disallows.
type ControlState struct {
	Usage    string   `json:"usage"`
	Operator string   `json:"operator"`
	Sent     string   `json:"sent,omitempty"`    // how the control is sent; empty if it is not sent
	Where    []string `json:"where,omitempty"`   // patterns of the paths that the control is sent for
	Costs    string   `json:"costs,omitempty"`   // usages that the control takes away but the policy does not disallow
	ByHand   string   `json:"by_hand,omitempty"` // what the author of the policy has to do
}

// ControlScope limits the result of ControlStates. An empty field does not limit it.
type ControlScope struct {
	Crawler string // the token of a crawler that the controls must affect
	Host    string
	Path    string // a path on Host
}

// ControlStates lists the operators' own controls against AI training and AI answers, if the policy disallows these
// usages. It also lists a control if the policy disallows only the usage "preserve". In that case, pages have the rule
// "noarchive", which some operators also read as their control against AI usages.
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
	s.controlQueries(x, asked, func(q policy.Query, where string) {
		wanted = true
		if s.controlSent(x, q) && !slices.Contains(state.Where, where) {
			state.Where = append(state.Where, where)
		}
		for _, taken := range x.Takes {
			if q.Usage, _ = policy.ParseUsage(taken); s.Policy.Decide(q).Verdict != policy.Disallowed && q.Usage != u {
				costs[taken] = true
			}
		}
	})
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

// maxControlHosts limits how many hosts of a rule have their controls shown.
const maxControlHosts = 100

// controlQueries calls visit for the pages that need the control x, because a rule disallows a usage there. Each page
// is passed as a query, together with a text that names its path and host. If q has a path, q is the only page that
// controlQueries considers. If q does not have a path, controlQueries considers an example path for each pattern of
// each rule. These paths are on the host of q or, if q does not have a host, on each host of the rule.
func (s *Site) controlQueries(x crawlers.Control, q policy.Query, visit func(q policy.Query, where string)) {
	if q.Path != "" {
		if s.controlWanted(x, q) != nil {
			visit(q, q.Path)
		}
		return
	}
	for i := range s.File.Spec.Rules {
		r := &s.File.Spec.Rules[i]
		ruleQueries(r, x, q, func(q policy.Query, where string) {
			if by := s.controlWanted(x, q); by != nil && (by == r || s.decides(r, x, q)) {
				visit(q, where)
			}
		})
	}
}

// ruleQueries calls visit for each pattern that the rule r disallows for the usage of q, or for another usage that the
// control x takes away. If q has a host, it passes one query for each pattern. If not, it passes a query for each
// pattern and each host of the rule. The argument where names the pattern and the host.
func ruleQueries(r *policy.Rule, x crawlers.Control, q policy.Query, visit func(q policy.Query, where string)) {
	hosts := r.Hosts[:min(len(r.Hosts), maxControlHosts)]
	if len(hosts) == 0 || q.Host != "" {
		hosts = []policy.Host{""}
	}
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
			visit(q, where)
		}
	}
}

// controlWanted returns the rule that makes a control necessary. The rule disallows the query's usage for the control's
// token, or for the crawler of the query. Without such a rule, it returns nil.
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

// decides reports whether the rule r decides about q for any of the usages that the control x takes away.
func (s *Site) decides(r *policy.Rule, x crawlers.Control, q policy.Query) bool {
	return slices.ContainsFunc(x.Takes, func(name string) bool {
		q.Usage, _ = policy.ParseUsage(name)
		return s.Policy.Decide(q).Rule == r
	})
}

// controlSent reports whether the site sends a control to its operator. The reason for sending it does not matter.
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

// ControlsText returns a text with a table of the controls and their states, or "" if there are no controls.
func ControlsText(all []ControlState) string {
	if len(all) == 0 {
		return ""
	}
	const patterns = 3
	var b strings.Builder
	b.WriteString("the controls that crawler operators offer for opting out of AI, and which of them Caddy sends:\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  USAGE\tOPERATOR\tSENT\tWHERE\tALSO PREVENTS\tWHAT YOU CAN DO")
	for _, x := range all {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t%s\n", x.Usage, x.Operator, cmp.Or(x.Sent, "nothing"), cmp.Or(english.Some(x.Where, patterns), "-"), cmp.Or(x.Costs, "-"), cmp.Or(x.ByHand, "-"))
	}
	w.Flush()
	return b.String()
}
