// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/verify"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Lack is something that a policy demands and that cannot be proven, or not for long.
type Lack struct {
	Why   string   `json:"why"`             // and what to do about it
	Rules []string `json:"rules,omitempty"` // the places and hosts of the rules; empty: a setting
}

// Message is the lack as a sentence without its end.
func (l *Lack) Message() string {
	if len(l.Rules) == 0 {
		return l.Why
	}
	return "a rule demands a verified identity, and " + l.Why
}

// Lacks returns what a policy demands and the methods cannot prove today. name is the name of its file.
func (m Methods) Lacks(name string, spec *policy.Spec, catalog *crawlers.Catalog) (all []Lack) {
	if spec.Enforcement.Impostors > policy.ModeOff && !m.DetectsImpostors() {
		all = append(all, Lack{Why: "the policy has enforcement.impostors, but " + NoImpostors})
	}
	by := map[string]int{} // the place of each reason in all
	for i := range spec.Rules {
		r := &spec.Rules[i]
		if r.Identity != policy.DemandVerified {
			continue
		}
		for _, why := range m.lacksOf(r, catalog) {
			at, ok := by[why]
			if !ok {
				at = len(all)
				all, by[why] = append(all, Lack{Why: why}), at
			}
			place := fmt.Sprintf("%s:%d", name, r.Pos.Line)
			if len(r.Hosts) > 0 {
				place += fmt.Sprintf(" %v", r.Hosts)
			}
			all[at].Rules = append(all[at].Rules, place)
		}
	}
	return all
}

const onlyBuiltIn = `only the address lists in this version prove it, and when they expire, it no longer applies; add "verify lists dns", or install a newer version in time`

// lacksOf returns why a rule that demands proof never applies to crawlers that it names, or not for long.
func (m Methods) lacksOf(r *policy.Rule, catalog *crawlers.Catalog) (why []string) {
	var never []string
	provable, method, builtIn := false, "", false
	for _, a := range r.For {
		c, ok := catalog.Lookup(a.Name)
		switch {
		case a.Kind != policy.ForToken || !ok:
			if provable = provable || m.Enabled && m.refreshes(); !provable {
				method, builtIn = cmp.Or(method, "lists"), true
			}
		case c.Verification.IsEmpty():
			never = append(never, a.Name)
		default:
			lacks, listed := m.lacks(c.Verification)
			provable = provable || m.Enabled && lacks == ""
			method, builtIn = cmp.Or(method, lacks), builtIn || listed
		}
	}
	if len(never) > 0 {
		why = append(why, fmt.Sprintf(`nothing that its operator publishes can prove %s, so it never applies to that crawler; remove "identity: verified" for it`, english.List(never, "or")))
	}
	switch {
	case provable, len(never) == len(r.For):
	case !m.Enabled:
		why = append(why, `crawlers are not verified here (verify off), so it never applies; write "verify lists dns"`)
	case !builtIn:
		why = append(why, "its crawlers can be verified only by a method that is not configured, so it never applies; add "+method+" to verify")
	case time.Now().After(verify.Expires(verify.SnapshotDate())):
		why = append(why, `only the address lists in this version could prove it, and they have expired, so it never applies; add "verify lists dns", or install a newer version`)
	default:
		why = append(why, onlyBuiltIn)
	}
	return why
}

// refreshes reports whether anything but the built-in lists is used.
func (m Methods) refreshes() bool { return m.Lists || m.DNS || m.Signatures }

// lacks returns the method that would have to be configured to verify a crawler with these facts for longer than
// built-in address lists are valid, "" if one is. builtIn is true if such a list verifies it until then.
func (m Methods) lacks(facts crawlers.Verification) (method string, builtIn bool) {
	switch {
	case len(facts.AddressLists) > 0 && m.Lists, len(facts.ReverseDNS) > 0 && m.DNS, facts.WebBotAuth != "" && m.Signatures:
		return "", false
	case len(facts.AddressLists) > 0:
		method = "lists"
	case len(facts.ReverseDNS) > 0:
		method = "dns"
	default:
		method = "signatures"
	}
	return method, slices.ContainsFunc(facts.AddressLists, verify.IsBuiltIn)
}
