// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

// expectForm matches a test: AGENT may | may not USAGE PLACE.
var expectForm = regexp.MustCompile(`^(?:(?i:(verified|unverified)) +)?(.+?) +may( +not)? +([^ ]+) +([^ ]+)$`)

// Other words for "may not" and "may".
var (
	mayNotWords = regexp.MustCompile(`(?i) +(?:(?:can|must|should|will|is)(?: ?not|n['’]?t)|won['’]t)(?: allowed to)? +`)
	mayWords    = regexp.MustCompile(`(?i) +(?:can|must|should|will|is allowed to) +`)
	isBlocked   = regexp.MustCompile(`(?i) +is (?:blocked|refused|denied|forbidden)(?: +(?:on|at|from|for|in))? +`)
)

const expectExample = "such as: Googlebot may crawl /news/"

func readExpect(p *parser, n *yaml.Node, _ *policy.Spec) {
	p.texts(n, "a test", func(n *yaml.Node, text string) {
		if e, ok := p.expectation(n, strings.TrimSpace(text)); ok {
			p.spec.Expect = append(p.spec.Expect, e)
		}
	})
}

func (p *parser) expectation(n *yaml.Node, text string) (e policy.Expectation, ok bool) {
	bad := func(near, format string, args ...any) (policy.Expectation, bool) {
		return e, p.refuse(n, "bad-expectation", near, format, args...)
	}
	m := expectForm.FindStringSubmatch(text)
	if m == nil || strings.TrimSuffix(m[4], ":") == "not" {
		return bad(inOtherWords(text), "invalid test %s: write AGENT may USAGE PATH, or AGENT may not USAGE PATH, %s", quote(text), expectExample)
	}
	with := func(part int, right string) string {
		if right == "" {
			return ""
		}
		parts := slices.Clone(m)
		parts[part] = right
		return strings.TrimSpace(parts[1] + " " + parts[2] + " may" + parts[3] + " " + parts[4] + " " + parts[5])
	}
	e = policy.Expectation{Pos: posOf(n), Anyone: m[1] == "", Allowed: m[3] == ""}
	if strings.EqualFold(m[1], "verified") {
		e.Identity = policy.Verified
	}
	if e.Usage, ok = policy.ParseUsage(m[4]); !ok {
		p.unknownUsage(n, nil, m[4], false, func(near string) string { return with(4, near) })
		return e, false
	}
	if e.Agent, ok = p.expectAgent(n, m[2], func(near string) string { return with(2, near) }); !ok {
		return e, false
	}
	place := m[5]
	switch u, err := url.Parse(place); {
	case strings.HasPrefix(place, "/"):
		e.Path = place
	case err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "":
		host, err := policy.ParseHost(policy.WithoutPort(u.Host))
		if err != nil || host.Wildcard() {
			return bad("", "invalid address %s: the host must be a name such as www.example.com", quote(place))
		}
		e.Host, e.Path = string(host), pathpattern.Target(u)
	default:
		near := nearPath(place)
		if hostAndPath.MatchString(place) {
			near = "https://" + place
		}
		return bad(with(5, near), `invalid path %s: write a path that starts with "/", or a whole address that starts with "https://"`, quote(place))
	}
	return e, true
}

// inOtherWords handles a test that does not use the words of the syntax, but words such as "cannot" or "is blocked on".
// It returns the test in the correct form. It returns "" if it does not know the words.
func inOtherWords(text string) string {
	near := mayNotWords.ReplaceAllString(isBlocked.ReplaceAllString(text, " may not crawl "), " may not ")
	near = mayWords.ReplaceAllString(near, " may ")
	m := expectForm.FindStringSubmatch(near)
	if near == text || m == nil || m[4] == "not" {
		return ""
	}
	if _, ok := policy.ParseUsage(m[4]); ok {
		return near
	}
	if u := usageWords[squash(m[4])]; u != "" {
		return strings.Replace(near, " "+m[4]+" ", " "+u+" ", 1)
	}
	return ""
}

// expectAgent parses the agent of a test, such as the crawler name or category at its beginning. If the agent is not
// known, messages suggest a corrected test. The function whole returns the text of the test with another agent for this
// purpose.
func (p *parser) expectAgent(n *yaml.Node, text string, whole func(string) string) (policy.Audience, bool) {
	a := policy.ParseAudience(text)
	switch a.Kind {
	case policy.ForEveryone, policy.ForCategory, policy.ForOperator, policy.ForPurpose, policy.ForAI:
		before := len(p.list)
		a, ok := p.audience(n, text)
		for i := before; i < len(p.list); i++ {
			p.list[i].DidYouMean = whole(p.list[i].DidYouMean)
		}
		return a, ok
	case policy.ForToken:
		text = a.Name
		if _, ok := p.catalog.Lookup(text); ok || p.ruleTokens[strings.ToLower(text)] {
			return a, true
		}
		group, _ := p.known().group(text)
		product := ""
		if tokens := productWords[squash(text)]; tokens != nil {
			product = tokens[0]
		}
		near := cmp.Or(p.known().crawlerOf(text), product, group, p.known().meant(text))
		if near == "" && strings.ContainsAny(text, " ,") {
			return a, p.refuse(n, "bad-expectation", "", "invalid name %s: a test is about one crawler, category:NAME, operator:NAME, purpose:NAME or everyone", quote(text))
		}
		return a, p.refuse(n, "bad-expectation", whole(near), "no crawler called %s is known; if it exists, list it under \"crawlers\"", quote(text))
	case policy.ForEveryoneElse:
	}
	return a, p.refuse(n, "bad-expectation", whole("everyone"), "a test cannot be about %s; write everyone, or the name of a crawler", text)
}

