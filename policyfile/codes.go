// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// CodeInfo is what is known of a code.
type CodeInfo struct {
	Code     string
	Severity policy.Severity
	Title    string
}

// codeTable lists every code that this package reports; docs/lint.md has a section
// for each.
var codeTable = []CodeInfo{
	{"file-too-large", policy.Error, "The file is too large"},
	{"file-empty", policy.Error, "The file is empty"},
	{"is-robots-txt", policy.Error, "The file is a robots.txt"},
	{"not-text", policy.Error, "The file is no UTF-8 text"},
	{"yaml-syntax", policy.Error, "The file is no YAML"},
	{"yaml-tab", policy.Error, "A tab where spaces belong"},
	{"needs-quotes", policy.Error, "A value needs quotation marks"},
	{"missing-space", policy.Error, "A space is missing after a colon"},
	{"second-document", policy.Error, "A second document"},
	{"yaml-alias", policy.Error, "An alias, an anchor or a merge key"},
	{"yaml-tag", policy.Error, "A type tag"},
	{"no-value", policy.Error, "A value is missing"},
	{"wrong-kind", policy.Error, "A list, a map or a text in the wrong place"},
	{"duplicate-key", policy.Error, "A key stands twice"},
	{"unknown-key", policy.Error, "An unknown key"},
	{"missing-key", policy.Error, "A key is missing"},
	{"unknown-version", policy.Error, "An unknown version of the format"},
	{"bad-value", policy.Error, "A value that cannot stand here"},
	{"bad-name", policy.Error, "A name that cannot be used"},
	{"bad-path", policy.Error, "Neither a path nor a set"},
	{"bad-host", policy.Error, "No host name"},
	{"bad-address", policy.Error, "No web address"},
	{"bad-audience", policy.Error, "No crawler's name"},
	{"unknown-category", policy.Error, "An unknown category"},
	{"unknown-usage", policy.Error, "An unknown usage"},
	{"bad-usage", policy.Error, "A usage that cannot stand here"},
	{"bad-qualifier", policy.Error, "A qualifier that cannot stand here"},
	{"contradiction", policy.Error, "A rule contradicts itself"},
	{"bad-robots-tag", policy.Error, "No rule that search engines document"},
	{"bad-app-directive", policy.Error, "No application directive"},
	{"bad-crawler", policy.Error, "A crawler that cannot be added"},
	{"reference-not-alone", policy.Error, "A permissions-reference with something beside it"},
	{"too-many-rules", policy.Error, "Too many rules"},

	{"refuses-search", policy.Error, "Search engines or link previews are refused"},

	{"shuts-out-search", policy.Warning, "Search engines or link previews are shut out"},
	{"site-not-indexed", policy.Warning, "The whole site is kept out of search results"},
	{"hidden-noindex", policy.Warning, "A noindex that nobody sees"},
	{"training-may-crawl", policy.Warning, "Training is disallowed, and training crawlers may crawl"},
	{"dual-use-crawler", policy.Warning, "A crawler that trains among other things"},
	{"exemption-not-told", policy.Warning, "An exception that headers and pages cannot tell"},
	{"qualifier-dropped", policy.Warning, "A qualifier that only ACAP can say"},
	{"not-published", policy.Warning, "Something that no record says"},
	{"acap-ranks-differently", policy.Warning, "Paths that readers of ACAP rank differently"},
	{"host-overridden", policy.Warning, "A rule for a host that another rule overrides"},
	{"tie", policy.Warning, "Two rules of equal weight say the opposite"},
	{"never-decides", policy.Warning, "A rule that never decides"},
	{"empty-rule", policy.Warning, "A rule that says nothing"},
	{"control-token-enforced", policy.Warning, "A control token cannot be refused"},
	{"nothing-to-enforce", policy.Warning, "Nothing to enforce"},
	{"crawl-delay-ignored", policy.Warning, "A crawler that ignores crawl-delay"},
	{"time-limit-passed", policy.Warning, "A permission that has ended"},
	{"listed-twice", policy.Warning, "The same thing is listed twice"},
	{"unknown-operator", policy.Warning, "An unknown operator"},
	{"misspelt-crawler", policy.Warning, "A crawler's name that may be misspelt"},
	{"unknown-crawler", policy.Warning, "A crawler's name that nothing knows"},
	{"token-not-allowed", policy.Warning, "A token that RFC 9309 does not allow"},
	{"has-a-usage", policy.Warning, "A usage says it better"},
	{"duplicate-app-directive", policy.Warning, "Two directives for one application and path"},
	{"word-for-boolean", policy.Warning, "A word where yes or no may be meant"},
	{"unused-name", policy.Warning, "A name that nothing uses"},
}

var severities = func() map[string]policy.Severity {
	m := map[string]policy.Severity{}
	for _, c := range codeTable {
		m[c.Code] = c.Severity
	}
	return m
}()

func severityOf(code string) policy.Severity {
	s, ok := severities[code]
	if !ok {
		panic("policyfile: the code " + code + " is in no table")
	}
	return s
}

// Codes lists every code that this package reports, errors first. Channels report
// more (see File.Add).
func Codes() []CodeInfo { return append([]CodeInfo(nil), codeTable...) }
