// SPDX-License-Identifier: Apache-2.0

package policyinput

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/acap"
	"github.com/robotspolicy/caddy-robots-policy/internal/rfc9309"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

// robotsFiles returns the robots.txt files in the test data of the repository and in $ROBOTSPOLICY_DATA.
func robotsFiles(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	add := func(root string) {
		if err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(name) != ".txt" || !strings.Contains(name, "robots") && !strings.Contains(name, "golden") {
				return err
			}
			files[name], err = os.ReadFile(name)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, root := range []string{"../../../robotstxt/testdata", "../../../robotsserve/testdata", "../testdata"} {
		add(root)
	}
	if dir := os.Getenv("ROBOTSPOLICY_DATA"); dir != "" {
		add(filepath.Join(dir, "robots"))
		add(filepath.Join(dir, "robots-large"))
		addCases(t, files, filepath.Join(dir, "rep", "cases.jsonl"))
	}
	return files
}

// addCases adds the robots.txt files from test cases of other projects. name is a file with one case in each line.
func addCases(t *testing.T, files map[string][]byte, name string) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(bytes.NewReader(data)); d.More(); {
		var c struct{ ID, Robots string }
		if err := d.Decode(&c); err != nil {
			t.Fatal(err)
		}
		files[c.ID] = []byte(c.Robots)
	}
}

// crossingRobots generates a robots.txt with overlapping patterns. In many pairs of them, one pattern is longer in the
// file, but the other one is longer after normalization. For example, *.jpeg becomes /*.jpeg.
func crossingRobots(r *rand.Rand) []byte {
	paths := []string{
		"*.jpeg", "/*.css$", "/admin/", "/x", "*a", "**a", "/**/b", "*/b/", "/a*", "/a**", "/*a*b", "/a/*b$", "/", "/*", "*",
		"/a/b", "*?q=", "/*?q=*", "/a$", "*a$", "/*/", "*/a*/", "/ab", "/b*a", "/a?", "*b/a", "/b/", "/a:b", "/a%3Ab",
	}
	var b strings.Builder
	for range 1 + r.IntN(2) {
		b.WriteString("User-agent: " + []string{"*", "Googlebot", "GPTBot"}[r.IntN(3)] + "\n")
		for range 2 + r.IntN(7) {
			b.WriteString([]string{"Allow: ", "Disallow: "}[r.IntN(2)] + paths[r.IntN(len(paths))] + "\n")
		}
	}
	return []byte(b.String())
}

// generatedRobots generates a robots.txt with overlapping groups.
func generatedRobots(r *rand.Rand) []byte {
	one := func(from ...string) string { return from[r.IntN(len(from))] }
	var b strings.Builder
	for range 1 + r.IntN(5) {
		for range 1 + r.IntN(2) {
			b.WriteString("User-agent: " + one("*", "*", "Googlebot", "Googlebot-Image", "AdsBot-Google", "GPTBot", "Bingbot", "Yandex", "YandexBot", "Applebot", "NobodyKnows") + "\n")
		}
		for range r.IntN(6) {
			path := one("/", "/", "/a/", "/b", "*.pdf", "/*?", "/a/b", "/%7Ea", "/é", "/x,*", "/a/index.html", "")
			b.WriteString(one("Disallow: ", "Disallow: ", "Allow: ") + path + one("", "", "", "$", "*", "c") + one("\n", "\n", " # x\n", "\r\n"))
		}
		b.WriteString(one("", "Crawl-delay: 5\n", "\n"))
	}
	return []byte(b.String())
}

var tokenOnly = regexp.MustCompile(`^[A-Za-z_-]+$`)

