// SPDX-License-Identifier: Apache-2.0

package policyinput

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// If search engines may no longer crawl a path, this is a loss. Suppose that the old file disallows /a:b. If the new
// file disallows /a%3Ab, another spelling of the same path, this is not a loss.
func TestSearchLosses(t *testing.T) {
	read := func(name, text string) *Input {
		t.Helper()
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		in, err := Read(context.Background(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	old := read("robots.txt", "User-agent: *\nDisallow: /admin/\nDisallow: /a:b\n")
	for text, want := range map[string]string{
		"User-agent: *\nDisallow: /admin/\nDisallow: /a:b\n":                                                    "",
		"User-agent: *\nDisallow: /admin/\nDisallow: /a%3Ab\n":                                                  "",
		"User-agent: *\nDisallow: /admin/\nDisallow: /a:b\n\nUser-agent: GPTBot\nDisallow: /\n":                 "",
		"User-agent: *\nAllow: /\n":                                                                             "",
		"User-agent: *\nDisallow: /admin/\nDisallow: /a:b\n\nUser-agent: Bingbot\nDisallow: /admin\n":           "/admin",
		"User-agent: *\nDisallow: /admin/\nDisallow: /a:b\nDisallow: /news/\n\nUser-agent: Yeti\nDisallow: /\n": "/news/",
	} {
		got := ""
		for _, l := range AskBoth(old, read("robots.txt", text), "").SearchLosses() {
			got += l.Says + "\n"
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s\nloses %q, want %q", text, got, want)
		}
	}
}

// Suppose that a robots.txt disallows only one spelling of a path. The policy disallows every spelling. The other
// spellings are not a loss, even if they are in the query of a URL that an Allow line matches.
func TestSpellingsAreNoSearchLoss(t *testing.T) {
	robots := []byte("User-agent: *\nAllow: /b/*?iid=*&chn=ps\nDisallow: /*redirect%3Dmobile\n")
	c, err := Convert("robots.txt", robots)
	if err != nil {
		t.Fatal(err)
	}
	q := c.Judge()
	if losses := q.SearchLosses(); q.Spellings == 0 || len(losses) > 0 {
		t.Errorf("%s: %v", q.Sentence(), losses)
	}
}

// In a query, a policy treats "/" and %2F as equal. If the file disallows only the path with %2F, the policy also
// disallows the path with "/". Search engines lose this path.
func TestPlainQueriesAreLost(t *testing.T) {
	for robots, want := range map[string]string{
		"User-agent: Googlebot\nDisallow: /q?x=%2f\n":                   "/q?x=/",
		"User-agent: Googlebot\nDisallow: /q?x=%2f\nDisallow: /q?x=/\n": "",
		"User-agent: Googlebot\nDisallow: /a%2Fb\n":                     "",
		"User-agent: GPTBot\nDisallow: /q?x=%2f\n":                      "",
		"User-agent: *\nDisallow: /a\nContent-Signal: /a/ search=no\n":  "/ in search results",
	} {
		c, err := Convert("robots.txt", []byte(robots))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, l := range c.Judge().SearchLosses() {
			got += l.What() + "\n"
		}
		if want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s: lost %q, want %q", robots, got, want)
		}
	}
}

// The longest matching pattern decides. In a policy, patterns are normalized, so the pattern of an Allow line can
// become longer: *.jpeg becomes /*.jpeg. Nevertheless, the policy must not allow a path that a Disallow line of the
// file disallows, and must not lose a path that the file allows.
func TestCrossingAllowsOpenNothing(t *testing.T) {
	robots := []byte("User-agent: *\nAllow: *.jpeg\nAllow: /*.css$\nDisallow: /admin/\nDisallow: /x\n")
	c, err := Convert("robots.txt", robots)
	if err != nil {
		t.Fatal(err)
	}
	for path, closed := range map[string]bool{"/admin/x.jpeg": true, "/admin/x.css": false, "/a.jpeg": false, "/x": true} {
		if d := c.File.Policy.Decide(policy.Query{Path: path}); (d.Verdict == policy.Disallowed) != closed {
			t.Errorf("%s: %v\n%s", path, d.Verdict, c.Text)
		}
	}
	q := c.Judge()
	if q.Differ != 0 || q.Questions == 0 {
		t.Errorf("%s: %+v", q.Sentence(), q.Differences)
	}
}

// The policy's robots.txt can repeat an Allow line with another spelling of its path, such as /a%3Ab for /a:b. If the
// group of one crawler needs such a line, the line must not allow any path for the crawlers of other groups.
func TestSpellingsOfOtherGroupsOpenNothing(t *testing.T) {
	robots := []byte("User-agent: *\nAllow: /a%3Ab\n\nUser-agent: Googlebot\nAllow: /a:b\nDisallow: /*a\n")
	c, err := Convert("robots.txt", robots)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range c.Judge().Differences {
		if d.Laxer() {
			t.Errorf("opens %s for %s", d.Path, d.Crawlers)
		}
	}
}

// The comparison also asks for URLs in other spellings than the normalized one, such as /%7Ejoe/. If only such a
// spelling of a disallowed path becomes disallowed, the comparison counts it in Spellings, and not as a loss. But if an
// Allow line contains this spelling, the comparison counts the path as a loss.
func TestSpellingsAsSent(t *testing.T) {
	for robots, spellings := range map[string]bool{
		"User-agent: *\nDisallow: /%7Ejoe/\nDisallow: /%61%62\nDisallow: /c%41\n": true,
		"User-agent: *\nDisallow: /~joe/\nAllow: /\n":                             true,
		"User-agent: *\nDisallow: /joe/\n":                                        false,
		"User-agent: *\nAllow: /=%41\nDisallow: *aa\n":                            false,
	} {
		c, err := Convert("robots.txt", []byte(robots))
		if err != nil {
			t.Fatal(err)
		}
		q := c.Judge()
		if losses := q.SearchLosses(); (q.Spellings > 0) != spellings || len(losses) > 0 {
			t.Errorf("%s: %s; lost %v", robots, q.Sentence(), losses)
		}
	}
	p := policy.Compile(&policy.Spec{})
	old := &Input{Policy: p, Robots: []byte("User-agent: *\nAllow: /=%41\nDisallow: *aa\n")}
	now := &Input{Policy: p, Robots: []byte("User-agent: *\nAllow: /=A*aa\nDisallow: *aa\n")}
	if losses := AskBoth(old, now, "").SearchLosses(); len(losses) != 1 || losses[0].Path != "/=%41xaa" {
		t.Errorf("lost %v", losses)
	}
}

// An Allow line can mix encoded and plain characters in a path, such as /a:%3a. The converted policy must still allow
// the path in this spelling, even if another line disallows a wider path.
func TestAllowsKeepMixedSpellings(t *testing.T) {
	for _, lines := range []string{
		"Allow: /=%41\nDisallow: *aa\n",
		"Allow: /=%41*\nDisallow: *aa\n",
		"Allow: /a:%3a*b\nDisallow: /*c\n",
		"Disallow: /\nAllow: /+%2b$\nDisallow: *%2B\n",
	} {
		robots := []byte("User-agent: *\n" + lines)
		c, err := Convert("robots.txt", robots)
		if err != nil {
			t.Fatal(err)
		}
		q := c.Judge()
		for i := range q.Differences {
			if d := &q.Differences[i]; d.Laxer() || q.lost[i] != "" {
				t.Errorf("%s: %s", lines, q.words(d))
			}
		}
	}
}
