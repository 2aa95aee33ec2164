// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/acap"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

var stars = regexp.MustCompile(`\*+`)

// checkLayout checks the layout rules that prevent all tested parsers from misreading a file.
func checkLayout(t *testing.T, file []byte) {
	t.Helper()
	if rest := bytes.ReplaceAll(file, []byte("\r\n"), nil); bytes.Contains(rest, []byte("\r")) || bytes.Contains(file, []byte("\r\n")) && bytes.Contains(rest, []byte("\n")) {
		t.Fatalf("different line ends are mixed in\n%q", file)
	}
	text := strings.ReplaceAll(string(file), "\r\n", "\n")
	if strings.Contains(text, "\n\n\n") || strings.HasPrefix(text, "\n") || !strings.HasSuffix(text, "\n") {
		t.Fatalf("blank lines of\n%s", text)
	}
	if i := strings.Index(text, "\nACAP-"); i >= 0 {
		if !strings.HasPrefix(text, "##ACAP version=1.0\n") {
			t.Fatalf("no version before\n%s", text)
		}
		text = text[:i]
	}
	seen := map[string]bool{}
	sitemaps := false
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if strings.HasPrefix(block, "##ACAP") || strings.HasPrefix(block, "License: ") {
			continue
		}
		if strings.HasPrefix(block, "Sitemap: ") {
			sitemaps = true
			continue
		}
		if rest, ok := strings.CutPrefix(block, theirsComment+"\n"); ok && strings.HasPrefix(rest, "Sitemap: ") {
			sitemaps = true
			continue
		}
		if sitemaps {
			t.Fatalf("a group after the sitemaps in\n%s", text)
		}
		if !seen["*"] && !strings.Contains(block+"\n", "User-agent: *\n") {
			t.Fatalf("the group of * is not the first in\n%s", text)
		}
		state, rules, added := "", 0, 0
		for line := range strings.Lines(block) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			switch {
			case strings.HasPrefix(line, "#") && state == "":
			case line == theirsComment+"\n" && added == 0 && state != "":
				added++
			case line == oursComment+"\n" && added == 1 && state == "rules":
				added++
			case key == "User-agent" && (state == "" || state == "agents"):
				state = "agents"
				if seen[strings.ToLower(value)] {
					t.Fatalf("%q is named twice in\n%s", value, text)
				}
				seen[strings.ToLower(value)] = true
			case key == "User-Agent-Purpose" && (state == "agents" || state == "purposes") && value != "*":
				state = "purposes"
			case (key == "Allow" || key == "Disallow") && state != "" && strings.HasPrefix(value, "/"), strings.TrimSpace(line) == allowAll && (state == "agents" || state == "purposes"):
				short := strings.TrimRight(stars.ReplaceAllString(value, "*"), "*")
				if strings.HasSuffix(value, "*$") || short != value && !needsStars(block, key, short, value) {
					t.Fatalf("%q is padded in\n%s", line, text)
				}
				state = "rules"
				rules++
			case slices.Contains([]string{"Crawl-delay", "App-Directives", "Content-Usage", "Content-Signal"}, key) && state == "rules":
			default:
				t.Fatalf("%q is not allowed in state %q of\n%s", line, state, text)
			}
		}
		if rules == 0 {
			t.Fatalf("a group without rules in\n%s", text)
		}
	}
	if !seen["*"] {
		t.Fatalf("no group for everyone in\n%s", text)
	}
}

// needsStars checks a line with the key Allow or Disallow, whose path long is the path short with added stars. It
// reports whether the line can need these stars. It needs them if the group has a line with the opposite key, whose
// path is longer than short and shorter than long. Without the stars, that line would win. A single star after a final
// "$" is also necessary: it shows that the "$" does not mean the end of the path.
func needsStars(group, key, short, long string) bool {
	if long == short+"*" && strings.HasSuffix(short, "$") {
		return true
	}
	for line := range strings.Lines(group) {
		other, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if (other == "Allow" || other == "Disallow") && other != key && len(short) <= len(value) && len(value) <= len(long) {
			return true
		}
	}
	return false
}

func TestLayout(t *testing.T) {
	r := rand.New(rand.NewPCG(*seed, 7))
	for range *policies {
		spec := policytest.Random(r, policytest.Options{})
		publish(t, r, spec)
		p := compile(t, spec)
		f, _ := Render(p, policytest.Hosts[r.IntN(len(policytest.Hosts))], Options{})
		checkLayout(t, f.Body)
		again, _ := Render(compile(t, spec), "www.example.com", Options{})
		first, _ := Render(p, "www.example.com", Options{})
		if !bytes.Equal(again.Body, first.Body) || again.ETag != first.ETag {
			t.Fatalf("two renderings differ:\n%s\n%s", again.Body, first.Body)
		}
	}
}

