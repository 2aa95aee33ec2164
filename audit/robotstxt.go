// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/rfc9309"
)

// robotsTxt is a parsed robots.txt, with the properties that an audit reports.
type robotsTxt struct {
	*rfc9309.File
	sitemaps []string
	usages   []usageLine
	problems []lineProblem // lines that no crawler understands
	unusual  []lineProblem // lines that crawlers skip, but Lighthouse reports
	delays   [2]float64    // Crawl-delay in seconds for "*" and for the audit; the second is negative if the audit has no group
	work     int           // remaining work for decisions; negative if the limit was exceeded
}

// usageLine is a Content-Usage or Content-Signal line.
type usageLine struct {
	everyone bool // the line is in the group of "*", or in no group
	key      string
	value    string
	number   int
}

type lineProblem struct {
	number int
	line   string
	why    string
}

// lighthouseKeys are the keys of robots.txt lines that Lighthouse, Chrome's tool for testing pages, accepts. Lighthouse
// reports all other keys.
var lighthouseKeys = map[string]bool{
	"user-agent": true, "disallow": true, "allow": true, "sitemap": true, "crawl-delay": true,
	"clean-param": true, "host": true, "request-rate": true, "visit-time": true, "noindex": true,
}

// readRobots parses a robots.txt. A User-agent line may have a name that is not a valid token. For such a name, known
// reports whether it is the name of a crawler. known may be nil.
func readRobots(data []byte, known func(name string) bool) *robotsTxt {
	f := &robotsTxt{File: rfc9309.Parse(data, known), work: maxWork, delays: [2]float64{0, -1}}
	// opening is true between a User-agent line and the next Allow or Disallow line. named is true after the first
	// User-agent line. open[0] reports whether the current group is for "*", and open[1] whether it is for the audit.
	opening, named, open := false, false, [2]bool{}
	for i := range f.Lines() {
		content, _, _ := strings.Cut(f.Line(i+1), "#")
		content = strings.TrimSpace(content)
		if content == "" {
			continue
		}
		problem := func(why string) { f.problems = append(f.problems, lineProblem{i + 1, content, why}) }
		key, value, ok := strings.Cut(content, ":")
		if !ok {
			problem("has no colon")
			continue
		}
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		if !lighthouseKeys[key] {
			f.unusual = append(f.unusual, lineProblem{i + 1, content, "has a key that they do not know"})
		}
		switch key {
		case "user-agent":
			if value == "" {
				problem("does not name a crawler")
				continue
			}
			if !opening {
				open = [2]bool{}
			}
			opening, named = true, true
			if open[0] = open[0] || value == "*"; strings.EqualFold(value, OwnToken) {
				open[1], f.delays[1] = true, max(f.delays[1], 0)
			}
		case "allow", "disallow":
			if opening = false; !named {
				problem("comes before any User-agent line")
			} else if why := wrongPath(value); why != "" {
				problem(why)
			}
		case "sitemap":
			if u, err := url.Parse(value); err != nil || u.Host == "" {
				problem("must have the full URL of a sitemap")
			} else {
				f.sitemaps = append(f.sitemaps, value)
			}
		case "crawl-delay":
			for k := range open {
				if n, err := strconv.ParseFloat(value, 64); open[k] && err == nil {
					f.delays[k] = n
				}
			}
		case "content-usage", "content-signal":
			f.usages = append(f.usages, usageLine{!named || open[0], key, value, i + 1})
		}
	}
	return f
}

// wrongPath returns the error in the path of an Allow or Disallow line, or "". An empty path is valid in a Disallow
// line, and means that the line has no effect.
func wrongPath(value string) string {
	if i := strings.IndexByte(value, '$'); i >= 0 && i < len(value)-1 {
		return `has "$" in the middle of its path (only at the end of a path does "$" have a special meaning)`
	}
	if value != "" && strings.IndexByte("/*$", value[0]) < 0 {
		return `has a path that does not start with "/" or "*"`
	}
	return ""
}

// delay returns the Crawl-delay for the audit, in seconds.
func (f *robotsTxt) delay() float64 {
	if f.delays[1] >= 0 {
		return f.delays[1]
	}
	return f.delays[0]
}

// maxWork limits the work for the decisions of one file, in arbitrary units. Comparing a path with one line costs
// ruleCost, plus a cost that depends on the length of the path.
const (
	maxWork  = 250_000_000
	ruleCost = 200
)

// decide returns the decision for a crawler and a path. After maxWork is used up, the decisions are not valid, and
// auditor.run returns an error.
func (f *robotsTxt) decide(r reader, path string) rfc9309.Answer {
	who := rfc9309.Crawler{Names: r.names, IgnoresStar: r.ignoresStar}
	if f.work -= f.Size(who) * (ruleCost + len(path)/4); f.work < 0 {
		return rfc9309.Answer{}
	}
	return f.Ask(who, path)
}

// describe returns a text with a line and its number.
func (f *robotsTxt) describe(number int) string {
	content, _, _ := strings.Cut(f.Line(number), "#")
	return strconv.Itoa(number) + ": " + shorten(strings.TrimSpace(content))
}
