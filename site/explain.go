// SPDX-License-Identifier: Apache-2.0

package site

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// Question is a question for Explain.
type Question struct {
	Agent string // a User-Agent, or a product token alone
	URL   *url.URL
	Now   time.Time
	// Verify, if not nil, checks the client by the proofs that the crawler's operator publishes. It returns the
	// identity, and the evidence in words. If Verify is nil, the client is unverified.
	Verify func(crawlers.Verification) (policy.Identity, string)
	// Below finds the site's own robots.txt. It is nil if the policy is not merged with it.
	Below Below
}

// Explanation explains what happens to a request in every channel, and why.
type Explanation struct {
	URL     string   `json:"url"`
	Agent   string   `json:"agent"`
	Crawler *Crawler `json:"crawler"` // nil if neither the policy nor the catalog has the crawler
	// Others holds the tokens of further crawlers that Agent names. The server applies the strictest decision about any
	// of the named crawlers. Crawler is the crawler that this decision is about.
	Others []string `json:"also_names,omitempty"`
	Meant  string   `json:"did_you_mean,omitempty"` // if Crawler is nil, a crawler with a similar name
	// MayCrawl is false if the policy disallows crawling for any of the paths that servers may understand the URL as
	// (see Target). It can be false for an unrecognized client, too, although the server never blocks such a client.
	MayCrawl bool `json:"may_crawl"`
	// Unread is true if the site's own robots.txt would decide, but is not known. See May.
	Unread bool    `json:"site_robots_txt_not_read,omitempty"`
	Reason *Reason `json:"reason,omitempty"` // the reason for MayCrawl; nil if no rule decides
	// MayNotIndex is the reason why pages and headers tell the crawler not to index the page. It is nil if the crawler
	// may index the page.
	MayNotIndex *Reason   `json:"may_not_index,omitempty"`
	Despite     []Despite `json:"despite,omitempty"` // allow entries that do not override Reason
	ReadAs      string    `json:"read_as,omitempty"` // the path that decided, if it differs from the sent path
	// AnyCase is true if the path is allowed in the letter case in which the client sent it, but disallowed in another
	// letter case.
	AnyCase  bool       `json:"any_case,omitempty"`
	Open     bool       `json:"always_allowed"`   // true for files such as robots.txt, which the server never blocks
	Expect   string     `json:"expect,omitempty"` // a line for the policy's expect section that states MayCrawl
	Usages   []Answer   `json:"usages"`           // the usages that the policy states
	Channels []Channel  `json:"channels"`
	Rights   []Register `json:"rights,omitempty"` // contents of the published rights documents and signals
	// Controls lists the operator's controls that the policy needs for this crawler and page.
	Controls []ControlState `json:"operators_controls,omitempty"`
	// Identity is nil if the crawler is not recognized, or if requests never contain its token.
	Identity *Identity `json:"identity,omitempty"`

	merged bool // the site's own robots.txt applies where the policy does not decide
}

// Crawler describes the recognized crawler.
type Crawler struct {
	Token    string `json:"token"`
	Operator string `json:"operator,omitempty"`
	Category string `json:"category,omitempty"`
	AI       bool   `json:"ai,omitempty"` // category:ai includes the crawler
	How      string `json:"how"`
}

// Answer is the decision about one usage.
type Answer struct {
	Usage      string   `json:"usage"`
	Verdict    string   `json:"decision"`
	Qualifiers []string `json:"qualifiers,omitempty"`
	Reason     *Reason  `json:"reason,omitempty"`
}

// Reason is the part of the policy file that decided.
type Reason struct {
	Place string `json:"place"` // FILE:LINE
	Rule  string `json:"rule"`  // the name of the rule or, if it has no name, its audiences
	Says  string `json:"says"`

	group bool // Rule is a group of the site's own robots.txt
}

// Channel describes the output or the action of one channel.
type Channel struct {
	Name    string   `json:"name"`
	Sends   []string `json:"sends,omitempty"` // the output that the client gets
	Summary string   `json:"summary"`
	Reasons []Reason `json:"reasons,omitempty"`
	Differs []string `json:"differs,omitempty"` // parts of the policy that the channel cannot express
}

// These are the names of channels.
const (
	ChannelRobotsTxt = "robots.txt"
	ChannelHeaders   = "headers"
	ChannelPage      = "page"
	ChannelEdge      = "blocking"
)