func TestPolicyThatSaysNothing(t *testing.T) {
	for name, want := range map[policy.Switch]string{
		policy.Off:  "User-agent: *\nDisallow:\n",
		policy.Auto: "User-agent: *\nDisallow:\n",
		policy.Full: "##ACAP version=1.0\r\n\r\nUser-agent: *\r\nDisallow:\r\n\r\nACAP-ignore-conventional-records\r\n\r\nACAP-crawler: *\r\nACAP-allow-crawl: /\r\n",
	} {
		f := render(t, compile(t, &policy.Spec{Crawlers: policytest.Crawlers, Publish: policy.Publish{ACAP: name}}), "")
		if string(f.Body) != want {
			t.Errorf("got %q, want %q", f.Body, want)
		}
	}
}

// Every line must be needed: without it, some reader must decide differently. One reader uses the longest match. The
// other one uses the first match, and only files without wildcards are tested with it.
func TestNoNeedlessLines(t *testing.T) {
	paths := []string{"/"}
	for n := 0; n < len(paths) && len(paths[n]) < 7; n++ {
		for _, c := range "ab/" {
			paths = append(paths, paths[n]+string(c))
		}
	}
	for _, plain := range []bool{true, false} {
		r := rand.New(rand.NewPCG(*seed, 8))
		lines, needless := 0, 0
		for range *policies / 10 {
			spec := policytest.Random(r, policytest.Options{Usages: []policy.Usage{policy.Crawl}, NoWildcards: plain, NoHosts: true})
			f := render(t, compile(t, spec), "")
			for token, rules := range crawlertest.ReadRobotsTxt(string(f.Body)).Groups {
				for i := range rules {
					if len(rules[i].Path) > 6 {
						continue // the tested paths are too short to reach this pattern
					}
					lines++
					if len(rules) > 1 && !matters(rules, i, paths) {
						needless++
						if plain {
							t.Fatalf("%q changes nothing for %q in\n%s", rules[i].Path, token, f.Body)
						}
					}
				}
			}
		}
		t.Logf("without wildcards %v: %d of %d lines change nothing for paths of up to 7 bytes", plain, needless, lines)
		if needless*10 > lines {
			t.Errorf("%d of %d lines are needless", needless, lines)
		}
	}
}

func matters(rules []crawlertest.RobotsLine, i int, paths []string) bool {
	with := &crawlertest.RobotsTxt{Groups: map[string][]crawlertest.RobotsLine{"*": rules}}
	without := &crawlertest.RobotsTxt{Groups: map[string][]crawlertest.RobotsLine{"*": slices.Delete(slices.Clone(rules), i, i+1)}}
	for _, p := range paths {
		if with.Allowed("x", p) != without.Allowed("x", p) || firstMatch(with.Groups["*"], p) != firstMatch(without.Groups["*"], p) {
			return true
		}
	}
	return false
}

func firstMatch(rules []crawlertest.RobotsLine, path string) bool {
	for _, r := range rules {
		if strings.HasPrefix(path, r.Path) {
			return r.Key == "allow"
		}
	}
	return true
}

// The grammar of a line in ACAP 1.0 section 3. By mistake, the specification has "'" instead of "#" in
// VCHAR-excluding-hash, and does not allow a query in a pattern.
var (
	acapName    = `[A-Za-z][A-Za-z0-9._-]*`
	acapPath    = `(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-F]{2})+`
	acapUsage   = `(?:crawl|follow|index|preserve|present|other|present-(?:original|currentcopy|oldcopy|snippet|thumbnail|oldsnippet|oldthumbnail|link))`
	acapQual    = `(?: ` + acapName + `=[!$-&(-~]+)`
	acapRes     = `(?:` + acapPath + `|the-acap:resource-set:` + acapName + `)`
	acapGrammar = regexp.MustCompile(`^(?:` + strings.Join([]string{
		`ACAP-ignore-conventional-records`,
		`ACAP-crawler: (?:\*|[A-Za-z][ -"$-~]*)`,
		`ACAP-permissions-reference: \S+`,
		`ACAP-usage-purpose: [ -"$-~]+`,
		`ACAP-request-(?:take-down|re-crawl): ` + acapPath,
		`ACAP-allow-` + acapUsage + `: ` + acapRes + acapQual + `*`,
		`ACAP-allow-\(` + acapName + `\): ` + acapRes,
		`ACAP-disallow-` + acapUsage + `: ` + acapRes,
		`ACAP-qualified-usage: ` + acapName + ` ` + acapUsage + acapQual + `+`,
		`ACAP-composite-usage: ` + acapName + `(?: (?:` + acapUsage + `|\(` + acapName + `\)))+`,
		`ACAP-resource-set: ` + acapName + `(?: ` + acapPath + `)+`,
	}, "|") + `)$`)
)

