// SPDX-License-Identifier: Apache-2.0

// Package evidence writes an event log that shows which robots.txt and policy were
// published when, which crawler read which, and what it fetched against it.
//
// The log is a directory of one file for each day (UTC). Each line is an [Event] as
// JSON and holds the SHA-256 of the line before it, across files, so that a line
// that is changed, removed or put in breaks the chain. When a day has ended, its
// file is signed if a key was given. This proves that the lines are whole and in
// order since they were signed. It does not prove when they were written.
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
	TypePublished = "published" // a robots.txt or policy came into force; Event.Text is its text
	TypeRead      = "read"      // a crawler read robots.txt
	TypeViolation = "violation" // a crawler fetched what the robots.txt that it had read disallows
	TypeOmitted   = "omitted"   // Event.Count events were left out, as the day's file was full
	TypeEnd       = "end"       // the last line of a day that has ended
)

// Event is a line of the log.
type Event struct {
	Seq  uint64    `json:"seq"` // 1, 2, 3, … over all files
	Time time.Time `json:"time"`
	Type string    `json:"type"`
	// Prev is the SHA-256 of the line before, in hexadecimal; of the first line of a
	// log it is empty.
	Prev string `json:"prev"`

	Crawler  string            `json:"crawler,omitempty"`
	Identity activity.Identity `json:"identity,omitempty"`
	Host     string            `json:"host,omitempty"`
	Path     string            `json:"path,omitempty"`
	Rule     string            `json:"rule,omitempty"`
	Policy   string            `json:"policy,omitempty"`   // its version
	Robots   string            `json:"robots,omitempty"`   // the version of robots.txt
	Decision activity.Decision `json:"decision,omitempty"` // about a violation
	Status   int               `json:"status,omitempty"`
	Bytes    int64             `json:"bytes,omitempty"`
	Count    int64             `json:"count,omitempty"`

	Kind   string `json:"kind,omitempty"`   // of what was published: robots or policy
	Name   string `json:"name,omitempty"`   // of the policy's source
	SHA256 string `json:"sha256,omitempty"` // of Text
	Text   string `json:"text,omitempty"`
}

// hashOf is the hash of a line without its line end.
func hashOf(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}

// ofVisit is the event that a visit is, if it is one.
func ofVisit(v *activity.Visit) (Event, bool) {
	if v.Audit {
		return Event{}, false
	}
	e := Event{
		Time: v.Time.UTC(), Crawler: v.Crawler, Identity: v.Identity, Host: activity.Text(v.Host),
		Policy: v.Policy, Robots: v.Robots, Status: v.Status, Bytes: v.Bytes,
	}
	switch {
	case v.Violation:
		e.Type, e.Path, e.Rule, e.Decision = TypeViolation, activity.Text(v.Path), v.Rule, v.Decision
	case v.RobotsTxt && v.Identity != activity.Impostor && v.Kind != activity.KindUnknown:
		e.Type = TypeRead
	default:
		return Event{}, false
	}
	return e, true
}
