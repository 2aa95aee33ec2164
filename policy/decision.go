// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// Query is a question to a Policy.
type Query struct {
	Crawler  CrawlerID
	Identity Identity
	Purposes []string // named by the client beside what the catalogue says; lower case
	Host     string   // as sent: case and port do not matter
	Path     string   // the path and query of the request target, as sent
	Usage    Usage
	Now      time.Time
}

// Verdict is the answer to a Query.
type Verdict uint8

// The verdicts. Unstated is what no statement matches; for Crawl that means
// allowed (RFC 9309 section 2.2.2).
const (
	Unstated Verdict = iota
	Allowed
	Disallowed
)

var verdictNames = [...]string{"unstated", "allowed", "disallowed"}

// String is the verdict in words.
func (v Verdict) String() string { return verdictNames[v] }

// Decision is a verdict with its reasons.
type Decision struct {
	Verdict Verdict
	// Statement is the narrowest prohibition that stands or, if the verdict is
	// Allowed, the narrowest permission: by audience, host, usage, length of the
	// pattern and place in the file. It is nil when nothing matches, and for
	// /robots.txt.
	Statement *Statement
	Rule      *Rule     // of Statement
	Expired   bool      // Statement is a permission whose date has passed
	Until     time.Time // when the answer may change because a date passes; zero for never

	mode   Mode // see Policy.Mode
	limits *Limits
}

// Qualifiers are the restrictions on what is allowed. All of them hold.
func (d Decision) Qualifiers() Limits {
	if d.limits == nil {
		return nil
	}
	return *d.limits
}
