// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/optional"
)

// Approvals holds the number of people who must approve a version, by the configurations that run.
var Approvals optional.Latest[int]

// Approval returns the number of people, at least 1, who must approve a version before it is published.
func Approval() int {
	if n := Approvals.Get(); n != nil {
		return max(*n, 1)
	}
	return 1
}

// AdminAuthor ends the names of authors that were given to the admin API, where nothing proves them.
const AdminAuthor = "through the admin API"

// Proven reports whether an author's name belongs to a person who was signed in.
func Proven(author string) bool { return !strings.HasSuffix(author, AdminAuthor) }