// Each robots.txt is converted to a policy, and the policy is rendered as a robots.txt again. Independent parsers must
// find the same answers in both files. If they do not, the comparison or a note must report the difference. The parsers
// are package rfc9309 and, if the environment variable GOOGLE_ROBOTSTXT names a checkout of it, Google's C++ parser.
func TestImportedFilesReadTheSame(t *testing.T) {
	t.Parallel()
	files := robotsFiles(t)
	n := testkit.Rounds(15, 30)
	if testkit.Long() {
		n = 5000
	}
	random := rand.New(rand.NewPCG(1, 29))
	for i := range n {
		files[fmt.Sprintf("generated %d", i)] = generatedRobots(random)
		if i%10 == 0 {
			files[fmt.Sprintf("crossing %d", i)] = crossingRobots(random)
		}
	}
	var google *crawlertest.Process
	for i := range crawlertest.Parsers {
		if os.Getenv(crawlertest.GoogleCheckout) == "" || crawlertest.Parsers[i].Name != "Google" {
			continue
		}
		var err error
		if google, err = crawlertest.Parsers[i].Start(); err != nil {
			t.Fatal(err)
		}
		if google != nil {
			defer google.Close()
		}
	}
	counts := map[string]int{}
	for name, data := range files {
		c, err := Convert(name, data)
		if errors.Is(err, ErrInvalid) {
			counts["files that are no robots.txt"]++
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		counts["files"]++
		q := c.Judge()
		counts["questions"] += q.Questions
		counts["told by rfc9309"] += q.Differ
		if !q.Complete {
			counts["files too large"]++
		}
		for _, d := range q.Differences {
			if d.Laxer() {
				t.Log(name, q.words(&d))
				counts["told by rfc9309: laxer"] += len(d.Asked) * len(d.Crawlers)
			}
		}
		if losses := q.SearchLosses(); len(losses) > 0 {
			counts["files that lose a path for a search engine"]++
			t.Logf("%s: %d losses, %s", name, len(losses), losses[0].Says)
		}
		if class, lost := lossClass(c), lostPlainPaths(q, data); len(lost) > 0 {
			counts["lost plain paths, "+class] += len(lost)
			if class == "neither" {
				t.Errorf("%s: search engines lose %q, which lines of the file name", name, lost)
			}
		}
		if google != nil {
			askGoogle(t, google, c, q, name, data, counts)
		}
	}
	t.Log(counts)
	if counts["questions"] == 0 {
		t.Error("nothing was asked")
	}
}

// lossClass returns the reason why the policy of a file may disallow more than the file does.
func lossClass(c *Converted) string {
	switch {
	case c.Imported.HasRecords():
		return "ACAP"
	case strings.Contains(c.Imported.Stricter, "UTF-16"):
		return "UTF-16"
	}
	return "neither"
}

// lostPlainPaths returns paths that the robots.txt in data allows for a search engine, but that its policy disallows.
// It returns only paths that are in an Allow or Disallow line of the file without a wildcard.
func lostPlainPaths(q *Questions, data []byte) (lost []string) {
	plain := map[string]bool{}
	for line := range strings.FieldsFuncSeq(string(acap.Decode(data)), func(r rune) bool { return r == '\r' || r == '\n' }) {
		key, value, _ := strings.Cut(line, ":")
		value, _, _ = strings.Cut(value, "#")
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		if strings.HasSuffix(key, "allow") && strings.HasPrefix(value, "/") && !strings.ContainsAny(value, "*$") {
			plain[pathpattern.NormalizePath(value)] = true
		}
	}
	for i := range q.Differences {
		d := &q.Differences[i]
		if d.Laxer() || q.lost[i] == "" || !slices.ContainsFunc(d.Crawlers, func(name string) bool { return q.searches[name] }) {
			continue
		}
		for _, path := range d.Asked {
			if path = pathpattern.NormalizePath(path); plain[path] && !slices.Contains(lost, path) {
				lost = append(lost, path)
			}
		}
	}
	return lost
}

// askGoogle lets Google's parser read the original robots.txt and the policy's robots.txt, and compares the answers. It
// asks for each name of a group in the original file.
func askGoogle(t *testing.T, google *crawlertest.Process, c *Converted, q *Questions, name string, data []byte, counts map[string]int) {
	t.Helper()
	original := acap.Decode(data)
	if len(original) > rfc9309.Limit {
		original = original[:bytes.LastIndexAny(original[:rfc9309.Limit], "\r\n")+1]
	}
	f, _ := robotsserve.Render(c.File.Policy, "", robotsserve.Options{})
	agents := []string{"zetabot"}
	var paths []string
	for line := range strings.FieldsFuncSeq(string(original), func(r rune) bool { return r == '\r' || r == '\n' }) {
		key, value, _ := strings.Cut(line, ":")
		value, _, _ = strings.Cut(value, "#")
		value = strings.TrimSpace(value)
		switch key = strings.ToLower(strings.TrimSpace(key)); {
		case key == "user-agent" && tokenOnly.MatchString(value) && !slices.Contains(agents, value) &&
			!c.File.Policy.CrawlerInfo(c.File.Policy.Crawler(value)).IgnoresStar: // Google's parser does not know which crawlers ignore the group of *
			agents = append(agents, value)
		case (key == "allow" || key == "disallow") && strings.Trim(value, "/*$") != value || strings.HasPrefix(value, "/"):
			path := "/" + strings.TrimLeft(strings.ReplaceAll(strings.TrimSuffix(value, "$"), "*", "x"), "/")
			if !strings.ContainsAny(path, " \t\\$") && strings.IndexFunc(path, func(r rune) bool { return r >= 0x7f }) < 0 {
				paths = append(paths, path, path+"x", path[:max(1, len(path)-1)])
			}
		}
	}
	ask := func(body string) (asks [][2]string, answers []bool) {
		for _, a := range agents[:min(len(agents), 12)] {
			// Google's parser accepts only one name, and does not know which groups a crawler follows.
			for _, name := range append([]string{a}, c.File.Policy.CrawlerInfo(c.File.Policy.Crawler(a)).Follows...) {
				if regexp.MustCompile(`(?im)^[ \t]*user[ -]?agent[ \t]*:[ \t]*` + name + `[ \t]*(?:#|\r|$)`).MatchString(body) {
					a = name
					break
				}
			}
			for _, p := range paths[:min(len(paths), 300)] {
				asks = append(asks, [2]string{a, p})
			}
		}
		answers, err := google.Ask(body, asks)
		if err != nil {
			t.Fatal(err)
		}
		return asks, answers
	}
	if len(paths) == 0 {
		return
	}
	asks, old := ask(strings.ToValidUTF8(string(original), "?"))
	_, now := ask(string(f.Body))
	counts["asked Google"] += len(asks)
	for i := range asks {
		if old[i] == now[i] {
			continue
		}
		class := "Google: stricter"
		if now[i] {
			class = "Google: laxer"
		}
		switch {
		case q.Differ > 0:
			counts[class+", told by rfc9309"]++
		case len(c.Notes) > 0:
			counts[class+", in a file with notes"]++
		default:
			t.Errorf("%s, untold: %s: %q\n%s\n%s", class, name, asks[i], original[:min(len(original), 2000)], f.Body[:min(len(f.Body), 2000)])
			return
		}
	}
}
