// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/optional"
)

// Approvals holds the number of people who must approve a version, for each running configuration.
var Approvals optional.Latest[int]

// Approval returns the number of people who must approve a version before it is published. It is at least 1.
func Approval() int {
	if n := Approvals.Get(); n != nil {
		return max(*n, 1)
	}
	return 1
}

// AdminAuthor is the end of author names that came through the admin API. Nothing proves these names.
const AdminAuthor = "through the admin API"

// Proven reports whether the author of this name was signed in.
func Proven(author string) bool { return !strings.HasSuffix(author, AdminAuthor) }
