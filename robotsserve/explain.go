// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/channels"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Explanation lists the lines of a robots.txt for one crawler and one path.
type Explanation struct {
	// Agent is the name of the group that the crawler obeys: its own product token, the token of a crawler that it
	// follows, "purpose:NAME", or "*". Agent is "" if the crawler does not obey any group.
	Agent string
	// Lines lists the lines that apply to the path: first the Allow or Disallow line that decides, then Crawl-delay,
	// then the lines that other channels add to the group.
	Lines []Line
	// AsSent is for readers that compare URLs as sent, such as Google's parser, and do not decode percent-encoded
	// octets. It is the line that decides for these readers. It is nil if they may crawl the path exactly if all other
	// readers may. Its text is empty if no line matches for them.
	AsSent *Line
	// LeftOut is true if a comment in the file counts the crawler among the rare crawlers that the file does not name.
	LeftOut bool
}

// Explain returns the lines of the file that apply to a query's crawler and path.
func (f *File) Explain(p *policy.Policy, q policy.Query) Explanation { return f.drawn.explain(p, q) }

// Explain returns the lines that apply to a query's crawler and path in the robots.txt of its host. It ignores the
// site's own file, even if it is merged.
func (s *Server) Explain(q policy.Query) Explanation {
	site := s.site(q.Host)
	site.content(s, q.Host, "")
	return site.drawing.explain(s.p, q)
}

func (d *drawing) explain(p *policy.Policy, q policy.Query) Explanation {
	info := p.CrawlerInfo(q.Crawler)
	agent, groups := d.obeyed(info, q.Purposes)
	e := Explanation{Agent: agent, LeftOut: info.Rare && d.left[strings.ToLower(info.Token)]}
	path := pathpattern.NormalizePath(q.Path)
	longest := map[string]*Line{}
	var asSent *Line
	for _, g := range groups {
		for i := range g.lines {
			l := &g.lines[i]
			key := l.key
			if key == "allow" {
				key = "disallow"
			}
			if key == "disallow" && l.raw.Match(q.Path) && (asSent == nil || longer(l, l.raw.Len()-asSent.raw.Len())) {
				asSent = l
			}
			if key != "" && l.pattern.Match(path) {
				if best := longest[key]; best == nil || l.winsOver(best) {
					longest[key] = l
				}
			}
		}
	}
	if by := longest["disallow"]; by.disallows() != asSent.disallows() {
		if e.AsSent = asSent; asSent == nil {
			e.AsSent = &Line{}
		}
	} else if by != nil && asSent != nil {
		longest["disallow"] = asSent // unlike the line by, asSent also matches for readers that compare URLs as sent
	}
	keys := append(make([]string, 0, 8), "disallow", keyCrawlDelay)
	for _, ch := range channels.Groups() {
		keys = append(keys, ch.Group.Field)
	}
	for _, key := range keys {
		if l := longest[key]; l != nil {
			e.Lines = append(e.Lines, *l)
		}
	}
	return e
}

// winsOver reports whether a crawler that reads both lines obeys l. Both lines have the same key, or one is an Allow and the
// other a Disallow. A crawler that combines the groups of its purposes waits for the longest crawl-delay.
func (l *Line) winsOver(best *Line) bool {
	if l.key == keyCrawlDelay {
		return l.Rule.CrawlDelay > best.Rule.CrawlDelay
	}
	return longer(l, l.pathLen()-best.pathLen())
}

// longer reports whether l wins over another line, whose path is shorter than the path of l by the given number of
// bytes. If by is 0, the paths have the same length, and an Allow wins (RFC 9309 section 2.2.2).
func longer(l *Line, by int) bool { return by > 0 || by == 0 && l.key == "allow" }

// pathLen returns the length of a line's path in normal form, or 0 for a line without a path.
func (l *Line) pathLen() int {
	if _, value, _ := strings.Cut(l.Text, ": "); startsWithPath(value) {
		return l.pattern.Len()
	}
	return 0
}

func startsWithPath(value string) bool {
	return strings.HasPrefix(value, "/") || strings.HasPrefix(value, "*")
}

func (l *Line) disallows() bool { return l != nil && l.key == "disallow" }

// obeyed returns the groups that a crawler obeys. It obeys the group that names it, or else the group that names a
// crawler it follows. Otherwise it obeys the groups of its purposes, combined, or else the group of "*".
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
