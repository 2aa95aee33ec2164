// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
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

// policyLines holds the places in Caddyfiles that name policies. They are kept from the time when this process
// adapts a Caddyfile until it provisions the handler, because the JSON in between has no lines.
var policyLines lines

// lines holds places by policy. Places of a Caddyfile that was adapted but not loaded are dropped, because they
// would be wrong for the next configuration.
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

// take returns the places of a policy as text, or "". It does so once for each place: each handler takes the text
// once, and does not know which of the places is its own.
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

// warnOnLoad returns a function that warns once if a policy does not have the effect that its author probably
// expects. These cases are:
//   - The policy blocks impostors, but the handler does not detect any.
//   - A rule demands an identity that cannot be proven, or only by address lists that will expire.
//   - A rule is for a signer, but signatures are not checked.
//   - The configuration requests enforcement, but the policy enforces nothing.
func warnOnLoad(logger *zap.Logger, enforce string, verifier *identity.Verifier) func(*source.Snapshot) {
	var ineffective, unproven, unsigned logsample.Once
	requested, _ := policy.ParseMode(enforce)
	return func(s *source.Snapshot) {
		if requested >= policy.ModeLog && s.Site.MaxMode() < policy.ModeLog && ineffective.First("") {
			logger.Warn("enforce has no effect, because it only limits what the policy enforces, and no rule is enforced; write enforcement: "+enforce+" in the policy file",
				zap.String("policy", s.Site.File.Name), zap.String("enforce", enforce))
		}
		if name := signerIn(s.Site.Policy.Spec().Rules); name != "" && !verifier.ChecksSignatures() && unsigned.First("") {
			logger.Warn("a rule for "+name+" never applies, because signatures are not checked; add \"verify signatures\"", zap.String("policy", s.Site.File.Name))
		}
		for _, l := range verifier.Methods().Lacks(s.Site.File.Name, s.Site.Policy.Spec(), s.Site.File.Catalog) {
			if unproven.First(l.Why) {
				logger.Warn(l.Message(), zap.Strings("rules", l.Rules), zap.String("expire", verify.Expires(verify.SnapshotDate()).Format(time.DateOnly)))
			}
		}
	}
}

// signerIn returns the first signer that rules name, or "".
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
