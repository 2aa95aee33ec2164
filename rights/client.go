// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"slices"
	"sync"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Client is a kind of client that asks about rights: one class of crawlers that name a purpose or none.
type Client struct {
	Policy  *policy.Policy
	Class   *policy.Class
	Purpose string // in lower case, or ""

	query policy.Query
	all   func() []policy.Applied // see statements
}

// NewClient returns a verified client of a class. purpose is in lower case, or "".
func NewClient(p *policy.Policy, c *policy.Class, host, purpose string) *Client {
	client := &Client{Policy: p, Class: c, Purpose: purpose, query: c.Query(host, policy.Other, purpose)}
	client.all = sync.OnceValue(client.statements)
	return client
}

// At returns the decision about paths that match a pattern and, among the policy's patterns, only the ones
// that cover it.
func (c *Client) At(u policy.Usage, at pathpattern.Pattern) policy.Decision {
	q := c.query
	q.Usage = u
	return c.Policy.DecideAt(q, at)
}

// Statements lists what the policy states about a usage or, after that, about Other.
func (c *Client) Statements(u policy.Usage) []policy.Applied {
	all := append(c.Policy.Statements(c.Class, u, c.Purpose), c.Policy.Statements(c.Class, policy.Other, c.Purpose)...)
	return slices.DeleteFunc(all, func(a policy.Applied) bool { return !a.Rule.Identity.MetBy(c.query.Identity) })
}

// statements lists what the policy states about the usages of policy.RightsUsages.
func (c *Client) statements() (all []policy.Applied) {
	for _, u := range policyUsages {
		all = append(all, c.Statements(u)...)
	}
	return all
}

// Strictest returns the verdict about a usage for all paths: Disallowed if some path is, Allowed if all are.
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

// Preferences is At about the usages of policy.RightsUsages.
func (c *Client) Preferences(at pathpattern.Pattern) (p Preferences) {
	for i, u := range policyUsages {
		p[i] = c.At(u, at)
	}
	return p
}
