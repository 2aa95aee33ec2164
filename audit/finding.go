// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"slices"
)

// Severity says what a finding means.
type Severity string

// The severities, gravest first.
const (
	Fault        Severity = "fault"        // the channels contradict each other, the policy or a standard
	Inconclusive Severity = "inconclusive" // it may be meant so; the message says what to check
	Notice       Severity = "notice"       // good to know; nothing has to change
)

// Finding is one thing that an audit noticed.
type Finding struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"` // stable; docs/audit.md has a row of that name
	URL      string   `json:"url"`
	Crawler  string   `json:"crawler,omitempty"` // product token, where it concerns one
	Message  string   `json:"message"`
	Fix      string   `json:"fix,omitempty"`
}

// The codes of findings.
const (
	codeUnreachable    = "robots-unreachable"
	codeForbidden      = "robots-forbidden"
	codeMissing        = "robots-missing"
	codeRedirect       = "robots-redirect"
	codeHTML           = "robots-html"
	codeContentType    = "robots-content-type"
	codeEncoding       = "robots-encoding"
	codeTooLarge       = "robots-too-large"
	codeSyntax         = "robots-syntax"
	codeLighthouse     = "robots-lighthouse"
	codeStale          = "robots-stale"
	codeRewritten      = "robots-rewritten"
	codeNotCompared    = "robots-not-compared"
	codeChanged        = "robots-changed"
	codeRobotsVaries   = "robots-varies"
	codeSitemapBlocked = "sitemap-disallowed"
	codeSitemapNoindex = "sitemap-noindex"
	codeSitemapError   = "sitemap-error"
	codeSitemapMoved   = "sitemap-redirect"
	codeSitemapBad     = "sitemap-unreadable"
	codeHomeNoindex    = "home-noindex"
	codeHiddenNoindex  = "noindex-hidden"
	codeDisagree       = "channels-disagree"
	codeUsage          = "usage-disagrees"
	codeUnknownRule    = "unknown-rule"
	codeHeadersLost    = "headers-lost"
	codeMetaLost       = "meta-lost"
	codeUsageLost      = "usage-lost"
	codePageStale      = "page-stale"
	codeCachedOther    = "cached-for-another"
	codeVary           = "vary-missing"
	codeNotRefused     = "not-refused"
	codeRefused        = "refused"
	codeAuditRefused   = "audit-refused"
	codePageError      = "page-error"
	codeNotAudited     = "not-audited"
	codeOtherHost      = "other-host"
)

// severityOf is the usual severity of each code.
var severityOf = map[string]Severity{
	codeUnreachable: Fault, codeForbidden: Fault, codeMissing: Notice, codeRedirect: Fault, codeHTML: Fault, codeContentType: Fault,
	codeEncoding: Fault, codeTooLarge: Fault, codeSyntax: Fault, codeLighthouse: Notice, codeStale: Fault, codeRewritten: Fault,
	codeNotCompared: Fault, codeChanged: Notice, codeRobotsVaries: Fault, codeSitemapBlocked: Fault, codeSitemapNoindex: Fault, codeSitemapError: Fault,
	codeSitemapMoved: Notice, codeSitemapBad: Fault, codeHomeNoindex: Fault, codeHiddenNoindex: Fault, codeDisagree: Fault,
	codeUsage: Fault, codeUnknownRule: Notice, codeHeadersLost: Fault, codeMetaLost: Fault, codeUsageLost: Fault,
	codePageStale: Fault, codeCachedOther: Fault, codeVary: Fault, codeNotRefused: Fault, codeRefused: Fault,
	codeAuditRefused: Inconclusive, codePageError: Inconclusive, codeNotAudited: Notice, codeOtherHost: Notice,
}

// finding returns a finding of the code's usual severity.
func finding(code, url, crawler, message, fix string) Finding {
	return Finding{Severity: severityOf[code], Code: code, URL: url, Crawler: crawler, Message: message, Fix: fix}
}

// as returns the finding with another severity.
func (f Finding) as(s Severity) Finding {
	f.Severity = s
	return f
}

var severityOrder = map[Severity]int{Fault: 0, Inconclusive: 1, Notice: 2}

// sortFindings puts the gravest first and leaves the order of the others.
func sortFindings(fs []Finding) {
	slices.SortStableFunc(fs, func(a, b Finding) int { return cmp.Compare(severityOrder[a.Severity], severityOrder[b.Severity]) })
}
