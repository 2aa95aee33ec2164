// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/channels"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

func (s *Site) explainRobots(q policy.Query) Channel {
	c := Channel{Name: ChannelRobotsTxt, Summary: "no line disallows crawling this page"}
	if name, _, _ := strings.Cut(q.Path, "?"); name == "/robots.txt" {
		c.Summary = "the file itself may always be fetched"
		return c
	}
	q.Usage = policy.Crawl
	read := s.Robots.Explain(q)
	if read.Agent == "" {
		c.Summary = "no group applies to this crawler, because it ignores the group of *, and no group names it; headers and blocking still apply"
		s.explainRecords(&c, q)
		return c
	}
	disallowed := false
	for i, l := range read.Lines {
		c.Sends = append(c.Sends, l.Text)
		crawl := i == 0 && (strings.HasPrefix(l.Text, "Allow:") || strings.HasPrefix(l.Text, "Disallow:"))
		if crawl {
			disallowed = strings.HasPrefix(l.Text, "Disallow:") && l.Text != "Disallow:"
			c.Summary = "the page may be crawled; these lines apply"
			if disallowed {
				c.Summary = "the page may not be crawled; these lines apply"
			}
		}
		if l.Statement != nil {
			c.add(s.reason(policy.Decision{Rule: l.Rule, Statement: l.Statement}))
		}
		if g := s.groupBelow(q.Crawler); g != nil && l.Below > 0 {
			text, above := s.Below.Written(l.Below)
			reason := Reason{Place: policy.PlaceInFallback(s.Below.Name, l.Below), Rule: agentLine(g.Name), Says: fmt.Sprintf("has the line %q", text), group: true}
			if above {
				reason.Rule, reason.Says = "", fmt.Sprintf("the line %q above the first group applies to all groups that do not state this preference", text)
			}
			c.add(reason)
		}
	}
	if len(c.Sends) > 0 {
		c.Sends = slices.Insert(c.Sends, 0, agentLine(read.Agent))
	}
	if leavesOpen(read) && s.Policy.Decide(q).Verdict == policy.Disallowed {
		c.Differs = append(c.Differs, leftOut)
	} else if differs := s.robotsDiffers(q, read.Agent, disallowed); differs != "" {
		c.Differs = append(c.Differs, differs)
	}
	if l := read.AsSent; l != nil {
		c.Differs = append(c.Differs, spelledOtherwise(l, disallowed))
	}
	s.explainOthers(&c, q)
	s.explainRecords(&c, q)
	if row, ok := s.File.Catalog.Lookup(s.Policy.CrawlerInfo(q.Crawler).Token); ok && disobeys[row.Honors] != "" {
		c.Differs = append(c.Differs, disobeys[row.Honors])
	}
	return c
}

// groupBelow returns the group of the site's own robots.txt that a crawler obeys, or nil.
func (s *Site) groupBelow(id policy.CrawlerID) *robotstxt.Group {
	if s.Below == nil {
		return nil
	}
	return s.Below.Obeyed(s.Policy.CrawlerInfo(id))
}

// leavesOpen reports whether robots.txt does not name the crawler because it is rare, and therefore allows it to crawl
// the path.
func leavesOpen(read robotsserve.Explanation) bool {
	return read.LeftOut && (len(read.Lines) == 0 || !strings.HasPrefix(read.Lines[0].Text, "Disallow: "))
}

const leftOut = "robots.txt does not name this crawler, because it is rare and its rule has enforce: block. Only the block keeps the crawler from this page. To name it in robots.txt, write publish: {groups: all}"

// spelledOtherwise is about crawlers that distinguish spellings such as /a,b and /a%2Cb in URLs and robots.txt. It
// describes why such a crawler makes another decision than the policy. disallowed is true if the policy disallows the
// page. l is the line that decides for such a crawler. Its text is empty if no line matches.
func spelledOtherwise(l *robotsserve.Line, disallowed bool) string {
	const who = "a crawler that compares URLs as they are written, such as Google's parser, "
	switch {
	case !disallowed:
		return who + fmt.Sprintf("may not fetch the page, because of %q: the Allow line in robots.txt has another spelling of the path, but the server treats all spellings alike", l.Text)
	case l.Text == "":
		return who + "may fetch the page, because no line has this spelling. robots.txt has up to four spellings of a path, but the server treats all spellings as the same path"
	}
	return who + fmt.Sprintf("may fetch the page, because of %q: robots.txt has up to four spellings of each path, but not this one; the server treats all spellings alike", l.Text)
}

