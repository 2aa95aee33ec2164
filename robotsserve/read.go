// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve/acap"
)

// maxRead is how much of another's file is read (RFC 9309 section 2.5).
const maxRead = MaxFile

// maxForeignLines bounds the lines of all groups, of which each that stands below
// many User-agent lines is one for each: a file could come to a thousand times its
// size.
const maxForeignLines = 1 << 20

// foreign is a robots.txt as somebody else wrote it.
type foreign struct {
	groups   []*foreignGroup
	byToken  map[string]*foreignGroup // in lower case; a token has one group
	sitemaps []foreignLine
	licenses []foreignLine
	acap     bool
	lines    int  // of all groups
	over     bool // there are too many of them, and the rest is not read
	page     bool // it is one in HTML
	told     []Told
}

// foreignGroup is what is said to the crawlers of one or more tokens.
type foreignGroup struct {
	line   int // of the first User-agent line
	tokens []string
	rules  []foreignRule
	lines  []foreignLine // of extensions
	delay  string
	delayN int
}

type foreignRule struct {
	line    int
	allow   bool
	pattern pathpattern.Pattern
	size    int  // the octets of the pattern as it is written, but with percent-encoding in its normal form
	guessed bool // it is written in a way that RFC 9309 does not know
}

type foreignLine struct {
	line       int
	key, value string
}

// Told is what reading a robots.txt had to leave out or to guess.
type Told struct {
	Line    int // of the robots.txt, from 1
	Message string
}

// keys are the keys of lines, with the mistakes that Google's parser takes too.
var keys = map[string]string{
	"user-agent": "user-agent", "useragent": "user-agent", "user agent": "user-agent",
	"allow": "allow", "disallow": "disallow", "dissallow": "disallow", "dissalow": "disallow", "disalow": "disallow", "diasllow": "disallow", "disallaw": "disallow",
	"sitemap": "sitemap", "site-map": "sitemap", "crawl-delay": "crawl-delay", "crawldelay": "crawl-delay",
	"content-signal": "content-signal", "content-usage": "content-usage", "app-directives": "app-directives", "app-directive": "app-directives",
	"license": "license",
}

// maxToken is the longest name of a crawler that is taken for one.
const maxToken = 200

// readForeign reads what it can of any file: in UTF-8 or, with a byte order mark,
// UTF-16, with lines that end in CR, LF or both, with mistakes.
func readForeign(data []byte) *foreign {
	f := &foreign{byToken: map[string]*foreignGroup{}}
	if text := acap.Decode(data); string(text) != string(data) && !bytes.HasPrefix(data, []byte("\ufeff")) {
		f.tell(1, "the file is in UTF-16; it is read as if it were in UTF-8, which crawlers expect: as it is they can read nothing of it")
	}
	data = acap.Decode(data)
	if len(data) > maxRead {
		f.tell(1+bytes.Count(data[:maxRead], []byte("\n")), "the file is over 500 KiB; what follows is not read, as crawlers do not either")
		data = data[:maxRead]
	}
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	if f.page = strings.HasPrefix(strings.TrimLeft(text, " \t\n"), "<"); f.page {
		f.tell(1, "this is a page in HTML and no robots.txt: save what is at /robots.txt, or make a policy of your own")
	}
	var current []*foreignGroup
	opening, between := false, false
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		n++
		key, value, ok := f.split(n, line)
		if !ok {
			continue
		}
		switch {
		case strings.HasPrefix(key, "acap-"):
			f.acap = true
		case key == "sitemap":
			f.sitemaps = append(f.sitemaps, foreignLine{n, key, value})
		case key == "license" && len(current) == 0:
			f.licenses = append(f.licenses, foreignLine{n, key, value})
		case key == "user-agent":
			if !opening {
				current, opening = nil, true
			} else if between && len(current) > 0 {
				f.tell(n, "no Allow or Disallow stands between this line and those for %s, so that by RFC 9309 what follows is for them too; write \"Allow: /\" before this line if it is not", current[len(current)-1].tokens[0])
			}
			between = false
			if g := f.group(n, value); g != nil {
				current = append(current, g)
			}
		case len(current) == 0:
			if !f.page {
				f.tell(n, "%q stands before any User-agent line, and says nothing to anybody", line)
			}
		default:
			// A line that RFC 9309 does not know ends no run of User-agent lines
			// (section 2.2.4).
			between = opening && key != "allow" && key != "disallow"
			opening = between
			if f.lines += len(current); f.lines > maxForeignLines {
				if !f.over {
					f.over = true
					f.tell(n, "so many lines are for so many crawlers that this and what follows is not read")
				}
				continue
			}
			for _, g := range current {
				f.rule(g, n, key, value)
			}
		}
	}
	return f
}

