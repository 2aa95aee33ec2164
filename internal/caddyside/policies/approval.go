// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/optional"
)

// Approvals has how many people must stand behind a version, by the configurations that run.
var Approvals optional.Latest[int]

// Approval returns how many people must stand behind a version before it is published, 1 at least.
func Approval() int {
	if n := Approvals.Get(); n != nil {
		return max(*n, 1)
	}
	return 1
}

// AdminAuthor ends the names of authors that were given to the admin API, where nothing proves them.
const AdminAuthor = "through the admin API"

// Proven reports whether the name of an author is that of a person who was signed in.
func Proven(author string) bool { return !strings.HasSuffix(author, AdminAuthor) }
