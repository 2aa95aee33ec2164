// SPDX-License-Identifier: Apache-2.0

package site

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/rights/rsl"
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
	publish := &s.File.Spec.Publish
	add := func(name, says, document, readers string) {
		all = append(all, Register{name, cmp.Or(says, "nothing"), document, readers})
	}
	page := s.Page(q.Host, q.Path, q.Now)
	everyone := rights.ForEveryone(s.Policy, policy.Query{Host: q.Host, Path: q.Path, Now: q.Now}).Verdicts()
	for _, x := range s.File.Catalog.ControlsOf(s.Policy.CrawlerInfo(q.Crawler).Token) {
		add("control", s.controlSays(x, q), x.Docs, x.Operator+", against "+english.List(x.Takes, "and"))
	}
	for i, u := range policy.RightsUsages() {
		if token := publish.UsageTokens[i]; token != "" {
			verb := "may be used"
			if everyone[i] == policy.Disallowed {
				verb = "may not be used"
			}
			add("usage token", fmt.Sprintf("User-agent: %s, it %s for %s", token, verb, u), "draft-kelley-aipref-training-preference-signal-00, October 2026", "nobody yet; Google intends to")
		}
	}
	if publish.ContentSignal != policy.Off {
		var v rights.Verdicts
		class := s.Policy.ClassOf(q.Crawler, q.Host)
		for i, u := range policy.RightsUsages() {
			v[i] = rights.NewClient(s.Policy, &class, q.Host, "").Strictest(u)
		}
		add("Content-Signal", v.ContentSignal(publish.ContentSignalUse), "contentsignals.org, September 2025; use= since August 2026", "Cloudflare's /crawl, since August 2026")
	}
	if publish.ContentUsage != policy.Off {
		says := ""
		if page.Values != nil {
			says = strings.Join(page.Values.ContentUsage, ", ")
		}
		add("Content-Usage", says, "draft-ietf-aipref-vocab-08 and -attach-05, August and September 2026", "no crawler documents it")
	}
	if publish.TDMRep != policy.Off {
		says := ""
		if page.Rights != nil && page.Rights.TDMRep.Reservation.String() != "" {
			says = "tdm-reservation: " + page.Rights.TDMRep.Reservation.String()
			if page.Rights.TDMRep.Policy != "" {
				says += ", tdm-policy: " + page.Rights.TDMRep.Policy
			}
		}
		add("TDMRep", says, "W3C Community Group final report, May 2024", "few crawlers; on the European shortlist")
	}
	if publish.RSL != "" || publish.License != "" {
		says := s.LicenseLink(q.Host)
		if publish.RSL != "" && s.RSL(q.Host) != nil {
			says = rsl.Describe(everyone, s.File.Spec.Rights.Offers) + " in " + publish.RSL
		}
		add("RSL", says, "RSL 1.0, December 2025", "no large AI vendor is known to")
	}
	return all
}

// controlSays is what is published of an operator's control about a query's URL.
func (s *Site) controlSays(x crawlers.Control, q policy.Query) string {
	switch q.Crawler = s.Policy.Crawler(x.Crawlers[0]); x.Kind {
	case crawlers.ControlToken:
		if s.File.Spec.Publish.ControlTokens == policy.Off {
			return ""
		}
		says := "User-agent: " + x.Value
		q.Crawler, q.Usage = s.Policy.Crawler(x.Value), policy.Crawl
		if lines := s.Robots.Explain(q, false).Lines; len(lines) > 0 {
			says += ", " + lines[0].Text
		}
		return says
	case crawlers.ControlRule:
		rules, _, _ := s.Policy.ControlOf(q)
		return rules.String()
	case crawlers.ControlForm:
		return "nothing: it is set by hand, " + x.Value
	}
	return ""
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
