// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"cmp"
	"slices"
	"time"
)

// Checked holds the results for one of several logs. Answer is nil if no question was asked.
type Checked struct {
	Dir    string
	Answer *Answer
	Check  *Check
}

// Together combines the results of the logs of several servers, sorted by time. Each log must have a Check from
// [Verify]. A crawler may read robots.txt from one server, and then violate it on another server. So for each
// violation, Together looks in all logs for the time when the crawler read this version of robots.txt.
func Together(logs []Checked) (*Answer, *Check) {
	if len(logs) == 1 {
		return logs[0].Answer, logs[0].Check
	}
	a, c := new(Answer), &Check{FromStart: true}
	for _, l := range logs {
		c.add(l.Dir, l.Check)
		if l.Answer == nil {
			continue
		}
		a.First, a.Last = earlier(a.First, l.Answer.First), later(a.Last, l.Answer.Last)
		a.Events, a.Omitted = a.Events+l.Answer.Events, a.Omitted+l.Answer.Omitted
		for _, p := range l.Answer.Published {
			p.Log = l.Dir
			a.Published = append(a.Published, p)
		}
		for _, act := range l.Answer.Acts {
			act.Log = l.Dir
			a.Acts = append(a.Acts, act)
		}
		for _, r := range l.Answer.Reads {
			r.Log = l.Dir
			a.Reads = append(a.Reads, r)
		}
		for _, v := range l.Answer.Violations {
			v.Log = l.Dir
			a.Violations = append(a.Violations, v)
		}
	}
	slices.SortStableFunc(a.Published, func(x, y Publication) int { return x.From.Compare(y.From) })
	slices.SortStableFunc(a.Acts, func(x, y Act) int { return x.Time.Compare(y.Time) })
	slices.SortStableFunc(a.Reads, func(x, y Reading) int { return x.First.Compare(y.First) })
	slices.SortStableFunc(a.Violations, func(x, y Violations) int { return x.First.Compare(y.First) })
	for i := range a.Violations {
		v := &a.Violations[i]
		for _, r := range a.Reads {
			same := r.Reader == v.Reader
			for _, at := range []time.Time{r.First, r.Last} {
				if same && !at.After(v.First) && at.After(v.Read) {
					v.Read = at
				}
			}
		}
	}
	return a, c
}

func (c *Check) add(dir string, l *Check) {
	c.Files, c.Events, c.Signed, c.Tail, c.Omitted = c.Files+l.Files, c.Events+l.Events, c.Signed+l.Signed, c.Tail+l.Tail, c.Omitted+l.Omitted
	c.First, c.Last, c.FromStart = earlier(c.First, l.First), later(c.Last, l.Last), c.FromStart && l.FromStart
	for _, k := range l.Keys {
		if !slices.Contains(c.Keys, k) {
			c.Keys = append(c.Keys, k)
		}
	}
	c.Stamps = append(c.Stamps, l.Stamps...)
	slices.SortStableFunc(c.Stamps, func(a, b Stamped) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Seq, b.Seq)) })
	for _, g := range l.Gaps {
		c.Gaps = append(c.Gaps, dir+": "+g)
	}
	for _, p := range l.Problems {
		c.Problems = append(c.Problems, dir+": "+p)
	}
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
