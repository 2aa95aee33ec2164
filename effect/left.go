// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"math"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/channels"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

// Cause is the part of a policy that causes a loss.
type Cause struct {
	Rule    *policy.Rule
	Pos     policy.Pos
	Pattern pathpattern.Pattern
	Mode    policy.Mode // how the server handles a disallowed request
}

// left describes the uses of a page that a policy leaves to a crawler. It has a value for each row of the table of
// losses. A greater value means that more is allowed. A crawler has lost something if a value is less under a new
// policy.
type left [numLosses]struct {
	value    int64
	by       Cause
	intended bool
}

const everything = math.MaxInt64

// leftWhole is the value of left for a page that a policy does not restrict.
var leftWhole = func() (all left) {
	for i := range all {
		all[i].value = everything
	}
	return all
}()

// asking is the computation of the selected rows of left for one query.
type asking struct {
	*Engine
	left

	rows Loss
	info policy.Crawler
	q    policy.Query
}

// leaves returns the uses of a page that the policy leaves to the query's crawler. Only the given rows are computed.
func (e *Engine) leaves(q policy.Query, rows Loss) *left {
	a := asking{Engine: e, rows: rows, info: e.Policy.CrawlerInfo(q.Crawler), q: q, left: leftWhole}
	t := e.TargetOf(q.Host, q.Path)
	if e.Open(t) {
		return &a.left
	}
	if !a.info.RobotsOnly { // requests never have the name of a control token
		a.requests()
	}
	if a.info.ReadsPages() && rows&pageRows != 0 && e.shows(t) {
		a.page()
	}
	a.robots()
	a.preferences()
	return &a.left
}

// lower sets the row of loss to value, with by as the cause, if the present value of the row is greater. If the present
// value is equal to value, lower only replaces the cause. It does so only if the rule of by declares the loss as
// intended, and the rule of the present cause does not.
func (a *asking) lower(loss Loss, value int64, by Cause) {
	if a.rows&loss == 0 {
		return
	}
	x, r := &a.left[loss.row()], &table[loss.row()]
	intended := r.intends(by.Rule, &a.info)
	if value < x.value || value == x.value && intended && !x.intended {
		x.value, x.by, x.intended = value, by, intended
	}
}

func causeOf(d policy.Decision) Cause {
	c := Cause{Rule: d.Rule}
	if d.Statement != nil {
		c.Pos, c.Pattern = d.Statement.Pos, d.Statement.Pattern
	}
	return c
}

// requests lowers the values of the rows that depend on how the server handles the crawler's requests. It takes into
// account that the server may mistake the crawler for another crawler.
func (a *asking) requests() {
	if a.rows&(LossBlocked|LossCrawl|LossLimit) == 0 {
		return
	}
	a.request(a.q)
	for _, id := range a.catches[a.q.Crawler] {
		q := a.q
		q.Crawler, q.Identity = id, policy.Unknown
		if row, ok := a.catalog.Lookup(a.Policy.CrawlerInfo(id).Token); ok && !row.Verification.IsEmpty() {
			q.Identity = policy.Impostor
		}
		a.request(q)
	}
}

func (a *asking) request(q policy.Query) {
	if v := a.Edge(q); v.Blocked() && v.Mode == policy.ModeBlock {
		by := causeOf(v.Decision)
		by.Mode = v.Mode
		a.lower(LossBlocked, 0, by)
		a.lower(LossCrawl, 0, by)
	}
	for _, l := range a.Limits(nil, q) {
		if l.Mode == policy.ModeBlock {
			a.lower(LossLimit, -int64(l.Interval()), Cause{Rule: l.Rule, Pos: l.Pos})
		}
	}
}

// robots lowers the values of the rows that depend on robots.txt. For most crawlers, robots.txt agrees with the
// policy's decision about crawling. The exceptions are crawlers that robots.txt cannot name, that do not read the group
// of "*", or that read another crawler's group. For these crawlers, robots examines the lines of robots.txt.
func (a *asking) robots() {
	if a.rows&LossCrawl != 0 {
		q := a.q
		q.Usage = policy.Crawl
		d := a.Policy.Decide(q)
		closed := d.Verdict == policy.Disallowed
		by := causeOf(d)
		by.Mode = a.Policy.Mode(d)
		if closed && (a.info.Signer || a.info.NoToken || a.info.IgnoresStar) || !closed && a.followsClosed(q) {
			line := a.line(&q)
			if closed = line != nil; closed && d.Verdict != policy.Disallowed {
				by = Cause{Rule: line.Rule, Pos: line.Pos, Pattern: line.Statement.Pattern}
			}
		}
		if closed {
			a.lower(LossCrawl, 0, by)
		}
	}
	if a.rows&LossDelay == 0 {
		return
	}
	if r := a.Policy.CrawlDelay(a.q); r != nil {
		a.lower(LossDelay, -int64(r.CrawlDelay), Cause{Rule: r, Pos: r.CrawlDelayPos})
	}
}

