// SPDX-License-Identifier: Apache-2.0

package agreement

import (
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/acap"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// acap compares the ACAP records of a robots.txt, if there are any, with the policy.
func (x *exam) acap(f *robotsFile, qs []question) error {
	if !strings.HasPrefix(f.body, "##ACAP") {
		return nil
	}
	records := acap.Parse([]byte(f.body))
	if full := x.p.spec.Publish.ACAP == policy.Full; len(records.Problems) > 0 || records.IgnoreConventional != full {
		x.differ("robots.txt: ACAP", question{host: f.host}, fmt.Sprintf("%+v", records.Problems), "records that a reader of ACAP 1.0 understands")
	}
	for i, q := range qs {
		if q.token == "" || asksTwice(qs, i) {
			continue
		}
		for _, u := range policy.Usages() {
			if !u.IsRight() {
				x.acapUsage(f, records, q, u)
			}
		}
	}
	return nil
}

func (x *exam) acapUsage(f *robotsFile, records *acap.File, q question, u policy.Usage) {
	const channel = "robots.txt: ACAP"
	asked, query := x.asked(q, u), acap.Query{Crawler: q.token, Path: q.path, Usage: u, Now: x.p.now}
	if len(q.purposes) > 0 {
		asked.Purposes, query.Purpose = q.purposes[:1], q.purposes[0]
	}
	want, got := x.p.naive(asked), records.Decide(query)
	if u == policy.Crawl && got.Field == nil && !records.IgnoreConventional {
		return // the Allow and Disallow lines decide
	}
	x.answer(channel, 1)
	if u == policy.Crawl && want.Verdict == policy.Unstated && got.Verdict == policy.Allowed {
		return // a path that the policy does not mention may be crawled, too
	}
	var conditions []string
	if want.Verdict == policy.Allowed {
		conditions = conditionsOf(want.Limits.Strings(), u)
	}
	if want.Verdict == got.Verdict && slices.Equal(conditions, conditionsOf(got.Qualifiers.Strings(), u)) {
		return
	}
	if x.caseMatters(q.path) {
		x.except(channel, "acap: upper and lower case")
		return
	}
	if stricter := got.Verdict == policy.Disallowed || len(conditions) == 0; want.Statement != nil && want.Statement.Allow && stricter {
		permitting, limited := x.permitting(q.path, want.Statement.Usage), x.limiting(want.Limits)
		for _, p := range f.problems {
			decides := slices.Contains(permitting, p.Pos) || p.Code == "acap-not-ready" && slices.Contains(limited, p.Pos)
			if decides && strings.HasPrefix(p.Code, "acap-") && exceptions[p.Code] != "" && x.linted(p.Code, p.Pos) {
				x.except(channel, p.Code)
				return
			}
		}
	}
	x.differ(channel, q, fmt.Sprintf("%v %v %q", u, got.Verdict, got.Qualifiers.Strings()), fmt.Sprintf("%v %q", want.Verdict, conditions))
}

// permitting returns the positions of allow entries in the policy file: the entries for the usage u whose pattern
// matches the path. Only one of these entries decides about the path. But a diagnostic about a limitation of ACAP may
// name another one, so the test accepts all of them.
func (x *exam) permitting(path string, u policy.Usage) (at []policy.Pos) {
	path = pathpattern.NormalizePath(path)
	for i := range x.p.spec.Rules {
		for _, s := range x.p.spec.Rules[i].Statements {
			if s.Allow && s.Usage == u && s.Pattern.Match(path) {
				at = append(at, s.Pos)
			}
		}
	}
	return at
}

// limiting returns the positions of the allow entries whose qualifiers are in limits, the limits of a decision. There
// can be several such entries. If an allow entry matches many paths or crawlers, its limits also apply to a second
// entry that matches some of them. The exception is a second entry that is narrower in every respect.
func (x *exam) limiting(limits policy.Limits) (at []policy.Pos) {
	for i := range x.p.spec.Rules {
		for _, s := range x.p.spec.Rules[i].Statements {
			if s.Qualifiers != nil && slices.Contains(limits, s.Qualifiers) {
				at = append(at, s.Pos)
			}
		}
	}
	return at
}

// conditionsOf returns the qualifiers in all that ACAP 1.0 section 2.5 defines for the usage u. All qualifiers are
// defined for every usage that can have qualifiers, except prohibited-modification. That one is defined only for
// "present" and for the presentation of a copy, because only copies of a page can be modified.
func conditionsOf(all []string, u policy.Usage) []string {
	modified := u == policy.Present || u == policy.PresentOriginal || u == policy.PresentCurrentCopy || u == policy.PresentOldCopy
	return slices.DeleteFunc(slices.Clone(all), func(c string) bool { return strings.HasPrefix(c, "prohibited-modification=") && !modified })
}

// caseMatters reports whether some pattern of the policy matches the path in ACAP, but not in the policy, or the other
// way round. This can happen because ACAP ignores letter case.
func (x *exam) caseMatters(path string) bool {
	return cached(x.p, "case "+path, func() bool {
		for _, r := range x.p.spec.Rules {
			for _, s := range r.Statements {
				if acap.Fold(s.Pattern).Match(acap.FoldPath(path)) != s.Pattern.Match(pathpattern.NormalizePath(path)) {
					return true
				}
			}
		}
		return false
	})
}
