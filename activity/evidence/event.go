// SPDX-License-Identifier: Apache-2.0

// Package evidence writes an event log that shows what was published when, which crawler
// read which of it, and what it fetched against it.
//
// The log is a directory of one file for each day (UTC). Each line is an [Event] as JSON and holds the SHA-256 of the
// line before it, across files, so that a line that is changed, removed or put in breaks the chain. With a key, the
// end of the chain is signed each time lines are written. This proves that the lines are whole and in order since
// they were signed. It does not prove when they were written.
package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
)

// The types of events.
const (
	TypeStart     = "start"     // the program began to write; Event.Text says which
	TypeStop      = "stop"      // the program ended in order
	TypePublished = "published" // what Event.Published says came into force
	TypeServed    = "served"    // a crawler got a document that the publication does not list: Event.Text
	TypeEnded     = "ended"     // a publication is not in force any more
	TypeSigned    = "signed"    // Event.By saved or approved a draft, published it, or went back: see Event.Reason
	TypeRead      = "read"      // a crawler read robots.txt or the document of a register
	TypeViolation = "violation" // a crawler fetched what the robots.txt that it had read disallows
	TypeOmitted   = "omitted"   // Event.Count events of a crawler were left out; Event.Reason says why
	TypeTrouble   = "error"     // something went wrong; Event.Reason says what, Event.Text how
	TypeExpired   = "expired"   // older files were deleted; Event.Count is the first event that is left
)

// Why events were left out.
const (
	OverQuota  = "quota"  // this crawler has used its share of the day
	QueueFull  = "queue"  // they came faster than they could be written
	NotOpen    = "closed" // the log could not be opened
	NotWritten = "disk"   // they could not be written for so long that no more could be held
)

// What can go wrong.
const (
	WriteFailed = "write"     // writing failed; Event.Count is how often until it worked again
	ClockBack   = "clock"     // the clock went back
	FileChanged = "file"      // another program changed the file while it was written
	NotSigned   = "signature" // lines of an earlier run are not as they were signed, or not signed
	Killed      = "killed"    // an earlier run did not end in order: its last second may be missing
	Damaged     = "damaged"   // a damaged file was put aside
	NotStamped  = "timestamp" // the time-stamping authority could not be asked
)

// Event is a line of the log.
type Event struct {
	Seq  uint64    `json:"seq"` // 1, 2, 3, … over all files
	Time time.Time `json:"time"`
	Type string    `json:"type"`
	// Prev is the SHA-256 of the previous line, in hexadecimal. It is empty for the first line of a log.
	Prev string `json:"prev"`

	Crawler  string            `json:"crawler,omitempty"`
	Identity activity.Identity `json:"identity,omitempty"`
	Host     string            `json:"host,omitempty"`
	Path     string            `json:"path,omitempty"`
	Rule     string            `json:"rule,omitempty"`
	Policy   string            `json:"policy,omitempty"`           // its version
	Robots   string            `json:"robots,omitempty"`           // the version of robots.txt
	Form     string            `json:"form,omitempty"`             // in which it was read; see activity.Form
	Document string            `json:"document,omitempty"`         // of another register that was read: its path
	Version  string            `json:"document_version,omitempty"` // of Document
	Proof    string            `json:"proof,omitempty"`            // what verified the crawler
	Decision activity.Decision `json:"decision,omitempty"`         // about a violation
	Status   int               `json:"status,omitempty"`
	Bytes    int64             `json:"bytes,omitempty"`
	// Line is the line of the robots.txt that disallows a violation, as a reader of RFC 9309
	// finds it, and Says is its text. Line is 0 if there is no such line, or the text is not in
	// the log.
	Line   int    `json:"line,omitempty"`
	Says   string `json:"says,omitempty"`
	Count  int64  `json:"count,omitempty"`
	Reason string `json:"reason,omitempty"`
	What   string `json:"what,omitempty"` // the type of the events that were left out

	Publication string `json:"version_hash,omitempty"` // the start of its ID
	// Published is left out where an earlier line of the same file has it.
	Published *activity.Publication `json:"published,omitempty"`
	Name      string                `json:"name,omitempty"` // of a policy's source
	By        string                `json:"by,omitempty"`
	Note      string                `json:"note,omitempty"`
	Text      string                `json:"text,omitempty"`
}

// hashOf is the hash of a line without its line end.
func hashOf(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}

// typeOf is the type of the event that a request is, "" if it is none.
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
