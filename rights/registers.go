// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Register is a document or signal that states what AI and search may do with content.
type Register struct {
	Name     string
	Key      string // the setting under publish
	Document string // the specification, with its date
	Readers  string // who is known to read it
	// ForEveryone tells that it cannot exempt a crawler.
	ForEveryone bool
	// Carries reports whether a policy publishes in it what it decides about a usage of policy.RightsUsages.
	Carries func(*policy.Publish, policy.Usage) bool
}

// Registers returns all of them, the most widely read first.
func Registers() []*Register {
	return []*Register{&ControlTokens, &UsageTokens, &NoAI, &ContentSignal.Register, &ContentUsage.Register, &TDMRep, &RSL}
}

// Registers that are not vocabularies.
var (
	ControlTokens = Register{
		Name: "control token", Key: "controls", Document: "the operator's pages", Readers: "the operator of the token, for AI training",
		Carries: func(p *policy.Publish, u policy.Usage) bool {
			return p.Controls != policy.Off && u == policy.TrainAI
		},
	}
	UsageTokens = Register{
		Name: "usage token", Key: "usage-tokens", ForEveryone: true,
		Document: "draft-kelley-aipref-training-preference-signal-00, October 2026", Readers: "none yet; Google intends to",
		Carries: func(p *policy.Publish, u policy.Usage) bool {
			return p.UsageTokens[slices.Index(policyUsages, u)] != ""
		},
	}
	NoAI = Register{
		Name: "noai", Key: "noai", Document: "DeviantArt, November 2022", Readers: "img2dataset, by default",
		Carries: func(p *policy.Publish, u policy.Usage) bool { return p.NoAI != policy.Off && u == policy.TrainAI },
	}
	TDMRep = Register{
		Name: "TDMRep", Key: "tdmrep", ForEveryone: true,
		Document: "W3C Community Group final report, May 2024", Readers: "few crawlers; on the European shortlist",
		Carries: func(p *policy.Publish, u policy.Usage) bool { return p.TDMRep != policy.Off && u != policy.Search },
	}
	RSL = Register{
		Name: "RSL", Key: "rsl", ForEveryone: true, Document: "RSL 1.0, December 2025", Readers: "no large AI vendor is known to",
		Carries: func(p *policy.Publish, _ policy.Usage) bool { return p.RSL != "" },
	}
)

// On reports whether a policy publishes anything in the register.
func (r *Register) On(p *policy.Publish) bool {
	return slices.ContainsFunc(policyUsages, func(u policy.Usage) bool { return r.Carries(p, u) })
}

// Published reports whether any register states what a policy decides about a usage of policy.RightsUsages.
func Published(p *policy.Publish, u policy.Usage) bool {
	return slices.ContainsFunc(Registers(), func(r *Register) bool { return r.Carries(p, u) })
}
