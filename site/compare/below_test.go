// SPDX-License-Identifier: Apache-2.0

package compare_test

import (
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
)

// If the new policy no longer decides about a path, the site's own robots.txt decides. Therefore the losses depend on
// the robots.txt of each host.
func TestLossesOverTheFilesOfSites(t *testing.T) {
	t.Parallel()
	const silent = "  - for: GPTBot\n    disallow: {train-ai: /}\n"
	allow := "  - for: category:search\n    allow: {crawl: /}\n" + silent
	onHost := strings.Replace(allow, "    allow", "    hosts: [a.example, b.example]\n    allow", 1)
	file := func(text string) *robotstxt.File { return robotstxt.Parse([]byte(text)) }
	files := map[string]*robotstxt.File{
		"closed": file("User-agent: *\nDisallow: /\n"), "shop": file("User-agent: Bingbot\nDisallow: /shop/\n"), "open": file("User-agent: *\nDisallow:\n"), "none": nil,
	}
	for _, c := range []struct {
		name     string
		old, new string
		// below maps hosts to keys of the map files. The host "" stands for all hosts that the policies do not name. If
		// a host is missing, its robots.txt is not known.
		below  map[string]string
		lost   string // a part of the text about the losses
		unread string // a part of the text about unknown files
	}{
		{"a closed site", allow, silent, map[string]string{"": "closed"}, "the site's own robots.txt:2, because the new policy no longer allows it", ""},
		{"a site that closes a section to one engine", allow, silent, map[string]string{"": "shop"}, "/shop/ is now disallowed for Bingbot", ""},
		{"an open site", allow, silent, map[string]string{"": "open"}, "", ""},
		{"a site without a file", allow, silent, map[string]string{"": "none"}, "", ""},
		{"an unknown file", allow, silent, nil, "", "hosts that the policy does not name is not known"},
		{"an unknown file that cannot matter", allow, allow, nil, "", ""},
		{"an unknown file, and a policy that gives more", silent, allow, nil, "", ""},
		{"hosts with different files", onHost, silent, map[string]string{"a.example": "closed", "b.example": "open", "": "open"}, "on a.example", ""},
		{"one host is known", onHost, silent, map[string]string{"a.example": "open", "": "open"}, "", "robots.txt of b.example is not known"},
	} {
		below := func(host string) (*robotstxt.File, bool) {
			name, known := c.below[host]
			return files[name], known
		}
		l := compare.Sites(load(t, "rules:\n"+c.old), load(t, "rules:\n"+c.new), compare.Options{Below: below}).Losses
		if words := strings.Join(l.WordsOf(l.Found), "; "); !strings.Contains(words, c.lost) || (c.lost == "") != (words == "") || strings.Contains(words, "b.example") {
			t.Errorf("%s: lost: %q, want %q", c.name, words, c.lost)
		}
		var gaps []string
		_, covered := l.Known().Get()
		for _, g := range covered.Gaps {
			gaps = append(gaps, g.String())
		}
		if text := strings.Join(gaps, "; "); len(gaps) > 1 || !strings.Contains(text, c.unread) || (c.unread == "") != (text == "") {
			t.Errorf("%s: not known: %q, want %q", c.name, text, c.unread)
		}
	}
}

// If the site does not have its own robots.txt, merging does not change the result of the comparison.
func TestComparisonOverNoFile(t *testing.T) {
	t.Parallel()
	old, now := load(t, "rules:\n  - for: everyone\n    disallow: {crawl: /a/}\n"), load(t, "rules:\n  - for: everyone\n    disallow: {crawl: /a/b/}\n")
	var none site.Below = func(string) (*robotstxt.File, bool) { return nil, true }
	alone, over := compare.Sites(old, now, compare.Options{}), compare.Sites(old, now, compare.Options{Below: none})
	if got, want := strings.Join(over.Words(), "\n"), strings.Join(alone.Words(), "\n"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// If a new policy states preferences about AI, a merge leaves out some lines of the site's own robots.txt. This is a
// change, although neither policy says anything about it.
func TestLinesThatAMergeNowLeavesOut(t *testing.T) {
	t.Parallel()
	file := robotstxt.Parse([]byte("User-agent: *\nContent-Usage: /x/ train-ai=n\n"))
	below := func(string) (*robotstxt.File, bool) { return file, true }
	old, now := load(t, "rules:\n  - for: GPTBot\n    disallow: {crawl: /a/}\n"), load(t, "rules:\n  - for: GPTBot\n    disallow: {crawl: /a/, train-ai: /a/}\n")
	words := strings.Join(compare.Sites(old, now, compare.Options{Below: below}).Words(), "\n")
	if !strings.Contains(words, "/x/") {
		t.Errorf("the change of /x/ is missing:\n%s", words)
	}
}
