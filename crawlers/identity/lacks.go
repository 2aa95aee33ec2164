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

// Lack describes a proof of identity that a policy demands. With the configured methods, the server can never obtain
// this proof, or can obtain it only until the built-in address lists expire.
type Lack struct {
	Why string `json:"why"` // the reason and the remedy
	// Rules are the rules that demand the proof, with their places and hosts. Rules is empty if a setting demands the
	// proof.
	Rules []string `json:"rules,omitempty"`
}

// Message describes the lack in a sentence without a period at the end.
func (l *Lack) Message() string {
	if len(l.Rules) == 0 {
		return l.Why
	}
	return "a rule demands a verified identity, and " + l.Why
}

// Lacks returns the proofs that a policy demands, but that the methods cannot obtain permanently. name is the name of
// the policy file.
func (m Methods) Lacks(name string, spec *policy.Spec, catalog *crawlers.Catalog) (all []Lack) {
	if spec.Enforcement.Impostors > policy.ModeOff && !m.DetectsImpostors() {
		all = append(all, Lack{Why: "the policy has enforcement.impostors, but " + NoImpostors})
	}
	by := map[string]int{} // maps each reason to its index in all
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

const onlyBuiltIn = `only the address lists in this version of the program can prove the identity. When these lists expire, the rule no longer applies; add "verify lists dns", or install a newer version in time`

// lacksOf returns the reasons why a rule that demands proof never applies to some of its crawlers, or applies only for
// a limited time.
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
		why = append(why, fmt.Sprintf(`there is no published address list, host name or key to verify %[1]s, so the rule never applies to %[1]s; remove "identity: verified" from the rule`, english.List(never, "or")))
	}
	switch {
	case provable, len(never) == len(r.For):
	case !m.Enabled:
		why = append(why, `with "verify off", crawlers are not verified, so the rule never applies; write "verify lists dns"`)
	case !builtIn:
		why = append(why, "the crawlers of the rule can be verified only with a method that is not configured, so the rule never applies; add \""+method+"\" to \"verify\"")
	case time.Now().After(verify.Expires(verify.SnapshotDate())):
		why = append(why, `the address lists in this version of the program, which could prove the identity, have expired. So the rule never applies; add "verify lists dns", or install a newer version`)
	default:
		why = append(why, onlyBuiltIn)
	}
	return why
}

// refreshes reports whether the methods use more than the built-in lists.
func (m Methods) refreshes() bool { return m.Lists || m.DNS || m.Signatures }

// lacks returns the method that the server's configuration must switch on, so that crawlers with the given facts can
// always be verified. If such a method is already on, method is "". builtIn reports whether a built-in address list
// verifies the crawler until the list is too old.
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
