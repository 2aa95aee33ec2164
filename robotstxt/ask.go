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
	rules *pathpattern.Index[*Rule] // by their patterns, as paths are compared with them
	all   []Rule
	lines []line
	delay time.Duration
}

// Agent returns the group that a crawler obeys, as Obeyed does. A crawler without one may fetch everything.
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
	return &Agent{pathpattern.NewIndex(entries, winner), g.rules, g.lines, time.Duration(g.CrawlDelay() * float64(time.Second))}
}

// Answer tells whether a crawler may fetch a URL.
type Answer struct {
	Allowed bool
	Line    int    // the line of the deciding Allow or Disallow, 0 if none matches
	Path    string // of that line, as it is written but for bytes beyond ASCII, which are encoded
}

// Ask answers about a URL, or a path with its query, as the crawler would send it. The rule that is longest as
// written decides, or the Allow (RFC 9309 section 2.2.2). Only unreserved octets are compared decoded: %2B and +
// are two paths, as in Google's parser and in the RFC. /robots.txt may always be fetched.
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

// AskAsSent answers as Google's parser does, which compares a URL as it is sent, and writes the escapes of patterns in
// upper case: a URL with "%3a" matches no line.
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

// escape is an encoded octet.
var escape = regexp.MustCompile("%[0-9A-Fa-f]{2}")

func upperEscapes(pattern string) string {
	return escape.ReplaceAllStringFunc(pathpattern.EncodeBeyondASCII(pattern), strings.ToUpper)
}

// Allowed reports whether the crawler may fetch a URL, see Ask.
func (a *Agent) Allowed(url string) bool { return a.Ask(url).Allowed }

// CrawlDelay is the requested time between requests, or 0 if it has no plausible one.
func (a *Agent) CrawlDelay() time.Duration { return a.delay }

// ContentUsage is the Content-Usage for a URL (draft-ietf-aipref-attach): the lines of the longest path, or "".
func (a *Agent) ContentUsage(url string) string { return a.extension("content-usage", url) }

// AppDirectives is ContentUsage for App-Directives (draft-nottingham-plan-b).
func (a *Agent) AppDirectives(url string) string { return a.extension("app-directives", url) }

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

// winner is the rule that decides where both match, of equal ones the first in the file. a may be nil.
func winner(a, b *Rule) *Rule {
	if a == nil || b.Size > a.Size || b.Size == a.Size && (b.Allow && !a.Allow || b.Allow == a.Allow && b.number < a.number) {
		return b
	}
	return a
}

func pathOf(url string) string {
	if scheme := strings.Index(url, "://"); scheme >= 0 && !strings.ContainsAny(url[:scheme], "/?#") {
		url = url[scheme+len("://"):]
		at := strings.IndexAny(url, "/?#")
		if at < 0 {
			return "/"
		}
		url = url[at:]
	}
	if at := strings.IndexByte(url, '#'); at >= 0 {
		url = url[:at]
	}
	if !strings.HasPrefix(url, "/") {
		return "/" + url
	}
	return url
}

// comparable is a path or pattern with unreserved octets decoded, and with octets beyond ASCII, and special
// characters of patterns where they are literal, encoded (RFC 9309 section 2.2.3).
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
