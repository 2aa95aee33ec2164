// SPDX-License-Identifier: Apache-2.0

package publiclist

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
)

// automation lists crawlers and programs whose headers are in collections of browsers' headers. It maps the token or
// header to a description.
var automation = map[string]string{
	"Amzn-User":         "the fetcher of Amazon's assistant",
	"Chrome-Lighthouse": "a test of a page's speed",
	"feeder.co":         "the fetcher of a feed reader",
	"Foregenix":         "a scanner of shops for malware",
	"GTmetrix":          "a test of a page's speed",
	"Lightpanda":        "a headless browser for programs",
	"Miniature.io":      "a service for pictures of pages",
	"PTST":              "WebPageTest",
	"Scope3":            "the crawler of an advertising company",
	"SiteScoreBot":      "a crawler that rates sites",
	"Slurp":             "the crawler of Yahoo",
	"sqlmap":            "a scanner for SQL injections",
	"YLT Chrome":        "a test of a page's speed",

	"Googlebot/2.1 (http://www.googlebot.com/bot.html)": "Googlebot, in a fixture for the types of clients",
}

// enoughBrowsers is the smallest number of headers that permits a conclusion about all browsers and apps.
const enoughBrowsers = 40_000

// checkBrowsers fails for every browser or app recognized as a crawler.
func checkBrowsers(t *testing.T, c *crawlers.Catalog, r *crawlers.Recognizer, files []string) {
	t.Helper()
	seen := map[string]bool{}
	wrong, onDevice, automated := 0, 0, 0
	for _, name := range files {
		for _, ua := range headersIn(t, name) {
			if seen[ua] {
				continue
			}
			seen[ua] = true
			i, ok := r.Recognize(ua)
			switch {
			case !ok:
			case c.At(i).Is(crawlers.CategoryOnDevice):
				onDevice++
			case automation[c.At(i).Token] != "", automation[ua] != "":
				automated++
			default:
				wrong++
				t.Errorf("%q is recognized as %s", ua, c.At(i).Token)
			}
		}
	}
	t.Logf("browsers and apps: %d, of them recognized as crawlers: %d (in addition to %d link previews on devices and %d headers of programs)", len(seen)-automated, wrong, onDevice, automated)
	if n := len(seen) - automated; len(files) > 1 && n < enoughBrowsers {
		t.Errorf("%d headers of browsers and apps, want at least %d: name more files in ROBOTSPOLICY_BROWSERS", n, enoughBrowsers)
	}
}

// browserFiles returns the files that match the names and wildcards in ROBOTSPOLICY_BROWSERS.
func browserFiles(t *testing.T) (all []string) {
	t.Helper()
	for _, pattern := range filepath.SplitList(os.Getenv("ROBOTSPOLICY_BROWSERS")) {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("ROBOTSPOLICY_BROWSERS: no file matches %s: %v", pattern, err)
		}
		all = append(all, names...)
	}
	return all
}

// headersIn returns the User-Agent headers in a file. A .json file has fields named userAgent, as in the npm package
// user-agents. A .yml file has fields named user_agent, as in the fixtures of device-detector. Any other file has one
// header on each line. The file may be compressed with gzip.
func headersIn(t *testing.T, name string) (all []string) {
	t.Helper()
	data := readFile(t, name)
	if plain, ok := strings.CutSuffix(name, ".gz"); ok {
		name = plain
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err == nil {
			data, err = io.ReadAll(z)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if filepath.Ext(name) == ".json" {
		var entries []struct{ UserAgent string }
		if err := json.Unmarshal(data, &entries); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, e := range entries {
			all = append(all, e.UserAgent)
		}
		return all
	}
	for line := range strings.Lines(string(data)) {
		ua := strings.TrimSpace(line)
		if filepath.Ext(name) == ".yml" {
			value, ok := strings.CutPrefix(strings.TrimPrefix(ua, "- "), "user_agent: ")
			if !ok {
				continue
			}
			ua = strings.Trim(value, `"'`)
		}
		if ua != "" && !strings.HasPrefix(ua, "#") {
			all = append(all, ua)
		}
	}
	return all
}
