// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/claim"
)

// A finding that several pages have is printed once, with the URLs of the pages.
func TestTextSaysTheSameOnce(t *testing.T) {
	var r Report
	for _, path := range []string{"/a", "/b", "/c", "/d", "/e", "/f", "/g"} {
		r.Findings = append(r.Findings, finding("usage-lost", "https://example.com"+path, "", "the header lacks train-ai=n", "look at the proxy"))
	}
	r.Findings = append(r.Findings, finding("usage-lost", "https://example.com/a", "", "the header lacks search=y", ""))
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	const want = `
error: the header lacks train-ai=n [usage-lost]
  https://example.com/a
  https://example.com/b
  https://example.com/c
  https://example.com/d
  https://example.com/e
  and 2 more
  what to do: look at the proxy

error: the header lacks search=y [usage-lost]
  https://example.com/a

8 errors, no warnings, no hints
`
	if !strings.HasSuffix(b.String(), want) {
		t.Errorf("got\n%s\nwant at its end\n%s", &b, want)
	}
}

// An audit that sends only its own User-Agent cannot find out whether crawlers are blocked. The report says so.
func TestTextSaysThatRefusalsWereNotLookedAt(t *testing.T) {
	for status, want := range map[string]bool{"": true, "403 Forbidden": false} {
		r := Report{Pages: []PageInfo{{Readings: []Reading{{Crawler: otherCrawler, Status: "200 OK"}, {Crawler: "GPTBot", Status: status}}}}}
		var b strings.Builder
		if err := r.WriteText(&b); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "add --as Googlebot,GPTBot"); got != want {
			t.Errorf("status %q: said %v, want %v in\n%s", status, got, want, &b)
		}
	}
}

// The JSON report contains the texts that WriteText prints at the end.
func TestJSONHasTheSummary(t *testing.T) {
	r := &Report{
		Pages:    []PageInfo{{Readings: []Reading{{Crawler: "GPTBot"}}}},
		Findings: []Finding{{Severity: Error}, {Severity: Error}, {Severity: Warning}, {Severity: Hint}, {Severity: Hint}, {Severity: Hint}},
	}
	for status, refusals := range map[string]string{"": "false", "403 Forbidden": "true"} {
		r.Pages[0].Readings[0].Status = status
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`"requests":0`, `"errors":2,"warnings":1,"hints":3,"blocks_looked_at":` + refusals} {
			if !strings.Contains(string(text), want) {
				t.Errorf("no %s in %s", want, text)
			}
		}
	}
}

func TestWhichReaders(t *testing.T) {
	some := []string{otherCrawler, "2ip bot", "AdsBot", "GPTBot", "Googlebot"}
	if got, want := whichReaders(some, 6), "Googlebot, GPTBot, any other crawler and 2 more"; got != want {
		t.Errorf("some: %q, want %q", got, want)
	}
	if got, want := whichReaders(some, 5), "every crawler"; got != want {
		t.Errorf("all: %q, want %q", got, want)
	}
}

// An audit that could not read a page is not clean, and neither is an audit with an error.
func TestClean(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		fetched bool
		found   []Finding
		want    claim.Outcome
	}{
		{"all read", true, []Finding{{Severity: Warning}}, claim.Holds},
		{"an error", true, []Finding{{Severity: Error}}, claim.Fails},
		{"an error, and a page that was not read", false, []Finding{{Severity: Error}}, claim.Fails},
		{"a page that was not read", false, nil, claim.CannotBeJudged},
	} {
		r := &Report{Pages: []PageInfo{{Readings: []Reading{{Crawler: otherCrawler, fetched: c.fetched}}}}, Findings: c.found}
		if got := r.Clean(); got.Outcome() != c.want {
			t.Errorf("%s: %v: %s", c.name, got.Outcome(), got.Text())
		}
	}
}
