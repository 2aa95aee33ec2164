// SPDX-License-Identifier: Apache-2.0

package edit_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
	"github.com/robotspolicy/caddy-robots-policy/site/edit"
)

// TestEditsMakeTheChoiceAndNoOther edits random policies with comments. For many crawlers and paths, it decides with
// each policy before and after the edit. It uses the package policytest for this, which does not share any code with
// the edit or the comparison. The chosen decision must apply to the chosen crawlers, and the result must list all other
// differences.
func TestEditsMakeTheChoiceAndNoOther(t *testing.T) {
	rounds := testkit.Rounds(16, 20)
	switch {
	case *edits > 0:
		rounds = *edits
	case testkit.Long():
		rounds = 10_000
	}
	const shards = 4
	var together sync.Mutex
	total := map[string]int{}
	t.Run("shards", func(t *testing.T) {
		for shard := range shards {
			t.Run(fmt.Sprint(shard), func(t *testing.T) {
				t.Parallel()
				counts := map[string]int{}
				for seed := shard; seed < rounds && !t.Failed(); seed += shards {
					oneEdit(t, seed, counts)
				}
				together.Lock()
				defer together.Unlock()
				for what, n := range counts {
					total[what] += n
				}
			})
		}
	})
	t.Logf("%d policies: %v", rounds, total)
	for _, do := range edit.Actions() {
		if total[string(do)] < rounds/50 {
			t.Errorf("%s was chosen %d times only", do, total[string(do)])
		}
	}
}

var edits = flag.Int("edits", 0, "how many random policies to edit (default: 16, 20 in .ci/run, and 10,000 with ROBOTSPOLICY_LONG)")

// oneEdit makes one choice in one policy, both made from seed, and checks it. It adds its counts to counts.
func oneEdit(t *testing.T, seed int, counts map[string]int) {
	r := rand.New(rand.NewPCG(uint64(seed), 36))
	spec, kind := policytest.Full(r)
	if r.IntN(4) == 0 {
		rule := &spec.Rules[r.IntN(len(spec.Rules))]
		rule.EngineRules = append(rule.EngineRules, policy.EngineRule{Name: "nosnippet", Rule: robotsrule.Of("nosnippet"), Pattern: pathpattern.MustParse("/")})
	}
	text := commented(r, string(policyfile.Print(spec)))
	before, _ := site.LoadWith("policy.yaml", []byte(text), policyfile.Options{Now: now})
	if before == nil { // some random policies have too many overlapping paths
		counts["not loaded"]++
		return
	}
	c := randomChoice(r, spec, kind)
	result, err := edit.Apply("policy.yaml", text, c, now)
	if err != nil {
		what := "no edit known"
		if _, ok := errors.AsType[*edit.InvalidError](err); ok {
			what = "stopped by a check"
		}
		counts[what]++
		return
	}
	counts[string(c.Do)]++
	if result.Text == text {
		counts["the same already"]++
	}
	p := &pair{t: t, r: r, kind: kind, choice: c, before: before.File.Spec, after: result.Site.File.Spec, result: result}
	if !p.check() || !sameComments(text, result.Text) {
		t.Errorf("seed %d: %+v\nbefore\n%s\nafter\n%s\nunmet %v", seed, c, text, result.Text, result.Unmet)
	}
	counts["questions"] += p.asked
	counts["with other changes, listed"] += min(len(p.otherChanges()), 1)
}

// commented adds comments between the lines of a file and after some lines.
func commented(r *rand.Rand, text string) string {
	var b strings.Builder
	for i, line := range strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n") {
		if r.IntN(4) == 0 {
			fmt.Fprintf(&b, "%s# note %d\n", line[:len(line)-len(strings.TrimLeft(line, " "))], i)
		}
		if r.IntN(6) == 0 && !strings.HasSuffix(strings.TrimSpace(line), "|") {
			line = strings.TrimSuffix(line, "\n") + fmt.Sprintf("   # because %d\n", i)
		}
		b.WriteString(line)
	}
	return b.String()
}

// sameComments reports whether all comments on separate lines of the text before are also in the text after.
func sameComments(before, after string) bool {
	notes := func(text string) (all []string) {
		for line := range strings.Lines(text) {
			if s := strings.TrimSpace(line); strings.HasPrefix(s, "# note") {
				all = append(all, s)
			}
		}
		return all
	}
	return slices.Equal(notes(before), notes(after))
}

