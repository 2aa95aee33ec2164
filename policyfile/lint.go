// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// lint warns of what the author of a policy would regret.
func (p *parser) lint(compiled *policy.Policy, now time.Time) {
}
