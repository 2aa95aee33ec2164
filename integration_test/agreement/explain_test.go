// SPDX-License-Identifier: Apache-2.0

package agreement

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// explanation explains the answer to a question. If Caddy runs, it comes from Caddy's admin API as JSON; otherwise it
// comes from package site.
type explanation struct{ site.Explanation }

func (e *explanation) channel(name string) *channel {
	for i := range e.Channels {
		if e.Channels[i].Name == name {
			return (*channel)(&e.Channels[i])
		}
	}
	return &channel{}
}

func (e *explanation) page() *channel { return e.channel(site.ChannelPage) }

// elements reports whether the explanation has robots meta tags for at least one crawler.
func (e *explanation) elements() bool {
	return slices.ContainsFunc(e.page().Sends, func(s string) bool {
		m := elementShown.FindStringSubmatch(s)
		return m != nil && !strings.HasPrefix(m[1], "tdm-")
	})
}

type channel site.Channel

// silent reports whether a channel does not send anything.
func (c *channel) silent() bool { return len(c.Sends) == 0 }

// line returns the value of a line or field that a channel sends. It returns false if the channel does not send it.
func (c *channel) line(name string) (string, bool) {
	for _, s := range c.Sends {
		if value, ok := strings.CutPrefix(s, name+": "); ok {
			return value, true
		}
	}
	return "", false
}

// explanation asks the running server to explain its answer to a question.
func (x *exam) explanation(q question) (*explanation, error) {
	agent := q.agent
	if c, known := x.p.info(q.token); known && c.RobotsOnly {
		agent = q.token // no User-Agent contains a control token, but users can ask for an explanation about it
	}
	ask := url.Values{"agent": {agent}, "url": {"http://" + q.host + q.path}, "policy": {x.at.file}}
	if q.client.address != "" {
		ask.Set("address", q.client.address)
	}
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		e, err := x.explainedAs(ask)
		// The first request for an address does not wait for its verification, so ask again.
		if err != nil || e.Identity == nil || !q.client.byName || e.Identity.Assumed == identities[q.client.identity] || time.Since(began) > answerTimeout {
			return e, err
		}
	}
}

// identities maps the identities of package policy to their names in the output of explain.
var identities = map[policy.Identity]string{policy.Unknown: "unverified", policy.Verified: "verified", policy.Impostor: "impostor"}

func (x *exam) explainedAs(ask url.Values) (*explanation, error) {
	if x.at.site != nil {
		return x.at.explainedHere(ask)
	}
	resp, err := http.Get("http://" + x.at.server.admin + "/robots_policy/explain?" + ask.Encode())
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	e := &explanation{}
	if err := json.Unmarshal(body, &e.Explanation); err != nil || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("explain of %q: %s: %v\n%s", ask, resp.Status, err, body)
	}
	return e, nil
}

// explained compares the explanation of a question with the policy.
func (x *exam) explained(q question, e *explanation) {
	c, known := x.p.info(q.token)
	onlyTheirs := !known && x.theirs != nil && x.theirs.read.Groups[strings.ToLower(q.token)] != nil
	switch {
	case known && c.RobotsOnly:
		q.purposes = nil // the explanation was requested with the token
	case !onlyTheirs:
		q.token = x.p.visitor(q.token)
	}
	who := ""
	if e.Crawler != nil {
		who = strings.ToLower(e.Crawler.Token)
	}
	same(x, "explain: the crawler", q, who, strings.ToLower(q.token))
	if e.Identity != nil {
		same(x, "explain: identity", q, e.Identity.Assumed, identities[q.client.identity])
	}
	asked := policytest.Question{Token: q.token, Identity: q.client.identity, Purposes: q.purposes, Host: q.host}
	may, place, silent := true, "", false // the policy does not state anything, so the upstream's robots.txt may decide
	for i, at := range x.readings(q.path) {
		if name, _, _ := strings.Cut(at.path, "?"); i == 0 && name == "/robots.txt" {
			break // robots.txt may always be fetched (RFC 9309 section 2.2.2)
		}
		asked.Path, asked.Usage, asked.Now = at.path, policy.Crawl, x.p.now
		a := policytest.Decide(at.spec, asked)
		if may = a.Verdict != policy.Disallowed; !may || i == 0 {
			place = x.place(a)
		}
		if i == 0 && a.Verdict == policy.Unstated && x.theirs != nil { // readers of robots.txt compare the path as sent
			if may, silent = x.theyAllow(q.token, crawlertest.NormalPath(at.path)), true; !may {
				x.count("explain: the upstream disallows where the policy is silent")
			}
		}
		if !may {
			break
		}
	}
	same(x, "explain: may crawl", q, e.MayCrawl, may)
	if !silent {
		same(x, "explain: the line that decides", q, placeOf(e.Reason), place)
	}
	asked.Path = q.path
	for _, u := range policy.Usages() {
		if u == policy.Other {
			continue
		}
		asked.Usage = u
		a := x.p.naive(asked)
		got, at := "unstated", ""
		for _, answer := range e.Usages {
			if answer.Usage == u.String() {
				got, at = answer.Verdict, placeOf(answer.Reason)
			}
		}
		if u == policy.Crawl && a.Verdict == policy.Unstated && x.theirs != nil {
			same(x, "explain: usages", q, got != "disallowed", x.theyAllow(q.token, crawlertest.NormalPath(q.path)))
			continue
		}
		same(x, "explain: usages", q, u.String()+" "+got+" by line "+at, u.String()+" "+a.Verdict.String()+" by line "+x.place(a))
	}
	x.explainedRobots(q, e)
	x.explainedPage(q, e)
}

