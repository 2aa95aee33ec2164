// SPDX-License-Identifier: Apache-2.0

package agreement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
)

// question is a request of a crawler.
type question struct {
	token    string   // the crawler that sends it; "" for a browser or an unlisted client
	agent    string   // User-Agent of the request
	client   client   // source of the request
	purposes []string // purposes that the User-Agent names
	host     string
	path     string // unchanged in the request
	page     int    // number of the upstream's page
	coding   string // content coding that the client accepts; identity for none
	http2    bool
	again    again  // the request that follows
	reader   string // the crawler for which an answer is checked, if it is not the crawler that sent the request
}

// of returns a copy of the question whose answer is checked for the crawler with this token.
func (q question) of(token string) question {
	q.reader = token
	return q
}

// randomQuestions returns questions about a few hosts, paths and crawlers of a random policy.
func randomQuestions(r *rand.Rand, p *loaded) (qs []question) {
	for range 3 {
		host := policytest.Hosts[r.IntN(len(policytest.Hosts)-1)] // the last host is empty, and a request must name a host
		for range 6 {
			path := policytest.PathFor(r, p.kind)
			for range 6 {
				qs = append(qs, newQuestion(r, askedTokens[r.IntN(len(askedTokens))], host, path))
			}
			qs = append(qs, newQuestion(r, "", host, path))
		}
	}
	return qs
}

var (
	agentForms = []string{
		"%s", "%s/1.0", "Mozilla/5.0 (compatible; %s/2.1; +http://www.bots.invalid/bot.html)",
		"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; %s/1.2; +https://bots.invalid/%[1]s) Chrome/143.0 Safari/537.36", "%s (+http://bots.invalid)",
	}
	otherAgents = []string{
		"Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0", "curl/8.5.0", "Mozilla/5.0 (compatible; NotAlphaBotter/1.0)",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/143.0.0.0 Safari/537.36",
	}
	codings = []string{"identity", "identity", "gzip", "br", "zstd", "deflate"}
)

// newQuestion returns a question with a typical User-Agent for the crawler.
func newQuestion(r *rand.Rand, token, host, path string) question {
	q := question{
		token: token, host: host, path: path, page: r.IntN(len(pages)), coding: codings[r.IntN(len(codings))],
		http2: r.IntN(4) == 0, again: again(r.IntN(4 * int(notAgain))),
	}
	q.agent = otherAgents[r.IntN(len(otherAgents))]
	if token != "" {
		q.agent = agentOf(r, token)
		q.client = clientOf(r, token)
	}
	switch r.IntN(6) {
	case 0:
		q.purposes = policytest.Purposes[r.IntN(len(policytest.Purposes)):]
		q.purposes = q.purposes[:1+r.IntN(len(q.purposes))]
		for _, p := range q.purposes {
			q.agent += fmt.Sprintf([]string{" (%s)", "; %s;", " %s/1.0"}[r.IntN(3)], []string{strings.ToUpper(p[:1]) + p[1:], p}[r.IntN(2)])
		}
	case 1:
		q.agent += " newsletter research_and_more" // these words contain the names of purposes, but do not name them
	}
	return q
}

func agentOf(r *rand.Rand, token string) string {
	name := token
	if c, err := crawlers.Default(); err == nil {
		if row, ok := c.Lookup(token); ok && len(row.Patterns()) > 0 {
			name = row.Patterns()[0]
		}
	}
	switch r.IntN(6) {
	case 0:
		name = strings.ToLower(name)
	case 1:
		name = strings.ToUpper(name)
	}
	return fmt.Sprintf(agentForms[r.IntN(len(agentForms))], name)
}

// writtenQuestions returns questions about the hosts, paths and crawlers that a policy names, and about similar ones.
func writtenQuestions(r *rand.Rand, p *loaded) (qs []question) {
	hosts, paths := []string{"www.example.com", "x.staging.example.com"}, []string{"/", "/other"}
	for _, rule := range p.spec.Rules {
		for _, h := range rule.Hosts {
			hosts = append(hosts, strings.Replace(string(h), "*", "any", 1))
		}
		for _, s := range rule.Statements {
			paths = append(paths, pathLike(r, s.Pattern.String()))
		}
		for _, e := range rule.EngineRules {
			paths = append(paths, pathLike(r, e.Pattern.String()))
		}
	}
	for range 3 {
		host := hosts[r.IntN(len(hosts))]
		for range 6 {
			path := paths[r.IntN(len(paths))]
			for range 6 {
				q := newQuestion(r, p.tokens[r.IntN(len(p.tokens))], host, path)
				if q.client.byName {
					q.client = client{} // in the catalog, the crawler with this name has another operator
				}
				qs = append(qs, q)
			}
			qs = append(qs, newQuestion(r, "", host, path))
		}
	}
	return qs
}

// pathLike returns a path that a pattern matches, or a similar path.
func pathLike(r *rand.Rand, pattern string) string {
	path := strings.ReplaceAll(pattern, "*", "x")
	path, anchored := strings.CutSuffix(path, "$")
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	switch r.IntN(4) {
	case 0:
		path += "y"
	case 1:
		path = "/x" + path
	case 2:
		if !anchored {
			path += "/z.html"
		}
	}
	return path
}

// asksTwice reports whether a question before qs[i] is about the same crawler and path.
func asksTwice(qs []question, i int) bool {
	return slices.ContainsFunc(qs[:i], func(p question) bool { return p.token == qs[i].token && p.path == qs[i].path })
}
