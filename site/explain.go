// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Question is what Explain is asked: a User-Agent, or a product token by itself,
// and a URL.
type Question struct {
	Agent string
	URL   *url.URL
	Now   time.Time
	// Verify, if not nil, finds out whether the client is the crawler that it says it
	// is, from what the crawler's operator publishes, and what that rests on, in
	// words. Without it the client is one that nobody has verified.
	Verify func(crawlers.Verification) (policy.Identity, string)
	// Merges is whether robots.txt is merged with that of the site behind, which is
	// not known here.
	Merges bool
}

// Explanation is what happens to a request in every channel, and why.
type Explanation struct {
	URL     string   `json:"url"`
	Agent   string   `json:"agent"`
	Crawler *Crawler `json:"crawler"` // nil: no crawler that the policy or the catalogue knows
	// Meant is a crawler of a similar name, where Crawler is nil.
	Meant string `json:"did_you_mean,omitempty"`
	// MayCrawl is what the policy says about crawling, in whichever way the path
	// is read (see Edge). A client that nobody knows is not refused all the same.
	MayCrawl bool      `json:"may_crawl"`
	Reason   *Reason   `json:"reason,omitempty"`  // for MayCrawl; nil where no rule decides
	ReadAs   string    `json:"read_as,omitempty"` // the path that decided, where it is not the one that was sent
	Open     bool      `json:"always_open"`       // nobody is refused there: crawlers learn the rules by it
	Usages   []Answer  `json:"usages"`            // that the policy speaks of for this crawler and path
	Channels []Channel `json:"channels"`
	Identity *Identity `json:"identity,omitempty"` // nil where there is none to ask for
}

// Crawler says who was recognised.
type Crawler struct {
	Token    string `json:"token"`
	Operator string `json:"operator,omitempty"`
	Kind     string `json:"kind,omitempty"`
	How      string `json:"how"`
}

// Answer is the decision about one usage.
type Answer struct {
	Usage      string   `json:"usage"`
	Verdict    string   `json:"verdict"`
	Qualifiers []string `json:"qualifiers,omitempty"`
	Reason     *Reason  `json:"reason,omitempty"`
}

// Reason is the part of the policy file that decided.
type Reason struct {
	Place string `json:"place"` // FILE:LINE
	Rule  string `json:"rule"`  // its name, or whom it is for
	Says  string `json:"says"`
}

// Channel is what one channel sends, or does.
type Channel struct {
	Name    string   `json:"name"`
	Sends   []string `json:"sends,omitempty"` // as the client gets it; empty for nothing
	Summary string   `json:"summary"`
	Reasons []Reason `json:"reasons,omitempty"`
	Differs []string `json:"differs,omitempty"` // where it cannot say what the policy says

	refused bool // of the edge
}

// The names of the channels.
const (
	ChannelRobotsTxt = "robots.txt"
	ChannelHeaders   = "headers"
	ChannelPage      = "page"
	ChannelEdge      = "edge"
)

// Explain answers a question. It speaks of a client with the identity that Verify
// finds, and says what becomes of the others.
func (s *Site) Explain(q Question) *Explanation {
	path := pathpattern.Target(q.URL)
	if q.URL.Path == "" {
		u := *q.URL
		u.Path = "/"
		q.URL = &u
	}
	e := &Explanation{URL: readable(q.URL), Agent: q.Agent}
	id := s.who(q.Agent, e)
	query := policy.Query{Crawler: id, Purposes: s.Purposes([]string{q.Agent}), Host: q.URL.Host, Path: path, Now: q.Now}
	evidence := ""
	if id != 0 && q.Verify != nil {
		query.Identity, evidence = q.Verify(s.Verification(id))
	}
	e.Usages = append([]Answer{}, s.answers(query)...)
	s.judge(query, e)
	robots := s.explainRobots(query)
	if q.Merges {
		robots.Differs = append(robots.Differs, "robots_txt merge: lines of the site's own robots.txt are added when it is served; where the policy says nothing, they decide")
	}
	e.Channels = []Channel{robots, s.explainHeaders(query), s.explainPage(query), s.explainEdge(query)}
	e.Identity = s.explainIdentity(query, evidence)
	return e
}