// place returns the line of the policy file with the entry that decided about an answer.
func (x *exam) place(a policytest.Answer) string {
	if a.Statement == nil {
		return ""
	}
	return fmt.Sprint(a.Statement.Pos.Line)
}

func placeOf(r *site.Reason) string {
	if r == nil {
		return ""
	}
	return r.Place[strings.LastIndexByte(r.Place, ':')+1:]
}

// explainedRobots compares the lines of robots.txt that explain shows with the lines that an independent reader finds
// in the served file.
func (x *exam) explainedRobots(q question, e *explanation) {
	c := e.channel(site.ChannelRobotsTxt)
	if name, _, _ := strings.Cut(crawlertest.NormalPath(q.path), "?"); name == "/robots.txt" {
		same(x, "explain: robots.txt", q, c.silent(), true)
		return
	}
	file := crawlertest.ReadWithPurposes(x.files[q.host].body)
	path := crawlertest.NormalPath(q.path)
	token, reached := x.readsAs(&robotsFile{read: file}, q.token)
	if token == "" {
		token = "unheard-of"
	}
	file, names := file.ForPurposes(token, q.purposes)
	if !reached && names == nil {
		same(x, "explain: robots.txt", q, strings.Contains(c.Summary, "no group applies to this crawler"), true)
		return
	}
	_, disallowed := c.line("Disallow")
	want := file.Allowed(token, path)
	if want && disallowed && x.flattened(x.files[q.host], q) { // the deciding line for readers that do not decode paths
		x.count("explain: a second spelling disallows more")
		want = false
	}
	same(x, "explain: robots.txt", q, !disallowed, want)
	for _, name := range []string{"App-Directives", "Content-Usage", "Crawl-delay"} {
		want, _ := file.Extension(strings.ToLower(name), token, path)
		got, _ := c.line(name)
		if strings.HasPrefix(got, "/") || strings.HasPrefix(got, "*") {
			_, got, _ = strings.Cut(got, " ")
		}
		same(x, "explain: robots.txt", q, name+" "+got, name+" "+want)
	}
}

var elementShown = regexp.MustCompile(`^<meta name="([^"]*)" content="([^"]*)">$`)

// explainedPage compares the meta tags in an explanation with the policy.
func (x *exam) explainedPage(q question, e *explanation) {
	shown := crawlertest.PageRules{}
	for _, s := range e.page().Sends {
		m := elementShown.FindStringSubmatch(s)
		if m == nil {
			x.differ("explain: page", q, s, "an element")
			continue
		}
		name := strings.ToLower(m[1])
		shown[name] = append(shown[name], crawlertest.XRules([]string{m[2]})["*"]...)
	}
	if c, _ := x.p.info(q.token); !c.RobotsOnly {
		reader := q.token
		if !x.readsElements(reader) {
			reader = "unheard-of" // the crawler only reads the elements for everyone
		}
		same(x, "explain: page", q, shown.To(q.token), x.rights(q, reader, false))
	}
}

// refusedBy finds out from explain's text whether the server blocks the request. It returns the status of the block as
// text, "close" if the connection is closed, or "" if the request is not blocked.
func refusedBy(e *explanation) string {
	summary := e.channel(site.ChannelEdge).Summary
	if strings.Contains(summary, "connection is closed without a response") {
		return "close"
	}
	rest, ok := strings.CutPrefix(summary, "the request is blocked with ")
	if !ok {
		return ""
	}
	status, _, _ := strings.Cut(rest, " ")
	return status
}

// sameHeaders compares the header fields that explain shows with the fields of the response. It skips pages with header
// fields of the upstream, and sites that tailor their pages.
func (x *exam) sameHeaders(q question, a answer, page *page, e *explanation) {
	if x.at.tailored || page.header != nil {
		return
	}
	var got, want []string
	for _, field := range append(slices.Clone(x.at.fields), "Tdm-Reservation", "Tdm-Policy") {
		for _, v := range a.header.Values(field) {
			got = append(got, field+": "+v)
		}
		for _, s := range e.channel(site.ChannelHeaders).Sends {
			if strings.HasPrefix(strings.ToLower(s), strings.ToLower(field)+": ") {
				s = field + s[len(field):]
				want = append(want, s)
			}
		}
	}
	x.answer("explain: headers", 1)
	if !slices.Equal(got, want) {
		x.differ("explain: headers", q, fmt.Sprintf("%q", want), fmt.Sprintf("%q", got))
	}
}
