// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"slices"
	"time"
)

// Gap describes data that could not be read. The judge of a claim decides whether the gap matters. See
// [Finding.Matters].
type Gap struct {
	Name    string    `json:"name"`            // the name that users write to accept the gap, such as "cut-lines"
	What    string    `json:"what"`            // a clause, such as "12 lines were cut"
	Close   string    `json:"close,omitempty"` // what the user has to do to close the gap, as an imperative
	Count   int64     `json:"count,omitempty"` // the number of missing items; 0 if it is not known
	Crawler string    `json:"crawler,omitempty"`
	Host    string    `json:"host,omitempty"`
	From    time.Time `json:"from,omitzero"`
	To      time.Time `json:"to,omitzero"`
}

// Coverage describes the available data: the number of items, their period, hosts and servers, and the gaps.
type Coverage struct {
	Items   int64     `json:"items"`
	From    time.Time `json:"from,omitzero"`
	To      time.Time `json:"to,omitzero"`
	Hosts   []string  `json:"hosts,omitempty"`   // sorted; empty means any host
	Servers []string  `json:"servers,omitempty"` // sorted
	Gaps    []Gap     `json:"gaps,omitempty"`
}

// Unite returns the coverage of data combined from several parts.
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

// Known is a value together with its coverage. The zero Known is a value that was never read, which is a gap as well.
type Known[T any] struct {
	value    T
	coverage Coverage
	read     bool
}

// Read returns a Known with a value and its coverage.
func Read[T any](value T, c Coverage) Known[T] { return Known[T]{value, c, true} }

// Get returns the value and its coverage. If the value was never read, Get returns zero values.
func (k Known[T]) Get() (T, Coverage) { return k.value, k.coverage }

// WasRead reports whether the value was read.
func (k Known[T]) WasRead() bool { return k.read }

func (k Known[T]) covered() (Coverage, bool) { return k.coverage, k.read }