// MayCrawl reports whether the query's crawler may crawl a page according to robots.txt and to the server.
func (e *Engine) MayCrawl(q policy.Query) bool {
	return e.leaves(q, LossCrawl)[LossCrawl.row()].value > 0
}

// followsClosed reports whether the query's crawler may follow the robots.txt group of another crawler, and the policy
// disallows crawling for that other crawler.
func (a *asking) followsClosed(q policy.Query) bool {
	for _, token := range a.info.Follows {
		if q.Crawler = a.Policy.Crawler(token); q.Crawler != 0 && a.Policy.Decide(q).Verdict == policy.Disallowed {
			return true
		}
	}
	return false
}

// line returns the line of robots.txt that disallows crawling for the query's crawler, or nil if there is none.
func (a *asking) line(q *policy.Query) *robotsserve.Line {
	if a.info.Signer || a.info.IgnoresStar && len(a.info.Follows) == 0 && !a.isNamed(q) {
		return nil // robots.txt cannot have a line for the crawler
	}
	lines := a.Robots.Explain(*q).Lines
	if len(lines) == 0 || lines[0].Statement == nil || !strings.HasPrefix(lines[0].Text, "Disallow: ") {
		return nil
	}
	return &lines[0]
}

// isNamed reports whether robots.txt may have a group with the name of the query's crawler. It is only called for a
// crawler that ignores the group of "*". Such a crawler obeys robots.txt only if the file has a group with its name.
func (a *asking) isNamed(q *policy.Query) bool {
	class := a.Policy.ClassOf(q.Crawler, q.Host)
	for tier := range policy.TierEveryone {
		if len(a.Policy.Rules(&class, tier)) > 0 {
			return true
		}
	}
	return a.Policy.Spec().Publish.EveryoneNamed
}

// pageRows has the rows that depend on headers and meta tags of pages.
const pageRows = LossIndex | LossSnippet | LossLink | LossFollow | LossImage | LossPreview | LossVideo | LossCopy

// page lowers the values of the rows that depend on headers and meta tags.
func (a *asking) page() {
	for _, src := range a.Sources(a.q) {
		by := Cause{Rule: src.Rule}
		if src.Engine != nil {
			by.Pos, by.Pattern = src.Engine.Pos, src.Engine.Pattern
		} else {
			by = causeOf(src.Decision)
		}
		for _, word := range []struct {
			name string
			loss Loss
			left int64
		}{{"nofollow", LossFollow, 0}, {"noimageindex", LossImage, 0}, {"noarchive", LossCopy, 0}, {"nocache", LossCopy, 1}} {
			if src.Rules.Has(word.name) {
				a.lower(word.loss, word.left, by)
			}
		}
		for name, loss := range sizes {
			if n, limited := src.Rules.Limit(name); limited {
				a.lower(loss, n, by)
			}
		}
		switch {
		case !src.Rules.Has("noindex"):
		case src.Engine == nil && src.Usage == policy.PresentLink:
			a.lower(LossLink, 0, by)
		default:
			a.lower(LossIndex, 0, by)
		}
	}
}

var sizes = map[string]Loss{"max-snippet": LossSnippet, "max-image-preview": LossPreview, "max-video-preview": LossVideo}

// preferences lowers the values of the rows for the usages "search", "train-ai" and "ai-use", if a channel publishes
// decisions about these usages.
func (a *asking) preferences() {
	for u, loss := range preferences {
		if a.rows&loss == 0 || !channels.Published(&a.Policy.Spec().Publish, u) {
			continue
		}
		for p, q := range a.PageQueries(a.q) {
			q.Usage = u
			if d := p.Decide(q); d.Verdict == policy.Disallowed {
				a.lower(loss, 0, causeOf(d))
			}
		}
	}
}

var preferences = map[policy.Usage]Loss{policy.Search: LossSearch, policy.TrainAI: LossTrain, policy.AIUse: LossAIUse}