func randomChoice(r *rand.Rand, spec *policy.Spec, kind policytest.PatternKind) edit.Choice {
	var who []policy.Audience
	for _, rule := range spec.Rules {
		who = append(who, rule.For...)
	}
	who = append(who, policy.Audience{}, policy.Audience{Kind: policy.ForToken, Name: "CCBot"}, policy.Audience{Kind: policy.ForCategory, Name: "seo"})
	c := edit.Choice{Who: who[r.IntN(len(who))], Do: edit.Actions()[r.IntN(5)], Path: policytest.NewPattern(r, kind), Intended: r.IntN(2) == 0}
	if rule := spec.Rules[r.IntN(len(spec.Rules))]; len(rule.Statements) > 0 && r.IntN(2) == 0 {
		c.Path = rule.Statements[r.IntN(len(rule.Statements))].Pattern
	}
	if r.IntN(3) == 0 {
		c.Host = []policy.Host{"www.example.com", "*.example.com", "example.net"}[r.IntN(3)]
	}
	if (c.Do == edit.Allow || c.Do == edit.Ask) && r.IntN(4) == 0 {
		c.Usage = []policy.Usage{policy.TrainAI, policy.Search, policy.AIUse, policy.Index}[r.IntN(4)]
	}
	if c.Do == edit.Slow {
		c.Rate = []string{"60/m", "10/h", "none"}[r.IntN(3)]
	}
	if c.Do == edit.Snippet {
		c.Rate = []string{"50", "160", "none"}[r.IntN(3)]
	}
	return c
}

// pair is a policy before and after an edit.
type pair struct {
	t             *testing.T
	r             *rand.Rand
	kind          policytest.PatternKind
	choice        edit.Choice
	before, after *policy.Spec
	result        *edit.Result
	asked         int
}

// otherChanges returns the changes of usages other than the chosen one.
func (p *pair) otherChanges() (usages []string) {
	for _, c := range p.result.Diff.Changes {
		for _, u := range c.Usages {
			if u != p.choice.Usage.String() && u != "limit" && u != "max-snippet" {
				usages = append(usages, u)
			}
		}
	}
	return usages
}

func (p *pair) check() bool {
	var tokens []string
	for _, c := range p.after.Crawlers {
		named := slices.ContainsFunc(p.after.Rules, func(r policy.Rule) bool {
			return slices.ContainsFunc(r.For, func(a policy.Audience) bool { return strings.EqualFold(a.Name, c.Token) })
		})
		if named || p.r.IntN(150) == 0 {
			tokens = append(tokens, c.Token)
		}
	}
	for _, token := range append(tokens, "") {
		for _, host := range []string{"www.example.com", "x.b.example.com", "example.net", "host.invalid"} {
			for range 6 {
				path := policytest.PathFor(p.r, p.kind)
				for _, usage := range slices.Compact([]policy.Usage{policy.Crawl, p.choice.Usage}) {
					if !p.asks(policytest.Question{Token: token, Host: host, Path: path, Usage: usage, Identity: policy.Verified, Now: now}) {
						return false
					}
				}
			}
		}
		if p.choice.Do != edit.Slow && p.isChosen(token) && !p.holds(token) {
			return false
		}
	}
	return true
}

// asks decides a question with the policy before the edit and with the policy after it. It returns true if both
// decisions are equal, or if the result lists the difference. If not, it fails the test.
func (p *pair) asks(q policytest.Question) bool {
	p.asked++
	if was, is := snippet(p.before, q), snippet(p.after, q); was != is && !p.lists(q, "max-snippet") {
		p.t.Errorf("%+v: the snippet was %q, is %q, and the result does not say so: %+v", q, was, is, p.result.Diff.Changes)
		return false
	}
	was, is := policytest.Decide(p.before, q), policytest.Decide(p.after, q)
	// It makes no difference whether a rule allows something or no rule disallows it. Some names never occur in
	// requests, so blocking them makes no difference.
	requested := q.Token != "" && !slices.ContainsFunc(p.after.Crawlers, func(c policy.Crawler) bool { return c.Token == q.Token && c.RobotsOnly })
	if (was.Verdict == policy.Disallowed) == (is.Verdict == policy.Disallowed) && (was.Verdict != policy.Disallowed || was.Mode == is.Mode || !requested || q.Usage != policy.Crawl) {
		return true
	}
	if p.lists(q, q.Usage.String()) {
		return true
	}
	p.t.Errorf("%+v: was %v %v, is %v %v, and the result does not say so: %+v", q, was.Verdict, was.Mode, is.Verdict, is.Mode, p.result.Diff.Changes)
	return false
}

