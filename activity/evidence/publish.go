// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/internal/rfc9309"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// inForce is a publication in force, together with the last day whose file contains its texts.
type inForce struct {
	*activity.Publication
	day string
}

// textID returns a string that identifies the texts and the number of a publication.
func textID(p *activity.Publication) string { return p.ID + " " + p.Number }

// Publish implements [activity.Publisher]. It records the publication before all later requests, unless the publication
// is already in force.
func (l *Log) Publish(p *activity.Publication) {
	l.offer(ofPublication(p, p.Time), len(p.Text))
}

func ofPublication(p *activity.Publication, at time.Time) *Event {
	return &Event{Time: at.UTC(), Type: TypePublished, Publication: p.ID[:12], Name: p.Name, By: activity.Text(p.By), Note: activity.Text(p.Note), Published: p}
}

func (l *Log) Serve(p *activity.Publication, d site.Document) {
	l.offer(&Event{Time: l.now(), Type: TypeServed, Publication: p.ID[:12], Name: p.Name, Document: d.Name, Host: d.Host, Robots: d.Version, Text: d.Text}, len(d.Text))
}

func (l *Log) End(p *activity.Publication) {
	l.offer(&Event{Time: l.now(), Type: TypeEnded, Publication: p.ID[:12], Name: p.Name}, 0)
}

// Sign records that a person acted on a version of a policy. policy is the SHA-256 of the version.
func (l *Log) Sign(action, by, note, name, policy string) {
	l.offer(&Event{Time: l.now(), Type: TypeSigned, Reason: action, By: by, Note: note, Name: name, Policy: policy}, len(note))
}

// offer queues an event. size is the number of bytes of its texts.
func (l *Log) offer(e *Event, size int) {
	if l.waiting.Add(int64(size)) <= maxWaiting && l.queue.Offer(item{published: e, size: size}) {
		return
	}
	l.waiting.Add(-int64(size))
	l.refused.Add(1)
}

func (l *Log) publish(e *Event) {
	before, published := l.inForce[e.Name], e.Published
	switch e.Type {
	case TypePublished:
		l.learnAll(published)
		if before != nil && textID(before.Publication) == textID(published) {
			return
		}
		if e.Time.After(l.now()) || l.now().Sub(e.Time) > time.Minute {
			// e.Time is in the past if the policy was loaded before this run, or if the same publication comes into
			// force again. The event gets the time when the log receives the publication.
			e.Time = l.now()
		}
		if before != nil {
			l.append(&Event{Time: e.Time, Type: TypeEnded, Publication: before.ID[:12], Name: e.Name})
		}
		l.turnDay()
		if l.inFile[textID(published)] {
			e.Published = nil
		}
	case TypeServed:
		if !l.learn(e.Document, e.Robots, e.Text) {
			return
		}
	case TypeEnded:
		if before == nil || before.ID[:12] != e.Publication {
			return
		}
	}
	if !l.add(e) {
		l.refused.Add(1)
		delete(l.texts, e.Robots)
		return
	}
	switch e.Type {
	case TypePublished:
		if len(l.inForce) >= maxInForce {
			clear(l.inForce)
		}
		l.inForce[e.Name], l.inFile[textID(published)] = &inForce{published, l.day}, true
	case TypeEnded:
		delete(l.inForce, e.Name)
	}
}

func (l *Log) learnAll(p *activity.Publication) {
	for _, d := range p.Documents {
		l.learn(d.Name, d.Version, d.Text)
	}
}

func (l *Log) learn(name, version, text string) bool {
	if name != site.RobotsTxt || l.texts[version] != nil {
		return false
	}
	if len(l.texts) >= maxTexts {
		clear(l.texts)
	}
	l.texts[version] = rfc9309.Parse([]byte(text), nil)
	return true
}
