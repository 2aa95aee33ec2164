// SPDX-License-Identifier: Apache-2.0

// Package workload defines the work of the benchmarks: the scenarios, the response bodies of the site behind the proxy,
// the policies, and the configurations of the compared rows.
package workload

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
)

// Host is the host that all requests name.
const Host = "www.example.com"

// GPTBot is the User-Agent of the crawler that every row with a policy blocks.
const GPTBot = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)"

// Scenario is one kind of request.
type Scenario struct {
	Name string
	What string // description in one line, for readers of the report
	// Path is the target of the requests. If the requests are for many pages, Path contains %d for a number that
	// varies.
	Path string
	// Crawler is the User-Agent of a crawler. If it is empty, the requests have the User-Agents of many browsers.
	Crawler string
	// Encoding is the value of Accept-Encoding. If it is empty, requests do not have this header.
	Encoding string
	// Revalidate adds If-None-Match with the entity tag of the row's earlier answer.
	Revalidate bool
	// Conns is the number of connections that send requests at the same time.
	Conns int
	// Stream is true if the bodies are so large that octets are counted instead of requests.
	Stream bool
	// Target is the desired CPU time per request, divided by the CPU time of the base. The base is the same program
	// with a Caddyfile that does not use robots_policy. For blocked requests, this Caddyfile has "respond 403". If
	// TargetMicros is not 0, it replaces Target: it is the desired difference from the base in microseconds.
	Target, TargetMicros float64
}

// Scenarios lists all scenarios, in the order of reports.
var Scenarios = []Scenario{
	{Name: "json", What: "1 KB of JSON: headers only", Path: "/api/section-%d/item.json", Conns: 16, Target: 1.015},
	{Name: "page", What: "50 KB page with a head of 3 KB: headers and meta tag", Path: "/pages/section-%d/story.html", Conns: 16, Target: 1.025},
	{Name: "page-gzip", What: "the same page, gzip from the upstream", Path: "/packed/section-%d/story.html", Encoding: "gzip", Conns: 16, TargetMicros: 150},
	{Name: "stream", What: "10 MB page, chunked, 64 at once", Path: "/long/section-%d/story.html", Conns: 64, Stream: true, Target: 1.03},
	{Name: "blocked", What: "the 50 KB page, requested by a blocked crawler", Path: "/pages/section-%d/story.html", Crawler: GPTBot, Conns: 16, Target: 1.15},
	{Name: "robots", What: "/robots.txt, identity", Path: "/robots.txt", Conns: 16, Target: 0.38},
	{Name: "robots-gzip", What: "/robots.txt, gzip accepted", Path: "/robots.txt", Encoding: "gzip", Conns: 16, Target: 0.28},
	{Name: "robots-304", What: "/robots.txt, not modified", Path: "/robots.txt", Revalidate: true, Conns: 16, Target: 0.28},
}

// variety is the number of different requests of a scenario. It is prime, so that connections that begin with different
// requests do not send the same requests at the same time.
const variety = 499

// Requests returns the bytes of a scenario's requests, for a connection that stays open. etag is the entity tag that
// Revalidate sends.
func (s *Scenario) Requests(etag string) [][]byte {
	all := make([][]byte, variety)
	for i := range all {
		var b strings.Builder
		r := s.Request(i, etag)
		fmt.Fprintf(&b, "GET %s HTTP/1.1\r\nHost: %s\r\n", r.RequestURI, r.Host)
		r.Header.Write(&b) // a strings.Builder does not fail
		b.WriteString("\r\n")
		all[i] = []byte(b.String())
	}
	return all
}

// Request returns request i of a scenario. It sets only the fields of http.Request that Requests needs.
func (s *Scenario) Request(i int, etag string) *http.Request {
	i %= variety
	path := s.Path
	if strings.Contains(path, "%d") {
		path = fmt.Sprintf(path, i)
	}
	agent := s.Crawler
	if agent == "" {
		agent = browser(i)
	}
	h := http.Header{
		"User-Agent":      {agent},
		"Accept":          {"text/html,application/xhtml+xml,*/*;q=0.8"},
		"Accept-Language": {"en-GB,en;q=0.5"},
	}
	if s.Encoding != "" {
		h["Accept-Encoding"] = []string{s.Encoding}
	}
	if s.Revalidate {
		h["If-None-Match"] = []string{etag}
	}
	return &http.Request{Method: http.MethodGet, RequestURI: path, Host: Host, Header: h}
}

// browser returns the User-Agent of one of many browsers.
func browser(i int) string {
	r := rand.New(rand.NewPCG(1, uint64(i)))
	systems := []string{"Windows NT 10.0; Win64; x64", "Macintosh; Intel Mac OS X 10_15_7", "X11; Linux x86_64", "Linux; Android 10; K"}
	return fmt.Sprintf("Mozilla/5.0 (%s) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.%d.%d Safari/537.36",
		systems[i%len(systems)], 100+r.IntN(40), r.IntN(7000), r.IntN(200))
}

// ByName returns the scenarios with the given names. For an unknown name, it returns an error that lists all names.
func ByName(names []string) ([]Scenario, error) {
	var found []Scenario
	for _, name := range names {
		i := slices.IndexFunc(Scenarios, func(s Scenario) bool { return s.Name == name })
		if i < 0 {
			var all []string
			for _, s := range Scenarios {
				all = append(all, s.Name)
			}
			return nil, fmt.Errorf("there is no scenario %q; there are %s", name, strings.Join(all, ", "))
		}
		found = append(found, Scenarios[i])
	}
	return found, nil
}
