// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

type askData struct {
	Agent, URL, Address string
	Problem             string // what is wrong with the question
	*answered
	Names []string
}

// Answered reports whether the Ask page shows an answer. It has no answer before the user asks, or if the question is
// not valid.
func (d *askData) Answered() bool { return d.answered != nil }

type answered struct {
	*site.Explanation
	Verdict  string // allowed, disallowed, blocked or unstated
	Headline string
	Others   []otherAnswer
	// the claim about whether the crawler requested the page; the zero Claim if this server has no store, or if the
	// crawler is not known
	Happened  claim.Claim
	Unstated  []string
	DraftLink string
}

// Channel returns the explanation of one channel.
func (a *answered) Channel(name string) (site.Channel, error) {
	for _, c := range a.Channels {
		if c.Name == name {
			return c, nil
		}
	}
	return site.Channel{}, fmt.Errorf("there is no channel %q", name)
}

type otherAnswer struct {
	Name, Verdict, Link string
	Line                int
}

func ask(v *view) (*page, error) {
	d := &askData{Agent: strings.TrimSpace(v.Param("agent")), URL: strings.TrimSpace(v.Param("url")), Address: strings.TrimSpace(v.Param("address"))}
	p := &page{template: "ask", Title: "Ask", Lead: "No policy is loaded.", Data: d}
	host := v.MainHost()
	d.Names = v.names()
	if v.Running == nil {
		d.Problem = "No policy is loaded, so no question can be answered."
		return p, nil
	}
	if d.Agent == "" && d.URL == "" {
		p.Lead = v.askLead(host)
		return p, nil
	}
	var err error
	d.answered, err = v.answer(d.Agent, d.URL, d.Address)
	if err != nil {
		d.Problem, p.Status, p.Lead = err.Error(), http.StatusBadRequest, "This question cannot be answered."
		return p, nil
	}
	p.Lead = d.lead()
	return p, nil
}

// lead returns the answer as a sentence.
func (a *answered) lead() string {
	if a.May().Outcome() == claim.CannotBeJudged {
		return a.Sentences()
	}
	who := "An unknown crawler"
	if a.Crawler != nil {
		who = shorten(a.Crawler.Token)
	}
	text := who + map[bool]string{true: " may crawl ", false: " may not crawl "}[a.MayCrawl] + shorten(a.Explanation.URL)
	if a.Reason != nil {
		text += fmt.Sprintf(", by the rule “%s” on line %d", shorten(a.Reason.Rule), lineIn(a.Reason.Place))
	} else {
		text += ": no rule disallows it"
	}
	if a.MayCrawl && a.MayNotIndex != nil {
		text += fmt.Sprintf("; it may not index the page (line %d)", lineIn(a.MayNotIndex.Place))
	}
	if a.Verdict == "blocked" {
		text += "; the server blocks it"
	}
	return text + "."
}

// askLead returns a sentence about the site's front page. The Ask page shows this sentence until the user asks a
// question.
func (v *view) askLead(host string) string {
	open, unknown, closed := 0, 0, []string{}
	for _, o := range v.others("", &url.URL{Scheme: "https", Host: host, Path: "/"}) {
		switch o.Verdict {
		case "allowed":
			open++
		case "unknown":
			unknown++
		default:
			closed = append(closed, o.Name)
		}
	}
	text := fmt.Sprintf("The front page of %s is allowed for %d of %d well-known crawlers", host, open, open+unknown+len(closed))
	if len(closed) > 0 {
		text += ", and disallowed for " + english.List(closed, "and")
	}
	if unknown > 0 {
		text += ". For " + plural(unknown, "crawler", "crawlers") + ", this is not known yet: where the policy has no rule, the site's own robots.txt applies, and Caddy has not read it yet"
	}
	return text + ". Ask about another crawler or page."
}

// wellKnown lists the crawlers that publishers ask about most often.
var wellKnown = []string{"Googlebot", "Bingbot", "Applebot", "OAI-SearchBot", "GPTBot", "ClaudeBot", "CCBot", "PerplexityBot"}

const maxQuestion = 4096

// answer answers the question of the Ask page: what does the policy decide if a client with the User-Agent or name
// agent requests the page at address? If from is not empty, it is the client's IP address.
func (v *view) answer(agent, address, from string) (*answered, error) {
	if agent == "" || len(agent)+len(address)+len(from) > maxQuestion {
		return nil, failed(http.StatusBadRequest, "Write the name of a crawler, such as GPTBot, or a complete User-Agent.")
	}
	if strings.HasPrefix(address, "/") {
		address = "https://" + v.MainHost() + address
	} else if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, failed(http.StatusBadRequest, "%s is not the address of a page: write an address such as https://%s/news/.", strconv.Quote(shorten(address)), v.MainHost())
	}
	if !v.allowed(policy.NormalizeHost(u.Host)) {
		return nil, failed(http.StatusBadRequest, "These pages are about %s only.", strings.Join(v.may, ", "))
	}
	question := site.Question{Agent: agent, URL: u, Now: v.Now, Below: v.Running.below}
	if from != "" {
		addr, err := netip.ParseAddr(from)
		if err != nil {
			return nil, failed(http.StatusBadRequest, "%s is not an IP address: write an address such as 192.0.2.1 or 2001:db8::1.", strconv.Quote(shorten(from)))
		}
		question.Verify = identity.ExplainRunning(addr)
	}
	a := v.explain(question)
	a.Others = v.others(agent, u)
	a.Happened = v.happened(a, u)
	if v.Running.document != nil && v.showsText() && a.Expect != "" {
		a.DraftLink = v.Link("change", "expect", a.Expect)
	}
	return a, nil
}

