// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/browser"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// reportTraffic returns the access log of a week in Apache's format with the virtual host. The log contains requests of
// search engines, of other crawlers, of a client with a long name, and of people. One line is damaged.
func reportTraffic() string {
	clients := []struct{ address, agent string }{
		{"66.249.66.1", "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"},
		{"203.0.113.9", "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"},
		{"157.55.39.1", "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)"},
		{"203.0.113.5", "CCBot/2.0 (https://commoncrawl.org/faq/)"},
		{"203.0.113.6", "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)"},
		{"203.0.113.7", gptBot},
		{"203.0.113.2", "ExperimentalResearchCrawlerOfAUniversityWithALongName-bot/0.3 (+https://university.example/bot)"},
		{"203.0.113.8", chromeAgent},
	}
	var log strings.Builder
	for i := range 4000 {
		c := clients[i*i%97%len(clients)]
		path := fmt.Sprintf("%s%d/a-story-about-something-%d.html", []string{"/", "/shop/items/", "/members/", "/archive/1998/a-long-name-of-a-section-that-a-publisher-may-well-have/"}[i%4], i%7, i%50)
		if i%11 == 0 {
			path += "?sort=price"
		}
		fmt.Fprintf(&log, "www.example.com:443 %s - - [%02d/May/2026:%02d:00:00 +0000] \"GET %s HTTP/1.1\" 200 5000 \"-\" \"%s\"\n", c.address, 6+i/600, i%24, path, c.agent)
	}
	return log.String() + "damaged\n"
}

// The command replay writes its report as a single HTML page. When a browser opens the page, it must not request other
// files or report problems. Nothing may be cut off on a desktop or a phone, in light or dark colors. If
// ROBOTSPOLICY_SHOTS names a folder, pictures are saved there.
func TestReplayReportInABrowser(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no Chromium: apt-get install chromium")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"access.log": reportTraffic(),
		"old.yaml":   "version: 1\nrules:\n  - for: everyone\n    disallow: {crawl: /members/}\n    enforce: block\n",
		"new.yaml": `version: 1
rules:
  - name: no AI training
    for: category:ai-training
    disallow: {crawl: /}
    enforce: block
  - name: no sorted lists
    for: everyone
    disallow: {crawl: "/*?sort="}
    enforce: block
  - name: never used
    for: archive.org_bot
    disallow: {crawl: /private/}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	if code, _, errOut := runCommand(t, nil, "replay", in("new.yaml"), "--against", in("old.yaml"), in("access.log"), "--format", "vhost_combined", "--html", in("report.html")); code != 1 { // search engines lose something, and one line is damaged
		t.Fatalf("%d %s", code, errOut)
	}
	b := browser.Start(t, program)
	var said, asked []string
	b.On = func(method string, params json.RawMessage) {
		switch method {
		case "Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown":
			said = append(said, string(params))
		case "Network.requestWillBeSent":
			var r struct{ Request struct{ URL string } }
			if err := json.Unmarshal(params, &r); err != nil {
				t.Error(err)
			}
			asked = append(asked, r.Request.URL)
		}
	}
	for _, domain := range []string{"Log", "Runtime", "Network"} {
		b.Call(domain+".enable", nil, nil)
	}
	for _, screen := range []struct {
		name          string
		width, height int
		dark          bool
	}{{"desktop", 1280, 900, false}, {"desktop-dark", 1280, 900, true}, {"phone", 360, 800, false}, {"phone-dark", 360, 800, true}} {
		t.Run(screen.name, func(t *testing.T) {
			said, asked = nil, nil
			b.Screen(screen.width, screen.height, screen.dark)
			var looks struct {
				Heading, Background string
				Wider               []string
			}
			b.Open("file://"+in("report.html"), `({
				heading: document.querySelector("h1").textContent,
				background: getComputedStyle(document.body).backgroundColor,
				wider: [...document.querySelectorAll("html, body *")].filter(e => !e.closest("svg") &&
					(e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 || e.getBoundingClientRect().right > document.documentElement.clientWidth + 1))
					.map(e => e.tagName + " " + e.textContent.trim().slice(0, 60)),
			})`, &looks)
			if looks.Heading == "" || len(looks.Wider) > 0 {
				t.Errorf("%q is wider than the screen: %q", looks.Heading, looks.Wider)
			}
			var r, g, bl int
			if _, err := fmt.Sscanf(looks.Background, "rgb(%d, %d, %d)", &r, &g, &bl); err != nil || (r+g+bl < 384) != screen.dark {
				t.Errorf("the background is %s", looks.Background)
			}
			if len(said) > 0 || len(asked) != 1 {
				t.Errorf("the browser requests %q, and reports %q", asked, said)
			}
			if shots := os.Getenv("ROBOTSPOLICY_SHOTS"); shots != "" {
				if err := os.WriteFile(filepath.Join(shots, "report-"+screen.name+".png"), b.Screenshot(true), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
