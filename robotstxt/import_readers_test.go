// SPDX-License-Identifier: Apache-2.0

package robotstxt_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	temoto "github.com/temoto/robotstxt"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// rendering is the robots.txt that the server publishes after a real file was imported.
type rendering struct {
	name  string
	p     *policy.Policy
	f     *robotsserve.File
	body  string
	read  *crawlertest.RobotsTxt
	asks  [][2]string // pairs of a path and the name of the group that the crawler obeys
	token []string    // the token of the crawler of each pair
}

// Each file is imported, and parsers of other projects read the robots.txt of the resulting policy. A parser must not
// allow a path that the policy disallows. If it disallows a path that the policy allows, the problems of the rendering
// must contain one that says so.
func TestReadersOfImportedFiles(t *testing.T) {
	files := renderings(t)
	t.Run("temoto", func(t *testing.T) {
		checkReader(t, files, func(r *rendering) ([]bool, error) {
			read, err := temoto.FromString(r.body)
			if err != nil {
				return nil, err
			}
			answers := make([]bool, len(r.asks))
			for i, a := range r.asks {
				answers[i] = read.TestAgent(a[1], strings.ToLower(a[0]))
				if naive := r.read.Allowed(a[0], a[1]); answers[i] != naive && crawlertest.TemotoException(r.read, a[0], a[1], answers[i]) != "" {
					answers[i] = naive
				}
			}
			return answers, nil
		}, nil)
	})
	for _, parser := range crawlertest.Parsers {
		t.Run(parser.Name, func(t *testing.T) {
			process, err := parser.Start()
			if err != nil {
				t.Fatal(err)
			}
			if process == nil {
				t.Skipf("%s is not installed: see CONTRIBUTING.md", parser.Name)
			}
			t.Cleanup(func() { _ = process.Close() })
			checkReader(t, files, func(r *rendering) ([]bool, error) { return process.Ask(r.body, r.asks) }, &parser)
		})
	}
}

func renderings(t *testing.T) (files []*rendering) {
	names := newNames(t)
	paths := testkit.Rounds(10, 20)
	if testing.Short() {
		paths = 10
	}
	for name, data := range realFiles(t) {
		im, err := robotstxt.Import(data, names.Crawlers())
		if err != nil {
			continue
		}
		file, ds := policyfile.Load(name, policyfile.Print(im.Spec))
		if ds.HasErrors() {
			t.Fatal(ds)
		}
		r := &rendering{name: name, p: file.Policy}
		r.f, _ = robotsserve.Render(file.Policy, "", robotsserve.Options{})
		r.body = string(r.f.Body)
		r.read = crawlertest.ReadRobotsTxt(r.body)
		var x imported
		x.named = map[string]bool{}
		random := rand.New(rand.NewPCG(*importSeed, 21))
		for _, token := range x.read(strings.ToValidUTF8(string(data), "?")) {
			agent := r.f.Explain(r.p, policy.Query{Crawler: r.p.Crawler(token), Path: "/"}).Agent
			if agent == "*" {
				agent = token
			}
			if agent == "" || r.mistaken(agent) {
				continue
			}
			for range paths {
				if path := x.path(random); path != "/robots.txt" && pathpattern.NormalizePath(path) == path {
					r.asks, r.token = append(r.asks, [2]string{agent, path}), append(r.token, token)
				}
			}
		}
		files = append(files, r)
	}
	return files
}

// mistaken reports whether a parser could mistake the crawler agent for another one. Some parsers apply a group if its
// name is a part of the crawler's name. So if "examplebot-news" has no group, they apply the group of "examplebot" to
// it.
func (r *rendering) mistaken(agent string) bool {
	agent = strings.ToLower(agent)
	_, named := r.read.Groups[agent]
	for name := range r.read.Groups {
		if !named && strings.Contains(agent, name) {
			return true
		}
	}
	return false
}

// lost reports whether the published file states that it is stricter than the policy for a crawler and a path.
func (r *rendering) lost(agent, token, path string) bool {
	_, named := r.read.Groups[strings.ToLower(agent)]
	return slices.ContainsFunc(r.f.Losses, func(l robotsserve.Loss) bool {
		return l.Paths.Match(path) && slices.ContainsFunc(l.Crawlers, func(c string) bool {
			return c == "*" && !named || strings.EqualFold(c, agent) || strings.EqualFold(c, token)
		})
	})
}

// reserved are bytes that Protego encodes in a pattern before the first "?", but not in the query of a URL. For
// Protego, "Disallow: /*id=" does not match a URL with "id=" in its query.
const reserved = "!&'()+,:;=@[]"

// byProtego reports whether the robots.txt allows a path if two kinds of lines are left out, because Protego reads them
// differently from RFC 9309. These are patterns with a "?" that end with "$". If the path has a "?", these are also
// patterns with reserved bytes before the first "?".
func (r *rendering) byProtego(agent, path string) bool {
	lines := slices.DeleteFunc(slices.Clone(r.read.Group(agent)), func(l crawlertest.RobotsLine) bool {
		before, query, asks := strings.Cut(l.Path, "?")
		return asks && strings.HasSuffix(query, "$") || strings.Contains(path, "?") && strings.ContainsAny(before, reserved)
	})
	return (&crawlertest.RobotsTxt{Groups: map[string][]crawlertest.RobotsLine{"*": lines}}).Allowed("*", path)
}

// checkReader compares the answers of a parser with the decisions of the policies. ask returns the parser's answers to
// the questions in rendering.asks. parser describes an external parser, and is nil for a parser written in Go.
func checkReader(t *testing.T, files []*rendering, ask func(*rendering) ([]bool, error), parser *crawlertest.Parser) {
	counts := map[string]int{}
	google := parser != nil && parser.Name == "Google"
	for _, r := range files {
		if parser != nil && !google && !parser.UnderstandsFile(r.body) {
			counts["files left out"]++
			continue
		}
		counts["files"]++
		answers, err := ask(r)
		if err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
		for i, got := range answers {
			agent, path, token := r.asks[i][0], r.asks[i][1], r.token[i]
			if parser != nil && (parser.TimedOnly || !google && !parser.UnderstandsPath(path)) {
				continue
			}
			id := r.p.Crawler(token)
			want := r.p.Decide(policy.Query{Crawler: id, Identity: policy.Verified, Path: path}).Verdict != policy.Disallowed
			counts["questions"]++
			if !want {
				counts["disallowed"]++
			}
			switch {
			case got == want:
			case parser != nil && parser.Name == "Protego" && got == r.byProtego(agent, path):
				counts["as Protego reads queries"]++
			case want && r.lost(agent, token, path):
				counts["stricter: reported"]++
			case want && !strings.EqualFold(agent, token) && r.p.Family(id) != r.p.Crawler(agent):
				counts["stricter: group of another operator"]++
			default:
				t.Fatalf("%s: %q, as %q, may fetch %q: read as %v, the policy says %v\n%s", r.name, token, agent, path, got, want, r.body)
			}
		}
	}
	t.Log(counts)
	if q := counts["questions"]; q > 0 && (counts["disallowed"] == 0 || counts["disallowed"] == q) {
		t.Error("all answers are the same")
	}
}