// explain answers a question and describes the decision in words.
func (v *view) explain(q site.Question) *answered {
	a := &answered{Explanation: v.Running.Site.Explain(q)}
	refused := a.Blocked()
	switch {
	case a.May().Outcome() == claim.CannotBeJudged:
		a.Verdict, a.Headline = "unstated", a.Sentences()
	case refused && a.MayCrawl:
		a.Verdict, a.Headline = "blocked", "The policy allows it, but the server blocks this client because of its identity."
	case refused:
		a.Verdict, a.Headline = "blocked", "No, and the server blocks it."
	case a.MayCrawl && a.MayNotIndex != nil:
		a.Verdict, a.Headline = "allowed", "It may crawl the page, but not index it."
	case a.MayCrawl:
		a.Verdict, a.Headline = "allowed", "Yes, it may."
	case a.Open:
		a.Verdict, a.Headline = "disallowed", "No, but the server never blocks requests for this file, because crawlers learn the rules from it."
	default:
		a.Verdict, a.Headline = "disallowed", "No, the policy disallows it. But the server does not block the request."
	}
	stated := map[string]bool{}
	for _, u := range a.Usages {
		stated[u.Usage] = true
	}
	for _, u := range policy.Usages() {
		if !stated[u.String()] && u != policy.Other && u != policy.Crawl {
			a.Unstated = append(a.Unstated, u.String())
		}
	}
	return a
}

// lineIn returns the line number in a place such as site-policy.yaml:15.
func lineIn(place string) int {
	n, _ := strconv.Atoi(place[strings.LastIndexByte(place, ':')+1:])
	return n
}

// others returns answers about the page u for up to six crawlers in wellKnown. It leaves out the crawler named agent,
// because the user has already asked about this crawler.
func (v *view) others(agent string, u *url.URL) (all []otherAnswer) {
	over, known := v.Running.Site, true
	if v.Running.below != nil {
		over, known = over.OverOf(v.Running.below, u.Host)
	}
	for _, name := range wellKnown {
		id := over.Policy.Crawler(name)
		if id == 0 || strings.EqualFold(name, agent) || len(all) == 6 {
			continue
		}
		edge := over.Edge(policy.Query{Crawler: id, Host: u.Host, Path: pathpattern.Target(u), Now: v.Now, Identity: v.likely(id)})
		o := otherAnswer{Name: name, Verdict: wordOf(edge), Link: v.Link("ask", "agent", name, "url", u.String())}
		if s := edge.Decision.Statement; s != nil && !edge.Decision.Rule.Fallback {
			o.Line = s.Pos.Line
		}
		if !known && edge.Decision.Verdict == policy.Unstated {
			o.Verdict = "unknown"
		}
		all = append(all, o)
	}
	return all
}

// likely returns the identity that genuine requests of the crawler id usually have. This is Verified if the crawler's
// operator publishes a way to verify it, and otherwise Unknown.
func (v *view) likely(id policy.CrawlerID) policy.Identity {
	if v.Running.Site.Verification(id).IsEmpty() {
		return policy.Unknown
	}
	return policy.Verified
}

// happened returns the claim about whether the crawler in the answer a requested the page u in the chosen period.
func (v *view) happened(a *answered, u *url.URL) claim.Claim {
	if v.store == nil || a.Crawler == nil {
		return claim.Claim{}
	}
	q := v.query(store.ByIdentity)
	q.Only[store.ByCrawler] = []string{a.Crawler.Token}
	q.Only[store.ByHost] = []string{policy.NormalizeHost(u.Host)}
	came, err := v.byIdentity(q)
	q.PathPrefix = "/"
	stored, err2 := v.byIdentity(q)
	q.PathPrefix, q.Only[store.ByPath] = "", slices.Compact([]string{pathpattern.Target(u), strings.TrimSuffix(pathpattern.Target(u), "?"+u.RawQuery)})
	by, err3 := v.byIdentity(q)
	s := askedSubject{Name: shorten(a.Crawler.Token)}
	if cmp.Or(err, err2, err3) != nil {
		s.In = v.inPeriod()
		return claim.Judge(didNotAsk, s)
	}
	unknown := int64(0)
	for id, n := range came {
		unknown += n.All
		if with := stored[id]; with != nil {
			unknown -= with.All
		}
	}
	var gaps []claim.Gap
	if unknown > 0 {
		gaps = append(gaps, claim.Gap{
			Name: store.GapUnstoredPaths, Count: unknown, What: "the paths of " + plural(unknown, "request of this crawler", "requests of this crawler") + " are not stored",
			Close: "in the option \"activity\", set a larger rows_per_hour, and a larger max_size",
		})
	}
	return v.judgeAsked(s, by, gaps...)
}

// byIdentity adds up the rows that q returns, separately for each identity. Requests of the audit are left out.
func (v *view) byIdentity(q store.Query) (map[activity.Identity]*counts, error) {
	rows, err := v.totals(q)
	by := map[activity.Identity]*counts{}
	for i := range rows {
		id := idOf(&rows[i]).Identity
		if id == activity.Audit {
			continue
		}
		if by[id] == nil {
			by[id] = new(counts)
		}
		addRow(by[id], &rows[i])
	}
	return by, err
}

// names returns the names that the form of the Ask page suggests: wellKnown, and crawlers with recorded requests.
func (v *view) names() []string {
	names := slices.Clone(wellKnown)
	for _, c := range v.seen() {
		if c.Category != activity.CategoryUnlisted && !slices.Contains(names, c.Name) && len(names) < 60 {
			names = append(names, c.Name)
		}
	}
	return names
}
