// SPDX-License-Identifier: Apache-2.0

package agreement

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/policytest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// question is a request of a crawler.
type question struct {
	token    string   // the crawler that it is of; "" for a browser or an unknown one
	agent    string   // its User-Agent
	address  string   // where it comes from, if that verifies it
	purposes []string // that the User-Agent names
	host     string
	path     string // as sent
	variant  int    // of pages, and of what is accepted
	reader   string // who reads the answer, if that is another crawler
}

// loaded is a policy as this process reads it.
type loaded struct {
	name   string // of the file, or a number
	text   []byte
	kind   policytest.PatternKind // "" for a policy that people wrote
	site   *site.Site
	told   policyfile.Diagnostics
	spec   *policy.Spec // what naive evaluation asks: of the catalogue, only the crawlers of the questions
	cache  map[string]any
	tokens []string // that are asked about
	now    time.Time
}

func load(name string, text []byte, tokens []string) (*loaded, policyfile.Diagnostics) {
	s, told := site.Load(name, text, robotsserve.ServeOptions{})
	if s == nil {
		return nil, told
	}
	p := &loaded{name: name, text: text, site: s, told: told, cache: map[string]any{}, tokens: tokens, now: time.Now()}
	spec := *s.File.Spec
	spec.Crawlers = slices.DeleteFunc(slices.Clone(spec.Crawlers), func(c policy.Crawler) bool {
		return !slices.ContainsFunc(tokens, func(t string) bool { return strings.EqualFold(t, c.Token) })
	})
	p.spec = &spec
	return p, nil
}

// again is the policy with nothing kept.
func (p *loaded) again() *loaded {
	fresh := *p
	fresh.cache, fresh.now = map[string]any{}, time.Now()
	return &fresh
}

// askedTokens are the crawlers of which questions are.
var askedTokens = append(slices.Clone(policytest.Tokens[:len(policytest.Tokens)-1]), append(slices.Clone(policytest.RealTokens), "ThetaBot", "ZetaBot")...)

// info is what the policy's author or the catalogue says of a crawler.
func (p *loaded) info(token string) (policy.Crawler, bool) {
	for _, c := range p.spec.Crawlers {
		if strings.EqualFold(c.Token, token) {
			return c, true
		}
	}
	for _, r := range p.spec.Rules {
		for _, a := range r.For {
			if a.Kind == policy.ForToken && strings.EqualFold(a.Name, token) {
				return policy.Crawler{Token: a.Name}, true
			}
		}
	}
	return policy.Crawler{}, false
}

// visitor is the crawler that the server must take a question for, or "": a
// control token is in no User-Agent, and what nobody names is nobody.
func (p *loaded) visitor(token string) string {
	if c, known := p.info(token); known && !c.RobotsOnly {
		return token
	}
	return ""
}

// naive is an answer of the naive evaluator.
func (p *loaded) naive(q policytest.Question) policytest.Answer {
	q.Now = p.now
	return policytest.Decide(p.spec, q)
}

// decide is the answer of the model.
func (p *loaded) decide(q policytest.Question) policy.Decision {
	return p.site.Policy.Decide(policy.Query{
		Crawler: p.site.Policy.Crawler(q.Token), Identity: q.Identity, Purposes: q.Purposes, Host: q.Host, Path: q.Path, Usage: q.Usage, Now: p.now,
	})
}

// cached keeps what was worked out for a key.
func cached[T any](p *loaded, key string, work func() T) T {
	if v, ok := p.cache[key]; ok {
		return v.(T)
	}
	v := work()
	p.cache[key] = v
	return v
}

