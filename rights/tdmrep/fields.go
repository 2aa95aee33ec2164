// SPDX-License-Identifier: Apache-2.0

package tdmrep

import (
	"net/http"
	"strings"
)

// The fields' names, in the form that http.Header has them in.
const (
	ReservationField = "Tdm-Reservation"
	PolicyField      = "Tdm-Policy"
)

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
