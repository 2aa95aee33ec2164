// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/acap"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// maxRead is how much of another's file is read (RFC 9309 section 2.5).
const maxRead = MaxFile

// maxForeignLines bounds the lines of all groups, of which each that stands below
// many User-agent lines is one for each: a file could come to a thousand times its
// size.
const maxForeignLines = 1 << 20

// foreign is a robots.txt as somebody else wrote it, read as Google's parser reads it
// (RFC 9309 with its tolerances), but for names that have digits, spaces or dots, which
// that one cuts.
type foreign struct {
	groups   []*foreignGroup
	byToken  map[string]*foreignGroup // in lower case; a token has one group
	purposes []*foreignGroup          // of User-Agent-Purpose lines, by the purpose as token
	sitemaps []foreignLine
	licenses []foreignLine
	acap     bool
	lines    int            // of all groups
	over     bool           // there are too many of them, and the rest is not read
	page     bool           // it is one in HTML
	comments map[int]string // of lines, without "#"
	header   string         // the comments of no line
	notes    []Note

	whole   func(name string) bool // a name is one, whatever bytes it has
	pending []string               // comments of lines to come
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
	size    int // the bytes by which Google's parser compares: as written, with bytes beyond ASCII encoded
}

type foreignLine struct {
	line       int
	key, value string
}

// Note is something that reading a robots.txt left out or guessed.
type Note struct {
	Line    int // of the robots.txt, from 1
	Message string
	// Wrong is set for a line that does not do what its author can have meant.
	Wrong bool
}

// keys are the keys of groups' lines that are read whole; those of Google's parser are
// in keyOfLine.
var keys = map[string]string{
	"crawl-delay": "crawl-delay", "crawldelay": "crawl-delay",
	"content-signal": "content-signal", "content-usage": "content-usage", "app-directives": "app-directives", "app-directive": "app-directives",
	"license": "license", "user-agent-purpose": "user-agent-purpose",
}

// prefixes start the keys that Google's parser takes for these, in its order.
var prefixes = []struct{ prefix, key string }{
	{"user-agent", "user-agent"}, {"useragent", "user-agent"}, {"user agent", "user-agent"},
	{"allow", "allow"},
	{"disallow", "disallow"}, {"dissallow", "disallow"}, {"dissalow", "disallow"}, {"disalow", "disallow"}, {"diasllow", "disallow"}, {"disallaw", "disallow"},
	{"sitemap", "sitemap"}, {"site-map", "sitemap"},
}

// keyOfLine is the key that is meant by one in lower case, "" for none that is known.
func keyOfLine(key string) string {
	if strings.HasPrefix(key, "acap-") {
		return key
	}
	if known := keys[key]; known != "" {
		return known
	}
	for _, p := range prefixes {
		if strings.HasPrefix(key, p.prefix) {
			return p.key
		}
	}
	return ""
}

// leftOut says why a line is left out, and what to write instead where that is known.
func leftOut(key, line string) string {
	switch key {
	case "noindex":
		return fmt.Sprintf("%q is left out: search engines no longer read Noindex in robots.txt; to keep pages out of their results, "+
			"disallow index in the policy file, and let crawlers fetch the pages", line)
	case "clean-param":
		return fmt.Sprintf("%q is left out: only Yandex reads Clean-param, and a policy file has no key for it; "+
			"canonical links in the pages tell every search engine", line)
	case "host":
		return fmt.Sprintf("%q is left out: crawlers no longer read Host; redirect the site's other names to this one", line)
	}
	return fmt.Sprintf("%q is left out: no crawler is known to read such lines", line)
}

// maxToken is the longest name of a crawler that is taken for one.
const maxToken = 200

// readForeign reads what it can of any file: in UTF-8 or, with a byte order mark,
// UTF-16, with lines that end in CR, LF or both, with mistakes. A name that whole
// accepts is not cut at its first byte that a product token cannot have.
func readForeign(data []byte, whole func(name string) bool) *foreign {
	f := &foreign{byToken: map[string]*foreignGroup{}, comments: map[int]string{}, whole: whole}
	if text := acap.Decode(data); string(text) != string(data) && !bytes.HasPrefix(data, []byte("\ufeff")) {
		f.note(1, "the file is in UTF-16, which crawlers cannot read; it is read here as if it were in UTF-8")
	}
	data = acap.Decode(data)
	if len(data) > maxRead {
		f.note(1+bytes.Count(data[:maxRead], []byte("\n")), "the file is over 500 KiB; crawlers do not read what follows, and it is left out")
		data = data[:maxRead]
	}
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	if f.page = strings.HasPrefix(strings.TrimLeft(text, " \t\n"), "<"); f.page {
		f.note(1, "this is a web page, not a robots.txt")
	}
	b := foreignBlock{foreign: f}
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		n++
		b.read(n, line)
	}
	f.header = strings.TrimLeft(f.header+"\n"+strings.Join(f.pending, "\n"), "\n")
	return f
}

