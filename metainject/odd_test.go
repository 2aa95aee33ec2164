// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"html"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
)

// contentsFor parses a page, and returns the contents of its elements for everyone and for one crawler.
func contentsFor(t *testing.T, page []byte, agent string) (contents []string) {
	t.Helper()
	doc, err := parseTree(page)
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc.Descendants() {
		name, _ := firstAttr(n, "name")
		if content, ok := firstAttr(n, "content"); ok && n.Data == "meta" && (strings.EqualFold(name, Everyone) || strings.EqualFold(name, agent)) {
			contents = append(contents, content)
		}
	}
	return contents
}

// checkOddMeta changes a page, and reads the result with parsers that understand invalid rules in different ways. If
// one of the parsers finds a restriction in the page or in the policy's elements, it must find this restriction in the
// changed page.
func checkOddMeta(t *testing.T, page string, set *Set, date string) {
	t.Helper()
	out, _, _ := rewriteHead([]byte(page), set, Merge, false, false, nil)
	for _, agent := range []string{"stranger", "googlebot"} {
		theirs, ours, merged := contentsFor(t, []byte(page), agent), contentsFor(t, []byte(set.HTML()), agent), contentsFor(t, out, agent)
		for _, r := range crawlertest.XReaders {
			got := r.Read(merged, "robots")
			if before := r.Read(theirs, "robots"); !got.Within(before) {
				t.Errorf("%s, %s: %s becomes %s, which restricts %s instead of %s", r.Name, agent, page, out, got, before)
			}
			if before := r.Read(ours, "robots"); r.Name != "words" && !got.Within(before) {
				t.Errorf("%s, %s: policy elements in %s become %s, which restricts %s instead of %s", r.Name, agent, page, out, got, before)
			}
		}
		for _, word := range crawlertest.Words(theirs) {
			if !slices.Contains(crawlertest.Words(merged), word) {
				t.Errorf("%s becomes %s, and %s is lost", page, out, word)
			}
		}
		if date != "" && strings.Contains(strings.Join(theirs, ""), date) && crawlertest.DateLost(date, merged) {
			t.Errorf("%s becomes %s, and the date is lost", page, out)
		}
	}
}

var oddMetaSets = [][]string{
	{"robots=unavailable_after: 2028-01-02T03:04:05Z, max-snippet:500, max-video-preview:100, max-image-preview:standard"},
	{"robots=noarchive", "googlebot=max-snippet:400, unavailable_after: 2029-01-02T03:04:05Z"},
	{"robots=nosnippet, noindex, indexifembedded"},
}

// A page's element has an invalid or unusual value. If a parser (see crawlertest.XReaders) finds a restriction in this
// value, it also finds the restriction after the value was combined with a valid value of the policy.
func TestOddContents(t *testing.T) {
	n := 0
	for _, odd := range crawlertest.OddRules() {
		date, _ := strings.CutPrefix(odd, "unavailable_after: ")
		if date == odd {
			date = ""
		}
		for _, form := range []string{"robots=§", "robots=nofollow, §", "robots=§, notranslate", "googlebot=nofollow, §, max-snippet:600", "robots=nofollow|robots=§|googlebot=noindex"} {
			page := "<!doctype html><head>"
			for element := range strings.SplitSeq(form, "|") {
				name, content, _ := strings.Cut(element, "=")
				page += `<meta name="` + name + `" content="` + html.EscapeString(strings.ReplaceAll(content, "§", odd)) + `">`
			}
			n++
			for i, elements := range oddMetaSets {
				if testing.Short() && i != n%len(oddMetaSets) {
					continue
				}
				checkOddMeta(t, page, testSet(t, elements...), date)
			}
		}
	}
	if n < 200 {
		t.Errorf("only %d contents", n)
	}
}

// FuzzOddContents checks that merging does not lose any restriction that a reader finds in an element, whatever the
// element contains.
func FuzzOddContents(f *testing.F) {
	for i, odd := range crawlertest.OddRules() {
		f.Add(odd, "nofollow, "+odd, i)
	}
	f.Fuzz(func(t *testing.T, one, two string, n int) {
		if len(one)+len(two) > 300 || strings.ContainsFunc(one+two, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			return
		}
		page := `<!doctype html><head><meta name=robots content="` + html.EscapeString(one) + `"><meta name=googlebot content="` + html.EscapeString(two) + `">`
		checkOddMeta(t, page, testSet(t, oddMetaSets[uint(n)%3]...), "")
	})
}