// Explain explains what the policy means for the client and the URL of a question. It assumes that the client has the
// identity that q.Verify returns, and also describes what the server does with clients that have another identity.
func (s *Site) Explain(q Question) *Explanation {
	e := &Explanation{URL: readable(q.URL), Agent: q.Agent}
	known := true
	if q.Below != nil {
		s, known = s.OverOf(q.Below, q.URL.Host)
	}
	e.merged = s.Policy != s.Policy.WithoutFallback()
	ids := s.whoAsks(q.Agent)
	evidence := map[policy.CrawlerID]string{}
	clients := make([]Client, len(ids))
	for i, id := range ids {
		clients[i].Crawler = id
		if q.Verify != nil {
			clients[i].Identity, evidence[id] = q.Verify(s.Verification(id))
		}
	}
	target := NewTarget(sentHost(q.URL.Host), pathpattern.Target(q.URL))
	query, _ := s.EdgeOfAll(&target, clients, policy.Query{
		Purposes: s.Purposes([]string{q.Agent}), Host: target.Host, Path: target.Path, Now: q.Now,
	})
	e.who(s, ids, query.Crawler)
	e.Usages = s.answers(query)
	below := s.evaluate(query, e)
	e.MayNotIndex = s.mayNotIndex(query)
	if e.Crawler != nil && !e.AnyCase && !below && e.MayCrawl == s.MayCrawl(query) {
		e.Expect = s.expectation(query, e).String()
	}
	robots := s.explainRobots(query)
	if e.AnyCase {
		robots.Differs = append(robots.Differs, "robots.txt cannot express that letter case does not matter, because crawlers distinguish upper and lower case in paths (RFC 9309 section 2.2.2)")
	}
	e.Channels = []Channel{robots, s.explainHeaders(query), s.explainPage(query), s.explainEdge(query, &target, clients)}
	if stated := slices.ContainsFunc(s.File.Spec.Rules, statesRights); stated || s.File.Spec.Publish.License != "" {
		e.Rights = s.explainRights(query)
	}
	if e.Crawler != nil {
		e.Controls = s.ControlStates(ControlScope{Crawler: e.Crawler.Token, Host: query.Host, Path: query.Path}, q.Now)
	}
	e.Identity = s.explainIdentity(query, evidence[query.Crawler])
	d, _ := s.crawling(query)
	// If the policy decides, the site's own robots.txt cannot change the answer.
	if e.Unread = !known && d.Verdict == policy.Unstated; e.Unread {
		e.Expect = ""
	}
	return e
}

// sentHost returns the host of a URL in the form that clients send. Labels with non-ASCII letters become A-labels,
// which begin with "xn--".
func sentHost(host string) string {
	if strings.ContainsFunc(host, func(c rune) bool { return c > unicode.MaxASCII }) {
		return policy.NormalizeHost(host)
	}
	return host
}

// evaluate fills the parts of e about crawling and blocking. It reports whether the site's own robots.txt decides.
func (s *Site) evaluate(q policy.Query, e *Explanation) (below bool) {
	e.Open = s.Open(s.TargetOf(q.Host, q.Path))
	d, by := s.crawling(q)
	e.MayCrawl = d.Verdict != policy.Disallowed
	e.Reason = s.reasonOf(d)
	below = d.Rule != nil && d.Rule.Fallback
	if by.Policy == nil {
		return below
	}
	if !by.asSent {
		e.ReadAs = by.query.Path
	}
	e.AnyCase = by.AnyCase
	e.Despite = s.despite(by.Policy, by.query)
	return below
}

// Crawling returns the policy's decision about crawling for the request that q describes. It also decides about
// crawlers that the policy does not know. For the server's decision, call another method such as Edge, because the
// server never blocks these crawlers, although the policy can disallow paths for them.
func (s *Site) Crawling(q policy.Query) policy.Decision {
	d, _ := s.crawling(q)
	return d
}

// reading is one way to understand a request's target, with the policy's query about it.
type reading struct {
	effect.Reader
	query  policy.Query
	asSent bool // query has the path as the client sent it
}

// crawling is like Crawling, but also returns a reading. Different servers may understand the same request target as
// different paths, and each of them is a reading. If the policy disallows a reading, crawling returns the first such
// reading and the decision about it. If not, it returns the decision about the path that the client sent.
func (s *Site) crawling(q policy.Query) (d policy.Decision, by reading) {
	t := s.TargetOf(q.Host, q.Path)
	if name, _, _ := strings.Cut(t.Path, "?"); t.More == nil && name == "/robots.txt" {
		return d, by // robots.txt itself is always allowed (RFC 9309 section 2.2.2)
	}
	q.Usage = policy.Crawl
	first := true
	for p, q := range s.Queries(t, q) {
		found := p.Decide(q)
		// Lines of the site's own robots.txt only apply to the path as sent, because crawlers compare this path with
		// robots.txt.
		ofSite := found.Rule != nil && found.Rule.Fallback
		if found.Verdict == policy.Disallowed && (first || !ofSite) {
			return found, reading{p, q, q.Path == t.Path}
		}
		if first {
			d, first = found, false
		}
	}
	if v := (Verdict{}); t.Long {
		v.EvaluateLong(s.Engine, q)
		if v.Blocked() {
			d = v.Decision
		}
	}
	return d, by
}

// who sets the fields of e about the crawler. ids are the crawlers that e.Agent may mean. decides is the crawler in ids
// with the strictest decision, or 0 if no crawler was recognized.
func (e *Explanation) who(s *Site, ids []policy.CrawlerID, decides policy.CrawlerID) {
	if decides == 0 {
		e.Meant = s.meant(e.Agent)
		return
	}
	info, how := s.Policy.CrawlerInfo(decides), "recognized by its User-Agent"
	switch {
	case info.RobotsOnly && info.ReadsMeta:
		how = "a token that is used only in robots.txt, headers and meta tags, and never in a User-Agent"
	case info.RobotsOnly:
		how = "a token that is used only in robots.txt"
	case s.Policy.Crawler(e.Agent) != 0:
		how = "identified by its name"
	}
	e.Crawler = &Crawler{Token: info.Token, Operator: info.Operator, Category: info.Category, AI: info.AI, How: how}
	for _, id := range ids {
		if id != decides {
			e.Others = append(e.Others, s.Policy.CrawlerInfo(id).Token)
		}
	}
}

