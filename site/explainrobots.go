// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dunglas/httpsfv"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve/acap"
)

// explainRobots reads the robots.txt as the crawler would, and says which of its
// lines hold.
func (s *Site) explainRobots(q policy.Query) Channel {
	c := Channel{Name: ChannelRobotsTxt, Summary: "no line speaks against crawling it"}
	if name, _, _ := strings.Cut(q.Path, "?"); name == "/robots.txt" {
		c.Summary = "the file itself may always be fetched"
		return c
	}
	q.Usage = policy.Crawl
	d := s.Policy.Decide(q)
	token := s.Policy.CrawlerInfo(q.Crawler).Token
	file := s.https.Body(q.Host) // as it was rendered already, for the first who asked
	g := readGroup(file, token, pathpattern.NormalizePath(q.Path))
	if g.crawl != "" {
		c.Summary = "it may be crawled, by this line"
	}
	if r, ok := s.lineReason(g.crawl, q); ok {
		c.add(r)
	}
	disallowed := strings.HasPrefix(g.crawl, "Disallow:")
	if disallowed {
		c.Summary = "it may not be crawled, by this line"
	}
	for _, line := range []string{g.crawl, g.delay, g.directives, g.usage} {
		if line != "" {
			c.Sends = append(c.Sends, line)
		}
	}
	if len(c.Sends) > 0 {
		c.Sends = slices.Insert(c.Sends, 0, "User-agent: "+g.agent)
	}
	verified := q
	verified.Identity = policy.Verified
	switch differs := disallowed != (d.Verdict == policy.Disallowed); {
	case differs && disallowed == (s.Policy.Decide(verified).Verdict == policy.Disallowed):
		c.Differs = append(c.Differs, fmt.Sprintf("for a client that nobody has verified, crawling is %s: "+
			"robots.txt cannot ask who somebody really is, and speaks to every client of that name", d.Verdict))
	case differs:
		c.Differs = append(c.Differs, fmt.Sprintf("the policy decides that crawling is %s: robots.txt cannot say so here, "+
			"as its readers take the longest pattern, whoever it is for, and so it says the stricter", d.Verdict))
	}
	s.explainDirectives(&c, q)
	s.explainACAP(&c, file, token, q)
	s.obeys(&c, token, g.agent)
	return c
}

// explainDirectives adds the reasons for application directives and for a
// crawl-delay.
func (s *Site) explainDirectives(c *Channel, q policy.Query) {
	for _, app := range s.Policy.Apps() {
		d := s.Policy.AppDirective(q, app)
		if d == nil {
			continue
		}
		text, err := httpsfv.Marshal(d.Item)
		if err != nil {
			text = app
		}
		c.add(Reason{Place: s.Place(d.Pos), Rule: s.RuleName(s.ruleOf(d)), Says: "directs " + text + " for " + d.Pattern.String()})
	}
	if r := s.Policy.CrawlDelay(q); r != nil {
		c.add(Reason{Place: s.Place(r.CrawlDelayPos), Rule: s.RuleName(r), Says: fmt.Sprintf("asks for a crawl-delay of %v", r.CrawlDelay)})
	}
}

// ruleOf is the rule that states an application directive.
func (s *Site) ruleOf(d *policy.AppDirective) *policy.Rule {
	for i := range s.File.Spec.Rules {
		r := &s.File.Spec.Rules[i]
		for j := range r.AppDirectives {
			if &r.AppDirectives[j] == d {
				return r
			}
		}
	}
	return nil
}

// obeys says what the crawler's operator has said of following robots.txt.
func (s *Site) obeys(c *Channel, token, agent string) {
	row, ok := s.File.Catalogue.Lookup(token)
	if !ok {
		return
	}
	switch {
	case row.Honours == crawlers.HonoursNo:
		c.Differs = append(c.Differs, "it is known not to follow robots.txt")
	case row.Honours == crawlers.HonoursUserTriggered:
		c.Differs = append(c.Differs, "its operator says that it fetches what a person asks for without regard to robots.txt")
	case row.IgnoresStar && agent == "*":
		c.Differs = append(c.Differs, "its operator says that it does not obey the group of *")
	}
}

// explainACAP adds the records that hold for readers of ACAP, and says where
// they come to another answer than the policy.
func (s *Site) explainACAP(c *Channel, file, token string, q policy.Query) {
	if !robotsserve.PublishesACAP(s.Policy) {
		return
	}
	lines := strings.Split(file, "\n")
	records := acap.Parse([]byte(file))
	for _, u := range policy.Usages() {
		if !u.IsACAP() {
			continue
		}
		q.Usage = u
		own := s.Policy.Decide(q)
		read := records.Decide(acap.Query{Crawler: token, Path: q.Path, Usage: u, Now: q.Now})
		if read.Field != nil {
			if line := strings.TrimSpace(lines[read.Field.Line-1]); !slices.Contains(c.Sends, line) {
				c.Sends = append(c.Sends, line)
			}
		}
		if (own.Verdict == policy.Disallowed) != (read.Verdict == policy.Disallowed) && !s.Policy.DemandsIdentity() {
			c.Differs = append(c.Differs, fmt.Sprintf("to a reader of ACAP, %s is %s, and the policy decides that it is %s", u, read.Verdict, own.Verdict))
		}
	}
}

// group is what a crawler reads in a robots.txt about a path.
type group struct {
	agent                           string // the name by which it finds its group
	crawl, delay, directives, usage string // the lines that hold, or ""
}

// readGroup finds the group of a crawler (RFC 9309 section 2.2.1) and the lines
// of it that hold for a path (section 2.2.2), in a file as we write it.
func readGroup(file, token, path string) (g group) {
	for _, g.agent = range []string{token, "*"} {
		if g.agent == "" {
			continue
		}
		mine, open, found := false, false, false
		longest := map[*string]int{}
		for line := range strings.Lines(file) {
			line = strings.TrimSpace(line)
			key, value, ok := strings.Cut(line, ":")
			if !ok || strings.HasPrefix(line, "#") {
				continue
			}
			value = strings.TrimSpace(value)
			if key == "User-agent" {
				if !open {
					mine = false
				}
				open, mine = true, mine || strings.EqualFold(value, g.agent)
				found = found || mine
				continue
			}
			open = false
			if mine {
				g.take(longest, key, value, line, path)
			}
		}
		if found {
			return g
		}
	}
	g.agent = "*"
	return g
}

// take keeps a line of the group if it holds for the path, and no longer one
// does. A pattern is as long as it is printed, and in a tie Allow wins.
func (g *group) take(longest map[*string]int, key, value, line, path string) {
	var at *string
	pattern, whole := "/", false
	switch key {
	case "Allow", "Disallow":
		at, pattern = &g.crawl, value
	case "Crawl-delay":
		at, whole = &g.delay, true
	case "App-Directives":
		at = &g.directives
	case "Content-Usage":
		at = &g.usage
	default:
		return
	}
	if (at == &g.directives || at == &g.usage) && strings.HasPrefix(value, "/") {
		pattern, _, _ = strings.Cut(value, " ")
	}
	p, err := pathpattern.Parse(pattern)
	if err != nil || !whole && !p.Match(path) {
		return
	}
	if n := len(pattern); n > longest[at] || n == longest[at] && key == "Allow" {
		longest[at], *at = n, line
	}
}
