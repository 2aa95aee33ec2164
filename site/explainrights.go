// SPDX-License-Identifier: Apache-2.0

package site

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/rights/rsl"
	"github.com/robotspolicy/caddy-robots-policy/rights/tdmrep"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
)

// Register is what a register of rights says about a URL, and who reads it.
type Register struct {
	Name     string `json:"name"`
	Says     string `json:"says"`
	Document string `json:"document"`
	Readers  string `json:"readers"`
}

// explainRights says what each register that is on says about a query's URL.
func (s *Site) explainRights(q policy.Query) (all []Register) {
	x := rightsQuestion{
		s, q, s.Page(q.Host, q.Path, q.Now),
		rights.ForEveryone(s.Policy, policy.Query{Host: q.Host, Path: q.Path, Now: q.Now}).Verdicts(),
	}
	publish := &s.File.Spec.Publish
	for _, r := range rights.Registers() {
		licensed := r == &rights.RSL && publish.License != ""
		answer, ok := registerSays[r]
		if !ok || !licensed && !r.On(publish) {
			continue
		}
		for _, says := range answer(x) {
			all = append(all, Register{r.Name, cmp.Or(says, "nothing"), r.Document, r.Readers})
		}
	}
	return all
}

// rightsQuestion is a query, with what the page of its URL carries and what is said to everyone about it.
type rightsQuestion struct {
	*Site
	policy.Query
	page     *Page
	everyone rights.Verdicts
}

// registerSays has, for each register, what it says in answer to a question.
var registerSays = map[*rights.Register]func(rightsQuestion) []string{
	&rights.UsageTokens:            rightsQuestion.usageTokens,
	&rights.ContentSignal.Register: func(x rightsQuestion) []string { return x.preferences(&rights.ContentSignal) },
	&rights.ContentUsage.Register:  func(x rightsQuestion) []string { return x.preferences(&rights.ContentUsage) },
	&rights.NoAI:                   rightsQuestion.noAI,
	&rights.TDMRep:                 rightsQuestion.tdmrep,
	&rights.RSL:                    rightsQuestion.rsl,
}

func (x rightsQuestion) usageTokens() (says []string) {
	for i, u := range policy.RightsUsages() {
		if token := x.File.Spec.Publish.UsageTokens[i]; token != "" {
			verb := "may be used"
			if x.everyone[i] == policy.Disallowed {
				verb = "may not be used"
			}
			says = append(says, fmt.Sprintf("User-agent: %s, it %s for %s", token, verb, u))
		}
	}
	return says
}

func (x rightsQuestion) preferences(f *rights.Vocabulary) []string {
	if x.page.Values == nil {
		return []string{""}
	}
	return []string{strings.Join(x.page.Values.Preferences[slices.Index(rights.Vocabularies[:], f)], ", ")}
}

func (x rightsQuestion) noAI() []string {
	q := x.Query
	q.Crawler = 0
	return []string{robotstag.OnlyNoAI(x.Shown(q)).String()}
}

func (x rightsQuestion) tdmrep() []string {
	if x.page.Rights == nil || x.page.Rights.TDMRep.Reservation == tdmrep.Unset {
		return []string{""}
	}
	says := tdmrep.ReservationName + ": " + x.page.Rights.TDMRep.Reservation.String()
	if x.page.Rights.TDMRep.Policy != "" {
		says += ", " + tdmrep.PolicyName + ": " + x.page.Rights.TDMRep.Policy
	}
	return []string{says}
}

func (x rightsQuestion) rsl() []string {
	if publish := &x.File.Spec.Publish; publish.RSL != "" && x.RSL(x.Host) != nil {
		return []string{rsl.Describe(x.everyone, x.File.Spec.Rights.Offers) + " in " + publish.RSL}
	}
	return []string{x.LicenseLink(x.Host)}
}

func writeRights(b *strings.Builder, all []Register) {
	if len(all) == 0 {
		return
	}
	b.WriteString("\nRights, for everyone who reads:\n")
	for _, r := range all {
		fmt.Fprintf(b, "  %-15s %s\n%18sby %s; read by: %s\n", r.Name, r.Says, "", r.Document, r.Readers)
	}
}

func statesRights(r policy.Rule) bool {
	return slices.ContainsFunc(r.Statements, func(s policy.Statement) bool { return s.Usage == policy.Other || !s.Usage.IsACAP() })
}