// mayNotIndex returns the reason why headers and meta tags tell a crawler not to index a page. It returns nil if the
// crawler may index the page or does not read pages.
func (s *Site) mayNotIndex(q policy.Query) *Reason {
	if info := s.Policy.CrawlerInfo(q.Crawler); !info.ReadsPages() {
		return nil
	}
	for _, src := range s.Sources(q) {
		if src.Rules.Has("noindex") {
			return &s.reasons([]robotstag.Source{src})[0]
		}
	}
	return nil
}

func (s *Site) expectation(q policy.Query, e *Explanation) policy.Expectation {
	x := policy.Expectation{
		Agent: policy.Audience{Kind: policy.ForToken, Name: e.Crawler.Token}, Anyone: true, Allowed: e.MayCrawl, Path: cmp.Or(e.ReadAs, q.Path),
	}
	if s.Policy.DemandsIdentity() {
		x.Anyone, x.Identity = false, q.Identity
	}
	if s.Policy.HostKey(q.Host) != 0 {
		x.Host = policy.NormalizeHost(q.Host)
	}
	return x
}

func (s *Site) answers(q policy.Query) []Answer {
	answers := []Answer{} // [] rather than null
	for _, u := range policy.Usages() {
		q.Usage = u
		d := s.Policy.Decide(q)
		if d.Verdict == policy.Unstated || u == policy.Other {
			continue
		}
		answers = append(answers, Answer{u.String(), d.Verdict.String(), d.Qualifiers().Strings(), s.reasonOf(d)})
	}
	return answers
}

// reasonOf returns the reason for a decision, or nil if no rule decides.
func (s *Site) reasonOf(d policy.Decision) *Reason {
	if d.Rule == nil {
		return nil
	}
	r := s.reason(d)
	return &r
}

// placeOf returns the place of a part of a rule. The rule may come from the site's own robots.txt.
func (s *Site) placeOf(r *policy.Rule, at policy.Pos) string {
	if r.Fallback {
		return policy.PlaceInFallback(r.FallbackFile, at.Line)
	}
	return s.Place(at)
}

// reason describes the rule that decided, in words.
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
	r := Reason{Place: s.placeOf(d.Rule, d.Statement.Pos), Rule: s.RuleName(d.Rule), Says: says, group: d.Rule.Fallback}
	if d.Statement.Implied {
		r.Says = "has no line that disallows this path"
		if r.Rule == robotstxt.IgnoresStar {
			r.Rule, r.Says = "User-agent: *", "does not apply to this crawler, which ignores this group"
		}
	}
	return r
}

// explainEdge describes what the server does with the request that q and t describe. named holds all crawlers that the
// request names, because the rate limits of each of them may apply.
func (s *Site) explainEdge(q policy.Query, t *Target, named []Client) Channel {
	c := Channel{Name: ChannelEdge, Summary: passes}
	if q.Crawler == 0 {
		c.Summary = "the request passes, because only recognized crawlers are ever blocked"
		return c
	}
	if s.Policy.CrawlerInfo(q.Crawler).RobotsOnly {
		c.Summary = "no client sends this token"
		return c
	}
	if s.Open(s.Read(t)) {
		c.Summary = "the request passes, because this file is always allowed: crawlers learn the rules from it"
		return c
	}
	v := s.EdgeOf(t, q)
	if v.Decision.Rule != nil && v.Decision.Rule.Fallback && !v.Impostor {
		v.Decision = policy.Decision{} // the server never enforces the fallback
	}
	if v.Decision.Rule != nil && !v.Impostor {
		c.add(s.reason(v.Decision))
	}
	if !v.Blocked() {
		s.explainLimits(&c, s.LimitsOfAll(nil, t, named, q), q.Crawler)
		return c
	}
	status := cmp.Or(s.File.Spec.Enforcement.Status, http.StatusForbidden)
	switch v.Mode {
	case policy.ModeBlock:
		c.Summary = fmt.Sprintf("the request is blocked with %d %s", status, http.StatusText(status))
		if s.File.Spec.Enforcement.Close {
			c.Summary = "the connection is closed without a response"
		}
	case policy.ModeLog:
		c.Summary = "the request passes, and the log says that it would be blocked (enforce: log)"
		if v.Impostor {
			c.Summary = "the request passes, and the log says that it would be blocked (impostors: log)"
		}
	case policy.ModeOff, policy.ModeUnset:
		c.Summary = "the request passes although the policy disallows it, because enforce is off for this rule"
		c.Differs = []string{"crawlers that do not obey robots.txt can fetch the page"}
	}
	return c
}
