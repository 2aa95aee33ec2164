// SPDX-License-Identifier: Apache-2.0

// Package activity holds what crawlers did: requests, and the recorders that take
// them. It knows nothing of Caddy and does no I/O.
package activity

import (
	"strings"
	"time"
)

// Version is the version of the fields of [Request], as the log writes them. A field that is added does not change it;
// one that is renamed or gets another meaning does.
const Version = 1

// Identity is the result of verifying the client of a request.
type Identity string

// The identities.
const (
	Verified   Identity = "verified"   // an address list, DNS or a signature proved it
	Unverified Identity = "unverified" // the User-Agent says so, and nothing proved or disproved it
	Impostor   Identity = "impostor"   // proof was possible and failed
	Audit      Identity = "audit"      // as Unverified, and its User-Agent also names the audit of this program
)

// Decision is the decision on a request, and its effect.
type Decision string

// The decisions. A request about which the policy says nothing is Unstated in the placeholder and in explain, where only
// crawl is meant; what counts and records requests takes it for Allowed.
const (
	Unstated   Decision = "unstated"    // no rule says anything about it
	Allowed    Decision = "allowed"     // or the policy says nothing
	Disallowed Decision = "disallowed"  // disallowed, and nothing was done about it
	WouldBlock Decision = "would_block" // disallowed; the rule is in dry run (enforce: log)
	Blocked    Decision = "blocked"     // answered with a block
	Limited    Decision = "limited"     // answered with 429, over a limit of its rule
	WouldLimit Decision = "would_limit" // allowed; over a limit in dry run (enforce: log)
)

// CategoryUnlisted is the category of clients that look automated and are not in the catalog.
const CategoryUnlisted = "unlisted"

// AuditProduct is the product in the User-Agent of every request that the command `audit` makes.
const AuditProduct = "caddy-robots-policy-audit"

// Request is one decided request of a crawler, or of a client that looks like one. It never holds the client's address.
type Request struct {
	Time time.Time
	Host string // in lower case and has no port
	// Path is the path as sent. It has the query only where that mattered to the
	// decision; QueryOmitted says that there was one which it does not have.
	Path         string
	QueryOmitted bool
	Crawler      string // the product token; of a client of [CategoryUnlisted] the name that its User-Agent begins with
	Category     string // a kind of the catalog, or CategoryUnlisted
	Identity     Identity
	Decision     Decision
	Rule         string // the name of the rule that decided, or its audience; empty where none did
	Policy       string // the version of the policy that decided: the start of its SHA-256
	Publication  string // the start of the ID of the [Publication] that was in force
	Number       string // the Publication's name
	// Robots is the version of the robots.txt that the crawler had read before, or that it
	// reads with this request. It is empty if the crawler is not known to have read any.
	Robots    string
	RobotsTxt bool   // the crawler reads /robots.txt with this request
	Form      string // in which it gets that; see [Form]
	// Document is the path of another register's document that the crawler reads with this
	// request, such as /license.xml, and DocumentVersion its version.
	Document, DocumentVersion string
	Violation                 bool // the robots.txt that the crawler had read disallows this request
	// Proof is the proof that verified the crawler, for a request in the evidence: an address
	// list, a suffix of host names or a key.
	Proof  string
	Status int   // of the response; 0 if the connection was closed before there was one
	Bytes  int64 // of the response's body, as sent
}

// Form names the form in which a robots.txt was sent: the scheme, and whether the upstream's file was merged into it.
// Sitemaps without a scheme differ between http and https.
func Form(scheme string, merged bool) string {
	if merged {
		return scheme + ", merged"
	}
	return scheme
}

// MaxText bounds the texts of a request that are stored, in bytes.
const MaxText = 1024

// Text returns a copy of a text of a request to store: valid UTF-8, and not too long.
func Text(s string) string {
	if len(s) > MaxText {
		s = s[:MaxText]
	}
	return strings.Clone(strings.ToValidUTF8(s, "\uFFFD"))
}

// Recorder takes requests. Record is called while a response is being finished, so it must not wait. A recorder that
// stores a request's strings copies them: they may be parts of the request.
type Recorder interface {
	Record(v Request)
}
