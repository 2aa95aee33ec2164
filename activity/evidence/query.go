// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// Question selects the events that [Ask] reports. Zero fields select all events.
type Question struct {
	Crawler string // product token; case is ignored
	Host    string
	// Since and Until limit the period of the crawlers' requests. The answer includes all texts that were in force
	// during the period, even if they were published earlier.
	Since, Until time.Time
	Paths        int // maximum number of paths that the answer names for a violation; 0 means all
}

// Answer holds the events of a log that match a question.
type Answer struct {
	First      time.Time     `json:"first"` // time of the log's first event
	Last       time.Time     `json:"last"`
	Published  []Publication `json:"published"`  // publications in force during the period, oldest first
	Acts       []Act         `json:"acts"`       // actions of people during the period, oldest first
	Reads      []Reading     `json:"reads"`      // sorted by the time of the first reading
	Violations []Violations  `json:"violations"` // sorted by the time of the first violation
	Events     int64         `json:"events"`     // number of reads and violations that match the question
	Omitted    int64         `json:"omitted"`    // number of matching events left out of the log, on all hosts
}

// Pause is a period in which the log recorded nothing, because the server was down.
type Pause struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

// Publication is a publication with the period during which it was in force.
type Publication struct {
	*activity.Publication
	By     string     `json:"by,omitempty"` // empty if not known
	Note   string     `json:"note,omitempty"`
	From   time.Time  `json:"from"`
	Until  time.Time  `json:"until,omitzero"` // zero if the publication is still in force at the end of the log
	Pauses []Pause    `json:"pauses"`         // periods when the server was down and recorded nothing
	Served []Document `json:"served"`         // documents that the publication does not list, by time of the first request
	Log    string     `json:"log,omitempty"`  // directory of the log, if several logs were read

	down time.Time // while the server is down: the end of the last run that recorded the publication
}

// Act records that a person saved, approved, discarded or published a draft, or returned to an earlier version.
type Act struct {
	Time   time.Time `json:"time"`
	What   string    `json:"what"` // draft, approval, discard, publication, undo or return
	By     string    `json:"by"`
	Note   string    `json:"note,omitempty"`
	Name   string    `json:"name"`          // name of the policy's source
	SHA256 string    `json:"sha256"`        // hash of the policy's text
	Log    string    `json:"log,omitempty"` // directory of the log, if several logs were read
}

// Document is a document that crawlers received while a publication was in force, although the publication does not
// list the document.
type Document struct {
	site.Document
	First time.Time `json:"first"`
}

// Reader identifies a crawler, and the version of a host's robots.txt or rights document that the crawler read.
type Reader struct {
	Crawler  string            `json:"crawler"`
	Identity activity.Identity `json:"identity"`
	Host     string            `json:"host"`
	Document string            `json:"document,omitempty"` // path of the rights document; empty for robots.txt
	Robots   string            `json:"robots"`             // version of the robots.txt or rights document
}

// Reading records that a crawler read a version of a robots.txt or rights document.
type Reading struct {
	Reader
	Published []string  `json:"published"` // labels of the publications in force, such as v3 or v3.1
	Forms     []string  `json:"forms"`     // how the file was sent; see activity.Form
	Proofs    []string  `json:"proofs"`    // how the crawler was verified
	First     time.Time `json:"first"`
	Last      time.Time `json:"last"`
	Count     int64     `json:"count"`
	Log       string    `json:"log,omitempty"` // directory of the log, if several logs were read
}

// Violations counts a crawler's requests for paths disallowed by the robots.txt that the crawler had read.
type Violations struct {
	Reader
	Proofs []string `json:"proofs"` // how the crawler was verified
	// Read is the time when the crawler last read the robots.txt before the first violation. Read is zero if the log
	// does not have this time.
	Read   time.Time `json:"read,omitzero"`
	First  time.Time `json:"first"`
	Last   time.Time `json:"last"`
	Count  int64     `json:"count"`
	Served int64     `json:"served"` // requests answered with a status below 400
	// Blocked counts blocked requests, including requests over a rate limit. Requests that are neither in Served nor in
	// Blocked were answered with an error.
	Blocked int64       `json:"blocked"`
	Lines   []LineCount `json:"lines"` // the violated lines of robots.txt, if known
	Paths   []PathCount `json:"paths"`
	Log     string      `json:"log,omitempty"` // directory of the log, if several logs were read
}

