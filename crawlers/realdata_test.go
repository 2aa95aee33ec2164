// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// readOutside returns a file of the folder that $ROBOTSPOLICY_DATA names. Without that variable, the test is skipped.
// Even then, some real headers are tested: TestExamples always checks the examples in the catalog.
func readOutside(t *testing.T, name string) []byte {
	t.Helper()
	dir := os.Getenv("ROBOTSPOLICY_DATA")
	if dir == "" {
		t.Skipf("needs %s in the folder that ROBOTSPOLICY_DATA names", name)
	}
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// collections returns the User-Agent headers in the collections crawler-user-agents and well-known-bots. A key of the
// map consists of the name of the collection and the name of an entry.
func collections(t *testing.T) map[[2]string][]string {
	t.Helper()
	all := map[[2]string][]string{}
	var patterns []struct {
		Pattern   string
		Instances []string
	}
	if err := json.Unmarshal(readOutside(t, "catalogs/crawler-user-agents/crawler-user-agents.json"), &patterns); err != nil {
		t.Fatal(err)
	}
	for _, e := range patterns {
		all[[2]string{"crawler-user-agents", e.Pattern}] = e.Instances
	}
	var bots []struct {
		ID        string
		Instances struct{ Accepted []string }
	}
	if err := json.Unmarshal(readOutside(t, "catalogs/arcjet-well-known-bots/well-known-bots.json"), &bots); err != nil {
		t.Fatal(err)
	}
	for _, e := range bots {
		all[[2]string{"well-known-bots", e.ID}] = e.Instances.Accepted
	}
	return all
}

func expectedTokens(t *testing.T) map[[2]string][]string {
	t.Helper()
	f, err := os.Open("testdata/expected.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	expected := map[[2]string][]string{}
	for s := bufio.NewScanner(f); s.Scan(); {
		if strings.HasPrefix(s.Text(), "#") {
			continue
		}
		cols := strings.Split(s.Text(), "\t")
		if len(cols) != 3 {
			t.Fatalf("bad line %q", s.Text())
		}
		expected[[2]string{cols[0], cols[1]}] = strings.Split(cols[2], "|")
	}
	return expected
}

// oddHeaders lists headers that the simple rule of TestRealCrawlers attributes to a wrong crawler. It maps each of
// these headers to the correct crawler. An empty string means that no crawler sent the header.
var oddHeaders = map[string]string{
	// The name that the rule finds is a part of a longer name of another program.
	"Mozilla/5.0 (compatible; sukibot_heritrix/3.1.1 +http://suki.ling.helsinki.fi/eng/webmasters.html)":    "",
	"Mozilla/5.0 (compatible; Alexabot/1.0; +http://www.alexa.com/help/certifyscan; certifyscan@alexa.com)": "",
	// The rule finds Mediapartners-Google, because this name is longer. But the sender is Daumoa, which follows the
	// group of Mediapartners-Google.
	"Mozilla/5.0 (compatible; MSIE or Firefox mutant; not on Windows server;) Daumoa/4.0 (Following Mediapartners-Google)": "Daumoa",
}

// TestRealCrawlers recognizes the headers of two collections. The test determines the expected crawler of a header
// without the Recognizer. testdata/expected.tsv lists possible crawlers for some entries of the collections. The
// expected crawler is the one with the longest string that occurs in the header, outside of URLs. The headers of all
// other entries must not be recognized.
func TestRealCrawlers(t *testing.T) {
	all, expected := collections(t), expectedTokens(t)
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	r := NewRecognizer(c.Patterns())
	right, unlisted := map[string]bool{}, map[string]bool{}
	for key, headers := range all {
		for _, ua := range headers {
			want, odd := oddHeaders[ua]
			if !odd {
				want = longestContained(t, c, expected[key], ua)
			}
			got := ""
			if i, ok := r.Recognize(ua); ok {
				got = c.At(i).Token
			}
			if got != want {
				t.Errorf("%s: %q: got %q, want %q", key, ua, got, want)
			} else if want != "" {
				right[ua] = true
			} else {
				unlisted[ua] = true
			}
		}
	}
	for key := range expected {
		if len(all[key]) == 0 {
			t.Errorf("%s: no such entry", key)
		}
	}
	t.Logf("%d headers recognized, %d correctly not recognized", len(right), len(unlisted))
	if len(right) < 600 {
		t.Errorf("only %d headers", len(right))
	}
}

var urls = regexp.MustCompile(`https?://[^ ;),'"<>]*`)

func longestContained(t *testing.T, c *Catalog, tokens []string, ua string) string {
	t.Helper()
	text := strings.ToLower(urls.ReplaceAllString(ua, " "))
	longest, token := 0, ""
	for _, name := range tokens {
		cr, ok := c.Lookup(name)
		if !ok {
			t.Fatalf("%s is not in the catalog", name)
		}
		for _, p := range cr.Patterns() {
			p = strings.ToLower(strings.TrimSuffix(p, "*"))
			if len(p) > longest && strings.Contains(text, p) {
				longest, token = len(p), name
			}
		}
	}
	return token
}

// TestLongTail makes a Recognizer of the more than 1000 names in a collection. For every tenth header, it compares the
// result of the Recognizer with the result of naiveRecognize.
func TestLongTail(t *testing.T) {
	var patterns []Pattern
	var headers []string
	for key, uas := range collections(t) {
		if key[0] != "crawler-user-agents" {
			continue
		}
		headers = append(headers, uas...)
		name := strings.TrimRight(strings.ReplaceAll(key[1], `\`, ""), "/")
		if !strings.ContainsAny(key[1], `^$()[]|*?`) && CheckPattern(name) == nil {
			patterns = append(patterns, Pattern{name, len(patterns)})
		}
	}
	if len(patterns) < 1000 {
		t.Fatalf("only %d names", len(patterns))
	}
	r := NewRecognizer(patterns)
	slices.Sort(headers)
	found := 0
	for n, ua := range headers {
		i, ok := r.Recognize(ua)
		if ok {
			found++
		}
		if n%10 != 0 {
			continue
		}
		if wantI, wantOK := naiveRecognize(patterns, ua); ok != wantOK || i != wantI {
			t.Errorf("%q: got %d %v, want %d %v", ua, i, ok, wantI, wantOK)
		}
	}
	t.Logf("%d names find %d of %d headers at token boundaries", len(patterns), found, len(headers))
}