func agentLine(agent string) string {
	if purpose, ok := strings.CutPrefix(agent, "purpose:"); ok {
		return "User-Agent-Purpose: " + purpose
	}
	return "User-agent: " + agent
}

// robotsDiffers describes why robots.txt and the policy decide differently about a query. It returns "" if they do not
// differ.
func (s *Site) robotsDiffers(q policy.Query, agent string, disallowed bool) string {
	d, info := s.Policy.Decide(q), s.Policy.CrawlerInfo(q.Crawler)
	same := func(q policy.Query) bool { return disallowed == (s.Policy.Decide(q).Verdict == policy.Disallowed) }
	verified, names := q, q.Purposes
	verified.Identity = policy.Verified
	purposeless := verified
	purposeless.Purposes = nil
	switch {
	case same(q), disallowed && info.ControlsTraining && s.File.Spec.Publish.SendsControl(info.Token):
		return "" // a control token's line in robots.txt is about train-ai, not about crawling
	case info.Signer:
		return fmt.Sprintf("the policy decides that crawling is %s, and robots.txt cannot name this client, "+
			"which is recognized only by its signature; %s", d.Verdict, s.byEdge(d))
	case info.NoToken && agent == "*":
		return fmt.Sprintf("the policy decides that crawling is %s, and robots.txt does not name this crawler. "+
			"Its token %q is not a valid product token (RFC 9309 section 2.2.1), and its operator does not document that it works in robots.txt; %s", d.Verdict, info.Token, s.byEdge(d))
	case same(verified):
		return fmt.Sprintf("for a client that is not verified, crawling is %s: "+
			"robots.txt cannot ask for an identity, so it treats all clients with the name of this crawler alike", d.Verdict)
	case names != nil && same(purposeless):
		return fmt.Sprintf("for a client that names a purpose (%s), crawling is %s: "+
			"in robots.txt, rules for a purpose apply only to crawlers that no group names", strings.Join(names, ", "), d.Verdict)
	}
	return fmt.Sprintf("the policy decides that crawling is %s, but robots.txt cannot express this here. "+
		"In robots.txt, only the longest matching pattern counts, so robots.txt has the stricter rule", d.Verdict)
}

// byEdge describes whether the server blocks a request although robots.txt does not disallow the path.
func (s *Site) byEdge(d policy.Decision) string {
	if d.Verdict == policy.Disallowed && s.Policy.Mode(d) == policy.ModeBlock {
		return "the server blocks it"
	}
	return "the server would block it only with \"enforce: block\""
}

// explainOthers adds the reasons for the lines of robots.txt that apply to the query q and are not Allow or Disallow
// lines.
func (s *Site) explainOthers(c *Channel, q policy.Query) {
	for _, ch := range channels.Groups() {
		if ch.Group.Reasons != nil {
			ch.Group.Reasons(s.Policy, q, func(r *policy.Rule, at policy.Pos, says string) {
				c.add(Reason{Place: s.Place(at), Rule: s.RuleName(r), Says: says})
			})
		}
	}
	if r := s.Policy.CrawlDelay(q); r != nil {
		c.add(Reason{Place: s.placeOf(r, r.CrawlDelayPos), Rule: s.RuleName(r), Says: fmt.Sprintf("asks for a crawl-delay of %v", r.CrawlDelay), group: r.Fallback})
	}
}

// explainRecords adds the records of robots.txt (lines after the groups) that apply to a query. It also describes where
// programs that read these records get a decision that differs from the policy's.
func (s *Site) explainRecords(c *Channel, q policy.Query) {
	for _, ch := range channels.Table {
		if ch.Records == nil || !ch.On(&s.File.Spec.Publish) {
			continue
		}
		file, _ := s.Robots.Text(q.Host)
		sends, differs := ch.Records.Explain(s.Policy, file, q)
		for _, line := range sends {
			if !slices.Contains(c.Sends, line) {
				c.Sends = append(c.Sends, line)
			}
		}
		c.Differs = append(c.Differs, differs...)
	}
}

// disobeys has a sentence for each value of crawlers.Honors that means that a crawler does not follow robots.txt.
var disobeys = map[crawlers.Honors]string{
	crawlers.HonorsNo:            "this crawler is known not to follow robots.txt",
	crawlers.HonorsUserTriggered: "the operator of this crawler says that it fetches the pages that a person asks for, whatever robots.txt says",
}