// checkExpectations runs the tests of the file. A failing test is an error. If o.Accepted is set, because the same file
// was accepted before, a failing test is only a warning.
func (p *parser) checkExpectations(engine *effect.Engine, o Options) {
	code := codeTestFails
	if o.Accepted {
		code = codeTestFailsNow
	}
	x := newEvaluator(engine, o.Now)
	for i := range p.spec.Expect {
		e := &p.spec.Expect[i]
		f := x.evaluate(e)
		if x.spent > maxDecisions {
			limit := notRun[0]
			if o.Accepted {
				limit = notRun[1]
			}
			p.report(e.Pos, limit, "", "the tests ask about too many crawlers and hosts, so this test and all tests after it are not run. In the tests, write addresses with a host instead of paths")
			return
		}
		if f != nil {
			p.report(e.Pos, code, "", "%s", f.message(engine.Policy, e))
		}
	}
}

const maxDecisions = 10_000_000

// evaluator runs tests. It asks for one decision for each set of crawlers to which the same rules apply.
type evaluator struct {
	effect  *effect.Engine
	policy  *policy.Policy
	now     time.Time
	spent   int
	hosts   []string           // see hostsOf
	classes map[string]classes // by host
	members map[policy.Audience][]policy.CrawlerID
	asked   map[memberKey][]member
}

// classes divides the crawlers into sets, such that on one host the same rules apply to all crawlers of a set. count is
// the number of sets. The map "of" has the index of each crawler's set. Crawlers that are not in the map are in the set
// 0.
type classes struct {
	count int
	of    map[policy.CrawlerID]int
}

type memberKey struct {
	agent policy.Audience
	host  string
}

type member struct {
	id       policy.CrawlerID
	alike    []policy.CrawlerID
	purposes []string
}

func newEvaluator(e *effect.Engine, now time.Time) *evaluator {
	p := e.Policy
	return &evaluator{
		effect: e, policy: p, now: now,
		hosts:   hostsOf(p),
		classes: map[string]classes{},
		members: map[policy.Audience][]policy.CrawlerID{},
		asked:   map[memberKey][]member{},
	}
}

type failure struct {
	crawlers   []policy.CrawlerID // 0 means an unlisted client
	host       string
	anyHost    bool              // the test is about every host
	identities []policy.Identity // identities that the test fails with
	answer     effect.Answer
}

