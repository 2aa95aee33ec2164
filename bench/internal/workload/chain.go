// SPDX-License-Identifier: Apache-2.0

package workload

// ChainRow is a configuration whose handlers are measured inside one process.
type ChainRow struct {
	Name     string
	Template string
	Policy   *PolicySize // nil for a configuration without a policy
}

// ChainRows are the compared rows. The first row is the base of all other rows.
var ChainRows = []ChainRow{
	{Name: "caddy", Template: "bare.Caddyfile"},
	{Name: "caddy-again", Template: "bare.Caddyfile"},
	{Name: "robots_policy", Template: "policy.Caddyfile", Policy: &Small},
	{Name: "robots_policy-10000", Template: "policy.Caddyfile", Policy: &Large},
	{Name: "caddy-recipe", Template: "recipe.Caddyfile"},
}

// ChainResult is the cost of a request in one row. The fields whose names begin with More are differences from the
// base.
type ChainResult struct {
	Scenario   string  `json:"scenario"`
	Row        string  `json:"row"`
	Nanos      float64 `json:"ns"` // CPU time, without garbage collection
	More       float64 `json:"more_ns"`
	Allocs     float64 `json:"allocs"`
	MoreAllocs float64 `json:"more_allocs"`
	MoreOctets float64 `json:"more_octets"` // additional allocated octets
	Status     int     `json:"status"`
	Size       int     `json:"size"` // size of the body
}
