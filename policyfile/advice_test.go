// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile/lint"
)

// advice is a kind of message that suggests a change of the file. follow makes this change, which must not affect any
// decision.
type advice struct {
	code   string
	says   *regexp.Regexp // matches the message; a group, if any, is the line that the author should change
	follow func(root *yaml.Node, at policy.Pos) bool
}

// advices has an entry for each message that advises the author to delete something because it does not change any
// decision.
var advices = []advice{
	{"changes-nothing", regexp.MustCompile(`delete this entry`), removeAt},
	{"listed-twice", regexp.MustCompile(`delete (?:this entry|it here)`), removeAt},
	{"tie", regexp.MustCompile(`Delete the disallow entry in line (\d+), which has no effect`), removeAt},
	{"empty-rule", regexp.MustCompile(`or delete it`), removeRuleAt},
	{"nothing-to-enforce", regexp.MustCompile(`or delete enforce`), removeAt},
	{"unused-name", regexp.MustCompile(`or delete it`), removeAt},
}

// TestAdviceChangesNothing makes each change that a message suggests for random policies and for every policy file in
// the repository. The decisions before and after the change must be the same.
func TestAdviceChangesNothing(t *testing.T) {
	t.Parallel()
	want := 60
	if testkit.Long() {
		want = 100_000
	}
	small := smallCatalog(t)
	for i, a := range advices {
		t.Run(a.code, func(t *testing.T) {
			t.Parallel()
			cases, seed := 0, 0
			for ; cases < want && seed < 20*want && !t.Failed(); seed++ {
				r := rand.New(rand.NewPCG(uint64(seed), uint64(29+i)))
				cases += tryAdvice(t, r, adviceFile(r, a.code), small, a.code)[a.code]
			}
			t.Logf("%d cases in %d policies", cases, seed)
			if cases < want {
				t.Errorf("only %d cases", cases)
			}
		})
	}
	t.Run("files of the repository", func(t *testing.T) {
		t.Parallel()
		r := rand.New(rand.NewPCG(1, 2))
		files, cases := 0, map[string]int{}
		for _, path := range policiesOfRepository(t) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if f, _ := LoadWith(path, data, Options{Now: testNow}); f != nil {
				files++
				for code, n := range tryAdvice(t, r, data, nil, "") {
					cases[code] += n
				}
			}
		}
		t.Logf("%d files: %v", files, cases)
		if files < 50 {
			t.Errorf("only %d files", files)
		}
	})
}

// adviceFile returns a random policy file that is likely to get a message with the code. In some files, a statement or
// name is repeated, unused or empty, or two rules contradict each other.
func adviceFile(r *rand.Rand, code string) []byte {
	var spec *policy.Spec
	if r.IntN(10) == 0 {
		spec, _ = policytest.Full(r)
	} else {
		usages := policy.Usages()
		if r.IntN(2) == 0 {
			usages = []policy.Usage{policy.Crawl, policy.Crawl, policy.Present, policy.PresentSnippet}
		}
		spec = policytest.Random(r, policytest.Options{
			Usages: usages, NoWildcards: r.IntN(2) == 0, NoHosts: r.IntN(2) == 0, NoIdentity: r.IntN(2) == 0, NoPurposes: r.IntN(2) == 0, Modes: r.IntN(2) == 0,
			MaxRules: 1 + r.IntN(8),
		})
	}
	spec.Crawlers = nil // these crawlers are in the catalog
	for i := range spec.Rules {
		rule := &spec.Rules[i]
		rule.Intended, rule.IntendedChecks = false, lint.SafetyChecks()
		if n := len(rule.Statements); n > 0 && r.IntN(4) == 0 && code == "listed-twice" {
			rule.Statements = append(rule.Statements, rule.Statements[r.IntN(n)])
		}
		if r.IntN(12) == 0 {
			rule.For = append(rule.For, rule.For[0])
		}
		if code == "empty-rule" && r.IntN(3) == 0 || code == "nothing-to-enforce" && r.IntN(20) == 0 {
			rule.Statements = nil
		}
		if code == "nothing-to-enforce" && r.IntN(3) == 0 {
			rule.Enforce = policy.ModeBlock
			rule.Statements = slices.DeleteFunc(rule.Statements, func(s policy.Statement) bool { return s.Usage == policy.Crawl && !s.Allow })
		}
		if rule.PermissionsReference != "" {
			rule.Statements, rule.IntendedChecks, rule.Enforce = nil, nil, policy.ModeUnset
		}
	}
	if code == "tie" || code == "changes-nothing" {
		for range 1 + r.IntN(3) {
			again(r, spec, code)
		}
	}
	text := string(Print(spec))
	if code == "unused-name" {
		if len(spec.Resources) == 0 {
			text += "\nresources:\n  unused: [/a, /b]\n  Unused-2: /\n"
		}
		text += "usages:\n  short: {usage: present-snippet, max-length: 20-chars}\n  both: [crawl, short]\n"
	}
	return []byte(text)
}