func checkACAP(t *testing.T, file []byte) {
	t.Helper()
	i := bytes.Index(file, []byte("ACAP-"))
	if i < 0 {
		return
	}
	order := 0
	for line := range strings.SplitSeq(strings.TrimSuffix(string(file[i:]), "\r\n"), "\r\n") {
		if line == "" {
			continue
		}
		if !acapGrammar.MatchString(line) {
			t.Fatalf("%q does not match the grammar of ACAP 1.0", line)
		}
		now := 3
		switch {
		case strings.HasPrefix(line, "ACAP-ignore"):
			now = 1
		case strings.Contains(line, "-usage: ") && !strings.Contains(line, "allow"), strings.HasPrefix(line, "ACAP-resource-set"):
			now = 2
		}
		if now < order {
			t.Fatalf("%q comes too late in\n%s", line, file)
		}
		order = now
	}
}

// namedSpec adds named sets and usages to a random policy, in the same form as the parser of policy files.
func namedSpec(r *rand.Rand, spec *policy.Spec) {
	var set policy.ResourceSet
	set.Name = "some-set"
	for range 2 + r.IntN(2) {
		if p := pathpattern.MustParse(policytest.Pattern(r, true)); !slices.Contains(set.Patterns, p) {
			set.Patterns = append(set.Patterns, p)
		}
	}
	spec.Resources = []policy.ResourceSet{set}
	short := &policy.Qualifiers{}
	if err := short.SetQualifier(policy.PresentSnippet, policy.QualifierMaxLength, "250-chars"); err != nil {
		panic(err)
	}
	spec.Usages = []policy.LocalUsage{
		{Name: "short", Parts: []policy.UsagePart{{Usage: policy.PresentSnippet, Qualifiers: short}}},
		{Name: "reading", Parts: []policy.UsagePart{{Usage: policy.Index}, {Usage: policy.PresentSnippet, Qualifiers: short, Local: "short"}, {Usage: policy.TrainAI}}},
	}
	for i := range spec.Rules {
		u := spec.Usages[r.IntN(2)]
		var said []policy.Statement
		for _, part := range u.Parts {
			for _, p := range set.Patterns {
				said = append(said, policy.Statement{
					Pos: policy.Pos{Line: 1000 + i, Column: len(said)}, Allow: true, Usage: part.Usage, Qualifiers: part.Qualifiers, Pattern: p, Resource: set.Name, Local: u.Name,
				})
			}
		}
		spec.Rules[i].Statements = slices.DeleteFunc(spec.Rules[i].Statements, func(s policy.Statement) bool {
			return slices.ContainsFunc(said, func(t policy.Statement) bool { return t.Usage == s.Usage && t.Pattern == s.Pattern })
		})
		spec.Rules[i].Statements = append(spec.Rules[i].Statements, said...)
	}
}

func TestACAPGrammarAndNames(t *testing.T) {
	r := rand.New(rand.NewPCG(*seed, 9))
	counts := map[string]int{}
	for range 3 * *policies {
		spec := policytest.Random(r, policytest.Options{Usages: acapUsages, MaxRules: 4})
		namedSpec(r, spec)
		spec.Publish.ACAP = policy.Full
		p := compile(t, spec)
		host := policytest.Hosts[r.IntN(len(policytest.Hosts))]
		f, problems := Render(p, host, Options{})
		checkLayout(t, f.Body)
		checkACAP(t, f.Body)
		for _, word := range []string{"ACAP-resource-set", "ACAP-qualified-usage", "ACAP-composite-usage", "ACAP-usage-purpose", "allow-(", "the-acap:resource-set:"} {
			if bytes.Contains(f.Body, []byte(word)) {
				counts[word]++
			}
		}
		read := acap.Parse(f.Body)
		if len(read.Problems) > 0 {
			t.Fatalf("%+v of\n%s", read.Problems, f.Body)
		}
		for range 8 {
			path, usage, token := policytest.Path(r), acapUsages[r.IntN(len(acapUsages))], tokens[r.IntN(len(tokens))]
			if path == "/robots.txt" {
				continue
			}
			want := p.Decide(policy.Query{Crawler: p.Crawler(token), Identity: policy.Verified, Host: host, Path: path, Usage: usage, Now: policytest.Now})
			got := read.Decide(acap.Query{Crawler: token, Path: path, Usage: usage, Now: policytest.Now})
			if want.Verdict == got.Verdict && slices.Equal(limits(want, usage), got.Qualifiers.Strings()) || usage == policy.Crawl && want.Verdict == policy.Unstated && got.Verdict == policy.Allowed {
				continue
			}
			if want.Statement == nil || reportedACAP(problems, want.Statement) == "" {
				t.Fatalf("%q, %v of %q on %q: the records say %v %q, the policy %v %q\n%s\n%s\n%v", token, usage, path, host,
					got.Verdict, got.Qualifiers.Strings(), want.Verdict, limits(want, usage), f.Body, describe(spec), problems)
			}
			counts["reported"]++
		}
	}
	t.Log(counts)
	if len(counts) < 6 {
		t.Error("the generator is too narrow")
	}
}
