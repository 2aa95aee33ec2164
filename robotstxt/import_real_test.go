// SPDX-License-Identifier: Apache-2.0

package robotstxt_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/acap"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

var importSeed = flag.Uint64("importseed", 1, "seed of the paths of the import tests")

// realFiles returns the files in testdata/import, which have unusual lines, the files in testdata/sites, which resemble
// the files of real sites, and the files in the folder robots of $ROBOTSPOLICY_DATA.
func realFiles(t testing.TB) map[string][]byte {
	t.Helper()
	patterns := []string{"testdata/import/*.txt", "testdata/sites/*.txt"}
	if dir := os.Getenv("ROBOTSPOLICY_DATA"); dir != "" {
		patterns = append(patterns, filepath.Join(dir, "robots", "*.txt"))
	}
	files := map[string][]byte{}
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no files match %s (%v)", pattern, err)
		}
		for _, name := range found {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files[filepath.Base(name)] = data
		}
	}
	return files
}

// The imported policy gives the same answers as Google's parser with the original file, except for the cases in
// docs/how-to/import.md. If a line of the file is the cause of such an exception, a note reports it. The test asks
// about the crawlers in the file, some other crawlers, and an unlisted client.
func TestImportSaysTheSame(t *testing.T) {
	names := newNames(t)
	total := map[string]int{}
	for name, data := range realFiles(t) {
		t.Run(name, func(t *testing.T) {
			paths := 25
			if testkit.Long() {
				paths = 200
			}
			for k, n := range checkImport(t, names, data, paths) {
				total[k] += n
			}
		})
	}
	t.Logf("%v", total)
	if total["decisions"] < 100*total["files"] || total["disallowed"]*20 < total["decisions"] {
		t.Errorf("the files are too tame: %v", total)
	}
}

// catalogNames has the crawlers of the built-in catalog.
type catalogNames struct{}

func (catalogNames) Crawlers() []policy.Crawler { return policyfile.CatalogCrawlers() }

func newNames(testing.TB) catalogNames { return catalogNames{} }

// imported is a robots.txt together with the policy from its import.
type imported struct {
	google   *crawlertest.Google
	p        *policy.Policy
	of       map[string]policy.Crawler // the catalog, by token in lower case
	named    map[string]bool           // the names that Google's parser finds in the file
	patterns []string                  // as written
	notes    map[int]string
	acap     bool // true if the file has ACAP records, which Google's parser ignores
	strange  bool // true if a path of the file has another spelling in the policy
}

func checkImport(t *testing.T, names catalogNames, data []byte, paths int) map[string]int {
	t.Helper()
	im, err := robotstxt.Import(data, names.Crawlers())
	if err != nil {
		return map[string]int{"not imported": 1}
	}
	text := policyfile.Print(im.Spec)
	file, ds := policyfile.Load("imported.yaml", text)
	if ds.HasErrors() {
		t.Fatalf("what was imported does not load: %v\n%s", ds, text)
	}
	body := string(acap.Decode(data))
	x := imported{google: crawlertest.ReadGoogle(body[:min(len(body), robotstxt.MaxSize)]), p: file.Policy, of: map[string]policy.Crawler{}, named: map[string]bool{}, notes: map[int]string{}}
	for _, c := range names.Crawlers() {
		x.of[strings.ToLower(c.Token)] = c
	}
	for _, n := range im.Notes {
		x.notes[n.Line] += n.Message + "; "
	}
	agents := x.read(body)
	counts := map[string]int{"files": 1, "agents": len(agents), "notes": len(im.Notes)}
	r := rand.New(rand.NewPCG(*importSeed, 20))
	for _, agent := range agents {
		for range paths {
			path := x.path(r)
			if path == "/robots.txt" { // always allowed, RFC 9309 section 2.2.2
				continue
			}
			x.check(t, agent, path, counts, text)
		}
	}
	return counts
}

