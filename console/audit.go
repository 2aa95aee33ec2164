// SPDX-License-Identifier: Apache-2.0

package console

import (
	"net/url"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/audit"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/auditor"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// audited is what the last audit of an address found.
type audited struct {
	URL         string
	Time, Since time.Time
	Problem     string // the audit could not be carried out
	Faults      int
	Findings    []audit.Finding
}

// audits are the results of the audits of the hosts that may be seen.
func (v *view) audits() (all []audited) {
	for _, r := range auditor.Results() {
		u, err := url.Parse(r.URL)
		if err != nil || !v.allowed(policy.NormalizeHost(u.Host)) || v.Host != "" && v.Host != policy.NormalizeHost(u.Host) {
			continue
		}
		a := audited{URL: r.URL, Time: r.Time, Since: r.Since}
		if r.Err != nil {
			a.Problem = r.Err.Error()
		} else {
			a.Faults, a.Findings = r.Found.Faults(), r.Found.Findings
		}
		all = append(all, a)
	}
	return all
}

// auditNotices says where the world sees something else than the policy says.
func (v *view) auditNotices() (all []notice) {
	for _, a := range v.audits() {
		see := []action{{"See what was found", v.Link("published", "#", "audit")}}
		switch {
		case a.Problem != "":
			all = append(all, notice{Screen: "published", Since: a.Since, Heading: "The audit of " + a.URL + " could not be carried out", Text: sentence(a.Problem), Actions: see})
		case a.Faults > 0:
			text := plural(a.Faults, "fault", "faults") + " seen from outside."
			for _, f := range a.Findings {
				if f.Severity == audit.Fault {
					text += " " + sentence(f.Message)
					break
				}
			}
			all = append(all, notice{Alarm: true, Screen: "published", Since: a.Since, Heading: "Crawlers see something else than your policy says on " + a.URL, Text: text, Actions: see})
		}
	}
	return all
}
