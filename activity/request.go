// SPDX-License-Identifier: Apache-2.0

// Package activity defines the record of a crawler's request, and the recorders that receive such records. It does not
// depend on Caddy and does no I/O.
package activity

import (
	"strings"
	"time"
	"unicode/utf8"
)

// Version is the version of the fields with which the crawler log writes a [Request]. It increases when a field is
// renamed or gets another meaning, but not when a field is added.
const Version = 1

// Identity is the result of verifying the client of a request.
type Identity string

// The identities.
const (
	Verified   Identity = "verified"   // an address list, DNS or a signature proves the identity
	Unverified Identity = "unverified" // the User-Agent claims the identity, and no check has proven or disproven this claim
	Impostor   Identity = "impostor"   // a check showed that the client is not the crawler
	Audit      Identity = "audit"      // unverified, and the User-Agent also names the command `audit` of this program
)

// Decision is the decision on a request, together with the server's response: a disallowed request may still be
// answered.
type Decision string

// The decisions. If no rule applies to a request, the placeholder {http.robots_policy.decision} and the command
// `explain` show Unstated, but counters and recorders use Allowed.
const (
	Unstated   Decision = "unstated"    // no rule applies
	Allowed    Decision = "allowed"     // a rule allows the request, or no rule applies
	Disallowed Decision = "disallowed"  // disallowed, but answered like an allowed request
	WouldBlock Decision = "would_block" // disallowed, but the server only logs this (enforce: log)
	Blocked    Decision = "blocked"     // disallowed, and blocked
	Limited    Decision = "limited"     // answered with 429, because the request exceeds a rate limit
	WouldLimit Decision = "would_limit" // the request exceeds a rate limit, but the server only logs this (enforce: log)
)

// CategoryUnlisted is the category of clients that look automated but are not in the catalog.
const CategoryUnlisted = "unlisted"

// AuditProduct is the product in the User-Agent of every request that the command `audit` makes.
const AuditProduct = "caddy-robots-policy-audit"

// Request is the record of a request and the decision on it. The client is a crawler, or looks like an automated
// client. A Request never contains the client's address.
type Request struct {
	Time time.Time
	Host string // lower case, without a port
	// Path is the path as the client sent it. It includes the query only if the query mattered for the decision.
	// QueryOmitted reports that the request had a query that Path leaves out.
	Path         string
	QueryOmitted bool
	Crawler      string // product token; for CategoryUnlisted, the first name in the User-Agent
	Category     string // category from the catalog, or CategoryUnlisted
	Identity     Identity
	Decision     Decision
	Rule         string // name or audience of the rule that decided; empty if no rule decided
	Policy       string // version of the deciding policy: the start of its SHA-256
	Publication  string // start of the ID of the [Publication] in force
	Number       string // Number of the Publication
	// Robots is the version of the robots.txt that the crawler had read before this request, or reads with this
	// request. It is empty if the crawler is not known to have read a robots.txt.
	Robots    string
	RobotsTxt bool   // the request is for /robots.txt
	Form      string // how the robots.txt was sent; see the function [Form]
	// Document is the path of the rights document that the request is for, such as /license.xml, and DocumentVersion is
	// the version of that document. Both are empty for other requests.
	Document, DocumentVersion string
	Violation                 bool // the robots.txt that the crawler had read disallows this request
	// Proof describes how the crawler was verified: by an address list, a suffix of host names or a key. It is set only
	// for requests that the evidence log records.
	Proof  string
	Status int   // response status; 0 if the connection was closed without a response
	Bytes  int64 // size of the response body as sent
}

// Form describes how a robots.txt was sent: by http or https, and with or without the upstream's file merged into it.
// The scheme matters because sitemap addresses without a scheme differ between http and https.
func Form(scheme string, merged bool) string {
	if merged {
		return scheme + ", merged"
	}
	return scheme
}

// MaxText limits the length of a stored text of a request, in bytes.
const MaxText = 1024

// Text returns a copy of the beginning of s, a text of a request, for storage. The copy is valid UTF-8 and has at most
// MaxText bytes.
func Text(s string) string {
	valid := strings.ToValidUTF8(beginning(s), "\uFFFD")
	return strings.Clone(beginning(valid)) // again, because the replacement for an invalid byte has three bytes
}

// beginning returns at most MaxText bytes of s. It does not cut a character in two.
func beginning(s string) string {
	if len(s) <= MaxText {
		return s
	}
	end := MaxText
	for end > MaxText-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// Recorder receives requests. Record is called while a response is being finished, so it must not block. A recorder
// that stores strings of a request must copy them, because they may share the request's memory.
type Recorder interface {
	Record(v Request)
}
