// SPDX-License-Identifier: Apache-2.0

package workload

// ChainRow is a configuration whose handlers are measured inside one process.
type ChainRow struct {
	Name     string
	Template string
	Policy   *PolicySize // nil: none
}

// ChainRows are the compared rows. The first is the base of all.
var ChainRows = []ChainRow{
	{Name: "caddy", Template: "bare.Caddyfile"},
	{Name: "caddy-again", Template: "bare.Caddyfile"},
	{Name: "robots_policy", Template: "policy.Caddyfile", Policy: &Small},
	{Name: "robots_policy-10000", Template: "policy.Caddyfile", Policy: &Large},
	{Name: "caddy-recipe", Template: "recipe.Caddyfile"},
}

// ChainResult is the cost of a request in one row. More is the difference from the base.
type ChainResult struct {
	Scenario   string  `json:"scenario"`
	Row        string  `json:"row"`
	Nanos      float64 `json:"ns"` // CPU time, without garbage collection
	More       float64 `json:"more_ns"`
	Allocs     float64 `json:"allocs"`
	MoreAllocs float64 `json:"more_allocs"`
	MoreOctets float64 `json:"more_octets"` // allocated
	Status     int     `json:"status"`
	Size       int     `json:"size"` // of the body
}
