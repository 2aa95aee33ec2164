// SPDX-License-Identifier: Apache-2.0

package site

import (
	"net/url"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// As long as the site's own robots.txt is not known and may change the answer, it cannot be judged whether the crawler
// may crawl the page. If the server blocks the client, the answer is never that it may.
func TestMayCrawl(t *testing.T) {
	t.Parallel()
	s, ds := Load("p.yaml", []byte("version: 1\nrules:\n  - for: GPTBot\n    disallow: {crawl: /a/}\n  - for: Bytespider\n    identity: verified\n    allow: {crawl: /}\n  - for: Bytespider\n    disallow: {crawl: /}\n    enforce: block\n  - for: Bingbot\n    disallow: {index: /}\n"))
	if s == nil {
		t.Fatal(ds.Text())
	}
	file := robotstxt.Parse([]byte("User-agent: *\nDisallow: /b/\n"))
	known := func(string) (*robotstxt.File, bool) { return file, true }
	unknown := func(string) (*robotstxt.File, bool) { return nil, false }
	for _, c := range []struct {
		agent, path string
		below       Below
		want        claim.Outcome
		says        string
	}{
		{"GPTBot", "/a/", nil, claim.Fails, "It may not crawl https://h.example/a/"},
		{"GPTBot", "/b/", nil, claim.Holds, "It may crawl https://h.example/b/: the policy does not disallow it"},
		{"GPTBot", "/b/", known, claim.Fails, "It may not crawl https://h.example/b/"},
		{"GPTBot", "/c/", known, claim.Holds, "It may crawl https://h.example/c/"},
		{"GPTBot", "/b/", unknown, claim.CannotBeJudged, "It is not known whether the crawler may crawl https://h.example/b/"},
		{"GPTBot", "/a/", unknown, claim.Fails, "It may not crawl https://h.example/a/"},
		{"Bytespider", "/b/", nil, claim.Fails, "https://h.example/b/"},
		{"Bingbot", "/b/", nil, claim.Holds, "but not index it"},
	} {
		u, err := url.Parse("https://h.example" + c.path)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Explain(Question{Agent: c.agent, URL: u, Below: c.below}).May(); got.Outcome() != c.want || !strings.Contains(got.Text(), c.says) {
			t.Errorf("%s, %s: %v: %s", c.agent, c.path, got.Outcome(), got.Text())
		}
	}
}
