// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"slices"
	"time"
)

// Gap is something that a reader of data could not see. The judge of a claim decides whether the gap matters; see
// [Finding.Matters].
type Gap struct {
	Name    string    `json:"name"`            // to accept it by, such as "cut-lines"
	What    string    `json:"what"`            // a clause, such as "12 lines were cut"
	Close   string    `json:"close,omitempty"` // what the user does to close it; an imperative
	Count   int64     `json:"count,omitempty"` // of the things that were not seen; 0 if it is not known
	Crawler string    `json:"crawler,omitempty"`
	Host    string    `json:"host,omitempty"`
	Path    string    `json:"path,omitempty"`
	From    time.Time `json:"from,omitzero"`
	To      time.Time `json:"to,omitzero"`
}

// Coverage describes data: the number of items, their period, hosts and servers, and what is missing.
type Coverage struct {
	Items   int64     `json:"items"`
	From    time.Time `json:"from,omitzero"`
	To      time.Time `json:"to,omitzero"`
	Hosts   []string  `json:"hosts,omitempty"`   // sorted; empty: of any
	Servers []string  `json:"servers,omitempty"` // sorted
	Gaps    []Gap     `json:"gaps,omitempty"`
}

// Unite returns the coverage of combined data.
func Unite(all ...Coverage) (c Coverage) {
	for _, x := range all {
		c.Items += x.Items
		if c.From.IsZero() || !x.From.IsZero() && x.From.Before(c.From) {
			c.From = x.From
		}
		if x.To.After(c.To) {
			c.To = x.To
		}
		c.Hosts, c.Servers = append(c.Hosts, x.Hosts...), append(c.Servers, x.Servers...)
		c.Gaps = append(c.Gaps, x.Gaps...)
	}
	for _, list := range []*[]string{&c.Hosts, &c.Servers} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return c
}

// Known is a value together with its coverage. The zero Known was never read, which is a gap in itself.
type Known[T any] struct {
	value    T
	coverage Coverage
	read     bool
}

// Read returns a value that a reader found.
func Read[T any](value T, c Coverage) Known[T] { return Known[T]{value, c, true} }

// Get returns the value and what it covers. A value that was never read is the zero value.
func (k Known[T]) Get() (T, Coverage) { return k.value, k.coverage }

// WasRead reports whether k has a value.
func (k Known[T]) WasRead() bool { return k.read }

func (k Known[T]) covered() (Coverage, bool) { return k.coverage, k.read }