// again adds a rule with a copy of a statement from another rule of spec. If code is "tie", the copy allows what the
// original disallows, or disallows what it allows. For other codes, the path of the copy may be longer. The two rules
// may be for different crawlers and hosts.
func again(r *rand.Rand, spec *policy.Spec, code string) {
	of := spec.Rules[r.IntN(len(spec.Rules))]
	if len(of.Statements) == 0 {
		return
	}
	s := of.Statements[r.IntN(len(of.Statements))]
	rule := policy.Rule{For: slices.Clone(of.For), Hosts: slices.Clone(of.Hosts), Identity: of.Identity, UsagePurposes: of.UsagePurposes, IntendedChecks: of.IntendedChecks}
	more := spec.Rules[r.IntN(len(spec.Rules))]
	switch {
	case code == "tie":
		if s.Usage == policy.Other || r.IntN(2) == 0 && s.Qualifiers != nil {
			return
		}
		s.Allow, s.Qualifiers = !s.Allow, nil
		if r.IntN(3) == 0 {
			rule.For = append(rule.For, more.For...)
		}
		if len(rule.Hosts) > 0 && r.IntN(3) == 0 {
			rule.Hosts = more.Hosts
		}
	case !s.Pattern.Anchored():
		s.Pattern = pathpattern.MustParse(s.Pattern.String() + []string{"", "a", "b", "/"}[r.IntN(4)])
		if r.IntN(3) == 0 {
			rule.For = []policy.Audience{{Kind: policy.ForToken, Name: policytest.Crawlers[r.IntN(len(policytest.Crawlers))].Token}}
		}
		if len(rule.Hosts) == 0 {
			rule.Hosts = more.Hosts
		}
	}
	rule.Statements = []policy.Statement{s}
	spec.Rules = slices.Insert(spec.Rules, r.IntN(len(spec.Rules)+1), rule)
}

func smallCatalog(t *testing.T) *crawlers.Catalog {
	t.Helper()
	var text strings.Builder
	for _, c := range policytest.Crawlers {
		fmt.Fprintf(&text, "  %s: {operator: %s, category: %s", c.Token, c.Operator, c.Category)
		for name, list := range map[string][]string{"purposes": c.Purposes, "follows": c.Follows} {
			if len(list) > 0 {
				fmt.Fprintf(&text, ", %s: [%s]", name, strings.Join(list, ", "))
			}
		}
		if c.RobotsOnly {
			text.WriteString(", robots-only: true")
		}
		text.WriteString("}\n")
	}
	f, ds := LoadWith("crawlers.yaml", []byte("version: 1\ncrawlers:\n"+text.String()), Options{Catalog: new(crawlers.Catalog)})
	if f == nil {
		t.Fatal(ds.Text())
	}
	return f.Catalog
}

