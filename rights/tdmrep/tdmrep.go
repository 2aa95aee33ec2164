// SPDX-License-Identifier: Apache-2.0

// Package tdmrep publishes a policy about text and data mining by the TDM Reservation Protocol (W3C Community Group
// final report, 10 May 2024). It writes the file /.well-known/tdmrep.json, and the fields and meta tags tdm-reservation
// and tdm-policy. It merges these with a site's own, to the stricter.
//
// The protocol knows one usage and addresses everyone. Rights are reserved if the policy disallows train-ai or ai-use for
// anyone, and not reserved if it allows train-ai for everyone.
package tdmrep

import (
	"net/http"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
)

// Path is the path of the file on every host.
const Path = "/.well-known/tdmrep.json"

// Names of the meta tags, and of the fields as http.Header has them.
const (
	ReservationName  = "tdm-reservation"
	PolicyName       = "tdm-policy"
	ReservationField = "Tdm-Reservation"
	PolicyField      = "Tdm-Policy"
)

// Reservation is a value of tdm-reservation.
type Reservation uint8

// The values, from the laxest to the strictest. 0 has the same rank as unset: only a reservation changes the
// law's default.
const (
	Unset       Reservation = iota
	NotReserved             // 0
	Reserved                // 1
)

func (r Reservation) String() string { return [...]string{"", "0", "1"}[r] }

// Declaration is a declaration about a resource.
type Declaration struct {
	Reservation Reservation
	Policy      string // the URL of a TDM policy, with Reserved; or ""
}

// Of returns the declaration for what a policy says to everyone.
func Of(v rights.Verdicts, policyURL string) Declaration {
	switch {
	case v[0] == policy.Disallowed, v[1] == policy.Disallowed:
		return Declaration{Reserved, policyURL}
	case v[0] == policy.Allowed:
		return Declaration{Reservation: NotReserved}
	}
	return Declaration{}
}

// Restricts reports whether rights are reserved.
func (d Declaration) Restricts() bool { return d.Reservation == Reserved }

// Tags returns the meta tags. A reservation in a page stays; the policy's own URL replaces the page's.
func (d Declaration) Tags() []rights.Tag {
	if d.Reservation == Unset {
		return nil
	}
	ours := d.Reservation.String()
	tags := []rights.Tag{{Name: ReservationName, Content: ours, Merge: func(theirs string) string {
		if ReadReservation(theirs) == Reserved {
			return Reserved.String()
		}
		return ours
	}}}
	if d.Policy != "" {
		tags = append(tags, rights.Tag{Name: PolicyName, Content: d.Policy})
	}
	return tags
}

// String returns the declaration as its tags have it.
func (d Declaration) String() string {
	tags := d.Tags()
	parts := make([]string, len(tags))
	for i, t := range tags {
		parts[i] = t.Name + ": " + t.Content
	}
	return strings.Join(parts, ", ")
}

// Merge unites two declarations: a reservation of either holds, with d's policy if it has one.
func (d Declaration) Merge(other Declaration) Declaration {
	if d.Reservation < other.Reservation {
		return other
	}
	if other.Reservation == Reserved && d.Policy == "" {
		d.Policy = other.Policy
	}
	return d
}

// Apply merges a declaration with a response's header, just before it goes out. A reserved right stays
// reserved.
func (d Declaration) Apply(h http.Header) {
	if d.Reservation == Unset {
		return
	}
	theirs := Declaration{ReadReservation(h[ReservationField]...), ""}
	if theirs.Reservation == Reserved {
		theirs.Policy = onlyURL(h[PolicyField])
	}
	all := d.Merge(theirs)
	h[ReservationField] = []string{all.Reservation.String()}
	if all.Policy == "" {
		delete(h, PolicyField)
		return
	}
	h[PolicyField] = []string{all.Policy}
}

// ReadReservation reads the values of a field or of meta tags. Any value but 0 is a reservation: the protocol calls
// others errors, but the author meant to say something.
func ReadReservation(values ...string) (all Reservation) {
	for _, line := range values {
		for value := range strings.SplitSeq(line, ",") {
			switch strings.TrimSpace(value) {
			case "":
			case "0":
				all = max(all, NotReserved)
			default:
				all = Reserved
			}
		}
	}
	return all
}

func onlyURL(values []string) string {
	if len(values) != 1 || !isURL(strings.TrimSpace(values[0])) {
		return ""
	}
	return strings.TrimSpace(values[0])
}