// evaluate runs a test. It returns nil if the test passes.
func (x *evaluator) evaluate(e *policy.Expectation) *failure {
	hosts := []string{e.Host}
	if e.Host == "" {
		hosts = x.hosts
	}
	identities := []policy.Identity{e.Identity}
	if e.Anyone && x.policy.DemandsIdentity() {
		identities = []policy.Identity{policy.Verified, policy.Unknown}
	}
	var all []*failure // one for each deciding line and host
	for _, host := range hosts {
		for _, m := range x.ask(e.Agent, host) {
			for _, identity := range identities {
				if x.spent++; x.spent > maxDecisions {
					return nil
				}
				a := x.effect.Answer(policy.Query{Crawler: m.id, Identity: identity, Purposes: m.purposes, Host: host, Path: e.Path, Usage: e.Usage, Now: x.now})
				// The policy may disallow a path for a crawler that neither robots.txt nor the server stops (see
				// Answer.Untold). If a test expects that this crawler may not crawl the path, the test fails. Tests of
				// a set of crawlers ignore this, because a set often has a few crawlers that do not follow robots.txt.
				a.Untold = a.Untold && e.Agent.Kind == policy.ForToken
				if disallowed := a.Disallowed && (e.Allowed || !a.Untold); disallowed != e.Allowed {
					continue
				}
				i := slices.IndexFunc(all, func(f *failure) bool {
					return f.answer.Decision.Statement == a.Decision.Statement && f.answer.Tag == a.Tag && f.host == host
				})
				if i < 0 {
					all = append(all, &failure{crawlers: m.alike, host: host, anyHost: e.Host == "", identities: []policy.Identity{identity}, answer: a})
					continue
				}
				switch failed := all[i]; {
				case !slices.Contains(failed.crawlers, m.id):
					failed.crawlers = append(slices.Clip(failed.crawlers), m.alike...)
				case !slices.Contains(failed.identities, identity):
					failed.identities = append(failed.identities, identity)
				}
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	// The failure that affects the most crawlers is the best explanation.
	return slices.MaxFunc(all, func(a, b *failure) int { return len(a.crawlers) - len(b.crawlers) })
}

// hostsOf returns the hosts to check for a test that does not name a host. These are a host that no rule names, and one
// host of each set of hosts with the same rules.
func hostsOf(p *policy.Policy) []string {
	hosts, seen := []string{""}, map[int]bool{0: true}
	for _, h := range robotsserve.Hosts(p) {
		if key := p.HostKey(h.Example()); !seen[key] {
			seen[key] = true
			hosts = append(hosts, h.Example())
		}
	}
	return hosts
}

// ask returns one crawler for each set of crawlers in the audience a that have the same rules on the host. If a test
// passes for this crawler, it passes for the whole set.
func (x *evaluator) ask(a policy.Audience, host string) []member {
	if a.Kind == policy.ForToken {
		id := x.policy.Crawler(a.Name)
		return []member{{id: id, alike: []policy.CrawlerID{id}}}
	}
	key := memberKey{policy.Audience{Kind: a.Kind, Name: strings.ToLower(a.Name)}, host}
	if members, ok := x.asked[key]; ok {
		return members
	}
	var purposes []string
	if a.Kind == policy.ForPurpose {
		purposes = []string{key.agent.Name}
	}
	on, ok := x.classes[host]
	if !ok {
		all, of := x.policy.ClassIndex(host)
		on = classes{len(all), of}
		x.classes[host] = on
	}
	alike := make([][]policy.CrawlerID, on.count)
	for _, id := range x.membersOf(key.agent) {
		alike[on.of[id]] = append(alike[on.of[id]], id)
	}
	var members []member
	for _, ids := range append(alike[1:], alike[0]) {
		if len(ids) > 0 {
			members = append(members, member{id: ids[0], alike: ids, purposes: purposes})
		}
	}
	x.asked[key] = members
	return members
}

// membersOf returns the crawlers of an audience. If unlisted clients can belong to the audience, the result includes 0.
// The result is cached, because a test may have many hosts.
func (x *evaluator) membersOf(a policy.Audience) []policy.CrawlerID {
	ids, ok := x.members[a]
	if ok {
		return ids
	}
	for id := range x.policy.Members(a) {
		ids = append(ids, id)
	}
	if a.Kind == policy.ForEveryone || a.Kind == policy.ForPurpose {
		ids = append(ids, 0)
	}
	x.members[a] = ids
	return ids
}

func (f *failure) message(p *policy.Policy, e *policy.Expectation) string {
	var names []string
	for _, id := range f.crawlers {
		if id != 0 {
			names = append(names, p.CrawlerInfo(id).Name())
		}
	}
	who := cmp.Or(english.Some(names, 3), "an unlisted client")
	if p.DemandsIdentity() && e.Anyone && len(f.identities) == 1 {
		who += map[policy.Identity]string{policy.Verified: " (verified)", policy.Unknown: " (not verified)"}[f.identities[0]]
	}
	where := ""
	if f.anyHost && f.host != "" {
		where = " on " + strings.Replace(f.host, policy.Host("*.").Example(), "*.", 1)
	}
	may := "may not"
	if !e.Allowed {
		may = "may"
	}
	why, more := f.why()
	return fmt.Sprintf("this test fails: it expects that %s, but %s %s %s %s%s, %s%s", quote(e.String()), who, may, e.Usage, quoteless(e.Path), where, why, more)
}

// why returns the reason why a test fails, and advice.
func (f *failure) why() (why, more string) {
	const change = "; change that line, or the test"
	d := f.answer.Decision
	s, place := d.Statement, ""
	switch {
	case s != nil && d.Rule.Fallback:
		place = policy.PlaceInFallback(d.Rule.FallbackFile, s.Pos.Line)
	case s != nil:
		place = fmt.Sprintf("line %d", s.Pos.Line)
	}
	switch {
	case f.answer.Untold:
		return fmt.Sprintf("because the rule in %s is only in the group * of robots.txt, which the crawler does not obey, and the rule is not enforced", place), `; name the crawler under "for", write "enforce: block" in that rule, or change the test`
	case f.answer.Tag != nil:
		return fmt.Sprintf("because the robots-tag in line %d contains %q", f.answer.Tag.Pos.Line, f.answer.Tag.Rule), change
	case s != nil && f.answer.AnyCase:
		return fmt.Sprintf("because of %s, and because the server ignores letter case", place), change
	case s != nil && d.Expired:
		return fmt.Sprintf("because of %s, whose time limit has passed", place), change
	case s != nil:
		return "because of " + place, change
	case d.Verdict == policy.Allowed:
		return "because robots.txt can always be fetched", "; change the test"
	}
	return "because no rule disallows this", "; write a rule that disallows it, or change the test"
}
