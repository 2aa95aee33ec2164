// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"
)

// The compared policies. The function decide repeats their effect on the traffic in handwritten code, so that the truth
// does not depend on the tested code.
const (
	oldPolicy = `version: 1
enforcement: {mode: block}
rules:
  - name: private
    for: everyone
    disallow: {crawl: [/private/]}
`
	newPolicy = `version: 1
enforcement: {mode: block}
rules:
  - name: open
    for: everyone
    allow: {crawl: [/]}
  - name: training out
    for: category:ai-training
    disallow: {crawl: [/]}
  - name: archive in dry run
    for: archive.org_bot
    enforce: log
    disallow: {crawl: [/shop/]}
  - name: Bing out of the shop
    for: Bingbot
    disallow: {crawl: [/shop/]}
  - name: comes never
    for: Diffbot
    disallow: {crawl: [/]}
`
)

// agent is a client with its share of the traffic.
type agent struct {
	ua, address   string
	share         int
	crawler, kind string // both are empty for a browser; kind is unlisted for an automated client that is not in the catalog
	identity      string // verified, unverified or impostor, according to the built-in address lists
	live          bool   // only DNS could have verified the client
}

var agents = []agent{
	{ua: "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36", address: "198.51.100.7", share: 40},
	{ua: "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15", address: "2001:db8::7", share: 20},
	{ua: "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", address: "66.249.66.1", share: 12, crawler: "Googlebot", kind: "search", identity: "verified"},
	{ua: "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", address: "203.0.113.9", share: 3, crawler: "Googlebot", kind: "search", identity: "unverified", live: true},
	{ua: "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)", address: "157.55.39.1", share: 6, crawler: "Bingbot", kind: "search", identity: "verified"},
	{ua: "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)", address: "203.0.113.10", share: 1, crawler: "Bingbot", kind: "search", identity: "unverified", live: true},
	{ua: "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)", address: "203.0.113.11", share: 8, crawler: "GPTBot", kind: "ai-training", identity: "impostor"},
	{ua: "CCBot/2.0 (https://commoncrawl.org/faq/)", address: "203.0.113.12", share: 4, crawler: "CCBot", kind: "ai-training", identity: "unverified", live: true},
	{ua: "Mozilla/5.0 (compatible; archive.org_bot +http://archive.org/details/archive.org_bot)", address: "203.0.113.13", share: 2, crawler: "archive.org_bot", kind: "archive", identity: "unverified"},
	{ua: "curl/8.5.0", address: "198.51.100.8", share: 3, crawler: "curl", kind: "unlisted"},
	{ua: "python-requests/2.32.3", address: "198.51.100.9", share: 1, crawler: "python-requests", kind: "unlisted"},
}

var sections = []string{"/news/", "/shop/", "/private/", "/about/"}

// pathsPerSection is small enough that a report counts every path exactly.
const pathsPerSection = 2000

// decide returns the effect of the old and of the new policy on a request.
func decide(a *agent, section string) (before, now string) {
	before, now = "allowed", "allowed"
	if section == "/private/" {
		before = "blocked"
	}
	switch {
	case a.kind == "ai-training" && section != "/robots.txt",
		a.crawler == "Bingbot" && section == "/shop/":
		now = "blocked"
	case a.crawler == "archive.org_bot" && section == "/shop/":
		now = "would_block"
	}
	return before, now
}

// request is a line of the log.
type request struct {
	agent   *agent
	section string // an element of sections, or /robots.txt
	target  string
	at      time.Time
	bytes   int
	host    string
}

// path returns the target without its query.
func (r *request) path() string {
	p, _, _ := strings.Cut(r.target, "?")
	return p
}

// traffic generates n requests from a seed. Their times are within one week.
func traffic(seed uint64, n int, each func(*request)) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	total := 0
	for _, a := range agents {
		total += a.share
	}
	begin := time.Date(2026, 5, 6, 0, 0, 0, 0, time.UTC) // one day after the date of the built-in address lists
	hosts := []string{"www.example.com", "shop.example.com", "example.org"}
	for i := range n {
		r := request{at: begin.Add(time.Duration(int64(i) * int64(7*24*time.Hour) / int64(n))), bytes: 200 + rnd.IntN(50_000), host: hosts[rnd.IntN(len(hosts))]}
		k := rnd.IntN(total)
		for j := range agents {
			if k -= agents[j].share; k < 0 {
				r.agent = &agents[j]
				break
			}
		}
		if r.section = "/robots.txt"; rnd.IntN(50) > 0 {
			r.section = sections[rnd.IntN(len(sections))]
			r.target = fmt.Sprintf("%s%d/a-story-about-something-%d.html", r.section, rnd.IntN(10), min(rnd.IntN(pathsPerSection), rnd.IntN(pathsPerSection))/10)
			if rnd.IntN(3) == 0 {
				r.target += fmt.Sprintf("?utm_source=%d", rnd.IntN(100))
			}
		} else {
			r.target = "/robots.txt"
		}
		each(&r)
	}
}

// writeCaddy writes a line in the format of Caddy's access log.
func writeCaddy(w *bufio.Writer, r *request) {
	fmt.Fprintf(w, `{"level":"info","ts":%d.%06d,"logger":"http.log.access.log0","msg":"handled request","request":{"remote_ip":"%s","remote_port":"51234","client_ip":"%[3]s","proto":"HTTP/2.0","method":"GET","host":"%s","uri":"%s","headers":{"Accept":["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"],"Accept-Encoding":["gzip, deflate, br"],"User-Agent":["%s"]},"tls":{"resumed":false,"version":772,"cipher_suite":4865,"proto":"h2","server_name":"%[4]s","ech":false}},"bytes_read":0,"user_id":"","duration":0.000929675,"size":%[7]d,"status":200,"resp_headers":{"Server":["Caddy"],"Alt-Svc":["h3=\":443\"; ma=2592000"],"Content-Type":["text/html; charset=utf-8"],"Last-Modified":["Tue, 05 May 2026 08:00:00 GMT"],"Etag":["\"d5sf8ssj7ps4p\""],"Vary":["Accept-Encoding"],"Content-Encoding":["gzip"]}}`+"\n",
		r.at.Unix(), r.at.Nanosecond()/1000, r.agent.address, r.host, r.target, r.agent.ua, r.bytes)
}

// writeCombined writes a line in the Combined format of Apache and nginx.
func writeCombined(w *bufio.Writer, r *request) {
	fmt.Fprintf(w, "%s - - [%s] \"GET %s HTTP/1.1\" 200 %d \"-\" \"%s\"\n", r.agent.address, r.at.Format("02/Jan/2006:15:04:05 -0700"), r.target, r.bytes, r.agent.ua)
}

// write writes a log of n requests, which it generates from a seed. The returned truth counts these requests. If
// combined is true, the log has the Combined format, and otherwise the format of Caddy.
func write(out io.Writer, seed uint64, n int, combined bool) (*truth, error) {
	w := bufio.NewWriterSize(out, 1<<20)
	t := newTruth(combined)
	traffic(seed, n, func(r *request) {
		if combined {
			writeCombined(w, r)
		} else {
			writeCaddy(w, r)
		}
		t.add(r)
	})
	return t, w.Flush()
}
