// SPDX-License-Identifier: Apache-2.0

package robotstxt_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
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

// spelled is a robots.txt, together with the robots.txt that is published after importing it, and with questions to ask
// parsers of both. There are three questions for each path in the file, with different spellings of the path: as in the
// file, with all reserved octets decoded, and with all of them encoded.
type spelled struct {
	name, original, published string
	merged                    string // the file, merged with an empty policy
	p                         *policy.Policy
	f                         *robotsserve.File
	problems                  []policy.Problem
	notes                     []robotstxt.Note
	asks                      [][2]string
	class                     []string // the spelling of each path
	google                    []bool   // the answers of Google's parser for the original file
}

// unnamed is the name of a crawler. No name in the files contains it.
const unnamed = "qqq"

// octets are bytes that are reserved, or that not all programs encode. The test has its own list and its own encoder,
// so that it also finds errors in the list and the encoder of the package pathpattern.
const octets = ":[]@!'()+,;~\"<>^`{|}"

func encodeAll(text, more, format string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if strings.IndexByte(octets+more, c) >= 0 {
			fmt.Fprintf(&b, format, c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func decodeAll(text string) string {
	for _, c := range []byte(octets + "=&$") {
		text = strings.NewReplacer(fmt.Sprintf("%%%02X", c), string(c), fmt.Sprintf("%%%02x", c), string(c)).Replace(text)
	}
	return text
}

// spellings returns spellings of a path that matches a pattern.
func spellings(pattern string) map[string]string {
	path := strings.ReplaceAll(strings.TrimSuffix(pattern, "$"), "*", "x")
	if path[0] != '/' {
		path = "/" + path
	}
	decoded := decodeAll(path)
	before, query, asks := strings.Cut(decoded, "?")
	encoded := func(format string) string {
		text := encodeAll(before, "=&$", format)
		if asks {
			text += "?" + encodeAll(query, "$", format)
		}
		return text
	}
	return map[string]string{
		"as written": path, "decoded": decoded, "encoded": encoded("%%%02X"), "encoded in lower case": encoded("%%%02x"),
	}
}

// generated returns a random file with reserved octets.
func generated(r *rand.Rand) string {
	one := func(from ...string) string { return from[r.IntN(len(from))] }
	octet := func() string {
		c := (octets + "=&$")[r.IntN(len(octets)+3)]
		return one(string(c), fmt.Sprintf("%%%02X", c), fmt.Sprintf("%%%02x", c))
	}
	var b strings.Builder
	b.WriteString("User-agent: *\n")
	for range 1 + r.IntN(5) {
		path := one("/", "/wiki/", "/c/*", "/a?b=", "/*?x=")
		for range 1 + r.IntN(3) {
			path += one(octet(), octet(), "a", "b", "*")
		}
		b.WriteString(one("Disallow: ", "Disallow: ", "Disallow: ", "Allow: ") + path + one("", "", "*", "b", "$") + "\n")
	}
	return b.String()
}

func newSpelled(t *testing.T, names catalogNames, name, body string) *spelled {
	t.Helper()
	im, err := robotstxt.Import([]byte(body), names.Crawlers())
	if err != nil {
		return nil
	}
	file, ds := policyfile.Load(name, policyfile.Print(im.Spec))
	if ds.HasErrors() {
		t.Fatalf("%v\n%s", ds, body)
	}
	s := &spelled{name: name, original: body, p: file.Policy, notes: im.Notes}
	s.f, s.problems = robotsserve.Render(file.Policy, "", robotsserve.Options{})
	s.published = string(s.f.Body)
	nothing := policy.Compile(&policy.Spec{Crawlers: names.Crawlers()})
	merged, problems, _ := robotsserve.Merge(nothing, "", robotstxt.Parse([]byte(body)), robotsserve.Options{})
	s.merged, s.problems = string(merged.Body), append(s.problems, problems...)
	var x imported
	x.named = map[string]bool{}
	x.read(body)
	for _, pattern := range x.patterns {
		for class, path := range spellings(pattern) {
			if path != "/robots.txt" && !strings.ContainsAny(path, "#\\") && !strings.HasPrefix(path, "//") && isASCII(path) {
				s.asks, s.class = append(s.asks, [2]string{unnamed, path}), append(s.class, class)
			}
		}
	}
	s.sample()
	google := crawlertest.ReadGoogle(body)
	for _, a := range s.asks {
		s.google = append(s.google, google.Allowed(a[0], a[1]))
	}
	return s
}

// sample reduces the number of questions, so that all parsers can answer them in time.
func (s *spelled) sample() {
	most := 400
	if len(s.original) > 50<<10 {
		most = 100
	}
	r := rand.New(rand.NewPCG(*importSeed, 23))
	r.Shuffle(len(s.asks), func(i, j int) {
		s.asks[i], s.asks[j] = s.asks[j], s.asks[i]
		s.class[i], s.class[j] = s.class[j], s.class[i]
	})
	s.asks, s.class = s.asks[:min(most, len(s.asks))], s.class[:min(most, len(s.asks))]
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool { return c >= 0x80 }) < 0
}

func spelledFiles(t *testing.T) (files []*spelled) {
	names := newNames(t)
	for name, data := range realFiles(t) {
		if s := newSpelled(t, names, name, strings.ToValidUTF8(string(data), "?")); s != nil && isASCII(s.original) {
			files = append(files, s)
		}
	}
	n := 250
	if testkit.Long() {
		n = 5000
	}
	r := rand.New(rand.NewPCG(*importSeed, 22))
	for i := range n {
		if s := newSpelled(t, names, fmt.Sprintf("generated %d", i), generated(r)); s != nil {
			files = append(files, s)
		}
	}
	return files
}

// Most parsers compare paths without converting them to the normal form of RFC 9309 section 2.2.2. They must give the
// same answer about a path for the original file and for the published file, which must also be the answer of the
// policy. If the answer for the published file is stricter, a note must report this. It must never be laxer.
func TestReservedOctets(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	files := spelledFiles(t)
	t.Run("Google's rules", func(t *testing.T) {
		checkSpelled(t, files, func(body string, asks [][2]string) ([]bool, error) {
			read := crawlertest.ReadGoogle(body)
			answers := make([]bool, len(asks))
			for i, a := range asks {
				answers[i] = read.Allowed(a[0], a[1])
			}
			return answers, nil
		}, "")
	})
	t.Run("temoto", func(t *testing.T) {
		checkSpelled(t, files, func(body string, asks [][2]string) ([]bool, error) {
			read, err := temoto.FromString(body)
			if err != nil {
				return nil, err
			}
			rules := crawlertest.ReadRobotsTxt(body)
			answers := make([]bool, len(asks))
			for i, a := range asks {
				answers[i] = read.TestAgent(a[1], a[0])
				if naive := rules.Allowed(a[0], a[1]); answers[i] != naive && crawlertest.TemotoException(rules, a[0], a[1], answers[i]) != "" {
					answers[i] = naive
				}
			}
			return answers, nil
		}, "temoto")
	})
	for _, parser := range crawlertest.Parsers {
		if parser.Prefixes || parser.TimedOnly || parser.Rejects != nil {
			continue
		}
		t.Run(parser.Name, func(t *testing.T) {
			process, err := parser.Start()
			if err != nil {
				t.Fatal(err)
			}
			if process == nil {
				t.Skipf("%s is not installed: see CONTRIBUTING.md", parser.Name)
			}
			t.Cleanup(func() { _ = process.Close() })
			checkSpelled(t, files, process.Ask, parser.Name)
		})
	}
}

func checkSpelled(t *testing.T, files []*spelled, ask func(body string, asks [][2]string) ([]bool, error), reader string) {
	counts := map[string]int{}
	for _, s := range files {
		before, err := ask(s.original, s.asks)
		if err != nil {
			counts["files that it does not read"]++
			continue
		}
		after, err := ask(s.published, s.asks)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		merged, err := ask(s.merged, s.asks)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		for i := range s.asks {
			path := s.asks[i][1]
			want := s.p.Decide(policy.Query{Path: path}).Verdict != policy.Disallowed
			google := s.google[i]
			counts["questions"]++
			if !before[i] {
				counts["disallowed"]++
			}
			switch {
			case after[i] == before[i]:
			case before[i] != google && after[i] == google:
				counts["import: files are read as Google's parser reads them"]++
			case reader == "Protego" && strings.ContainsAny(path, "?;$"):
				counts["import: it cuts off parameters and queries, and reads a $ in two ways"]++
			default:
				counts[s.explained("import", reader, path, before[i], want)]++
			}
			switch {
			case merged[i] == before[i]:
			case before[i] != google && merged[i] == google, merged[i] == after[i]: // as in the first switch
			case reader == "Protego" && strings.ContainsAny(path, "?;$"):
			default:
				counts[s.explained("merge", reader, path, before[i], want)]++
			}
			switch {
			case after[i] == want:
			case after[i] == before[i] && before[i] != google:
				counts["render: it reads the original in its own way, too"]++
			case after[i] == before[i] && reader == "robots-parser" && strings.ContainsAny(path, "[]|^{}`"):
				counts["render: it encodes such octets in patterns, and not in URLs"]++
			case reader == "Protego" && strings.ContainsAny(path, "?;$"):
				counts["render: it cuts off parameters and queries, and reads a $ in two ways"]++
			case reader == "temoto" && strings.Contains(path, "$"):
				counts["render: it takes a $ for the end wherever it stands"]++
			default:
				counts[s.explained("render", reader, path, want, want)]++
			}
			for class := range counts {
				if strings.HasPrefix(class, "unreported") {
					t.Fatalf("%s: %s: %s %s: the file says %v, the policy %v, what is published %v\n%s\n%s", class, s.name, s.class[i], path, before[i], want, after[i], s.original, s.published)
				}
			}
		}
	}
	t.Log(counts)
	if counts["disallowed"] == 0 || counts["disallowed"] == counts["questions"] {
		t.Error("all answers are the same")
	}
}

var (
	delimiter = regexp.MustCompile(`%(3[Dd]|26)`)
	digits    = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
	lowerCase = regexp.MustCompile(`%([0-9A-Fa-f][a-f]|[a-f][0-9A-Fa-f])`)
)

// explained returns the reason why a parser's answer for the published file differs from want, the expected answer. The
// reason says where the difference is reported, for example in a note. If no note or hint reports it, the result begins
// with "unreported".
func (s *spelled) explained(what, reader, path string, want, policySays bool) string {
	normal := pathpattern.NormalizePath(path)
	asSent := s.f.Explain(s.p, policy.Query{Path: path}).AsSent != nil
	if want { // the published file disallows the path
		switch {
		case (what == "merge" || what == "import" && !policySays) && s.notes != nil:
			return what + ": stricter, as a note says"
		case slices.ContainsFunc(s.f.Losses, func(l robotsserve.Loss) bool { return l.Paths.Match(normal) }):
			return what + ": stricter, as a hint says"
		case asSent && delimiter.MatchString(path):
			return what + ": an encoded = or & of a query is no delimiter, as explain says"
		case asSent && digits.MatchString(path):
			return what + ": a line matches the digits of an escape, as explain says"
		}
		return "unreported " + what + " stricter"
	}
	if before, query, asks := strings.Cut(path, "?"); asks && reader == "robots-parser" {
		// encode the query as in the URL Standard, which gives a mixed spelling
		path = before + "?" + strings.NewReplacer("'", "%27", `"`, "%22", "<", "%3C", ">", "%3E").Replace(query)
		asSent = s.f.Explain(s.p, policy.Query{Path: path}).AsSent != nil
	}
	if what == "import" && policySays && slices.ContainsFunc(s.notes, func(n robotstxt.Note) bool { return strings.Contains(n.Message, "the other one decides in the policy") }) {
		return "import: laxer, as a note says"
	}
	mixed := slices.ContainsFunc(s.problems, func(p policy.Problem) bool { return strings.Contains(p.Message, "mixes plain and encoded") })
	switch {
	case (reader == "" || reader == "Google") && lowerCase.MatchString(path):
		return what + ": Google reads no escape in lower case in URLs"
	case asSent && delimiter.MatchString(path):
		return what + ": an encoded = or & of a query is no delimiter, as explain says"
	case asSent && mixed:
		return what + ": another mixture of octets, as a hint says"
	}
	return "unreported " + what + " laxer"
}
