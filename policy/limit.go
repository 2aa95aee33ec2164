// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"
)

// Limit is how many requests a crawler may make at the edge. The zero value is none.
type Limit struct {
	Requests int           // in each Per
	Per      time.Duration // a second, a minute, an hour or a day
	Burst    int           // at once, after a pause
}

// IsZero reports whether there is no limit.
func (l Limit) IsZero() bool { return l.Requests == 0 }

// Interval is the time in which one request becomes possible again.
func (l Limit) Interval() time.Duration { return l.Per / time.Duration(max(l.Requests, 1)) }

// String is the limit as policy files write it, such as 60/m, without the burst.
func (l Limit) String() string {
	// A duration is not an enumeration.
	//exhaustive:ignore
	switch l.Per {
	case time.Second:
		return fmt.Sprintf("%d/s", l.Requests)
	case time.Minute:
		return fmt.Sprintf("%d/m", l.Requests)
	case time.Hour:
		return fmt.Sprintf("%d/h", l.Requests)
	case 24 * time.Hour:
		return fmt.Sprintf("%d/d", l.Requests)
	}
	return fmt.Sprintf("%d in %v", l.Requests, l.Per)
}

// Limit returns the rule whose limit holds for the query's crawler and host: by
// audience, then host; of several the one with the stricter limit. It is nil for none,
// also where a rule says "limit: none". The query's path and usage are not looked at.
func (p *Policy) Limit(q Query) *Rule {
	r := p.strictest(&q, func(b *block) *Rule { return b.limit }, stricterLimit)
	if r == nil || r.Limit.IsZero() {
		return nil
	}
	return r
}

// stricterLimit is the rule with the stricter limit; "none" is the least strict.
func stricterLimit(a, b *Rule) *Rule {
	switch {
	case a == nil || a.Limit.IsZero():
		return b
	case b.Limit.IsZero():
		return a
	case b.Limit.Interval() > a.Limit.Interval(),
		b.Limit.Interval() == a.Limit.Interval() && b.Limit.Burst < a.Limit.Burst:
		return b
	}
	return a
}
