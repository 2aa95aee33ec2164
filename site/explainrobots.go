// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

// explainRobots reads the robots.txt as the crawler would, and says which of its
// lines holds.
func (s *Site) explainRobots(q policy.Query) Channel {
	c := Channel{Name: ChannelRobotsTxt}
	q.Usage = policy.Crawl
	d := s.Policy.Decide(q)
	if d.Rule != nil {
		c.add(s.reason(d))
	}
	token := s.Policy.CrawlerInfo(q.Crawler).Token
	f, _ := robotsserve.Render(s.Policy, q.Host, robotsserve.Options{})
	agent, line := ruleFor(string(f.Body), token, pathpattern.NormalizePath(q.Path))
	if line == "" {
		c.Summary = "no line speaks of it, so it may be crawled"
	} else {
		c.Sends = []string{"User-agent: " + agent, line}
		c.Summary = "this line holds"
	}
	disallowed := strings.HasPrefix(line, "Disallow:")
	switch differs := disallowed != (d.Verdict == policy.Disallowed); {
	case differs && s.Policy.DemandsIdentity():
		c.Differs = append(c.Differs, fmt.Sprintf("for a client that nobody has verified, crawling is %s: "+
			"robots.txt cannot ask who somebody really is, and speaks to every client of that name", d.Verdict))
	case differs:
		c.Differs = append(c.Differs, fmt.Sprintf("the policy decides that crawling is %s, which robots.txt cannot say here", d.Verdict))
	}
	if row, ok := s.File.Catalogue.Lookup(token); ok {
		switch row.Honours {
		case crawlers.HonoursNo:
			c.Differs = append(c.Differs, "its operator says that it does not follow robots.txt")
		case crawlers.HonoursUserTriggered:
			c.Differs = append(c.Differs, "its operator says that it fetches what a person asks for without regard to robots.txt")
		}
	}
	if q.Crawler != 0 && agent == "*" && s.Policy.CrawlerInfo(q.Crawler).IgnoresStar {
		c.Differs = append(c.Differs, "its operator says that it does not obey the group of *")
	}
	return c
}

// ruleFor finds the group of a crawler (RFC 9309 section 2.2.1) and the line of
// it that matches a path (section 2.2.2), in a file as we write it.
func ruleFor(file, token, path string) (agent, line string) {
	for _, name := range []string{token, "*"} {
		named, inAgents, found, best := false, false, false, 0
		for text := range strings.Lines(file) {
			text = strings.TrimRight(text, "\r\n")
			key, value, ok := strings.Cut(text, ":")
			value = strings.TrimSpace(value)
			switch {
			case !ok || strings.HasPrefix(text, "#"):
			case key == "User-agent":
				if !inAgents {
					named = false
				}
				inAgents = true
				named = named || name != "" && strings.EqualFold(value, name)
				found = found || named
			case key == "Allow" || key == "Disallow":
				inAgents = false
				p, err := pathpattern.Parse(value)
				if !named || err != nil || !p.Match(path) {
					continue
				}
				// A padded pattern is as long as it is printed; a tie is Allow's.
				if n := len(value); n > best || n == best && key == "Allow" {
					best, line = n, text
				}
			}
		}
		if found {
			return name, line
		}
	}
	return "*", ""
}
