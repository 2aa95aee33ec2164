// SPDX-License-Identifier: Apache-2.0

package console

import (
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

// readersSubject holds the data that [hasRead] judges.
type readersSubject struct {
	// number of crawlers that have read an older robots.txt, but not yet the robots.txt in force
	Behind  claim.Known[int] `gap:"not-read" what:"the stored requests could not be read" close:"see the page Health"`
	Readers int
	Lacking bool // true if the records of readings since the version came into force may be incomplete
}

// hasRead is the claim that each crawler that reads robots.txt has read the version in force.
var hasRead = claim.Register("has-read", func(s readersSubject) claim.Finding {
	behind, _ := s.Behind.Get()
	f := claim.Finding{
		Text:     "Every crawler that reads robots.txt has read the newest version",
		Unjudged: "Of " + plural(s.Readers, "crawler that reads robots.txt", "crawlers that read robots.txt") + ", all have read the newest version, as far as this is known",
	}
	if behind > 0 {
		f.Fails, f.Text = true, plural(behind, "crawler has", "crawlers have")+" not read it yet"+map[bool]string{true: ", as far as this is known"}[s.Lacking]
	}
	return f
})

// behaviorSubject holds the data that [obeyed] judges: the requests of one crawler with one identity.
type behaviorSubject struct {
	Counts claim.Known[behavior] `gap:"not-read" what:"the stored requests could not be read" close:"see the page Health"`
}

// behavior holds the numbers of requests that a crawler sent after it had read robots.txt.
type behavior struct{ judged, violations, blocked int64 }

// obeyed is the claim that a crawler did not request pages disallowed by the robots.txt that it had read.
var obeyed = claim.Register("obeyed", func(s behaviorSubject) claim.Finding {
	n, _ := s.Counts.Get()
	f := claim.Finding{Text: "It obeyed every robots.txt that it had read", Unjudged: "It obeyed every robots.txt that it had read, as far as its requests are known"}
	if n.judged == 0 {
		f.Unjudged = "Whether it obeyed robots.txt cannot be judged"
	}
	switch violations := plural(n.violations, "violation", "violations"); {
	case n.violations > 0 && n.blocked == n.violations:
		f.Fails, f.Text = true, "It requests disallowed pages: "+violations+", all blocked"
	case n.violations > 0:
		f.Fails, f.Text = true, "It fetches disallowed pages: "+violations+", "+english.Number(n.blocked)+" of them blocked"
	}
	return f
})

// askedSubject holds the data that [didNotAsk] judges.
type askedSubject struct {
	Name, In string
	// true if the question is about the whole site instead of a page
	Site     bool
	Requests claim.Known[map[activity.Identity]*counts] `gap:"not-read" what:"the stored requests could not be read" close:"see the page Health"`
}

// didNotAsk is the claim that no client with the name of a crawler requested a page, or anything on the site. If the
// claim is false, its details have the number of requests for each identity, such as "Verified: 3 requests".
var didNotAsk = claim.Register("did-not-ask", func(s askedSubject) claim.Finding {
	f := claim.Finding{
		Text:     s.Name + " did not request this page " + s.In,
		Unjudged: s.Name + " is not known to have requested this page " + s.In,
	}
	if s.Site {
		f.Text, f.Unjudged = s.Name+" did not come "+s.In, s.Name+" is not known to have come "+s.In
	}
	by, _ := s.Requests.Get()
	for _, id := range []activity.Identity{activity.Verified, activity.Unverified, activity.Impostor} {
		n := by[id]
		if n == nil {
			continue
		}
		line := map[activity.Identity]string{activity.Verified: "Verified", activity.Unverified: "Unverified", activity.Impostor: "Impostors"}[id] +
			": " + plural(n.All, "request", "requests")
		if n.Violations > 0 {
			line += ", " + english.Number(n.Violations) + " of them after reading that the page is disallowed"
		}
		f.Fails, f.Text, f.Details = true, "This page was requested under the name "+s.Name+" "+s.In, append(f.Details, line)
	}
	return f
})

// judgeAsked returns the claim that a crawler did not send requests in the chosen period. The parameter by has the
// crawler's requests in this period, and more has gaps that are already known. If the stored requests begin later than
// the period, the claim is only about the time since they begin.
func (v *view) judgeAsked(s askedSubject, by map[activity.Identity]*counts, more ...claim.Gap) claim.Claim {
	from, to := v.span()
	s.In = v.inPeriod()
	all, err := v.store.Crawlers(v.ctx)
	c, err2 := v.coverage(from, to)
	if err != nil || err2 != nil {
		return claim.Judge(didNotAsk, s)
	}
	begins := to
	for i := range all {
		if all[i].First.Before(begins) {
			begins = all[i].First
		}
	}
	switch {
	case !begins.Before(to):
		c.Gaps = append(c.Gaps, claim.Gap{Name: store.GapNotRecorded, What: "no request of that time is stored"})
	case begins.After(from):
		s.In = "since " + begins.UTC().Format("2 Jan 2006, 15:04") + " UTC, when the stored requests begin"
	}
	c.Gaps = append(c.Gaps, more...)
	s.Requests = claim.Read(by, c)
	return claim.Judge(didNotAsk, s)
}

// judgeReaders returns the claim that all crawlers that read robots.txt have read the robots.txt in force. The
// parameter readers is the number of these crawlers, and behind is the number of those that have read only an older
// robots.txt. since is the time when the robots.txt came into force.
func (v *view) judgeReaders(readers, behind int, since time.Time) claim.Claim {
	s := readersSubject{Readers: readers}
	all, err := v.coverage(since, v.Now)
	s.Lacking = err != nil || len(all.Gaps) > 0
	if c, err := v.coverage(v.Now.Add(-time.Minute), v.Now); err == nil {
		s.Behind = claim.Read(behind, c)
	}
	return claim.Judge(hasRead, s)
}

// judgeBehavior returns the claim that a crawler obeyed robots.txt in the chosen period.
func (v *view) judgeBehavior(n behavior) claim.Claim {
	var s behaviorSubject
	if c, err := v.coverage(v.span()); err == nil {
		if n.judged == 0 {
			c.Gaps = append(c.Gaps, claim.Gap{Name: "no-robots-txt-read", What: "the crawler had not read a robots.txt here, as far as is known"})
		}
		s.Counts = claim.Read(n, c)
	}
	return claim.Judge(obeyed, s)
}

// sentences returns a claim and its gaps as sentences for use within a text.
func sentences(c claim.Claim) string {
	all := make([]string, 1, 1+len(c.Gaps()))
	all[0] = sentence(c.Text())
	for _, g := range c.Gaps() {
		all = append(all, sentence(g.What))
	}
	return strings.Join(all, " ")
}
