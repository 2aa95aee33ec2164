// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/verify"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/logsample"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// policyLines are the places in Caddyfiles that name policies, from when this process
// adapts a Caddyfile until it provisions the handler: the JSON in between has no lines.
var policyLines lines

// lines are places by policy. Those of a Caddyfile that was adapted and not loaded are
// forgotten, as they would be wrong for the next configuration.
type lines struct {
	mu      sync.Mutex
	places  map[string][]string
	taken   map[string]int
	touched time.Time
}

const lineLifetime = time.Minute

func (l *lines) set(policy, place string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.places == nil || time.Since(l.touched) > lineLifetime {
		l.places, l.taken = map[string][]string{}, map[string]int{}
	}
	l.places[policy], l.touched = append(l.places[policy], place), time.Now()
}

// take returns a policy's places as text, or "", as often as there are places: each
// handler takes them once, and which of them is its own it does not know.
func (l *lines) take(policy string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.touched) > lineLifetime {
		l.places = nil
	}
	places := l.places[policy]
	if len(places) == 0 {
		return ""
	}
	if l.taken[policy]++; l.taken[policy] == len(places) {
		delete(l.places, policy)
		delete(l.taken, policy)
	}
	return english.Some(slices.Compact(slices.Clone(places)), 3)
}

// warnOnLoad returns a function that warns, once, of a policy without the effect that its author expects. The
// policy blocks impostors on a handler that does not detect any, or its rules demand an identity that cannot be
// proven. The proof may be only address lists that will expire, or signatures that are not checked. Or the policy
// enforces nothing although the configuration requests enforcement.
func warnOnLoad(logger *zap.Logger, enforce string, verifier *identity.Verifier) func(*source.Snapshot) {
	var warned, ineffective, unprovable, unsigned logsample.Once
	requested, _ := policy.ParseMode(enforce)
	return func(s *source.Snapshot) {
		if requested >= policy.ModeLog && s.Site.MaxMode() < policy.ModeLog && ineffective.First("") {
			logger.Warn("enforce has no effect, as no rule of the policy is enforced: it is a limit, and the policy decides; write enforcement: "+enforce+" in the policy file",
				zap.String("policy", s.Site.File.Name), zap.String("enforce", enforce))
		}
		if s.Site.File.Spec.Enforcement.Impostors > policy.ModeOff && !verifier.DetectsImpostors() && warned.First("") {
			logger.Warn("the policy has enforcement.impostors, but " + identity.NoImpostors)
		}
		if name := signerIn(s.Site.Policy.Spec().Rules); name != "" && !verifier.ChecksSignatures() && unsigned.First("") {
			logger.Warn("a rule is for "+name+", and signatures are not checked, so it never applies; add \"verify signatures\"", zap.String("policy", s.Site.File.Name))
		}
		if why, rules := unproven(s, verifier); len(rules) > 0 && unprovable.First("") {
			logger.Warn("a rule demands a verified identity, and "+why,
				zap.Strings("rules", rules), zap.String("expire", verify.Expires(verify.SnapshotDate()).Format(time.DateOnly)))
		}
	}
}

// signerIn is the first signer that rules name, "" for none.
func signerIn(rules []policy.Rule) string {
	for i := range rules {
		for _, a := range rules[i].For {
			if a.Kind == policy.ForToken && crawlers.IsSigner(a.Name) {
				return a.Name
			}
		}
	}
	return ""
}

// unproven returns the reason why rules that demand a verified identity never apply, or will not later, and
// the places of these rules.
func unproven(s *source.Snapshot, verifier *identity.Verifier) (why string, places []string) {
	if verifier == nil {
		return `crawlers are not verified here (verify off), so it never applies; write "verify lists dns"`, demandProof(s, func(*policy.Rule) bool { return true })
	}
	var method string
	places = demandProof(s, func(r *policy.Rule) bool {
		lacks, builtIn := lacking(s, r, verifier)
		method = cmp.Or(method, lacks)
		return lacks != "" && !builtIn
	})
	if len(places) > 0 {
		return "its crawlers can be verified only by a method that is not configured, so it never applies; add " + method + " to verify", places
	}
	places = demandProof(s, func(r *policy.Rule) bool { lacks, _ := lacking(s, r, verifier); return lacks != "" })
	return `only the address lists in this version prove it, and when they expire, it no longer applies; add "verify lists dns", or install a newer version in time`, places
}

// lacking is a method without which no crawler that a rule names can be verified for long,
// and whether built-in lists verify one until then.
func lacking(s *source.Snapshot, r *policy.Rule, verifier *identity.Verifier) (method string, builtIn bool) {
	for _, a := range r.For {
		c, ok := s.Site.File.Catalog.Lookup(a.Name)
		if a.Kind != policy.ForToken || !ok {
			if !verifier.EmbeddedOnly() {
				return "", false
			}
			return "lists", true
		}
		lacks, listed := verifier.Lacks(c.Verification)
		if lacks == "" {
			return "", false
		}
		method, builtIn = cmp.Or(method, lacks), builtIn || listed
	}
	return method, builtIn
}

// demandProof are the places and hosts of those rules that apply to verified clients alone.
func demandProof(s *source.Snapshot, of func(*policy.Rule) bool) (places []string) {
	rules := s.Site.Policy.Spec().Rules
	for i := range rules {
		r := &rules[i]
		if r.Identity != policy.DemandVerified || !of(r) {
			continue
		}
		place := fmt.Sprintf("%s:%d", s.Site.File.Name, r.Pos.Line)
		if len(r.Hosts) > 0 {
			place += fmt.Sprintf(" %v", r.Hosts)
		}
		places = append(places, place)
	}
	return places
}
