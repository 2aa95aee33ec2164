// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// printed returns the lines of a line: two where a Disallow has a second spelling.
func printed(l *line) []Line {
	key := "Disallow"
	if l.of.allow {
		key = "Allow"
	}
	first := Line{Text: key + ": " + l.pattern.String(), key: strings.ToLower(key), pattern: l.pattern}
	if by := l.of.applied; by != nil {
		first.Rule, first.Statement, first.Pos = by.Rule, by.Statement, by.Statement.Pos
	}
	if l.second == "" {
		return []Line{first}
	}
	second := first
	second.Text = key + ": " + l.second
	if p, err := pathpattern.Parse(l.second); err == nil {
		second.pattern = p // a plain "*" is any text
	}
	return []Line{first, second}
}

// spellings are bytes of a path that some readers do not bring into the normal form of
// RFC 9309 section 2.2.2, in normal form and as such readers meet them in a URL. Google's
// parser and temoto/robotstxt compare URLs as they come; robots-parser (npm) encodes
// brackets in URLs and not in the file.
var spellings = [...][2]string{
	{"%24", "$"},
	{"%2A", "*"},
	{"~", "%7E"},
	{"[", "%5B"},
	{"]", "%5D"},
	{"%22", `"`},
	{"%3C", "<"},
	{"%3E", ">"},
	{"%5C", `\`},
	{"%5E", "^"},
	{"%60", "`"},
	{"%7B", "{"},
	{"%7C", "|"},
	{"%7D", "}"},
}

// respell returns the second spelling of a pattern's path, "" if it needs none. What
// follows a "?" stays: crawlers hardly ever encode a query in two ways. It is not ok where
// the second spelling would close the whole site to some.
func respell(p pathpattern.Pattern) (text string, ok bool) {
	path, query, end := p.String(), "", ""
	if i := strings.IndexByte(path, '?'); i >= 0 {
		path, query = path[:i], path[i:]
	}
	if query == "" && p.Anchored() {
		path, end = path[:len(path)-1], "$"
	}
	old := path
	for _, s := range spellings {
		path = strings.ReplaceAll(path, s[0], s[1])
	}
	switch {
	case path == old:
		return "", true
	case query == "" && strings.HasSuffix(path, "$"):
		end = "*" // or the "$" would be the special one (section 2.2.3)
	case strings.HasSuffix(path, "*"):
		end = "" // a "$" would undo the "*"
	}
	text = strings.ReplaceAll(path+query+end, "**", "*")
	if q, err := pathpattern.Parse(text); err != nil || q.IsAll() {
		return "", false
	}
	return text, true
}

// loseWildcards notes where a second spelling disallows more than the policy does: a
// plain "*" is any text, some readers take a "$" for the end wherever it stands, and behind
// another one the "$" that ends a pattern has become a "*".
func (f *flattening) loseWildcards() {
	for i := range f.lines {
		l := &f.lines[i]
		if l.gone || l.second == "" {
			continue
		}
		path, _, _ := strings.Cut(l.pattern.String(), "?")
		if strings.Contains(path, "%2A") {
			f.loseSpelling(l, l.second)
		}
		if open, anchored := strings.CutSuffix(l.pattern.String(), "%24$"); anchored {
			f.loseSpelling(l, open+"%24")
		}
		if to := strings.IndexByte(l.second, '$'); strings.Contains(path, "%24") {
			f.loseSpelling(l, l.second[:to+1])
		}
	}
}

func (f *flattening) loseSpelling(l *line, paths string) {
	if p, err := pathpattern.Parse(paths); err == nil {
		f.lose(l, p)
		f.losses[len(f.losses)-1].spelling = true
	}
}

// oneSpelling hints at a Disallow that some crawlers do not obey, for want of a second
// spelling.
func (g *grouping) oneSpelling(lines []line) {
	for i := range lines {
		l := &lines[i]
		if _, ok := respell(l.pattern); l.of.allow || l.of.applied == nil || ok {
			continue
		}
		h := policy.Problem{
			Severity: policy.Hint, Code: "literal-wildcard", Pos: l.of.pos(),
			Message: fmt.Sprintf("crawlers that do not decode paths may fetch what %q disallows: a second spelling of it in robots.txt would close the whole site to others; disallow a longer path", l.pattern),
		}
		if !slices.Contains(g.problems, h) {
			g.problems = append(g.problems, h)
		}
	}
}

// spellingHint says why a Disallow stands in a second spelling that disallows more.
func spellingHint(l *Loss) policy.Problem {
	return policy.Problem{
		Severity: policy.Hint, Code: "literal-wildcard", Pos: l.Pos,
		Message: fmt.Sprintf("robots.txt has a second spelling of %q for crawlers that do not decode paths, and to some that means %q: it is stricter than the policy there", l.Pattern, l.Paths),
	}
}

// indexPage returns the directory whose index page an Allow is for, "" for another one.
// Google's parser takes "Allow: /x/index.html" for "Allow: /x/$" too.
func (l *line) indexPage() string {
	text := l.pattern.String()
	i := strings.LastIndexByte(text, '/')
	if !l.of.allow || !strings.HasPrefix(text[i:], "/index.htm") {
		return ""
	}
	return text[:i+1]
}

// guardIndexPages keeps directories closed whose index page is allowed: by a Disallow
// that is longer than what Google's parser makes of the Allow,
//
//	disallow /x/, allow /x/a/index.html     →     Disallow: /x/*a/$
//
// or, where there is none, by leaving the Allow out.
func (f *flattening) guardIndexPages() bool {
	from := len(f.lines)
	for i := range from {
		dir := f.lines[i].indexPage()
		if f.lines[i].gone || dir == "" {
			continue
		}
		d := f.decides(dir)
		if d == nil || d.low() > len(dir)+1 {
			continue
		}
		rest, within := strings.CutPrefix(dir, d.pattern.String())
		if !within || rest == "" || strings.Contains(dir, "*") {
			f.lines[i].gone = true
			f.lose(&f.lines[i], f.lines[i].pattern)
			continue
		}
		f.add(pathpattern.MustParse(d.pattern.String()+"*"+rest+"$"), d.of)
		f.lines[len(f.lines)-1].guard = true
	}
	return f.settle(from)
}

// decides returns the Disallow that decides about a path, nil for none.
func (f *flattening) decides(path string) (found *line) {
	longest := 0
	for i := range f.lines {
		l := &f.lines[i]
		if l.gone || !l.pattern.Match(path) {
			continue
		}
		if n := l.len(); n > longest || n == longest && l.of.allow {
			longest, found = n, l
		}
	}
	if found != nil && found.of.allow {
		return nil
	}
	return found
}