// read finds the names and the patterns in a file, and returns the crawlers to ask about.
func (x *imported) read(body string) []string {
	agents := []string{"Googlebot", "Googlebot-Image", "Bingbot", "Applebot", "GPTBot", "Mediapartners-Google", "AdsBot-Google", "YandexBot", "zetabot"}
	for _, line := range strings.FieldsFunc(body, func(c rune) bool { return c == '\r' || c == '\n' }) {
		x.acap = x.acap || strings.HasPrefix(strings.ToLower(line), "acap-")
		line, _, _ = strings.Cut(line, "#")
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			key, value, _ = strings.Cut(strings.TrimSpace(line), " ")
		}
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		switch {
		case strings.HasPrefix(key, "user") && strings.Contains(key, "agent"):
			end := strings.IndexFunc(value, func(c rune) bool { return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '_') })
			if end < 0 {
				end = len(value)
			}
			// Google's parser cuts a name at a digit, a space or a dot.
			rest, _, _ := strings.Cut(value[end:], "/")
			if name := value[:end]; name != "" {
				x.named[strings.ToLower(name)] = true
				if rest == "" || rest == "*" || strings.HasPrefix(rest, " -") || strings.HasPrefix(rest, ",") {
					agents = append(agents, name)
				}
			}
		case strings.HasPrefix(value, "/") || strings.HasPrefix(value, "*"):
			if strings.ContainsAny(value, " \t") {
				break
			}
			x.patterns = append(x.patterns, value)
			p, err := pathpattern.Parse(value)
			x.strange = x.strange || err != nil || !slices.Contains([]string{value, "/" + value}, p.String()) && strings.ContainsAny(value, "%\"<>\\^`{|}$") && !strings.HasSuffix(value, "$")
		}
	}
	slices.Sort(agents)
	return slices.Compact(agents)
}

// obeyed returns the name of the group that a crawler obeys according to its operator. If this is the group of "*",
// obeyed returns "zetabot", which is a crawler without its own group. If the crawler does not obey any group, obeyed
// returns "".
func (x *imported) obeyed(agent string) string {
	c := x.of[strings.ToLower(agent)]
	for _, token := range append([]string{agent}, c.Follows...) {
		if x.named[strings.ToLower(token)] {
			return token
		}
	}
	if c.IgnoresStar {
		return ""
	}
	return "zetabot"
}

func (x *imported) check(t *testing.T, agent, path string, counts map[string]int, text []byte) {
	t.Helper()
	token := x.obeyed(agent)
	want := token == "" || x.google.Allowed(token, path)
	d := x.p.Decide(policy.Query{Crawler: x.p.Crawler(agent), Identity: policy.Verified, Path: path})
	got := d.Verdict != policy.Disallowed
	counts["decisions"]++
	if !want {
		counts["disallowed"]++
	}
	if got == want {
		return
	}
	class := "stricter"
	if got {
		class = "laxer"
	}
	counts[class]++
	switch {
	case pathpattern.NormalizePath(path) != path, x.strange && d.Statement != nil && strings.ContainsAny(d.Statement.Pattern.String(), "%+$=&,:;!'()@~-._"):
		counts[class+": another spelling"]++
	case x.acap && !got:
		counts[class+": ACAP"]++
	case strings.Contains(x.notes[0], "UTF-16"), strings.Contains(x.notes[x.line(agent)], "cannot be the name"), strings.Contains(x.notes[0], "UTF-16"), strings.Contains(x.notes[1], "UTF-16"):
		counts[class+": reported"]++
	default:
		t.Fatalf("%s: %q (as %q) may fetch %q: %v by the file, %v as imported, by line %v\n%s", class, agent, token, path, want, got, d.Statement, text)
	}
}

// line returns the line number of the note which says that the name agent is not valid in a policy. If there is no such
// note, it returns -1.
func (x *imported) line(agent string) int {
	for n, note := range x.notes {
		if strings.Contains(strings.ToLower(note), `"`+strings.ToLower(agent)+`" cannot be the name`) {
			return n
		}
	}
	return -1
}

// path returns a random path that resembles one of the file's patterns.
func (x *imported) path(r *rand.Rand) string {
	const letters = "abz/.?=&-_~AZ09"
	path := "/"
	if len(x.patterns) > 0 && r.IntN(8) > 0 {
		path = strings.TrimSuffix(x.patterns[r.IntN(len(x.patterns))], "$")
		if r.IntN(4) == 0 {
			path = path[:1+r.IntN(len(path))]
		}
		if r.IntN(8) == 0 {
			path += strings.TrimLeft(x.patterns[r.IntN(len(x.patterns))], "/")
		}
		if path[0] != '/' {
			path = "/" + path
		}
	}
	for strings.Contains(path, "*") {
		fill := ""
		for range r.IntN(4) {
			fill += letters[r.IntN(len(letters)):][:1]
		}
		path = strings.Replace(path, "*", fill, 1)
	}
	for range r.IntN(6) * r.IntN(2) {
		path += letters[r.IntN(len(letters)):][:1]
	}
	// encode the path in the same way as clients
	var b strings.Builder
	for i, c := range []byte(strings.ReplaceAll(strings.TrimSuffix(path, "$"), "#", "")) {
		switch {
		case c >= 0x80:
			fmt.Fprintf(&b, "%%%02X", c)
		case i > 1 && path[i-1] == '%' || i > 2 && path[i-2] == '%':
			b.WriteString(strings.ToUpper(string(c)))
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
