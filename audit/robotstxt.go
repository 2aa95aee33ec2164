// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"net/url"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// robotsTxt is a robots.txt as crawlers read it (RFC 9309 section 2.2).
type robotsTxt struct {
	groups   map[string]*group // by product token in lower case; groups of one token are united
	sitemaps []string
	usages   []usageLine
	problems []lineProblem // lines that say nothing to any crawler
	unusual  []lineProblem // records that Lighthouse reports, and crawlers skip
}

type group struct {
	token string
	rules []rule
	delay string
}

type rule struct {
	allow   bool
	pattern pathpattern.Pattern
	line    string
	number  int
}

// usageLine is a Content-Usage or Content-Signal line.
type usageLine struct {
	tokens []string // of its group, in lower case; nil: none
	key    string
	value  string
	number int
}

type lineProblem struct {
	number int
	line   string
	why    string
}

// lighthouseKeys are the fields that Lighthouse's audit of robots.txt knows. It reports
// every other one as an unknown directive.
var lighthouseKeys = map[string]bool{
	"user-agent": true, "disallow": true, "allow": true, "sitemap": true, "crawl-delay": true,
	"clean-param": true, "host": true, "request-rate": true, "visit-time": true, "noindex": true,
}

// maxRobots is how much of robots.txt crawlers have to read (RFC 9309 section 2.5).
const maxRobots = 500 << 10

// readRobots reads a robots.txt.
func readRobots(data []byte) *robotsTxt {
	f := &robotsTxt{groups: map[string]*group{}}
	text := strings.TrimPrefix(string(data[:min(len(data), maxRobots)]), "\ufeff")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	var current []*group
	opening := false // the last record was a User-agent line
	for i, line := range strings.Split(text, "\n") {
		content, _, _ := strings.Cut(line, "#")
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
			f.unusual = append(f.unusual, lineProblem{i + 1, content, "they do not know"})
		}
		switch key {
		case "user-agent":
			if value == "" {
				problem("names no crawler")
				continue
			}
			if !opening {
				current = nil
			}
			opening = true
			current = append(current, f.group(value))
		case "allow", "disallow":
			opening = false
			if len(current) == 0 {
				problem("stands before any User-agent line")
			} else if why := addRule(current, key == "allow", value, content, i+1); why != "" {
				problem(why)
			}
		case "sitemap":
			if u, err := url.Parse(value); err != nil || u.Host == "" {
				problem("must have the full URL of a sitemap")
			} else {
				f.sitemaps = append(f.sitemaps, value)
			}
		case "crawl-delay":
			for _, g := range current {
				g.delay = value
			}
		case "content-usage", "content-signal":
			f.usages = append(f.usages, usageLine{tokensOf(current), key, value, i + 1})
		}
	}
	return f
}

func tokensOf(groups []*group) (tokens []string) {
	for _, g := range groups {
		tokens = append(tokens, strings.ToLower(g.token))
	}
	return tokens
}

// group returns the group of a User-agent line, a new one if its token has none.
func (f *robotsTxt) group(token string) *group {
	key := strings.ToLower(token)
	if f.groups[key] == nil {
		f.groups[key] = &group{token: token}
	}
	return f.groups[key]
}

// addRule adds a rule to groups and returns what is wrong with it.
func addRule(groups []*group, allow bool, value, line string, number int) (why string) {
	if value == "" {
		return "" // an empty Disallow prohibits nothing
	}
	if i := strings.IndexByte(value, '$'); i >= 0 && i < len(value)-1 {
		why = `has "$" before the end of the path, where it stands for itself`
	}
	switch value[0] {
	case '/', '*', '$':
	default:
		why = `has a path that does not start with "/" or "*"`
		value = "/" + value
	}
	p, err := pathpattern.Parse(value)
	if err != nil {
		return "has a path that cannot be read"
	}
	for _, g := range groups {
		g.rules = append(g.rules, rule{allow, p, line, number})
	}
	return why
}

// verdict is what robots.txt says to a crawler about a path.
type verdict struct {
	allowed bool
	rule    *rule // nil: none matches
}

// groupOf returns the group that a crawler obeys: that of the first of its names that
// has one, or else that of "*", unless it ignores that.
func (f *robotsTxt) groupOf(names []string, ignoresStar bool) *group {
	for _, n := range names {
		if g := f.groups[strings.ToLower(n)]; g != nil {
			return g
		}
	}
	if ignoresStar {
		return nil
	}
	return f.groups["*"]
}

// decide returns what a crawler may do with a path: the longest pattern decides, and of
// equal ones an Allow (RFC 9309 section 2.2.2).
func (f *robotsTxt) decide(names []string, ignoresStar bool, path string) verdict {
	v := verdict{allowed: true}
	g := f.groupOf(names, ignoresStar)
	if g == nil || path == "/robots.txt" {
		return v
	}
	path = pathpattern.NormalizePath(path)
	for i := range g.rules {
		r := &g.rules[i]
		if !r.pattern.Match(path) {
			continue
		}
		if n := r.pattern.Len(); v.rule == nil || n > v.rule.pattern.Len() || n == v.rule.pattern.Len() && r.allow {
			v = verdict{r.allow, r}
		}
	}
	return v
}