// foreignBlock is where reading has come to.
type foreignBlock struct {
	*foreign
	current []*foreignGroup
	opening bool // among User-agent lines, or after them before an Allow or Disallow
	between bool // a line that ends no run of User-agent lines came after them
	started bool // a line that is no comment was read
}

func (f *foreignBlock) read(n int, line string) {
	line, _, _ = strings.Cut(line, "\x00") // where Google's parser stops reading it
	before, comment, commented := strings.Cut(line, "#")
	if comment = strings.TrimSpace(strings.TrimLeft(comment, "#")); commented {
		f.pending = append(f.pending, comment)
	}
	key, value, ok := f.split(n, before)
	if !ok {
		if strings.TrimSpace(line) == "" && !f.started && len(f.pending) > 0 {
			f.header += strings.Join(f.pending, "\n") + "\n" // the comment of the file
			f.pending = nil
		}
		return
	}
	f.started = true
	switch {
	case strings.HasPrefix(key, "acap-"):
		f.acap = true
	case key == "sitemap":
		f.sitemaps = append(f.sitemaps, foreignLine{n, key, value})
	case key == "license" && len(f.current) == 0:
		f.licenses = append(f.licenses, foreignLine{n, key, value})
	case key == "user-agent", key == "user-agent-purpose":
		f.agent(n, key, value)
	case len(f.current) == 0:
		if !f.page {
			f.note(n, "%q stands before any User-agent line, so no crawler reads it", strings.TrimSpace(before))
		}
	default:
		f.line(n, key, value)
	}
}

// agent reads a User-agent line, or one of a purpose.
func (f *foreignBlock) agent(n int, key, value string) {
	if !f.opening {
		f.current, f.opening = nil, true
	} else if f.between && len(f.current) > 0 {
		f.note(n, "no Allow or Disallow stands between this line and those for %s, so that by RFC 9309 what follows is for them too; write \"Allow: /\" before this line if it is not", f.current[len(f.current)-1].tokens[0])
	}
	f.between = false
	if key == "user-agent-purpose" {
		f.current = append(f.current, f.purpose(n, value))
	} else if g := f.group(n, value); g != nil {
		f.current = append(f.current, g)
	}
}

// line reads a line of the current groups. One that RFC 9309 does not know ends no run
// of User-agent lines (section 2.2.4).
func (f *foreignBlock) line(n int, key, value string) {
	f.between = f.opening && key != "allow" && key != "disallow"
	f.opening = f.between
	if f.lines += len(f.current); f.lines > maxForeignLines {
		if !f.over {
			f.over = true
			f.note(n, "so many lines are for so many crawlers that this and what follows is not read")
		}
		return
	}
	switch key {
	case "allow", "disallow":
		rules := f.rules(n, key == "allow", value)
		if rules == nil {
			return
		}
		f.comment(n)
		for _, g := range f.current {
			g.rules = append(g.rules, rules...)
		}
	case "crawl-delay":
		f.comment(n)
		for _, g := range f.current {
			g.delay, g.delayN = value, n
		}
	default:
		f.comment(n)
		for _, g := range f.current {
			g.lines = append(g.lines, foreignLine{n, key, value})
		}
	}
}

// comment makes the comments that wait those of a line.
func (f *foreign) comment(n int) {
	if len(f.pending) > 0 {
		f.comments[n] = strings.Join(f.pending, "\n")
		f.pending = nil
	}
}

func (f *foreign) note(line int, format string, args ...any) {
	f.notes = append(f.notes, Note{Line: line, Message: fmt.Sprintf(format, args...)})
}

// wrong notes a line that does not do what its author can have meant.
func (f *foreign) wrong(line int, format string, args ...any) {
	f.notes = append(f.notes, Note{Line: line, Message: fmt.Sprintf(format, args...), Wrong: true})
}

// split cuts a line without its comment into key and value.
func (f *foreign) split(n int, line string) (key, value string, ok bool) {
	line = strings.TrimSpace(line)
	if line == "" {
		return "", "", false
	}
	key, value, colon := strings.Cut(line, ":")
	ok = colon
	if !ok {
		// Google's parser takes white space for a colon.
		if words := strings.FieldsFunc(line, func(c rune) bool { return c == ' ' || c == '\t' }); len(words) == 2 {
			key, value, ok = words[0], words[1], true
		}
	}
	key = strings.ToLower(strings.TrimSpace(key))
	known := keyOfLine(key)
	if !ok || known == "" {
		if !f.page {
			f.note(n, "%s", leftOut(key, line))
		}
		return "", "", false
	}
	if strings.HasPrefix(known, "acap-") {
		return known, value, true
	}
	if value = strings.TrimSpace(value); known != key || !colon {
		f.note(n, "%q is read as %q, as Google's parser does", line, known+": "+value)
	}
	return known, value, true
}