// LineCount is the number of requests that violate a line of a robots.txt.
type LineCount struct {
	Line  int    `json:"line"`
	Says  string `json:"says"`
	Count int64  `json:"count"`
}

// PathCount is the number of violating requests for a path.
type PathCount struct {
	Path  string `json:"path"`
	Count int64  `json:"count"`
}

// maxPaths limits the number of different paths in one Violations.
const maxPaths = 10_000

type inquiry struct {
	Question
	Answer
	inForce    map[string]*Publication // keys are names of sources
	published  []*Publication
	known      map[string]*activity.Publication // publications by the ID that events refer to
	lastRead   map[Reader]time.Time
	reads      map[Reader]*Reading
	violations map[Reader]*Violations
	paths      map[*Violations]map[string]int64
}

// Ask reads an evidence log and answers a question. It does not check the log; see [Verify].
func Ask(dir string, q Question) (*Answer, error) {
	a := &inquiry{
		Question: q, inForce: map[string]*Publication{}, known: map[string]*activity.Publication{}, lastRead: map[Reader]time.Time{},
		reads: map[Reader]*Reading{}, violations: map[Reader]*Violations{}, paths: map[*Violations]map[string]int64{},
	}
	if err := Read(dir, func(_ string, e *Event, _ string) error { a.event(e); return nil }); err != nil {
		return nil, err
	}
	return a.answer(), nil
}

func (a *inquiry) within(t time.Time) bool {
	return (a.Since.IsZero() || !t.Before(a.Since)) && (a.Until.IsZero() || t.Before(a.Until))
}

func (a *inquiry) event(e *Event) {
	if a.First.IsZero() {
		a.First = e.Time
	}
	before := a.Last
	a.Last = e.Time
	switch e.Type {
	case TypeStart:
		for _, p := range a.inForce {
			if p.down.IsZero() {
				p.down = before
			}
		}
	case TypePublished, TypeServed, TypeEnded:
		a.publish(e)
	case TypeSigned:
		if a.within(e.Time) {
			a.Acts = append(a.Acts, Act{Time: e.Time, What: e.Reason, By: e.By, Note: e.Note, Name: e.Name, SHA256: e.Policy})
		}
	case TypeOmitted:
		if a.within(e.Time) && (a.Crawler == "" || strings.EqualFold(e.Crawler, a.Crawler)) {
			a.Omitted += e.Count
		}
	case TypeRead, TypeViolation:
		if a.Crawler != "" && !strings.EqualFold(e.Crawler, a.Crawler) || a.Host != "" && !strings.EqualFold(e.Host, a.Host) {
			return
		}
		by := Reader{e.Crawler, e.Identity, e.Host, e.Document, cmp.Or(e.Version, e.Robots)}
		if e.Type == TypeRead {
			a.lastRead[by] = e.Time
		}
		if !a.within(e.Time) {
			return
		}
		a.Events++
		if e.Type == TypeRead {
			a.read(by, e)
		} else {
			a.violation(by, a.lastRead[by], e)
		}
	}
}

// publish processes an event of one of three types: a publication comes into force, a publication ends, or a crawler
// receives a document while a publication is in force.
func (a *inquiry) publish(e *Event) {
	before, published := a.inForce[e.Name], e.Published
	if published != nil {
		a.known[e.Publication] = published
	} else {
		published = a.known[e.Publication]
	}
	switch {
	case e.Type == TypePublished && published == nil:
	case e.Type == TypePublished && before != nil && before.ID == published.ID && before.Number == published.Number:
		if !before.down.IsZero() {
			before.Pauses = append(before.Pauses, Pause{before.down, e.Time})
			before.down = time.Time{}
		}
	case e.Type == TypePublished:
		if before != nil {
			before.Until = cmp.Or(before.down, e.Time)
		}
		p := &Publication{Publication: published, By: e.By, Note: e.Note, From: e.Time}
		a.inForce[e.Name] = p
		a.published = append(a.published, p)
	case before == nil || !strings.HasPrefix(before.ID, e.Publication):
	case e.Type == TypeEnded:
		before.Until = cmp.Or(before.down, e.Time)
		delete(a.inForce, e.Name)
	case a.Host == "" || strings.EqualFold(e.Host, a.Host):
		before.Served = append(before.Served, Document{site.Document{Name: e.Document, Host: e.Host, Version: e.Robots, Text: e.Text}, e.Time})
	}
}