// lists reports whether the result lists a change that covers the question q. The parameter what is a usage or the name
// of a line, for example "crawl" or "max-snippet".
func (p *pair) lists(q policytest.Question, what string) bool {
	return slices.ContainsFunc(p.result.Diff.Changes, func(c compare.Change) bool {
		everyone := len(c.Crawlers) > 0 && (c.Crawlers[0] == compare.Everyone || c.Crawlers[0] == compare.EveryoneElse)
		onHost := c.Hosts == nil || slices.ContainsFunc(c.Hosts, func(h string) bool { return h == "" || policy.Host(h).Covers(q.Host) })
		atPath := slices.ContainsFunc(c.Paths, func(text string) bool {
			pattern, path := pathpattern.MustParse(text), pathpattern.NormalizePath(q.Path)
			// Both forms are compared. For example, /A*A matches the A of %A9, but its folded form does not.
			return pattern.Match(path) || pattern.Folded().Match(pathpattern.Fold(path))
		})
		return slices.Contains(c.Usages, what) && (everyone || slices.Contains(c.Crawlers, q.Token)) && onHost && atPath
	})
}

// holds reports whether the chosen decision applies to a crawler at the chosen path and host after the edit.
func (p *pair) holds(token string) bool {
	host := "host.invalid"
	if p.choice.Host != "" {
		host = p.choice.Host.Example()
	}
	unmet := slices.ContainsFunc(p.result.Unmet, func(u edit.Unmet) bool {
		return slices.Contains(u.Crawlers, token) && u.Host == string(p.choice.Host)
	})
	path := strings.ReplaceAll(strings.TrimSuffix(p.choice.Path.String(), "$"), "*", "")
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	if !strings.HasSuffix(p.choice.Path.String(), "$") {
		path += "%01"
	}
	p.asked++
	q := policytest.Question{Token: token, Host: host, Path: path, Usage: p.choice.Usage, Identity: policy.Verified, Now: now}
	if p.choice.Do == edit.Snippet {
		want := map[string]string{"none": ""}[p.choice.Rate]
		if p.choice.Rate != "none" {
			want = "max-snippet:" + p.choice.Rate
		}
		if found := snippet(p.after, q); found == want || unmet {
			return true
		}
		p.t.Errorf("%s for %q on %s: %q, not %q", path, token, host, snippet(p.after, q), want)
		return false
	}
	a := policytest.Decide(p.after, q)
	closed := a.Verdict == policy.Disallowed
	refused := closed && a.Mode == policy.ModeBlock
	if p.choice.Usage != policy.Crawl { // without a rule, other usages are unstated instead of allowed, and requests are never blocked because of them
		closed, refused = closed || p.choice.Do == edit.Allow && a.Verdict == policy.Unstated, false
	}
	ok := map[edit.Action]bool{edit.Allow: !closed, edit.Ask: closed && !refused, edit.Refuse: refused}[p.choice.Do]
	if ok || unmet || path == "/robots.txt" {
		return true
	}
	p.t.Errorf("%s %s for %q on %s: %v %v", p.choice.Do, path, token, host, a.Verdict, a.Mode)
	return false
}

// snippet returns the strictest rule about snippets that applies to the crawler and path of a question, such as
// "nosnippet" or "max-snippet:50". It returns "" if no rule limits snippets.
func snippet(spec *policy.Spec, q policytest.Question) string {
	text, least := "", 1<<30
	for _, e := range policytest.EngineRules(spec, q) {
		s := e.Rule.String()
		if s == "nosnippet" {
			return s
		}
		if n, err := strconv.Atoi(strings.TrimPrefix(s, "max-snippet:")); err == nil && n >= 0 && n < least {
			text, least = s, n
		}
	}
	return text
}

func (p *pair) isChosen(token string) bool {
	switch who := p.choice.Who; who.Kind {
	case policy.ForEveryone, policy.ForEveryoneElse:
		return true
	case policy.ForToken:
		return strings.EqualFold(token, who.Name)
	case policy.ForCategory, policy.ForOperator, policy.ForPurpose, policy.ForAI:
		for _, c := range p.after.Crawlers {
			if c.Token == token {
				return who.Kind == policy.ForCategory && strings.EqualFold(c.Category, who.Name) || who.Kind == policy.ForOperator && strings.EqualFold(c.Operator, who.Name)
			}
		}
	}
	return false
}
