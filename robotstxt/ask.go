// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Agent holds the lines of a file for one crawler. It is safe for concurrent use.
type Agent struct {
	rules *pathpattern.Index[*Rule] // rules by the patterns that URLs are compared with
	all   []Rule
	lines []*line
	delay time.Duration
}

// Agent returns the lines that apply to a crawler: the group that Obeyed returns. If there is none, the crawler may
// fetch everything.
func (f *File) Agent(c policy.Crawler) *Agent {
	g := f.Obeyed(c)
	if g == nil {
		g = &Group{}
	}
	entries := make([]pathpattern.Entry[*Rule], len(g.rules))
	for i := range g.rules {
		r := &g.rules[i]
		entries[i] = pathpattern.Entry[*Rule]{Pattern: pathpattern.Raw(comparable(r.text(), true)), Value: r}
	}
	return &Agent{pathpattern.NewIndex(entries, winner), g.rules, f.linesWithTop(g.lines, derived{}), time.Duration(g.CrawlDelay() * float64(time.Second))}
}

// Answer holds whether a crawler may fetch a URL, and the deciding line.
type Answer struct {
	Allowed bool
	Line    int    // the line number of the deciding Allow or Disallow, or 0 if no line matches
	Path    string // the path of that line, as written, but with non-ASCII bytes encoded
}

// Ask returns the answer for a URL. The argument is a URL, or a path with its query, as the crawler would send it.
// Among the matching rules, the one with the longest text in the file decides. If an Allow and a Disallow have the same
// length, the Allow decides (RFC 9309 section 2.2.2). Only unreserved octets are decoded for the comparison: %2B and +
// are different paths, as in Google's parser and in the RFC. /robots.txt may always be fetched.
func (a *Agent) Ask(url string) Answer {
	path := comparable(pathOf(url), false)
	if path == "/robots.txt" {
		return Answer{Allowed: true}
	}
	var best *Rule
	a.rules.Matches(path, func(r *Rule) { best = winner(best, r) })
	if best == nil {
		return Answer{Allowed: true}
	}
	return Answer{best.Allow, best.number, best.text()}
}

// AskAsSent is like Ask, but compares URLs and patterns in the same way as Google's parser. The parser does not change
// the URL, but it changes the escapes in patterns to upper case. So the pattern "/%3a" becomes "/%3A", and does not
// match the URL "/%3a".
func (a *Agent) AskAsSent(url string) Answer {
	path := pathOf(url)
	var best *Rule
	for i := range a.all {
		if r := &a.all[i]; pathpattern.Raw(upperEscapes(r.text())).Match(path) {
			best = winner(best, r)
		}
	}
	if best == nil || path == "/robots.txt" {
		return Answer{Allowed: true}
	}
	return Answer{best.Allow, best.number, best.text()}
}

// escape matches an encoded octet.
var escape = regexp.MustCompile("%[0-9A-Fa-f]{2}")

func upperEscapes(pattern string) string {
	return escape.ReplaceAllStringFunc(pathpattern.EncodeBeyondASCII(pattern), strings.ToUpper)
}

// Allowed reports whether the crawler may fetch a URL; see Ask.
func (a *Agent) Allowed(url string) bool { return a.Ask(url).Allowed }

// CrawlDelay returns the time that the crawler should wait between requests, or 0 if the file has no plausible value
// for it.
func (a *Agent) CrawlDelay() time.Duration { return a.delay }

// extension finds the lines with the given key whose path matches a URL. If several lines match, it returns the value
// of the line with the longest path. If several of them have equally long paths, it joins their values with commas. If
// no line matches, it returns "".
func (a *Agent) extension(key, url string) string {
	path := comparable(pathOf(url), false)
	var values []string
	longest := 0
	for _, l := range a.lines {
		if l.key != key {
			continue
		}
		pattern, value := l.path()
		pattern = cmp.Or(pattern, "/")
		switch n := writtenSize(pattern); {
		case n < longest || !pathpattern.Raw(comparable(pattern, true)).Match(path):
		case n > longest:
			longest, values = n, append(values[:0], strings.TrimSpace(value))
		default:
			values = append(values, strings.TrimSpace(value))
		}
	}
	return strings.Join(values, ", ")
}

// winner returns the rule that decides about a path that a and b match. The rule with the larger Size decides. If the
// sizes are equal, an Allow decides, and between two Allow or two Disallow rules, the first one in the file. a may be
// nil.
func winner(a, b *Rule) *Rule {
	if a == nil || b.Size > a.Size || b.Size == a.Size && (b.Allow && !a.Allow || b.Allow == a.Allow && b.number < a.number) {
		return b
	}
	return a
}

func pathOf(url string) string {
	url, _, _ = strings.Cut(url, "#")
	if scheme, rest, ok := strings.Cut(url, "://"); ok && !strings.ContainsAny(scheme, "/?") {
		url = strings.TrimLeftFunc(rest, func(c rune) bool { return c != '/' && c != '?' })
	}
	if !strings.HasPrefix(url, "/") {
		return "/" + url
	}
	return url
}

// comparable returns a path or pattern in the form for comparisons (RFC 9309 section 2.2.3). It decodes escaped
// unreserved octets, and encodes octets that are not ASCII. It also encodes a "*" in a path, and each "$" that is not
// the last character of a pattern, because these are not wildcards.
func comparable(text string, pattern bool) string {
	const hex = "0123456789ABCDEF"
	var b []byte
	for i := 0; i < len(text); i++ {
		c := text[i]
		encode := c >= 0x7f || !pattern && (c <= ' ' || c == '*') || c == '$' && (!pattern || i < len(text)-1)
		if c == '%' && i+2 < len(text) {
			if d, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
				if b == nil {
					b = append(make([]byte, 0, len(text)), text[:i]...)
				}
				c, i = byte(d), i+2
				encode = !isUnreserved(c)
			}
		}
		switch {
		case encode:
			if b == nil {
				b = append(make([]byte, 0, len(text)+8), text[:i]...)
			}
			b = append(b, '%', hex[c>>4], hex[c&15])
		case b != nil:
			b = append(b, c)
		}
	}
	if b == nil {
		return text
	}
	return string(b)
}

// isUnreserved implements RFC 3986 section 2.3.
func isUnreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}