func (a *inquiry) read(by Reader, e *Event) {
	r := a.reads[by]
	if r == nil {
		r = &Reading{Reader: by, First: e.Time}
		a.reads[by] = r
	}
	r.Last = e.Time
	r.Count++
	label := ""
	if p := a.known[e.Publication]; p != nil {
		label = p.Label()
	}
	r.Published, r.Forms, r.Proofs = appendNew(r.Published, label), appendNew(r.Forms, e.Form), appendNew(r.Proofs, e.Proof)
}

// appendNew appends a text, unless it is empty or already in the list, or the list has maxNamed texts.
func appendNew(all []string, text string) []string {
	if text == "" || slices.Contains(all, text) || len(all) >= maxNamed {
		return all
	}
	return append(all, text)
}

// maxNamed limits the number of publications, and of proofs, in one Reading or Violations.
const maxNamed = 100

func (a *inquiry) violation(by Reader, read time.Time, e *Event) {
	v := a.violations[by]
	if v == nil {
		v = &Violations{Reader: by, Read: read, First: e.Time}
		a.violations[by], a.paths[v] = v, map[string]int64{}
	}
	v.Last = e.Time
	v.Count++
	v.Proofs = appendNew(v.Proofs, e.Proof)
	switch {
	case e.Status >= 200 && e.Status < 400:
		v.Served++
	// Older releases did not record the decision, so violations without a decision are counted as blocked.
	case e.Decision == activity.Blocked || e.Decision == activity.Limited || e.Decision == "":
		v.Blocked++
	}
	if i := slices.IndexFunc(v.Lines, func(l LineCount) bool { return l.Line == e.Line }); i >= 0 {
		v.Lines[i].Count++
	} else if e.Line > 0 {
		v.Lines = append(v.Lines, LineCount{e.Line, e.Says, 1})
	}
	if paths := a.paths[v]; paths[e.Path] > 0 || len(paths) < maxPaths {
		paths[e.Path]++
	}
}

func (a *inquiry) answer() *Answer {
	for _, p := range a.published {
		if p.Until.IsZero() {
			p.Until = p.down // no later run recorded the publication, so it ended with that run
		}
		if (a.Since.IsZero() || p.Until.IsZero() || p.Until.After(a.Since)) && (a.Until.IsZero() || p.From.Before(a.Until)) {
			a.Published = append(a.Published, *p)
		}
	}
	for _, r := range a.reads {
		a.Reads = append(a.Reads, *r)
	}
	slices.SortFunc(a.Reads, func(x, y Reading) int {
		return cmp.Or(x.First.Compare(y.First), x.compare(&y.Reader))
	})
	for _, v := range a.violations {
		for path, n := range a.paths[v] {
			v.Paths = append(v.Paths, PathCount{path, n})
		}
		slices.SortFunc(v.Paths, func(x, y PathCount) int { return cmp.Or(cmp.Compare(y.Count, x.Count), cmp.Compare(x.Path, y.Path)) })
		if a.Paths > 0 {
			v.Paths = v.Paths[:min(a.Paths, len(v.Paths))]
		}
		a.Violations = append(a.Violations, *v)
	}
	slices.SortFunc(a.Violations, func(x, y Violations) int {
		return cmp.Or(x.First.Compare(y.First), x.compare(&y.Reader))
	})
	return &a.Answer
}

func (r *Reader) compare(o *Reader) int {
	return cmp.Or(cmp.Compare(r.Crawler, o.Crawler), cmp.Compare(r.Host, o.Host), cmp.Compare(r.Document, o.Document), cmp.Compare(r.Robots, o.Robots), cmp.Compare(r.Identity, o.Identity))
}
