// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"github.com/robotspolicy/caddy-robots-policy/rights/tdmrep"
)

// combineDeclaration returns the content that the elements of a page for a TDMRep
// property must have; content is what they have, with commas between several. What the
// page reserves stays reserved. The policy's own URL takes the place of the page's:
// two cannot be said.
func combineDeclaration(element *prepared, content string, mode Mode) string {
	if mode == Replace || element.lower != tdmrep.ReservationName {
		return element.content
	}
	if theirs := tdmrep.ReadReservation(content); theirs == tdmrep.Reserved {
		return theirs.String()
	}
	return element.content
}
