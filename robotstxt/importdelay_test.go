// SPDX-License-Identifier: Apache-2.0

package robotstxt_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// If a crawler has its own group, no line of the group of "*" applies to it, not even Crawl-delay (RFC 9309 section
// 2.2.1). AdsBot-Google never obeys the group of "*". Googlebot-Image obeys the group of Googlebot only if it does not
// have its own group.
func TestImportOfCrawlDelays(t *testing.T) {
	names := newNames(t)
	for name, c := range map[string]struct {
		file string
		want map[string]float64
	}{
		"not that of everyone": {
			"User-agent: *\nCrawl-delay: 10\nDisallow: /a\n\nUser-agent: Bingbot\nDisallow: /b\n\nUser-agent: Slurp\nCrawl-delay: 2\nDisallow: /b\n",
			map[string]float64{"nobot": 10, "GPTBot": 10, "Bingbot": 0, "Slurp": 2, "AdsBot-Google": 0},
		},
		"everyone is only to wait": {
			"User-agent: *\nCrawl-delay: 10\n\nUser-agent: Bingbot\nDisallow:\n",
			map[string]float64{"nobot": 10, "Bingbot": 0, "AdsBot-Google": 0},
		},
		"not that of the family": {
			"User-agent: Googlebot\nCrawl-delay: 5\nDisallow: /a\n\nUser-agent: Googlebot-Image\nDisallow: /b\n",
			map[string]float64{"nobot": 0, "Googlebot": 5, "Googlebot-News": 5, "Googlebot-Image": 0},
		},
		"zero is none": {
			"User-agent: *\nCrawl-delay: 10\nDisallow: /a\n\nUser-agent: Bingbot\nCrawl-delay: 0\nDisallow: /b\n",
			map[string]float64{"nobot": 10, "Bingbot": 0},
		},
		"one name has two": {
			"User-agent: Yandex\nCrawl-delay: 5\n\nUser-agent: *\nDisallow: /a\nCrawl-delay: 0.5\nCrawl-delay: 2\n",
			map[string]float64{"nobot": 2, "Yandex": 5},
		},
		"nobody waits": {
			"User-agent: *\nDisallow: /a\n\nUser-agent: Bingbot\nDisallow: /b\n",
			map[string]float64{"nobot": 0, "Bingbot": 0},
		},
		"that of everyone cannot be read": {
			"User-agent: *\nCrawl-delay: soon\nDisallow: /a\n\nUser-agent: Bingbot\nDisallow: /b\n",
			map[string]float64{"nobot": 0, "Bingbot": 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			data := []byte(c.file)
			for range 2 { // first the original file, then the rendered policy
				im, err := robotstxt.Import(data, names.Crawlers())
				if err != nil {
					t.Fatal(err)
				}
				text := policyfile.Print(im.Spec)
				file, ds := policyfile.Load("imported.yaml", text)
				if ds.HasErrors() {
					t.Fatalf("%v\n%s", ds, text)
				}
				for token, want := range c.want {
					got := time.Duration(0)
					if r := file.Policy.CrawlDelay(policy.Query{Crawler: file.Policy.Crawler(token), Identity: policy.Verified, Path: "/"}); r != nil {
						got = r.CrawlDelay
					}
					if got.Seconds() != want {
						t.Errorf("%s waits for %v, want %v s\n%s", token, got, want, text)
					}
				}
				f, _ := robotsserve.Render(file.Policy, "", robotsserve.Options{})
				data = f.Body
			}
		})
	}
}

// If a crawler has several crawl-delays, the longest is used. There is a note for each of the others, and for a value
// that is not a number.
func TestImportReportsShorterDelays(t *testing.T) {
	im, err := robotstxt.Import([]byte("User-agent: Yandex\nCrawl-delay: 5\n\nUser-agent: *\nDisallow: /a\nCrawl-delay: 0.5\nCrawl-delay: soon\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[int]bool{}
	for _, n := range im.Notes {
		if strings.Contains(n.Message, "has a longer delay for some of the same crawlers") || strings.Contains(n.Message, `"soon" is not a number of seconds`) {
			lines[n.Line] = true
		}
	}
	if !lines[6] || !lines[7] || lines[2] {
		t.Errorf("notes %v", im.Notes)
	}
}

// A Crawl-delay line for many crawlers has only one note.
func TestImportNotesEachDelayOnce(t *testing.T) {
	var b strings.Builder
	for i := range 60 { // without other lines between them, all crawlers above a line share it
		fmt.Fprintf(&b, "User-agent: %sbot\nCrawl-delay: %d\n", strings.Repeat("a", i), 400-i)
	}
	im, err := robotstxt.Import([]byte(b.String()), nil)
	if err != nil {
		t.Fatal(err)
	}
	noted := map[int]int{}
	for _, n := range im.Notes {
		if strings.Contains(n.Message, "leave out this crawl-delay") {
			if noted[n.Line]++; noted[n.Line] > 1 {
				t.Fatalf("line %d has several notes: %s", n.Line, n.Message)
			}
		}
	}
	if len(noted) != 59 {
		t.Errorf("%d lines have a note, want 59", len(noted))
	}
}
