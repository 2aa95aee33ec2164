// SPDX-License-Identifier: Apache-2.0

package crawlers

import "slices"

// WellKnown are the crawlers that messages name first.
var WellKnown = []string{
	"Googlebot", "Bingbot", "DuckDuckBot", "Applebot", "facebookexternalhit", "GPTBot", "ClaudeBot", "CCBot", "Amazonbot",
	"PerplexityBot", "OAI-SearchBot", "Claude-SearchBot", "ChatGPT-User", "Claude-User", "Perplexity-User",
}

// SortWellKnown puts the well-known ones among some names first, and leaves the others in
// their order.
func SortWellKnown(names []string) {
	rank := func(name string) int {
		if i := slices.Index(WellKnown, name); i >= 0 {
			return i
		}
		return len(WellKnown)
	}
	slices.SortStableFunc(names, func(a, b string) int { return rank(a) - rank(b) })
}
