// SPDX-License-Identifier: Apache-2.0

package source

import "github.com/robotspolicy/caddy-robots-policy/site/compare"

// Counts says how many changes of a source were applied, and how many rejected.
type Counts struct {
	Applied  uint64 `json:"applied"`
	Rejected uint64 `json:"rejected"`
}

// Outcome is the result of applying a state of a source.
type Outcome struct {
	Before  *Snapshot // nil: there was none
	Now     *Snapshot
	Err     error // why the state was rejected; Now is Before then
	Changes *compare.Diff
	Notify  func() // logs the outcome and emits events
}

func noNotification() {}
