// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Explanation is what a robots.txt says to one crawler about one path.
type Explanation struct {
	// Agent is the name by which the crawler finds its group: its product token, that of
	// a crawler that it follows, a purpose behind "purpose:", or "*". It is "" where no
	// group is for the crawler.
	Agent string
	// Lines are those that hold for the path: the Allow or Disallow that decides first,
	// then Crawl-delay, App-Directives and Content-Usage.
	Lines []Line
}

// Explain returns what the file says to the crawler and path of a query.
func (f *File) Explain(p *policy.Policy, q policy.Query) Explanation { return f.drawn.explain(p, q) }

// Explain returns what the robots.txt that is served to the host of a query says to
// its crawler about its path, where no other file is merged.
func (s *Server) Explain(q policy.Query) Explanation {
	site := s.site(q.Host)
	site.content(s, q.Host)
	return site.drawing.explain(s.p, q)
}

func (d *drawing) explain(p *policy.Policy, q policy.Query) Explanation {
	agent, groups := d.obeyed(p.CrawlerInfo(q.Crawler), q.Purposes)
	e := Explanation{Agent: agent}
	path := pathpattern.NormalizePath(q.Path)
	longest := map[string]*Line{}
	for _, g := range groups {
		for i := range g.lines {
			l := &g.lines[i]
			if l.key == "" || !l.pattern.Match(path) {
				continue
			}
			key := l.key
			if key == "allow" {
				key = "disallow"
			}
			if best := longest[key]; best == nil || l.pattern.Len() > best.pattern.Len() || l.pattern.Len() == best.pattern.Len() && l.key == "allow" {
				longest[key] = l
			}
		}
	}
	for _, key := range []string{"disallow", "crawl-delay", "app-directives", "content-usage"} {
		if l := longest[key]; l != nil {
			e.Lines = append(e.Lines, *l)
		}
	}
	return e
}

// obeyed returns the groups that a crawler obeys: that which names it; else that which
// names one it follows; else those of its purposes, as one; else that of "*".
func (d *drawing) obeyed(info policy.Crawler, purposes []string) (agent string, groups []*group) {
	for _, token := range append([]string{info.Token}, info.Follows...) {
		for _, g := range d.groups {
			for _, t := range g.tokens {
				if token != "" && strings.EqualFold(t, token) {
					return t, []*group{g}
				}
			}
		}
	}
	for _, purpose := range purposes {
		for _, g := range d.groups {
			for _, p := range g.purposes {
				if strings.EqualFold(p, purpose) {
					agent, groups = "purpose:"+p, append(groups, g)
				}
			}
		}
	}
	if len(groups) > 0 || info.IgnoresStar {
		return agent, groups
	}
	return "*", d.groups[:1]
}
