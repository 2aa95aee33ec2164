// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A client can sign its requests with the key of a host. A rule for this host ("for: signed:agent.example") then
// applies to its requests, even if their User-Agent is a browser. If a crawler in the policy uses this host as its key
// directory, the rules for this crawler apply, too. For an unlisted signer, only the rules for its host and for
// everyone apply. A forged signature has no effect. The server never requests keys from a host that the policy does not
// name.
func TestSigners(t *testing.T) {
	agent, stranger, unnamed := newSigner(t), newSigner(t), newSigner(t)
	known, host, other := startDirectory(t, agent.serveWith(`"purpose":["shopping"],"rate-expectation":"2 rps"`)), startDirectory(t, stranger.serve), startDirectory(t, unnamed.serve)
	npmAgent, npmStranger := newNPMSigner(t, agent), newNPMSigner(t, stranger)
	name := func(d *directory) string { return "signed:" + strings.TrimPrefix(d.url, "https://") }
	s := newServer(t, t.TempDir(), `version: 1
crawlers:
  AgentBot: {operator: Agents Ltd, category: ai-agent, signature-directory: "`+known.url+`"}
rules:
  - for: everyone
    disallow: {crawl: [/members/, /verified/, /closed/]}
    enforce: block
  - for: everyone
    identity: verified
    allow: {crawl: /verified/}
  - for: category:ai-agent
    disallow: {crawl: /people/}
    enforce: block
  - for: purpose:shopping
    disallow: {crawl: /shop/}
    enforce: block
  - for: ["`+name(known)+`", "`+name(host)+`"]
    allow: {crawl: /members/}
  - for: "`+name(host)+`"
    limit: {rate: 60/h, burst: 6}
    enforce: block
`, htmlUpstream(page("")))
	s.run(s.caddyfile(`admin off
	robots_policy {
		crawler_log
	}
	log requests {
		include http.robots_policy.crawler_log
		output file DIR/crawlers.log
	}
	log default {
		exclude http.robots_policy.crawler_log
		output file DIR/caddy.log
	}`, map[string]string{"": "metrics /metrics\n@agent crawler " + name(host) + " {\nverify signatures\nverify_from 127.0.0.0/8\n}\nheader @agent X-Matched yes\n" +
		strings.ReplaceAll(recognizedBody, "VERIFY", "signatures")}))
	before := strings.Split(s.get("/metrics").body, "\n") // the counters belong to the whole process
	now, nonce := time.Now(), 0
	sign := func(by *signer, d *directory) []string {
		nonce++
		return by.sign(s.addr, d.url, now, now.Add(time.Minute), fmt.Sprint(nonce))
	}
	for _, who := range []struct {
		by *signer
		d  *directory
	}{{agent, known}, {stranger, host}} {
		eventually(t, "the signature is verified", func() bool {
			_, crawler := s.takenFor("/robots.txt", sign(who.by, who.d)...)
			return crawler == name(who.d)+" verified"
		})
	}
	base, quoted := "http://"+s.addr, func(d *directory) string { return `"` + d.url + `"` }
	tampered := func(fields []string) []string {
		fields[len(fields)-1] = strings.Replace(fields[len(fields)-1], "sig1=:", "sig1=:AAAA", 1)
		return fields
	}
	replayed := sign(stranger, host)
	for _, c := range []struct {
		name, path string
		fields     []string
		status     int
		crawler    string
	}{
		{"the agent where it alone may go", "/members/", npmAgent.sign(base+"/members/", quoted(known)), 200, name(known) + " verified"},
		{"the agent as a verified crawler", "/verified/", sign(agent, known), 200, name(known) + " verified"},
		{"the agent as one of its category", "/people/", sign(agent, known), 403, ""},
		{"the agent where nobody may go", "/closed/", npmAgent.sign(base+"/closed/", quoted(known)), 403, ""},
		{"the agent where nobody of the purpose on its card may go", "/shop/", sign(agent, known), 403, ""},
		{"the stranger, which has no card", "/shop/", sign(stranger, host), 200, name(host) + " verified"},
		{"the stranger where it may go", "/members/", npmStranger.sign(base+"/members/", quoted(host)), 200, name(host) + " verified"},
		{"the stranger as a verified crawler", "/verified/", sign(stranger, host), 403, ""},
		{"the stranger as one of a category", "/people/", replayed, 200, name(host) + " verified"},
		{"the stranger where nobody may go", "/closed/", sign(stranger, host), 403, ""},
		{"the stranger as another crawler", "/members/", append(sign(stranger, host), "User-Agent", "GPTBot/1.2"), 403, ""},
		{"a person", "/closed/", nil, 200, ""},

		{"replayed", "/closed/", replayed, 200, ""},
		{"by the key of another host", "/closed/", sign(agent, host), 200, ""},
		{"by nobody's key", "/closed/", sign(unnamed, host), 200, ""},
		{"for another site", "/closed/", npmStranger.sign("http://other.example/closed/", quoted(host)), 200, ""},
		{"expired", "/closed/", stranger.sign(s.addr, host.url, now.Add(-time.Hour), now.Add(-time.Minute), "old"), 200, ""},
		{"of the future", "/closed/", stranger.sign(s.addr, host.url, now.Add(time.Hour), now.Add(2*time.Hour), "new"), 200, ""},
		{"changed on its way", "/closed/", tampered(sign(stranger, host)), 200, ""},
		{"a path of the host", "/closed/", stranger.sign(s.addr, host.url+"/mine", now, now.Add(time.Minute), "path"), 200, ""},
		{"only a name", "/closed/", []string{"Signature-Agent", quoted(host)}, 200, ""},
		{"the name of the token", "/closed/", []string{"User-Agent", name(host)}, 200, ""},
		{"of a host that no rule names", "/closed/", sign(unnamed, other), 200, ""},
	} {
		fields := c.fields
		if !slices.Contains(fields, "User-Agent") {
			fields = append(fields, "User-Agent", chromeAgent)
		}
		r := s.get(c.path, fields...)
		if got := strings.TrimSpace(r.Header.Get("X-Crawler")); r.StatusCode != c.status || c.status == 200 && got != c.crawler {
			t.Errorf("%s: %s %q, want %d %q", c.name, r.Status, got, c.status, c.crawler)
		}
		if matched := r.Header.Get("X-Matched") == "yes"; c.status == 200 && matched != (c.crawler == name(host)+" verified") {
			t.Errorf("%s: the matcher says %v", c.name, matched)
		}
	}
	limited := 0
	for range 8 {
		if status, _ := s.takenFor("/", sign(stranger, host)...); status == http.StatusTooManyRequests {
			limited++
		}
	}
	if status, _ := s.takenFor("/"); limited < 2 || status != 200 {
		t.Errorf("%d of 8 are limited; a person gets %d", limited, status)
	}
	robots := s.get("/robots.txt").body
	counted := slices.DeleteFunc(strings.Split(s.get("/metrics").body, "\n"), func(line string) bool { return slices.Contains(before, line) })
	metrics := strings.Join(counted, "\n")
	if strings.Contains(robots, "signed") || strings.Contains(s.get("/members/").Header.Get("X-Robots-Tag"), "signed") {
		t.Errorf("published: %s", robots)
	}
	if !strings.Contains(metrics, `crawler="`+name(host)+`",identity="verified"`) || strings.Contains(metrics, strings.TrimPrefix(other.url, "https://")) ||
		strings.Contains(metrics, `violations_total{crawler="signed`) { // it has read robots.txt, but robots.txt cannot address signers
		t.Errorf("metrics:\n%s", metrics)
	}
	if n := other.fetches.Load(); n != 0 {
		t.Errorf("keys were requested %d times from a host that no rule names", n)
	}
	eventually(t, "visits are logged", func() bool {
		data, _ := os.ReadFile(filepath.Join(s.dir, "crawlers.log"))
		log := string(data)
		return strings.Contains(log, `"crawler":"`+name(host)+`"`) && strings.Contains(log, `"category":"unlisted"`)
	})
}
