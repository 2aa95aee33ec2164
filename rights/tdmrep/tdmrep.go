// SPDX-License-Identifier: Apache-2.0

// Package tdmrep publishes what a policy says about text and data mining as the TDM
// Reservation Protocol asks for (W3C Community Group final report, 10 May 2024): the
// file /.well-known/tdmrep.json, the fields tdm-reservation and tdm-policy of
// responses, and meta elements of the same names. It also merges these with what a
// site says itself, to the stricter.
//
// The protocol knows one usage, mining, and speaks to everyone. Rights are reserved
// where the policy disallows train-ai or ai-use for anyone, and not reserved where it
// allows train-ai for everyone.
package tdmrep

import (
	"net/http"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
)

// Path is where the file lies on every host.
const Path = "/.well-known/tdmrep.json"

// The names of the meta elements, and those of the fields of responses as http.Header has
// them.
const (
	ReservationName  = "tdm-reservation"
	PolicyName       = "tdm-policy"
	ReservationField = "Tdm-Reservation"
	PolicyField      = "Tdm-Policy"
)

// Reservation is a value of tdm-reservation.
type Reservation uint8

// The values, from the laxest to the strictest. What is unset says less than 0, but
// where the two meet, 0 stands: only a reservation changes the law's default.
const (
	Unset       Reservation = iota
	NotReserved             // 0
	Reserved                // 1
)

// String is the value as it is written; "" for Unset.
func (r Reservation) String() string { return [...]string{"", "0", "1"}[r] }

// Declaration is what is declared about a resource.
type Declaration struct {
	Reservation Reservation
	Policy      string // the URL of a TDM policy, with Reserved; or ""
}

// Of is the declaration for what a policy says to everyone.
func Of(p rights.Preferences, policyURL string) Declaration {
	switch {
	case p[0].Verdict == policy.Disallowed, p[1].Verdict == policy.Disallowed:
		return Declaration{Reserved, policyURL}
	case p[0].Verdict == policy.Allowed:
		return Declaration{Reservation: NotReserved}
	}
	return Declaration{}
}

// Merge is what two declarations say together: a reservation of either holds. The
// policy is d's, or else the other's.
func (d Declaration) Merge(other Declaration) Declaration {
	if d.Reservation < other.Reservation {
		return other
	}
	if other.Reservation == Reserved && d.Policy == "" {
		d.Policy = other.Policy
	}
	return d
}

// Apply merges a declaration with what the header of a response already says, just
// before it goes out. What is reserved stays reserved; with nothing to declare, the
// header stays as it is.
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

// ReadReservation reads the values of a field or of meta elements. Any value that is
// not 0 is taken for a reservation: the protocol calls it an error, which a reader
// ignores, but its author meant to say something.
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

// onlyURL is the one URL that a field has, or "".
func onlyURL(values []string) string {
	if len(values) != 1 || !isURL(strings.TrimSpace(values[0])) {
		return ""
	}
	return strings.TrimSpace(values[0])
}
