// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"time"

	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/verify"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/logsample"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// warnOnLoad returns a function that warns if a policy does not have the effect that its author probably expects. It
// warns once about each of these cases:
//   - The policy blocks impostors, but the handler does not detect any.
//   - A rule demands an identity that cannot be proven, or that is proven only by address lists that will expire.
//   - A rule is for a signer, but signatures are not checked.
//   - The configuration requests enforcement, but the policy enforces nothing.
func warnOnLoad(logger *zap.Logger, enforce string, verifier *identity.Verifier) func(*source.Snapshot) {
	var ineffective, unproven, unsigned logsample.Once
	requested, _ := policy.ParseMode(enforce)
	return func(s *source.Snapshot) {
		if requested >= policy.ModeLog && s.Site.MaxMode() < policy.ModeLog && ineffective.First("") {
			logger.Warn("the option \"enforce\" has no effect, because the policy does not enforce any rule, and the option can only reduce enforcement; write enforcement: "+enforce+" in the policy file",
				zap.String("policy", s.Site.File.Name), zap.String("enforce", enforce))
		}
		if name := signerIn(s.Site.Policy.Spec().Rules); name != "" && !verifier.ChecksSignatures() && unsigned.First("") {
			logger.Warn("a rule for "+name+" never applies, because signatures are not checked; add \"verify signatures\" to the Caddyfile", zap.String("policy", s.Site.File.Name))
		}
		for _, l := range verifier.Methods().Lacks(s.Site.File.Name, s.Site.Policy.Spec(), s.Site.File.Catalog) {
			if unproven.First(l.Why) {
				logger.Warn(l.Message(), zap.Strings("rules", l.Rules), zap.String("expire", verify.Expires(verify.SnapshotDate()).Format(time.DateOnly)))
			}
		}
	}
}

// signerIn returns the first signer that a rule is for, such as "signed:browserbase.com", or "" if no rule is for a
// signer.
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
