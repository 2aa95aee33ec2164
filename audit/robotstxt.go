// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"net/url"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// robotsTxt is a robots.txt as crawlers read it (RFC 9309 section 2.2). Rules below many User-agent
// lines take memory once.
type robotsTxt struct {
	groups   map[string]*group // by product token in lower case; groups of one token are united
	blocks   []*block
	sitemaps []string
	usages   []usageLine
	problems []lineProblem // lines that say nothing to any crawler
	unusual  []lineProblem // records that Lighthouse reports, and crawlers skip
	work     int           // left for deciding; below 0 it was too much
}

// group is what one product token obeys.
type group struct{ blocks []*block }

// block are the lines below some User-agent lines.
type block struct {
	everyone bool // "*" is among them
	delay    string
	rules    []rule
	literal  map[string]*rule // the rules without wildcards, by pattern; of equal ones that which decides
	longest  int              // of those patterns
	wild     []*rule          // the others
}

type rule struct {
	allow   bool
	pattern pathpattern.Pattern
	line    string
	number  int
}

// usageLine is a Content-Usage or Content-Signal line.
type usageLine struct {
	everyone bool // it is in no group, or in that of "*"
	key      string
	value    string
	number   int
}

type lineProblem struct {
	number int
	line   string
	why    string
}

// lighthouseKeys are the fields that Lighthouse's audit of robots.txt knows; it reports all others.
var lighthouseKeys = map[string]bool{
	"user-agent": true, "disallow": true, "allow": true, "sitemap": true, "crawl-delay": true,
	"clean-param": true, "host": true, "request-rate": true, "visit-time": true, "noindex": true,
}

// maxRobots is how much of robots.txt crawlers have to read (RFC 9309 section 2.5).
const maxRobots = 500 << 10

func readRobots(data []byte) *robotsTxt {
	f := &robotsTxt{groups: map[string]*group{}, work: maxWork}
	text := strings.TrimPrefix(string(data[:min(len(data), maxRobots)]), "\ufeff")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	var current *block
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
				current = &block{literal: map[string]*rule{}}
				f.blocks = append(f.blocks, current)
			}
			opening = true
			f.open(value, current)
		case "allow", "disallow":
			opening = false
			if current == nil {
				problem("stands before any User-agent line")
			} else if why := current.addRule(key == "allow", value, content, i+1); why != "" {
				problem(why)
			}
		case "sitemap":
			if u, err := url.Parse(value); err != nil || u.Host == "" {
				problem("must have the full URL of a sitemap")
			} else {
				f.sitemaps = append(f.sitemaps, value)
			}
		case "crawl-delay":
			if current != nil {
				current.delay = value
			}
		case "content-usage", "content-signal":
			f.usages = append(f.usages, usageLine{current == nil || current.everyone, key, value, i + 1})
		}
	}
	for _, b := range f.blocks {
		b.index()
	}
	return f
}

// open adds a block to the group of a User-agent line.
func (f *robotsTxt) open(token string, b *block) {
	key := strings.ToLower(token)
	g := f.groups[key]
	if g == nil {
		g = new(group)
		f.groups[key] = g
	}
	if len(g.blocks) == 0 || g.blocks[len(g.blocks)-1] != b {
		g.blocks = append(g.blocks, b)
	}
	b.everyone = b.everyone || key == "*"
}

// delay is the last Crawl-delay of a group, "" if it has none.
func (g *group) delay() string {
	for _, b := range slices.Backward(g.blocks) {
		if b.delay != "" {
			return b.delay
		}
	}
	return ""
}

func (b *block) addRule(allow bool, value, line string, number int) (why string) {
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
	b.rules = append(b.rules, rule{allow, p, line, number})
	return why
}

func (b *block) index() {
	for i := range b.rules {
		r := &b.rules[i]
		text := r.pattern.String()
		if strings.Contains(text, "*") || strings.HasSuffix(text, "$") {
			b.wild = append(b.wild, r)
			continue
		}
		b.longest = max(b.longest, len(text))
		if have := b.literal[text]; have == nil || r.allow && !have.allow {
			b.literal[text] = r
		}
	}
}

// verdict is what robots.txt says to a crawler about a path.
type verdict struct {
	allowed bool
	rule    *rule // nil: none matches
}

// groupOf returns the group that a crawler obeys: the first of its names that has one, else that of
// "*", unless it ignores that.
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

// decide applies the longest pattern, of equal ones an Allow (RFC 9309 section 2.2.2).
func (f *robotsTxt) decide(names []string, ignoresStar bool, path string) verdict {
	v := verdict{allowed: true}
	g := f.groupOf(names, ignoresStar)
	if g == nil || path == "/robots.txt" {
		return v
	}
	path = pathpattern.NormalizePath(path)
	for _, b := range g.blocks {
		n := min(len(path), b.longest)
		if f.work -= 10 + n*(10+n/8) + len(b.wild)*(4+len(path)/4); f.work < 0 {
			return verdict{} // run says that it cannot be judged
		}
		for i := 1; i <= n; i++ {
			v.consider(b.literal[path[:i]])
		}
		for _, r := range b.wild {
			if r.pattern.Match(path) {
				v.consider(r)
			}
		}
	}
	return v
}

// consider makes a matching rule the deciding one if it is longer, or an Allow of the same length.
func (v *verdict) consider(r *rule) {
	if r == nil {
		return
	}
	if n := r.pattern.Len(); v.rule == nil || n > v.rule.pattern.Len() || n == v.rule.pattern.Len() && r.allow && !v.allowed {
		*v = verdict{r.allow, r}
	}
}

// maxWork bounds what deciding by one robots.txt costs: about half a second.
const maxWork = 250_000_000