// policiesOfRepository lists the YAML files of the repository that may be policies.
func policiesOfRepository(t *testing.T) (paths []string) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && e.Name() != ".." && strings.HasPrefix(e.Name(), ".") {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".yaml") {
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// tryAdvice follows each piece of advice about a file separately. If code is not empty, it follows only advice with
// this code. It returns the number of pieces of advice that it followed, by code.
func tryAdvice(t *testing.T, r *rand.Rand, data []byte, catalog *crawlers.Catalog, code string) map[string]int {
	o := Options{Now: policytest.Now, Catalog: catalog}
	cases := map[string]int{}
	p := newParser("policy.yaml")
	whole := p.document(data)
	before := p.load(whole, o)
	if before == nil {
		t.Errorf("does not load:\n%s\n%s", p.list.Text(), data)
		return nil
	}
	for _, d := range p.list {
		i := slices.IndexFunc(advices, func(a advice) bool { return a.code == d.Code && a.says.MatchString(d.Message) })
		if i < 0 || code != "" && code != d.Code || cases[d.Code] > 5 { // six pieces of advice with the same code are enough for a file
			continue
		}
		at := d.Pos
		if found := advices[i].says.FindStringSubmatch(d.Message); len(found) > 1 {
			if at = statementIn(before.Spec, found[1], d); at == (policy.Pos{}) {
				t.Errorf("%s: no statement in line %s\n%s", d, found[1], data)
				continue
			}
		}
		root := clone(whole)
		if !advices[i].follow(root, at) {
			t.Errorf("the advice cannot be followed: %s\n%s", d, data)
			continue
		}
		p := newParser("policy.yaml")
		after := p.load(root, o)
		if after == nil {
			t.Errorf("%s\nafter it, the policy does not load: %s\n%s", d, p.list.Error(), data)
			continue
		}
		cases[d.Code]++
		if difference := differentDecision(r, before, after, at); difference != "" {
			t.Errorf("%s\nchanges %s\n%s", d, difference, data)
		}
	}
	return cases
}

// statementIn returns the place of the disallow entry on a line that a message mentions.
func statementIn(spec *policy.Spec, line string, d Diagnostic) policy.Pos {
	for i := range spec.Rules {
		for _, s := range spec.Rules[i].Statements {
			if !s.Allow && fmt.Sprint(s.Pos.Line) == line && strings.Contains(d.Message, s.Usage.String()+" of "+fmt.Sprintf("%q", s.Pattern.String())) {
				return s.Pos
			}
		}
	}
	return policy.Pos{}
}

// differentDecision asks the policies before and after a change what clients may do. Many of the questions are about
// the statement at the place "at" of the file. If the two policies answer a question differently, differentDecision
// returns a description of this question.
func differentDecision(r *rand.Rand, before, after *File, at policy.Pos) string {
	tokens, paths, usages := slices.Clone(policytest.Tokens), []string{"/", "/robots.txt"}, policy.Usages()
	hosts := slices.Clone(policytest.Hosts)
	for i := range before.Spec.Rules {
		rule := &before.Spec.Rules[i]
		for _, a := range rule.For {
			if a.Kind == policy.ForToken {
				tokens = append(tokens, a.Name)
			}
		}
		for _, h := range rule.Hosts {
			hosts = append(hosts, h.Example())
		}
		for _, s := range rule.Statements {
			text := strings.TrimSuffix(s.Pattern.String(), "$")
			some := []string{strings.ReplaceAll(text, "*", ""), strings.ReplaceAll(text, "*", "a"), strings.ReplaceAll(text, "*", "b") + "b"}
			if s.Pos == at {
				some = slices.Repeat(some, 20)
				usages = append(usages, slices.Repeat([]policy.Usage{s.Usage}, 40)...)
			}
			paths = append(paths, some...)
		}
	}
	purposes := [][]string{nil, nil, {"news"}, {"research"}, {"sport"}}
	for range 250 {
		token, host, path := tokens[r.IntN(len(tokens))], hosts[r.IntN(len(hosts))], paths[r.IntN(len(paths))]
		if !strings.HasPrefix(path, "/") {
			path = "/" + path
		}
		if r.IntN(8) == 0 {
			path = policytest.Path(r)
		}
		q := policy.Query{
			Identity: policytest.Identities[r.IntN(len(policytest.Identities))], Purposes: purposes[r.IntN(len(purposes))],
			Host: host, Path: path, Usage: usages[r.IntN(len(usages))], Now: policytest.Now,
		}
		type answer struct {
			verdict policy.Verdict
			mode    policy.Mode
			limits  string
		}
		ask := func(f *File) answer {
			q.Crawler = f.Policy.Crawler(token)
			d := f.Policy.Decide(q)
			mode := policy.ModeUnset
			if d.Verdict == policy.Disallowed && q.Usage == policy.Crawl {
				mode = f.Policy.Mode(d)
			}
			limits := d.Qualifiers().Strings()
			slices.Sort(limits)
			return answer{d.Verdict, mode, strings.Join(limits, " ")}
		}
		if was, is := ask(before), ask(after); was != is {
			return fmt.Sprintf("%s of %s%s for %q (identity %v, purposes %v): %v, then %v", q.Usage, host, path, token, q.Identity, q.Purposes, was, is)
		}
	}
	return ""
}

func clone(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = make([]*yaml.Node, len(n.Content))
	for i := range n.Content {
		c.Content[i] = clone(n.Content[i])
	}
	return &c
}

// removeAt deletes the node at a place. It also deletes maps and lists that become empty.
func removeAt(root *yaml.Node, at policy.Pos) bool {
	chain := chainTo(root, at)
	return chain != nil && remove(chain)
}

// removeRuleAt deletes the rule that starts at a place. Any key of the rule can be the first one.
func removeRuleAt(root *yaml.Node, at policy.Pos) bool {
	chain := chainTo(root, at)
	for len(chain) > 1 && chain[len(chain)-2].Kind != yaml.SequenceNode {
		chain = chain[:len(chain)-1]
	}
	return len(chain) > 1 && remove(chain)
}

// chainTo returns the nodes from the root to the innermost node at a place.
func chainTo(n *yaml.Node, at policy.Pos) []*yaml.Node {
	for _, c := range n.Content {
		if below := chainTo(c, at); below != nil {
			return append([]*yaml.Node{n}, below...)
		}
	}
	if n.Kind != yaml.DocumentNode && posOf(n) == at {
		return []*yaml.Node{n}
	}
	return nil
}

// remove deletes the last node of a chain from its parent.
func remove(chain []*yaml.Node) bool {
	if len(chain) < 2 {
		return false
	}
	n, parent := chain[len(chain)-1], chain[len(chain)-2]
	i := slices.Index(parent.Content, n)
	switch parent.Kind {
	case yaml.SequenceNode:
		parent.Content = slices.Delete(parent.Content, i, i+1)
	case yaml.MappingNode:
		i -= i % 2
		whole := parent.Content[i].Value == "paths"
		parent.Content = slices.Delete(parent.Content, i, i+2)
		if whole { // without a path, the qualifiers have no meaning
			return remove(chain[:len(chain)-1])
		}
	default:
		return false
	}
	if len(parent.Content) == 0 {
		return remove(chain[:len(chain)-1])
	}
	return true
}
