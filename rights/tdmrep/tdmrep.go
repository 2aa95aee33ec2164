// SPDX-License-Identifier: Apache-2.0

// Package tdmrep publishes a policy about text and data mining in the TDM Reservation Protocol (W3C Community Group
// final report, 10 May 2024). It writes the file /.well-known/tdmrep.json, and the header fields and meta tags
// tdm-reservation and tdm-policy. If a site has its own declarations, the package merges them with the policy's
// declarations, and the stricter one applies.
//
// The protocol has only one usage, and cannot address single crawlers. Rights are reserved if the policy disallows
// train-ai or ai-use for at least one crawler. Rights are not reserved if the policy allows train-ai for everyone.
package tdmrep

import (
	"net/http"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
)

// Path is the path of the file on every host.
const Path = "/.well-known/tdmrep.json"

// The names of the meta tags (…Name), and the names of the header fields in canonical form (…Field).
const (
	ReservationName  = "tdm-reservation"
	PolicyName       = "tdm-policy"
	ReservationField = "Tdm-Reservation"
	PolicyField      = "Tdm-Policy"
)

// Reservation is a value of tdm-reservation.
type Reservation uint8

// The values, from the least to the most strict. NotReserved has the same legal effect as Unset, because only a
// reservation has legal consequences.
const (
	Unset       Reservation = iota
	NotReserved             // 0
	Reserved                // 1
)

func (r Reservation) String() string { return [...]string{"", "0", "1"}[r] }

// Declaration states whether the rights in the content of a path or page are reserved, and where the TDM policy is.
type Declaration struct {
	Reservation Reservation
	Policy      string // the URL of a TDM policy, or ""; only used with Reserved
}

// Of returns the declaration for the verdicts that a policy has for everyone.
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

// Tags returns the meta tags of the declaration. They keep a reservation that the page already has, but replace the
// page's policy URL.
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

// String returns the declaration in the syntax of its meta tags.
func (d Declaration) String() string {
	tags := d.Tags()
	parts := make([]string, len(tags))
	for i, t := range tags {
		parts[i] = t.Name + ": " + t.Content
	}
	return strings.Join(parts, ", ")
}

// Merge combines two declarations. Rights are reserved if either declaration reserves them. The result has the policy
// URL of d if d reserves rights and has a URL, and otherwise the URL of other.
func (d Declaration) Merge(other Declaration) Declaration {
	if d.Reservation < other.Reservation {
		return other
	}
	if other.Reservation == Reserved && d.Policy == "" {
		d.Policy = other.Policy
	}
	return d
}

// Apply merges the declaration into the header of a response, just before it is sent. If the header reserves
// rights, they stay reserved.
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

// ReadReservation reads the values of a header field or of meta tags. It treats every value except 0 as a
// reservation. The protocol calls values other than 0 and 1 errors, but their authors probably meant a reservation.
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
