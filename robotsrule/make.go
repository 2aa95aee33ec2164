// SPDX-License-Identifier: Apache-2.0

package robotsrule

import (
	"strings"
	"time"
)

// Of gives the set of the rules named, such as Of("noindex", "nosnippet"). Each
// name may carry a value, as in Parse.
func Of(names ...string) Set { return Parse(strings.Join(names, ",")) }

// MaxSnippet gives the set with a max-snippet of n characters. 0 is nosnippet,
// and so is a number below -1, which has no meaning; -1 is "no limit".
func MaxSnippet(n int) Set {
	if n < -1 {
		n = 0
	}
	return Set{snippet: limit(int64(n))}.canonical()
}

// UnavailableAfter gives the set with an unavailable_after of t, cut to whole
// seconds. A time before 1970 is read as the start of 1970, and one after the
// year 9999 as the end of that year.
func UnavailableAfter(t time.Time) Set {
	return Set{expires: clampDate(t.Unix()) + 1}
}
