// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/optional"
)

// Approvals holds the number of people who must approve a version, for each running configuration.
var Approvals optional.Latest[int]

// Approval returns the number of people who must approve a version before it is published. The number is at least 1.
func Approval() int {
	if n := Approvals.Get(); n != nil {
		return max(*n, 1)
	}
	return 1
}

// AdminAuthor is the end of the author's name if the name comes from a request to the admin API. Anyone can write any
// name in such a request.
const AdminAuthor = "through the admin API"

// Proven reports whether the author was signed in, so that the name is certain.
func Proven(author string) bool { return !strings.HasSuffix(author, AdminAuthor) }