// randomPolicy makes a policy that loads, by the seed and its number alone.
func randomPolicy(r *rand.Rand, number int, t *tally) (*loaded, error) {
	for range 50 {
		spec, kind := policytest.Full(r)
		text := policyfile.Print(spec)
		p, told := load(fmt.Sprintf("policy %d", number), text, askedTokens)
		if p == nil {
			for _, d := range told {
				if d.Severity == policy.Error && !slices.Contains(refusedCodes, d.Code) {
					return nil, fmt.Errorf("policy %d does not load:\n%s\n%s", number, told.Text(), text)
				}
			}
			t.count("policies that do not load")
			continue
		}
		p.kind = kind
		return p, nil
	}
	return nil, fmt.Errorf("policy %d: the generator makes none that loads", number)
}

// refusedCodes are errors that a policy at random may have.
var refusedCodes = []string{"contradiction", "app-directives-cross", "header-too-large", "robots-txt-too-large"}

// randomQuestions asks about a few hosts, paths and crawlers of a policy of
// Full.
func randomQuestions(r *rand.Rand, p *loaded) (qs []question) {
	for range 3 {
		host := policytest.Hosts[r.IntN(len(policytest.Hosts)-1)] // the last is no host that a request can name
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
)

// newQuestion gives a crawler a User-Agent as such crawlers have.
func newQuestion(r *rand.Rand, token, host, path string) question {
	q := question{token: token, host: host, path: path, variant: r.IntN(2 * len(pages))}
	if token == "" {
		q.agent = otherAgents[r.IntN(len(otherAgents))]
		return q
	}
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
	q.agent = fmt.Sprintf(agentForms[r.IntN(len(agentForms))], name)
	if from := addresses()[token]; len(from) > 0 && r.IntN(2) == 0 {
		q.address = from[r.IntN(len(from))]
	}
	if r.IntN(8) == 0 {
		q.purposes = []string{"news"}
		q.agent += " (News)"
	}
	return q
}

// identity is what the server must find out about who asks.
func (q *question) identity() policy.Identity {
	if q.address != "" {
		return policy.Verified
	}
	return policy.Unknown // a private address
}

// addresses are some of which the operators of crawlers say that they are theirs,
// from the lists that come with the program.
var addresses = sync.OnceValue(func() map[string][]string {
	found := map[string][]string{}
	text, err := os.ReadFile("../../crawlers/verify/snapshot.txt")
	known, kerr := crawlers.Default()
	if err != nil || kerr != nil {
		panic(errors.Join(err, kerr))
	}
	list := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if url, ok := strings.CutPrefix(line, "list "); ok {
			list = url
		}
		prefix, err := netip.ParsePrefix(line)
		if err != nil || !prefix.Addr().Is4() {
			continue
		}
		for _, token := range policytest.RealTokens {
			if row, ok := known.Lookup(token); ok && slices.Contains(row.Verification.AddressLists, list) && len(found[token]) < 20 {
				found[token] = append(found[token], prefix.Addr().String())
			}
		}
	}
	return found
})

// writtenPolicies are those that people wrote.
func writtenPolicies() (all []*loaded, err error) {
	files, err := filepath.Glob("../../examples/policies/*.yaml")
	if err != nil {
		return nil, err
	}
	for _, file := range append(files, "../../examples/site-policy.yaml") {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		tokens := slices.Clone(askedTokens)
		for _, m := range regexp.MustCompile(`[A-Z][A-Za-z]*[Bb]ot[A-Za-z]*`).FindAllString(string(text), -1) {
			if !slices.Contains(tokens, m) {
				tokens = append(tokens, m)
			}
		}
		p, told := load(filepath.Base(file), text, tokens)
		if p == nil {
			return nil, fmt.Errorf("%s: %s", file, told.Text())
		}
		all = append(all, p)
	}
	return all, nil
}

// writtenQuestions asks about the hosts, paths and crawlers that a policy names,
// and about others near them.
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
				qs = append(qs, newQuestion(r, p.tokens[r.IntN(len(p.tokens))], host, path))
			}
			qs = append(qs, newQuestion(r, "", host, path))
		}
	}
	return qs
}

// pathLike makes a path that a pattern matches, or nearly.
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
