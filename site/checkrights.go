// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

// The codes of what registers have to say about a policy.
const (
	codeRegisterStricter = "register-stricter"
	codeRegisterCrossed  = "register-crossed"
	codeRegistersDiffer  = "registers-differ"
)

// publicRegisters names the registers that speak to everyone and are on.
func publicRegisters(p *policy.Publish) string {
	var names []string
	if p.TDMRep != policy.Off {
		names = append(names, "tdmrep")
	}
	if p.RSL != "" {
		names = append(names, "rsl")
	}
	if p.UsageTokens != (policy.UsageTokens{}) {
		names = append(names, "usage-tokens")
	}
	return strings.Join(names, ", ")
}

// maxRegisterHosts bounds the hosts for which registers are checked.
const maxRegisterHosts = 50

// checkRights says once where registers are stricter than the policy, and where two
// would say different things.
func (s *Site) checkRights() (problems []policy.Problem) {
	publish := &s.File.Spec.Publish
	on := publicRegisters(publish)
	seen := map[string]bool{}
	report := func(p policy.Problem) {
		if !seen[p.Code] {
			seen[p.Code] = true
			problems = append(problems, p)
		}
	}
	for i, h := range robotsserve.Hosts(s.Policy) {
		if on == "" && publish.ContentSignalUse == "" || i == maxRegisterHosts {
			break
		}
		host := string(h)
		if h.Wildcard() {
			host = "any" + host[1:]
		}
		view := rights.NewView(s.Policy, host)
		if on != "" {
			s.checkView(view, on, report)
		}
		s.checkUse(view, publish.ContentSignalUse, report)
	}
	return problems
}

func (s *Site) checkView(view *rights.View, on string, report func(policy.Problem)) {
	if all := view.Exceptions(); len(all) > 0 {
		d, more := all[0], ""
		if len(all) > 1 {
			more = fmt.Sprintf(" (and %d more like this)", len(all)-1)
		}
		report(policy.Problem{
			Severity: policy.Hint, Code: codeRegisterStricter, Pos: d.Statement.Pos,
			Message: fmt.Sprintf("%s under publish speak to everyone, and this line about %s is for %q%s: there, what is disallowed for anyone is disallowed for all; write the line for everyone, or switch them off, if that is too strict",
				on, d.Statement.Usage, s.RuleName(d.Rule), more),
		})
	}
	cells, exact := view.Cells()
	if exact {
		return
	}
	pos := policy.Pos{}
	for _, c := range cells {
		for _, d := range c.Value {
			if d.Statement != nil && pos.Line == 0 {
				pos = d.Statement.Pos
			}
		}
	}
	report(policy.Problem{
		Severity: policy.Warning, Code: codeRegisterCrossed, Pos: pos,
		Message: fmt.Sprintf("the paths for train-ai, ai-use and search cross in too many ways for %s under publish to say what holds where; they close every path of which anything is closed; use paths without * and $", on),
	})
}

// checkUse finds a value of use= that contradicts the signals beside it.
func (s *Site) checkUse(view *rights.View, use string, report func(policy.Problem)) {
	cells, _ := view.Cells()
	for _, c := range cells {
		train, answers, search := c.Value[0], c.Value[1], c.Value[2]
		switch {
		case use == "full" && answers.Verdict == policy.Disallowed && answers.Statement != nil:
			report(policy.Problem{Code: codeRegistersDiffer, Severity: policy.Warning, Pos: answers.Statement.Pos, Message: "ai-use is disallowed here, and \"content-signal: full\" under publish says that content may be summarised and reproduced; write \"content-signal: reference\""})
		case use == "full" && train.Verdict == policy.Disallowed && train.Statement != nil:
			report(policy.Problem{Code: codeRegistersDiffer, Severity: policy.Warning, Pos: train.Statement.Pos, Message: "train-ai is disallowed here, and \"content-signal: full\" under publish says that content may be used in full; write \"content-signal: reference\""})
		case use == "immediate" && search.Verdict == policy.Allowed && search.Statement != nil:
			report(policy.Problem{Code: codeRegistersDiffer, Severity: policy.Warning, Pos: search.Statement.Pos, Message: "search is allowed here, and \"content-signal: immediate\" under publish says that nothing may be stored, as an index must; write \"content-signal: reference\""})
		}
	}
}
