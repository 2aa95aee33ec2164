// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/site"
)

// robots.txt has a line for each common spelling of a path. Explain names the line whose spelling is the one of the
// requested URL. Some parsers do not normalize URLs as RFC 9309 requires. If their decision may differ from the
// server's, Explain says so.
func TestExplainSaysWhatEachSpellingComesTo(t *testing.T) {
	s := load(t, `version: 1
rules:
  - for: everyone
    disallow:
      crawl: ["/collections/*%2B*", "/collections/*%2b*", "/a+b%3Ac", /shop/]
    allow:
      crawl: "/shop/%2B/"
`)
	for _, c := range []struct{ path, line, differs string }{
		{"/collections/x%2By", "Disallow: /collections/*%2B", ""},
		{"/collections/x%2by", "Disallow: /collections/*%2b", ""},
		{"/collections/x+y", "Disallow: /collections/*+", ""},
		{"/a+b%3Ac", "Disallow: /a+b%3Ac", ""},
		{"/a%2Bb:c", "Disallow: /a+b%3Ac", "may fetch the page, because no line has this spelling"},
		{"/shop/%2B/", "Allow: /shop/%2B/", ""},
		{"/shop/+/", "Allow: /shop/%2B/", `may not fetch the page, because of "Disallow: /shop/"`},
	} {
		u, err := url.Parse("https://www.example.com" + c.path)
		if err != nil {
			t.Fatal(err)
		}
		e := s.Explain(site.Question{Agent: "GPTBot", URL: u, Now: june})
		i := slices.IndexFunc(e.Channels, func(ch site.Channel) bool { return ch.Name == site.ChannelRobotsTxt })
		robots := e.Channels[i]
		if len(robots.Sends) < 2 || robots.Sends[1] != c.line {
			t.Errorf("%s: %q, want %q", c.path, robots.Sends, c.line)
		}
		if got := strings.Join(robots.Differs, "; "); (got == "") != (c.differs == "") || !strings.Contains(got, c.differs) {
			t.Errorf("%s: differs %q, want %q", c.path, got, c.differs)
		}
	}
	_, ds := site.Load("policy.yaml", []byte("version: 1\nrules:\n  - for: everyone\n    disallow:\n      crawl: [\"/c/*%2B*\", \"/c/*+*\", \"/c/*%2b*\"]\n"))
	if text := ds.Text(); strings.Contains(text, "already") || strings.Contains(text, "redundant") {
		t.Errorf("the spellings are taken for one:\n%s", text)
	}
}
