// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"slices"
	"sync"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Client represents crawlers that a policy treats alike: they belong to one class, and their requests name the same
// purpose, or none. Its methods return the policy's decisions about rights for these crawlers.
type Client struct {
	Policy  *policy.Policy
	Class   *policy.Class
	Purpose string // in lower case, or ""

	query policy.Query
	all   func() []policy.Applied // returns the result of statements, which is computed only once
}

// NewClient returns the Client for verified crawlers of a class. purpose must be in lower case. It is "" for
// crawlers that do not name a purpose.
func NewClient(p *policy.Policy, c *policy.Class, host, purpose string) *Client {
	client := &Client{Policy: p, Class: c, Purpose: purpose, query: c.Query(host, policy.Other, purpose)}
	client.all = sync.OnceValue(client.statements)
	return client
}

// At returns the decision about a usage on the paths that a pattern matches. It ignores statements of the policy that
// do not apply to all of these paths.
func (c *Client) At(u policy.Usage, at pathpattern.Pattern) policy.Decision {
	q := c.query
	q.Usage = u
	return c.Policy.DecideAt(q, at)
}

// Statements lists the policy's statements about the usage u, followed by its statements about policy.Other. If no
// statement about u matches a path, the statements about policy.Other decide.
func (c *Client) Statements(u policy.Usage) []policy.Applied {
	all := append(c.Policy.Statements(c.Class, u, c.Purpose), c.Policy.Statements(c.Class, policy.Other, c.Purpose)...)
	return slices.DeleteFunc(all, func(a policy.Applied) bool { return !a.Rule.Identity.MetBy(c.query.Identity) })
}

// statements lists the policy's statements about the usages of policy.RightsUsages.
func (c *Client) statements() (all []policy.Applied) {
	for _, u := range policyUsages {
		all = append(all, c.Statements(u)...)
	}
	return all
}

// Strictest returns one verdict about a usage for all paths. It is Disallowed if at least one path is disallowed, and
// Allowed if every path is allowed.
func (c *Client) Strictest(u policy.Usage) policy.Verdict {
	verdict := policy.Unstated
	if c.At(u, pathpattern.All).Verdict == policy.Allowed {
		verdict = policy.Allowed
	}
	for _, a := range c.Statements(u) {
		for _, p := range a.Statement.Pattern.Rooted() {
			if c.At(u, p).Verdict == policy.Disallowed {
				return policy.Disallowed
			}
		}
	}
	return verdict
}

// Preferences returns the results of At for the usages of policy.RightsUsages.
func (c *Client) Preferences(at pathpattern.Pattern) (p Preferences) {
	for i, u := range policyUsages {
		p[i] = c.At(u, at)
	}
	return p
}
