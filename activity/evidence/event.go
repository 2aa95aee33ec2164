// SPDX-License-Identifier: Apache-2.0

// Package evidence writes an event log. The log shows when each policy, robots.txt and rights document was published,
// which crawlers read the robots.txt and the rights documents, and which requests violated the robots.txt. The log is a
// directory with one file for each day (UTC). Each line is an [Event] as JSON, and contains the SHA-256 of the previous
// line. The first line of a file contains the SHA-256 of the previous file's last line. So a changed, removed or
// inserted line breaks this chain. If the log has a key, the newest line is signed each time lines are written. The
// signature proves that no line was changed, removed or inserted after the signing. It does not prove when the lines
// were written.
package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
)

// The types of events.
const (
	TypeStart     = "start"     // the program began to write; Event.Text names the program
	TypeStop      = "stop"      // the program stopped normally
	TypePublished = "published" // the publication Event.Published came into force
	TypeServed    = "served"    // a crawler received the document Event.Text, which the publication does not list
	TypeEnded     = "ended"     // a publication is no longer in force
	TypeSigned    = "signed"    // the person Event.By acted on a version; Event.Reason names the action
	TypeRead      = "read"      // a crawler read robots.txt or a rights document
	TypeViolation = "violation" // a crawler's request violated the robots.txt that it had read
	TypeOmitted   = "omitted"   // Event.Count events of a crawler were left out, because of Event.Reason
	TypeTrouble   = "error"     // an error of the kind Event.Reason; Event.Text has details
	TypeExpired   = "expired"   // older files were deleted; Event.Count is the number of the first remaining event
)

// The reasons why events were left out.
const (
	OverQuota  = "quota"  // the crawler has used its share of the day's space
	QueueFull  = "queue"  // the queue was full
	NotOpen    = "closed" // the log could not be opened
	NotWritten = "disk"   // writing failed, and no more events could be held in memory
)

// The kinds of errors.
const (
	WriteFailed = "write"     // writing failed; Event.Count is the number of failed attempts
	ClockBack   = "clock"     // the clock was set back
	FileChanged = "file"      // another program changed the file that was being written
	NotSigned   = "signature" // lines of an earlier run are not signed, or were changed after signing
	Killed      = "killed"    // an earlier run was killed, so events of its last second may be missing
	Damaged     = "damaged"   // a damaged file was renamed
	NotStamped  = "timestamp" // the time-stamping authority did not answer correctly
)

// Event is a line of the log.
type Event struct {
	Seq  uint64    `json:"seq"` // number of the event, from 1, counted across all files
	Time time.Time `json:"time"`
	Type string    `json:"type"`
	// Prev is the SHA-256 of the previous line, in hexadecimal. It is empty for the first line of a log.
	Prev string `json:"prev"`

	Crawler  string            `json:"crawler,omitempty"`
	Identity activity.Identity `json:"identity,omitempty"`
	Host     string            `json:"host,omitempty"`
	Path     string            `json:"path,omitempty"`
	Rule     string            `json:"rule,omitempty"`
	Policy   string            `json:"policy,omitempty"`           // version of the policy
	Robots   string            `json:"robots,omitempty"`           // version of the robots.txt
	Form     string            `json:"form,omitempty"`             // how the robots.txt was sent; see activity.Form
	Document string            `json:"document,omitempty"`         // path of the fetched rights document
	Version  string            `json:"document_version,omitempty"` // version of Document
	Proof    string            `json:"proof,omitempty"`            // how the crawler was verified
	Decision activity.Decision `json:"decision,omitempty"`         // decision on the request, if it is a violation
	Status   int               `json:"status,omitempty"`
	Bytes    int64             `json:"bytes,omitempty"`
	// Line is the number of the line in robots.txt that disallows the request, according to a parser of RFC 9309. Says
	// is the text of that line. Line is 0 if no such line exists, or if the log does not have the robots.txt.
	Line   int    `json:"line,omitempty"`
	Says   string `json:"says,omitempty"`
	Count  int64  `json:"count,omitempty"`
	Reason string `json:"reason,omitempty"`
	What   string `json:"what,omitempty"` // type of the omitted events

	Publication string `json:"version_hash,omitempty"` // start of the publication's ID
	// Published is set only the first time that a file mentions the publication.
	Published *activity.Publication `json:"published,omitempty"`
	Name      string                `json:"name,omitempty"` // name of the policy's source
	By        string                `json:"by,omitempty"`
	Note      string                `json:"note,omitempty"`
	Text      string                `json:"text,omitempty"`
}

// hashOf returns the hash of a line without its line end.
func hashOf(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}

// typeOf returns the type of event that a request causes, or "" if the request causes no event.
func typeOf(v *activity.Request) string {
	switch {
	case v.Violation:
		return TypeViolation
	case (v.RobotsTxt || v.Document != "") && v.Identity != activity.Impostor && v.Identity != activity.Audit && v.Category != activity.CategoryUnlisted:
		return TypeRead
	}
	return ""
}

func ofVisit(kind string, v *activity.Request) *Event {
	e := &Event{
		Type: kind, Time: v.Time.UTC(), Crawler: v.Crawler, Identity: v.Identity, Host: activity.Text(v.Host),
		Policy: v.Policy, Publication: v.Publication, Robots: v.Robots, Form: v.Form, Status: v.Status, Bytes: v.Bytes, Proof: activity.Text(v.Proof),
	}
	switch {
	case kind == TypeViolation:
		e.Path, e.Rule, e.Decision = activity.Text(v.Path), v.Rule, v.Decision
	case v.Document != "":
		e.Document, e.Version, e.Robots = activity.Text(v.Document), v.DocumentVersion, ""
	}
	return e
}
