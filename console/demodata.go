// SPDX-License-Identifier: Apache-2.0

package console

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/internal/behaviour"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// demoClient is who visits in the demo. The numbers are invented.
type demoClient struct {
	name, kind string
	identity   activity.Identity
	daily      float64       // requests
	obeys      float64       // how often it leaves out what it had read is closed
	reads      time.Duration // how often it reads robots.txt; 0: never
	only       string        // the section that it mostly asks for
	stops      time.Duration // how long ago it stopped coming; 0: it comes
}

const (
	hourly = time.Hour
	daily  = 24 * time.Hour
)

var demoClients = []demoClient{
	{name: "Googlebot", kind: "search", identity: activity.Verified, daily: 2600, obeys: 1, reads: 3 * hourly},
	{name: "Bingbot", kind: "search", identity: activity.Verified, daily: 1380, obeys: 1, reads: 4 * hourly},
	{name: "Bytespider", kind: "ai-training", identity: activity.Claimed, daily: 880, reads: 20 * hourly},
	{name: "Amazonbot", kind: "ai-training", identity: activity.Verified, daily: 510, obeys: 0.97, reads: 12 * hourly},
	{name: "python-httpx", kind: activity.KindUnknown, identity: activity.Claimed, daily: 445, only: "/news/"},
	{name: "Googlebot", kind: "search", identity: activity.Impostor, daily: 330},
	{name: "Applebot", kind: "search", identity: activity.Verified, daily: 306, obeys: 1, reads: 12 * hourly},
	{name: "SemrushBot", kind: "seo", identity: activity.Claimed, daily: 247, obeys: 0.96, reads: 30 * hourly},
	{name: "OAI-SearchBot", kind: "search", identity: activity.Verified, daily: 280, obeys: 1, reads: 6 * hourly, stops: 41 * hourly},
	{name: "PerplexityBot", kind: "ai-input", identity: activity.Verified, daily: 160, obeys: 0.6, reads: 18 * hourly},
	{name: "AhrefsBot", kind: "seo", identity: activity.Verified, daily: 156, obeys: 1, reads: 3 * daily},
	{name: "ChatGPT-User", kind: "ai-assistant", identity: activity.Verified, daily: 140, only: "/news/"},
	{name: "ClaudeBot", kind: "ai-training", identity: activity.Verified, daily: 60, obeys: 1, reads: 8 * hourly},
	{name: "harbour-fetch", kind: activity.KindUnknown, identity: activity.Claimed, daily: 58},
	{name: behaviour.Name, kind: activity.KindUnknown, identity: activity.Claimed, daily: 40},
	{name: "GPTBot", kind: "ai-training", identity: activity.Verified, daily: 55, obeys: 1, reads: 7 * hourly},
	{name: "CCBot", kind: "ai-training", identity: activity.Verified, daily: 26, obeys: 1, reads: 2 * daily},
	{name: "facebookexternalhit", kind: "preview", identity: activity.Claimed, daily: 92, obeys: 0.5},
	{name: "MojeekBot", kind: "search", identity: activity.Claimed, daily: 31, obeys: 1, reads: 5 * daily, stops: 11 * daily},
	{name: "UptimeRobot", kind: "monitoring", identity: activity.Claimed, daily: 288, only: "/"},
}

// demoPath is a page of the site of the demo.
type demoPath struct{ path string }

// demoPaths are the pages of a newspaper, the most requested first, with some below each
// path that the policy names.
func demoPaths(rnd *rand.Rand, p *policy.Policy, pages int) []demoPath {
	all := []demoPath{{"/"}, {"/news/"}, {"/sport/"}, {"/sitemap.xml"}, {"/feed.xml"}}
	topics := []string{"news", "news", "news", "sport", "culture", "opinion", "archive"}
	words := []string{"council", "bridge", "harbour", "election", "weather", "market", "school", "museum", "tram", "festival", "budget", "river", "concert", "mayor", "strike"}
	for i := range pages {
		all = append(all, demoPath{fmt.Sprintf("/%s/%s-%s-%d.html", topics[rnd.IntN(len(topics))], words[rnd.IntN(len(words))], words[rnd.IntN(len(words))], 1000+i)})
	}
	seen := map[string]bool{}
	spec := p.Spec()
	for i := range spec.Rules {
		for _, s := range spec.Rules[i].Statements {
			path := strings.TrimSuffix(strings.ReplaceAll(s.Pattern.String(), "*", "item"), "$")
			if s.Usage != policy.Crawl && s.Usage != policy.Preserve || path == "/" || seen[path] {
				continue
			}
			seen[path] = true
			for n := range max(2, pages/60) {
				page := path
				if strings.HasSuffix(path, "/") {
					page = fmt.Sprintf("%s%s-%d.html", path, words[rnd.IntN(len(words))], n+1)
				}
				at := 5 + rnd.IntN(len(all)-5)
				all = append(all[:at], append([]demoPath{{page}}, all[at:]...)...)
			}
		}
	}
	return all
}

// sumOf is the SHA-256 of a text in hexadecimal digits.
func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