// group returns the group of a token. A version after it says nothing.
func (f *foreign) group(n int, value string) *foreignGroup {
	token := f.token(value)
	if token == "" || !printable(token) || len(token) > maxToken {
		f.note(n, "%q names no crawler; what it says is left out", value)
		return &foreignGroup{line: n, tokens: []string{value}} // whose lines are of nobody
	}
	if name, _, _ := strings.Cut(value, "/"); token != strings.Join(strings.Fields(name), " ") {
		f.note(n, "the name %q is read as %q, as Google's parser does", value, token)
	}
	g := f.byToken[strings.ToLower(token)]
	if g == nil {
		g = &foreignGroup{line: n, tokens: []string{token}}
		f.byToken[strings.ToLower(token)] = g
		f.groups = append(f.groups, g)
		f.comment(n)
	}
	return g
}

// purpose returns the group of a purpose (draft-illyes-rep-purpose-00).
func (f *foreign) purpose(n int, value string) *foreignGroup {
	for _, g := range f.purposes {
		if strings.EqualFold(g.tokens[0], value) {
			return g
		}
	}
	g := &foreignGroup{line: n, tokens: []string{value}}
	f.purposes = append(f.purposes, g)
	f.comment(n)
	return g
}

// token is the product token that a User-agent line names: a "*" for everybody, also if
// words follow it; a name that is known; or what comes before the first byte that no
// token has. Google's parser also cuts it at a digit, which names have.
func (f *foreign) token(value string) string {
	if first, _, _ := strings.Cut(value, " "); first == "*" || strings.HasPrefix(value, "*\t") {
		return "*"
	}
	name, _, _ := strings.Cut(value, "/")
	if name = strings.Join(strings.Fields(name), " "); name != "" && f.whole(name) {
		return name
	}
	return strings.TrimRight(name[:len(name)-len(strings.TrimLeft(name, tokenBytes))], " ")
}

const tokenBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

// mayBeName reports whether a text can be a name that is not in any catalogue: one or a
// few words.
func mayBeName(s string) bool {
	return strings.Trim(s, tokenBytes+". !") == "" && strings.Trim(s, "-_. !") != ""
}

// rooted is the path that a value without a first slash is likely to mean.
func rooted(value string) string {
	if fileOrFolder(value) == "folder" && !strings.HasSuffix(value, "/") {
		value += "/"
	}
	return "/" + value
}

func fileOrFolder(value string) string {
	if strings.ContainsAny(value[strings.LastIndexByte(strings.TrimSuffix(value, "/"), '/')+1:], ".*$?") {
		return "file"
	}
	return "folder"
}

// rules are what an Allow or Disallow line says, nil for nothing.
func (f *foreign) rules(n int, allow bool, value string) []foreignRule {
	switch {
	case value == "":
		return nil
	case strings.HasPrefix(value, "http://"), strings.HasPrefix(value, "https://"):
		f.wrong(n, "%q is a URL where a path such as /x/ must stand: Google's parser matches no address with it, other crawlers may take it for the whole site; it is left out", value)
		return nil
	case strings.ContainsFunc(value, func(c rune) bool { return c <= ' ' || c == 0x7f }):
		f.wrong(n, "%q has a space, which no address has, so that crawlers match nothing with it; it is left out: write each path on a line of its own, and a space as %%20", value)
		return nil
	case value[0] != '/' && value[0] != '*':
		f.wrong(n, "%q does not start with /, so crawlers match nothing with it; it is left out: write %s in the policy if you meant the %s", value, rooted(value), fileOrFolder(value))
		return nil
	}
	p, err := pathpattern.Parse(value)
	if err != nil {
		f.wrong(n, "%q is not a path (%v); it is left out", value, err)
		return nil
	}
	rules := []foreignRule{{line: n, allow: allow, pattern: p, size: writtenSize(value)}}
	// Google's parser takes an Allow of an index page for one of its directory.
	if i := strings.LastIndexByte(value, '/'); allow && i >= 0 && strings.HasPrefix(value[i:], "/index.htm") {
		dir := value[:i+1] + "$"
		if p, err := pathpattern.Parse(dir); err == nil {
			rules = append(rules, foreignRule{line: n, allow: true, pattern: p, size: writtenSize(dir)})
		}
	}
	return rules
}

// foreignPattern is the pattern of a path of ACAP, in normal form.
func foreignPattern(value string) (pathpattern.Pattern, bool) {
	if value != "" && value[0] != '/' && value[0] != '*' {
		value = "/" + value
	}
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

// writtenSize is the length by which Google's parser compares a pattern: as it is
// written, with bytes beyond ASCII encoded.
func writtenSize(value string) int {
	n := len(value)
	for i := range len(value) {
		if value[i] >= 0x80 {
			n += len("%XX") - 1
		}
	}
	return n
}

// sameSaid reports whether two groups say the same.
func sameSaid(a, b *foreignGroup) bool {
	return a.delay == b.delay &&
		slices.EqualFunc(a.rules, b.rules, func(r, s foreignRule) bool { return r.allow == s.allow && r.pattern == s.pattern && r.size == s.size }) &&
		slices.EqualFunc(a.lines, b.lines, func(l, m foreignLine) bool { return l.key == m.key && l.value == m.value })
}
