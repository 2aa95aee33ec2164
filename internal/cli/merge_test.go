// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// If the policy does not decide, all commands use the lines of the site's own robots.txt.
func TestCommandsKnowTheFileBelow(t *testing.T) {
	dir, write := newFolder(t)
	closed := write("closed.txt", "User-agent: *\nDisallow: /\n")
	own := write("own.txt", "User-agent: *\nDisallow: /cart/\n\nUser-agent: Bingbot\nDisallow: /slow/\nCrawl-delay: 5\n")
	names := write("names.txt", "User-agent: *\nDisallow: /cart/\n\nUser-agent: Googlebot\nDisallow: /slow/\n\nUser-agent: sistrix/2 (x)\nDisallow: /s/\n")
	others := write("others.txt", "# our rules\nUser-agent: *\nDisallow: /cart/\nContent-Usage: train-ai=n\nContent-Signal: ai-train=no\nApp-Directives: app;x\n\nSitemap: https://a.example/s.xml\nClean-param: ref /a/\n")
	nothing := write("nothing.yaml", "version: 1\n")
	trains := write("trains.yaml", "version: 1\npublish: {content-signal: on}\nrules:\n  - for: everyone\n    disallow: {train-ai: /}\n")
	mapped := write("mapped.yaml", "version: 1\nsitemaps: https://a.example/t.xml\n")
	log := write("access.log", `192.0.2.1 - - [26/Nov/2026:10:00:00 +0000] "GET /cart/ HTTP/1.1" 200 1 "-" "Mozilla/5.0 (compatible; bingbot/2.0)"`+"\n")
	search := write("search.yaml", "version: 1\nrules:\n  - for: category:search\n    allow: {crawl: /}\n  - for: GPTBot\n    disallow: {crawl: /}\n")
	silent := write("silent.yaml", "version: 1\nrules:\n  - for: GPTBot\n    disallow: {crawl: /}\n")
	crossing := write("crossing.txt", "User-agent: *\nDisallow: *a$\nAllow: /a$\nDisallow: /b:c\n")
	page := write("page.txt", "<!doctype html><p>hello")
	wide := write("wide.txt", "\xff\xfe"+strings.Join(strings.Split("User-agent: *\nDisallow: /cart/\n", ""), "\x00")+"\x00")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("User-agent: *\nDisallow: /cart/\n"))
	}))
	t.Cleanup(server.Close)
	tested := write("tested.yaml", "version: 1\nrules:\n  - for: GPTBot\n    disallow: {crawl: /}\nexpect:\n  - Googlebot may not crawl /cart/\n  - Bingbot may crawl /cart/\n")
	for name, c := range map[string]struct {
		command []string
		fails   bool
		has     string
	}{
		// The new policy no longer allows search engines explicitly. If the site's own robots.txt disallows everything,
		// they lose the site.
		"diff, alone":               {[]string{"diff", search, silent}, false, ""},
		"diff, search loses":        {[]string{"diff", "--merge", closed, search, silent}, true, "Search engines lose:\n"},
		"diff, the file itself":     {[]string{"diff", "--merge", own, own, silent}, false, "Others lose:\n  GPTBot may no longer crawl the whole site"},
		"diff, nothing":             {[]string{"diff", "--merge", own, silent, silent}, false, "Nothing changes."},
		"diff, other lines":         {[]string{"diff", "--merge", others, silent, silent}, false, "Nothing changes."},
		"diff, the lines it has":    {[]string{"diff", "--fail-on", "any", "--merge", others, others, nothing}, false, "Nothing changes."},
		"diff, a stated usage":      {[]string{"diff", "--fail-on", "any", "--merge", others, nothing, trains}, true, "No decision changes; these settings do:\n  publish.content-signal: none → on\n"},
		"diff, a sitemap":           {[]string{"diff", "--merge", others, others, mapped}, false, "No decision changes; these settings do:\n  sitemaps: none → https://a.example/t.xml\n"},
		"diff, two robots.txt only": {[]string{"diff", others, own}, true, "sitemaps: https://a.example/s.xml → none"},
		"explain, preferences":      {[]string{"explain", silent, "--merge", others, "--agent", "Foo", "https://a.example/x"}, false, "Content-Signal: ai-train=no"},
		"explain, their lines":      {[]string{"explain", silent, "--merge", others, "--agent", "Foo", "https://a.example/x"}, false, "the site's own robots.txt:5 (" + others + "), group \"User-agent: *\", has the line \"Content-Signal: ai-train=no\""},
		"render, a test":            {[]string{"render", "--merge", own, tested}, false, "Disallow: /cart/"},
		"render, UTF-16":            {[]string{"render", "--merge", wide, silent}, false, "so it now disallows these paths"},
		"replay, a test":            {[]string{"replay", "--merge", own, tested, log}, false, "1 request"},
		"check, alone":              {[]string{"check", tested}, true, "Googlebot may not crawl /cart/"},
		"check, a failing test":     {[]string{"check", "--merge", closed, tested}, true, "Bingbot may not crawl /cart/, because of the site's own robots.txt:2 (" + closed + "); change that line, or the test"},
		"check, with the file":      {[]string{"check", "--merge", own, tested}, false, "2 tests passed"},
		"check, lengths":            {[]string{"check", "--merge", crossing, silent}, false, "crossing.txt:3: in the policy, \"Disallow: /*a$\" of line 2 decides about"},
		"check, spellings":          {[]string{"check", "--merge", crossing, silent}, false, "crossing.txt:4: crawlers may spell the path \"/b:c\" in several ways"},
		"explain, the file":         {[]string{"explain", silent, "--merge", own, "--agent", "Bingbot", "https://a.example/slow/"}, false, "the site's own robots.txt:5 (" + own + "), group \"User-agent: Bingbot\", disallows crawl of /slow/"},
		"explain, a crawl-delay":    {[]string{"explain", silent, "--merge", own, "--agent", "Bingbot", "https://a.example/slow/"}, false, "the site's own robots.txt:6 (" + own + "), group \"User-agent: Bingbot\", asks for a crawl-delay of 5s"},
		"explain, not enforced":     {[]string{"explain", silent, "--merge", own, "--agent", "Bingbot", "https://a.example/slow/"}, false, "Blocking: the request passes."},
		"explain, another group":    {[]string{"explain", silent, "--merge", own, "--agent", "Bingbot", "https://a.example/cart/"}, false, "It may crawl https://a.example/cart/."},
		"explain, the policy":       {[]string{"explain", silent, "--merge", own, "--agent", "GPTBot", "https://a.example/x"}, false, "silent.yaml:4, rule \"GPTBot\", disallows crawl of /"},
		"explain, any other name":   {[]string{"explain", silent, "--merge", closed, "--agent", "SomeBot", "https://a.example/x"}, false, "the site's own robots.txt:2"},
		"render, a URL":             {[]string{"render", "--merge", server.URL, silent}, false, "Disallow: /cart/"},
		"render, a web page":        {[]string{"render", "--merge", page, silent}, true, "--merge: invalid robots.txt " + page + ": this is a web page"},
		"diff, a policy file":       {[]string{"diff", "--merge", silent, silent, silent}, true, "--merge: invalid robots.txt " + silent + ": this is a policy file"},
		"explain, a directory":      {[]string{"explain", silent, "--merge", dir, "--agent", "Bingbot", "https://a.example/"}, true, dir + " is a directory; give the file in it, such as " + filepath.Join(dir, "robots.txt")},
		"import, a directory":       {[]string{"import", dir}, true, dir + " is a directory; give the file in it, such as " + filepath.Join(dir, "robots.txt") + ". No policy was written\n"},
		"import, a web page":        {[]string{"import", page}, true, ": this is a web page, not a robots.txt. No policy was written\n"},
		"check, a directory":        {[]string{"check", dir}, true, dir + " is a directory; give the file in it, such as " + filepath.Join(dir, "site-policy.yaml")},
		"explain, a follower":       {[]string{"explain", silent, "--merge", names, "--agent", "Applebot", "https://a.example/slow/"}, false, "the site's own robots.txt:5 (" + names + "), group \"User-agent: Googlebot\", disallows crawl of /slow/"},
		"explain, a cut name":       {[]string{"explain", silent, "--merge", names, "--agent", "SISTRIX Crawler", "https://a.example/s/"}, false, "the site's own robots.txt:8 (" + names + "), group \"User-agent: sistrix/2 (x)\", disallows crawl of /s/"},
		"explain, ignores *":        {[]string{"explain", silent, "--merge", names, "--agent", "AdsBot-Google", "https://a.example/"}, false, "the site's own robots.txt:1 (" + names + "), group \"User-agent: *\", does not apply to this crawler, which ignores this group"},
		"explain, an unnamed path":  {[]string{"explain", silent, "--merge", names, "--agent", "Googlebot", "https://a.example/cart/"}, false, "the site's own robots.txt:4 (" + names + "), group \"User-agent: Googlebot\", has no line that disallows this path"},
		"check, a robots.txt":       {[]string{"check", "--merge", own, own}, true, "--merge is only for policy files, but " + own + " is a robots.txt"},
		"explain, a robots.txt":     {[]string{"explain", own, "--merge", own, "--agent", "Bingbot", "https://a.example/"}, true, "--merge is only for policy files, but " + own + " is a robots.txt"},
		"diff, two robots.txt":      {[]string{"diff", "--merge", own, own, closed}, true, "--merge is only for policy files, but " + own + " is a robots.txt"},
		"no such file":              {[]string{"explain", silent, "--merge", filepath.Join(dir, "none.txt"), "--agent", "GPTBot", "https://a.example/x"}, true, "--merge: "},
	} {
		t.Run(name, func(t *testing.T) {
			for _, cmd := range Commands() {
				if cmd.Name() != c.command[0] {
					continue
				}
				out, errOut, err := execute(cmd, "", c.command[1:]...)
				if (err != nil) != c.fails || !strings.Contains(out+errOut, c.has) {
					t.Errorf("%v, want %q in\n%s%s", err, c.has, out, errOut)
				}
			}
		})
	}
}

// If a file is a web page instead of a robots.txt, all commands exit with the same code.
func TestExitCodeOfWebPage(t *testing.T) {
	_, write := newFolder(t)
	page, silent := write("page.txt", "<!doctype html><p>hello"), write("silent.yaml", "version: 1\n")
	for _, command := range [][]string{
		{"check", page}, {"import", page}, {"diff", page, silent}, {"explain", page, "--agent", "Bingbot", "https://a.example/"},
		{"check", "--merge", page, silent}, {"render", "--merge", page, silent}, {"diff", "--merge", page, silent, silent},
		{"explain", silent, "--merge", page, "--agent", "Bingbot", "https://a.example/"},
	} {
		for _, cmd := range Commands() {
			if cmd.Name() != command[0] {
				continue
			}
			if _, _, err := execute(cmd, "", command[1:]...); !errors.As(err, new(failure)) {
				t.Errorf("%v: %v does not lead to exit code 1", command, err)
			}
		}
	}
}