// judge answers whether the path may be crawled as Edge does: it may not if one of
// its readings may not.
func (s *Site) judge(q policy.Query, e *Explanation) {
	readings, n := pathpattern.Readings(q.Path)
	e.Open = s.open(q.Host, readings[:n])
	e.MayCrawl = true
	if name, _, _ := strings.Cut(readings[0], "?"); n == 1 && name == "/robots.txt" {
		return // RFC 9309 section 2.2.2
	}
	for i, path := range readings[:n] {
		q.Path = path
		d := s.mayCrawl(q)
		if refused := d.Verdict == policy.Disallowed; i > 0 && !refused {
			continue
		} else if refused {
			e.MayCrawl = false
			if i > 0 {
				e.ReadAs = path
			}
		}
		if d.Rule != nil {
			r := s.reason(d)
			e.Reason = &r
		}
		if !e.MayCrawl {
			return
		}
	}
}

// who finds the crawler that an agent stands for: a token by itself, or a
// User-Agent.
func (s *Site) who(agent string, e *Explanation) policy.CrawlerID {
	id, how := s.Policy.Crawler(agent), "asked for by its token"
	if id == 0 {
		id, how = s.Recognize([]string{agent}), "recognised by its User-Agent"
	}
	if id == 0 {
		e.Meant = s.meant(agent)
		return 0
	}
	info := s.Policy.CrawlerInfo(id)
	if info.RobotsOnly {
		how = "a token that stands in robots.txt only"
	}
	e.Crawler = &Crawler{Token: info.Token, Operator: info.Operator, Kind: info.Kind, How: how}
	return id
}

func (s *Site) answers(q policy.Query) (answers []Answer) {
	for _, u := range policy.Usages() {
		q.Usage = u
		d := s.Policy.Decide(q)
		if d.Verdict == policy.Unstated || u == policy.Other {
			continue
		}
		a := Answer{Usage: u.String(), Verdict: d.Verdict.String(), Qualifiers: d.Qualifiers().Strings()}
		if d.Rule != nil {
			r := s.reason(d)
			a.Reason = &r
		}
		answers = append(answers, a)
	}
	return answers
}

// reason puts a decision into words.
func (s *Site) reason(d policy.Decision) Reason {
	verb := "disallows "
	if d.Statement.Allow {
		verb = "allows "
	}
	says := verb + d.Statement.Usage.String() + " of " + d.Statement.Pattern.String()
	if d.Statement.Resource != "" {
		says += " (" + d.Statement.Resource + ")"
	}
	if d.Statement.Local != "" {
		says += " as " + d.Statement.Local
	}
	if q := d.Statement.Qualifiers.Strings(); len(q) > 0 {
		says += ", " + strings.Join(q, " ")
	}
	if d.Expired {
		says += ", which has passed"
	}
	return Reason{Place: s.Place(d.Statement.Pos), Rule: s.RuleName(d.Rule), Says: says}
}

func (s *Site) explainEdge(q policy.Query) Channel {
	c := Channel{Name: ChannelEdge, Summary: "the request passes"}
	if q.Crawler == 0 {
		c.Summary = "the request passes: only crawlers that are recognised are ever refused"
		return c
	}
	if s.Policy.CrawlerInfo(q.Crawler).RobotsOnly {
		c.Summary = "nothing to do: no request carries this token"
		return c
	}
	readings, n := pathpattern.Readings(q.Path)
	if s.open(q.Host, readings[:n]) {
		c.Summary = "the request passes: this is always open, as crawlers learn the rules by it"
		return c
	}
	v := s.Edge(q)
	if v.Decision.Rule != nil && !v.Impostor {
		c.add(s.reason(v.Decision))
	}
	if !v.Refused() {
		return c
	}
	status := s.File.Spec.Enforcement.Status
	if status == 0 {
		status = http.StatusForbidden
	}
	switch v.Mode {
	case policy.ModeBlock:
		c.refused = true
		c.Summary = fmt.Sprintf("the request is refused with %d %s", status, http.StatusText(status))
		if s.File.Spec.Enforcement.Close {
			c.Summary = "the connection is dropped"
		}
	case policy.ModeLog:
		c.Summary = "the request passes, and the log says that it would be refused (enforce: log)"
		if v.Impostor {
			c.Summary = "the request passes, and the log says that it would be refused (impostors: log)"
		}
	default:
		c.Summary = "the request passes, though the policy disallows it: enforce is off for this rule"
		c.Differs = []string{"robots.txt asks the crawler to stay away, and nothing holds it to that"}
	}
	return c
}
