// SPDX-License-Identifier: Apache-2.0

package lint

import "github.com/robotspolicy/caddy-robots-policy/policy"

var codes = []Code{
	{"refuses-search", policy.Error, "Search engines or link previews are refused"},

	{"shuts-out-search", policy.Warning, "Search engines or link previews are shut out"},
	{"site-not-indexed", policy.Warning, "The whole site is kept out of search results"},
	{"includes-www", policy.Warning, "A wildcard host that includes www"},
	{"only-disallowed", policy.Warning, "A crawler that is only disallowed, and stays out"},
	{"changes-nothing", policy.Warning, "A line that changes nothing"},
	{"tie", policy.Warning, "Two lines say the opposite"},
	{"hidden-noindex", policy.Warning, "A noindex that nobody sees"},
	{"training-may-crawl", policy.Hint, "Training is disallowed, but training crawlers may crawl"},
	{"dual-use-crawler", policy.Warning, "A crawler that trains among other things"},
	{"exemption-not-published", policy.Warning, "An exception that headers and pages cannot express"},
	{"qualifier-dropped", policy.Warning, "A qualifier that only ACAP can express"},
	{"not-published", policy.Warning, "Something that no record publishes"},
	{"empty-rule", policy.Warning, "A rule without content"},
	{"control-token-enforced", policy.Warning, "A control token cannot be refused"},
	{"nothing-to-enforce", policy.Warning, "Nothing to enforce"},
	{"crawl-delay-ignored", policy.Warning, "A crawler that ignores crawl-delay"},
	{GuardLimits, policy.Warning, "A limit that does not hold for search engines"},
	{"time-limit-passed", policy.Warning, "A permission that has ended"},
	{"unknown-purpose", policy.Warning, "A purpose that no crawler declares"},
	{"looks-like-regexp", policy.Warning, "A path that looks like a regular expression"},

	{"still-closed", policy.Hint, "A permission that leaves something closed"},
	{"partly-closed", policy.Hint, "A permission that meets a prohibition halfway"},
	{"neither-narrower", policy.Hint, "Two groups of crawlers, neither narrower"},
	{"closed-on-host", policy.Hint, "A permission that opens nothing on a host"},
	{"limit-dropped", policy.Hint, "A permission without a wider one's limit"},
}