func (f *foreign) tell(line int, format string, args ...any) {
	f.told = append(f.told, Told{line, fmt.Sprintf(format, args...)})
}

// split cuts a line into key and value.
func (f *foreign) split(n int, line string) (key, value string, ok bool) {
	line, _, _ = strings.Cut(line, "#")
	line = strings.TrimSpace(line)
	if line == "" {
		return "", "", false
	}
	key, value, ok = strings.Cut(line, ":")
	if !ok {
		// Google's parser takes white space for a colon.
		if words := strings.Fields(line); len(words) == 2 {
			key, value, ok = words[0], words[1], true
		}
	}
	written := strings.TrimSpace(key)
	key = strings.ToLower(written)
	if strings.HasPrefix(key, "acap-") {
		return key, value, true
	}
	known := keys[key]
	if !ok || known == "" {
		if !f.page {
			f.tell(n, "%q is no line that this reader knows", line)
		}
		return "", "", false
	}
	if value = strings.TrimSpace(value); known != key || !strings.Contains(line, ":") {
		f.tell(n, "%q is read as %q, as some crawlers do", line, known+": "+value)
	}
	return known, value, true
}

// group returns the group of a token. A version after it says nothing.
func (f *foreign) group(n int, token string) *foreignGroup {
	token, _, _ = strings.Cut(token, "/")
	token = strings.Join(strings.Fields(token), " ")
	if token == "" || !printable(token) || len(token) > maxToken {
		f.tell(n, "%q names no crawler", token)
		return nil
	}
	g := f.byToken[strings.ToLower(token)]
	if g == nil {
		g = &foreignGroup{line: n, tokens: []string{token}}
		f.byToken[strings.ToLower(token)] = g
		f.groups = append(f.groups, g)
	}
	return g
}

func (f *foreign) rule(g *foreignGroup, n int, key, value string) {
	switch key {
	case "allow", "disallow":
		if value == "" {
			return // says nothing
		}
		p, ok := foreignPattern(value)
		if !ok {
			f.tell(n, "%q is no path", value)
			return
		}
		r := foreignRule{line: n, allow: key == "allow", pattern: p, size: writtenSize(value, p)}
		if value[0] != '/' && value[0] != '*' {
			r.guessed = true
			f.tell(n, "%q is no path, which starts with /; it is read as %q", value, foreignPath(value))
		}
		g.rules = append(g.rules, r)
	case "crawl-delay":
		g.delay, g.delayN = value, n
	default:
		g.lines = append(g.lines, foreignLine{n, key, value})
	}
}

// foreignPath reads a path that may not be written as RFC 9309 has it: a URL is its
// path, and a path without "/" at the start gets one.
func foreignPath(value string) string {
	if i := strings.Index(value, "://"); i > 0 && !strings.ContainsAny(value[:i], "/*") {
		rest := value[i+3:]
		value = "/"
		if j := strings.IndexByte(rest, '/'); j >= 0 {
			value = rest[j:]
		}
	}
	if value[0] != '/' && value[0] != '*' {
		value = "/" + value
	}
	return value
}

// foreignPattern is the pattern of a path of a file, in normal form.
func foreignPattern(value string) (pathpattern.Pattern, bool) {
	value = foreignPath(value)
	var b strings.Builder
	for i := range len(value) {
		if c := value[i]; c <= ' ' || c == 0x7f {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	p, err := pathpattern.Parse(b.String())
	return p, err == nil
}

// writtenSize is the length of a pattern as it is written: its normal form has
// one "*" for several, and a "/" before a "*" at the start.
func writtenSize(value string, p pathpattern.Pattern) int {
	n := p.Len()
	for i := 1; i < len(value); i++ {
		if value[i] == '*' && value[i-1] == '*' {
			n++
		}
	}
	if value[0] == '*' && p.String()[0] == '/' {
		n--
	}
	return n
}
