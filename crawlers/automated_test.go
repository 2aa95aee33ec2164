// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestAutomated(t *testing.T) {
	t.Parallel()
	for ua, want := range map[string]string{
		"":                       "(none)",
		"-":                      "(none)",
		"curl/8.5.0":             "curl",
		"python-requests/2.32.3": "python-requests",
		"Go-http-client/2.0":     "Go-http-client",
		"Wget/1.21.4":            "Wget",
		"Java/17.0.5":            "Java",
		"node":                   "node",
		"MyCrawler/1.0":          "MyCrawler",
		"examplebot":             "examplebot",
		"Example-Bot/2.0 (beta)": "Example-Bot",
		"Mozilla/5.0 (compatible; FooSpider2/1.0)": "FooSpider2",
		"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/140.0.0.0 Safari/537.36":            "HeadlessChrome",
		"Mozilla/5.0 (compatible; Acme/1.0; +https://acme.example/about-our-bot)":                                                  "Acme",
		"Acme Research (research@acme.example)":                                                                                    "Acme",
		"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko; Acme/2.1; +http://acme.example) Chrome/1 Safari/1": "Acme",
		"make.com":                "make.com",
		"Make/production":         "Make/production",
		"Zendesk Webhook":         "Zendesk",
		"Shopify-Captain-Hook":    "Shopify-Captain-Hook",
		"CB/Nutch-1.7":            "CB",
		"Mnogosearch-3.1.21":      "Mnogosearch",
		"Feed Image Audit -- App": "Feed Image Audit",
		// Clients that people use. They must not be treated as automated clients.
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36":                         "",
		"Mozilla/5.0 (Linux; Android 13; CUBOT_NOTE 40) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36":             "",
		"Mozilla/5.0 (Linux; Android 8.0.0; CUBOT X18 Plus) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/80 Mobile Safari/537.36":                "",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1": "",
		"okhttp/4.12.0": "",
		"Podcasts/4025.510.2 CFNetwork/1496.0.7 Darwin/23.5.0": "",
		"Dalvik/2.1.0 (Linux; U; Android 14; Pixel 8)":         "",
		"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0.0.0 Mobile Safari/537.36 (Ecosia android@150.0.0.0)": "",
		"Bottles/1.0": "",
	} {
		if name, ok := Automated(ua); name != want || ok != (want != "") {
			t.Errorf("%q is %q, %v; want %q", ua, name, ok, want)
		}
	}
	if !slices.IsSorted(libraries) {
		t.Error("libraries are not sorted, but the code searches them with a binary search")
	}
}

func TestAutomatedRequest(t *testing.T) {
	t.Parallel()
	const browser = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"
	for agent, want := range map[string]string{
		`"https://www.browserbase.com"`:                              "www.browserbase.com",
		`g="https://Agent.Bot.Goog/keys?x=1", h="https://b.example"`: "agent.bot.goog",
		`"https://signer.example:8443/"`:                             "signer.example",
		`signer.example`:                                             "(signed)",
		`"https://evil\nline"`:                                       "evil",
		`"https://"`:                                                 "(signed)",
		``:                                                           "(signed)",
	} {
		if name, ok := AutomatedRequest(http.Header{"User-Agent": {browser}, "Signature-Agent": {agent}}); !ok || name != want {
			t.Errorf("%s: %q, %v", agent, name, ok)
		}
	}
	for ua, want := range map[string]string{browser: "", "curl/8": "curl"} {
		if name, ok := AutomatedRequest(http.Header{"User-Agent": {ua}}); ok != (want != "") || name != want {
			t.Errorf("%s: %q, %v", ua, name, ok)
		}
	}
	if name, ok := AutomatedRequest(http.Header{}); !ok || name != "(none)" {
		t.Errorf("no header: %q, %v", name, ok)
	}
}

func FuzzAutomated(f *testing.F) {
	f.Add("Mozilla/5.0 (compatible; Acme/1.0; +https://acme.example/bot)")
	f.Add("@.")
	f.Fuzz(func(t *testing.T, ua string) {
		name, ok := Automated(ua)
		if ok == (name == "") || len(name) > maxAutomated {
			t.Errorf("%q is %q, %v", ua, name, ok)
		}
		if name != "" && name[0] != '(' && !strings.Contains(strings.ToLower(ua), strings.ToLower(name)) {
			t.Errorf("%q does not name %q", ua, name)
		}
	})
}

// TestCluesMissNothing compares hasClue, the fast check, with the complete check. If hasClue finds no clue in a header,
// the complete check must not find an automated client either.
func TestCluesMissNothing(t *testing.T) {
	t.Parallel()
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	looked, glances := 0, 0
	check := func(ua string) {
		looked++
		if hasClue(ua) {
			return
		}
		glances++
		if name, ok := automated(ua); ok {
			t.Errorf("%q has no clue, but is automated because of %s", ua, name)
		}
	}
	browsers := browserStrings()
	for i, ua := range browsers {
		check(ua)
		for _, word := range []string{"Bot", "xbots", "MyCrawl", "aSpider", "SCRAP", "headlessX", "phantomjs", "Puppeteer", "playWright", "selenium", "Lighthouse", "Chrome-Lighthouse", "fetcher", "Monitor", "checker", "archiver", "Indexer", "http://a", "https://a", "+www.a.example", "a@b.example"} {
			at := strings.IndexByte(ua, ' ') + 1
			if i%2 == 0 {
				at = len(ua)
			}
			check(ua[:at] + " " + word + " " + ua[at:])
			check(ua[:at] + word + ua[at:])
		}
	}
	for _, crawler := range c.All() {
		for _, example := range crawler.Examples {
			check(example)
		}
		check("Mozilla/5.0 (compatible; " + crawler.Token + "/1.0)")
	}
	if looked < 20_000 || glances < len(browsers)*9/10 {
		t.Errorf("%d headers, %d of them without a clue", looked, glances)
	}
	t.Logf("%d headers, %d of them without a clue", looked, glances)
}

// BenchmarkAutomated compares the check with hasClue and the check without it, for the headers of browsers and of
// crawlers.
func BenchmarkAutomated(b *testing.B) {
	c, err := Default()
	if err != nil {
		b.Fatal(err)
	}
	crawlers := []string{}
	for _, crawler := range c.All() {
		crawlers = append(crawlers, crawler.Examples...)
	}
	for name, headers := range map[string][]string{"browsers": browserStrings(), "crawlers": crawlers} {
		for how, f := range map[string]func(string) (string, bool){"glance": Automated, "look": automated} {
			b.Run(name+"/"+how, func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					f(headers[i%len(headers)])
				}
			})
		}
	}
}
