// SPDX-License-Identifier: Apache-2.0

// Package rfc9309 parses robots.txt files according to RFC 9309, and compares two files. This project uses it to check
// robots.txt files that other packages of the project have converted or written, so it shares no code with those
// packages. It accepts the same mistakes in lines as Google's parser: misspelled keys, missing colons, and names with
// characters that a product token cannot have. Unlike that parser, it compares percent-encoded bytes according to RFC
// 9309 section 2.2.2.
package rfc9309

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// Limit is the number of bytes of a file that crawlers read (RFC 9309 section 2.5). A line that does not end within
// these bytes is not read.
const Limit = 500 << 10

// File is a parsed robots.txt.
type File struct {
	groups map[string]*group // by the name in lower case; "*" for all other crawlers
	names  []string          // each name in its first spelling
	rules  []*rule
	lines  []string

	preferences []preference      // of all groups
	stated      map[[2]string]int // the first line with a usage and a value
}

// Lines returns the number of lines read.
func (f *File) Lines() int { return len(f.lines) }

// Line returns the text of a line. The first line has the number 1.
func (f *File) Line(n int) string { return f.lines[n-1] }

// A group holds the rules and preferences for some names: the blocks that follow the User-agent lines of each name.
type group struct {
	blocks []sharedBlock
	above  preferences // all preferences above the first group; all groups share them
}

// A block holds the rules and preferences that follow some User-agent lines. The groups of all names in these lines
// share the block instead of copying it, because a file can have thousands of names above thousands of lines.
type block struct {
	number      int
	rules       []*rule
	ruleWork    int
	preferences preferences
	// stated maps each preference to its last index in preferences. It is nil if the file has no preferences above the
	// first group.
	stated map[statedPreference]int
}

// A sharedBlock is a block as one name sees it: with the preferences that follow the User-agent line of this name.
type sharedBlock struct {
	*block
	from, before int // the number of the other preferences, and their work
}

type rule struct {
	allow bool
	pattern
	sent pattern // the pattern to compare with unnormalized URLs
	size int     // the length in bytes that Google's parser compares: as written, with non-ASCII bytes encoded
	line int
}

func newRule(allow bool, value string, line int) *rule {
	sent := asSent(value)
	return &rule{allow, newPattern(normalize(value, true)), newPattern(sent), len(sent), line}
}

// Crawler holds the names that a crawler looks for to find its group. If a name does not have a group, the crawler
// looks for the group of the beginning of this name, up to the first byte that a product token cannot have. For
// example, a crawler with the name "Offline Explorer" may obey the group of "Offline", as in Google's parser.
type Crawler struct {
	Names       []string // the crawler's name, followed by the names whose groups it obeys if it has no group
	IgnoresStar bool     // the crawler is documented not to obey the group of "*"
}

// Parse reads a file. For each name in a User-agent line, it calls whole with the name without a version. If whole
// returns true, Parse uses this name, which may contain spaces. Otherwise, it uses only the product token at the start
// of the name. whole may be nil.
func Parse(data []byte, whole func(name string) bool) *File {
	for _, c := range []byte("\xef\xbb\xbf") { // Google's parser also skips an incomplete byte order mark
		rest, ok := bytes.CutPrefix(data, []byte{c})
		if !ok {
			break
		}
		data = rest
	}
	if len(data) > Limit {
		data = data[:Limit]
		data = data[:bytes.LastIndexAny(data, "\r\n")+1]
	}
	f := &File{groups: map[string]*group{}, lines: lines(string(data)), stated: map[[2]string]int{}}
	var top preferences // above the first group
	var blocks []*block
	var open *block // the block of the current groups; nil above the first group
	ruled := false  // the open block has Allow or Disallow lines, so that a User-agent line begins another block
	for i, text := range f.lines {
		key, value := cut(text)
		switch key {
		case userAgent:
			if open == nil || ruled {
				open, ruled = &block{number: len(blocks)}, false
				blocks = append(blocks, open)
			}
			f.group(agentName(value, whole)).share(open)
		case contentUsage, contentSignal:
			all := newPreferences(key, value, i+1)
			f.state(all)
			if open == nil {
				top.add(all)
				f.group("*") // for crawlers without another group
			} else {
				open.preferences.add(all)
			}
		case allow, disallow:
			if open == nil {
				continue
			}
			if ruled = true; value != "" {
				f.add(open, newRule(key == allow, value, i+1), value)
			}
		}
	}
	if len(top.all) > 0 {
		f.inherit(top, blocks)
	}
	f.unite()
	return f
}

// add adds a rule to a block. For an Allow of an index page, such as "/a/index.html", it also adds an Allow of the
// directory, such as "/a/$", as Google's parser does.
func (f *File) add(to *block, r *rule, value string) {
	all := []*rule{r}
	if i := strings.LastIndexByte(value, '/'); r.allow && i >= 0 && strings.HasPrefix(value[i+1:], "index.htm") {
		all = append(all, newRule(true, value[:i+1]+"$", r.line))
	}
	f.rules, to.rules = append(f.rules, all...), append(to.rules, all...)
	for _, r := range all {
		to.ruleWork += r.work()
	}
}

func (f *File) group(name string) *group {
	key := strings.ToLower(name)
	g := f.groups[key]
	if g == nil {
		g = new(group)
		f.groups[key] = g
		f.names = append(f.names, name)
	}
	return g
}

// share adds a block to the group.
func (g *group) share(b *block) {
	if n := len(g.blocks); n == 0 || g.blocks[n-1].block != b { // the User-agent lines of a block may repeat a name
		g.blocks = append(g.blocks, sharedBlock{b, len(b.preferences.all), b.preferences.work})
	}
}

// unite replaces groups that have the same blocks by one of them, so that Compare examines these blocks only once.
func (f *File) unite() {
	same := map[string]*group{}
	for name, g := range f.groups {
		var key []byte
		for _, b := range g.blocks {
			key = binary.AppendUvarint(binary.AppendUvarint(key, uint64(b.number)), uint64(b.from))
		}
		if first := same[string(key)]; first != nil {
			f.groups[name] = first
		} else {
			same[string(key)] = g
		}
	}
}

func lines(text string) []string {
	return strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n")
}

// The keys of the lines that this package uses.
const (
	userAgent = "user-agent"
	allow     = "allow"
	disallow  = "disallow"

	contentUsage  = "content-usage"
	contentSignal = "content-signal"
)

var keys = map[string]string{
	"user-agent": userAgent, "useragent": userAgent, "user agent": userAgent, "allow": allow,
	"disallow": disallow, "dissallow": disallow, "dissalow": disallow, "disalow": disallow, "diasllow": disallow, "disallaw": disallow,
}

const (
	space   = " \t\v\f"
	maxLine = 2083*8 - 1 // number of bytes that Google's parser reads from a line
)

// cut splits a line into its key and its value. The key is "" if this package does not use lines with the key.
func cut(line string) (key, value string) {
	line = line[:min(len(line), maxLine)]
	line, _, _ = strings.Cut(line, "\x00") // for Google's parser, this byte ends a line
	line, _, _ = strings.Cut(line, "#")
	line = strings.Trim(line, space)
	key, value, found := strings.Cut(line, ":")
	if !found { // for Google's parser, two words without a colon are a key and a value
		i := strings.IndexAny(line, " \t")
		if i < 0 {
			return "", ""
		}
		key, value = line[:i], strings.Trim(line[i:], space)
		if strings.ContainsAny(value, " \t") {
			return "", ""
		}
	}
	return known(strings.ToLower(strings.Trim(key, space))), strings.Trim(value, space)
}

// known returns the key that a word begins with, as in Google's parser. So "Allowed" and "User-agents" are valid.
func known(word string) string {
	if word == contentUsage || word == contentSignal {
		return word
	}
	for start, key := range keys {
		if strings.HasPrefix(word, start) {
			return key
		}
	}
	return ""
}

func agentName(value string, whole func(string) bool) string {
	if value == "*" || strings.HasPrefix(value, "*") && strings.ContainsAny(value[1:2], space) {
		return "*"
	}
	name, _, _ := strings.Cut(value, "/") // without its version
	name = strings.Join(strings.Fields(name), " ")
	for _, name := range []string{name, beginning(name, tokenBytes+"0123456789")} {
		if whole != nil && whole(name) {
			return name
		}
	}
	return beginning(value, tokenBytes)
}

// tokenBytes are the bytes that a product token can have.
const tokenBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"

// beginning returns the part of a text before the first byte that is not in a set.
func beginning(text, set string) string { return text[:len(text)-len(strings.TrimLeft(text, set))] }

// Answer holds whether a crawler may fetch a path, and the number of the deciding line. The number is 0 if no line
// decides.
type Answer struct {
	Allowed    bool
	Line       int
	Preference string // for a question about a usage: "yes", "no", or "" if there is no preference
	Written    string // the preference as the line writes it, such as "ai-input=no"
}

// Ask returns the answer for a path, which begins with "/" and includes the query.
func (f *File) Ask(c Crawler, path string) Answer {
	return f.of(c).ask(question{path: normalize(path, false)})
}

// Size returns the approximate number of rules that Ask has to examine.
func (f *File) Size(c Crawler) int { return f.of(c).size() }

func (f *File) of(c Crawler) *group {
	for _, name := range c.Names {
		for _, name := range []string{name, beginning(name, tokenBytes)} { // Google's parser looks only for the beginning
			if g := f.groups[strings.ToLower(name)]; g != nil {
				return g
			}
		}
	}
	if c.IgnoresStar {
		return nil
	}
	return f.groups["*"]
}

// ask answers a question for the crawlers of the group. For a question about a usage, it returns the group's
// preference. Otherwise, the longest rule that matches the path decides. If an Allow and a Disallow have the same
// length, the Allow decides (RFC 9309 section 2.2.2). A crawler without a group (g is nil) may fetch everything.
func (g *group) ask(q question) Answer {
	a, best := Answer{Allowed: true}, -1
	switch {
	case g != nil && q.usage != "":
		return g.preference(q.usage, q.path)
	case g == nil || q.path == "/robots.txt":
		return a
	}
	for _, b := range g.blocks {
		for _, r := range b.rules {
			n, p := r.size, &r.pattern
			if q.sent {
				p = &r.sent
			}
			if n < best || n == best && (a.Allowed || !r.allow) || !p.matches(q.path) {
				continue
			}
			a, best = Answer{Allowed: r.allow, Line: r.line}, n
		}
	}
	return a
}

// pattern is the value of a rule, in normal form or as Google's parser compares it.
type pattern struct {
	text     string
	parts    []string // the texts between the "*" of the pattern
	anchored bool     // the pattern ends with "$"
}

func newPattern(text string) pattern {
	open, anchored := strings.CutSuffix(text, "$")
	return pattern{text, strings.Split(open, "*"), anchored}
}

// work returns the approximate work of matches for a short path. The unit is the work for a pattern such as "/shop/".
func (p *pattern) work() int { return 1 + len(p.parts)/4 + len(p.text)/1024 }

// asSent returns a pattern as Google's parser compares it with unnormalized URLs. It encodes bytes beyond ASCII, and
// writes the digits of escapes in upper case.
func asSent(value string) string {
	var b strings.Builder
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '%' && isEscaped(value[i+1:]):
			b.WriteString(strings.ToUpper(value[i : i+3]))
			i += 2
		case c >= 0x80:
			encode(&b, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

const hex = "0123456789ABCDEF"

// normalize decodes unreserved characters and encodes bytes beyond ASCII (RFC 9309 section 2.2.2). In a path, it also
// encodes spaces, "*" and "$". So a pattern with a space never matches, and a "*" in a path matches "%2A" in a pattern.
// In a pattern, "*" and a "$" at the end are special and not changed. Any other "$" is an ordinary character, and
// encoded.
func normalize(s string, pattern bool) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '%' && isEscaped(s[i+1:]):
			if c = byte(unhex(s[i+1])<<4 | unhex(s[i+2])); unreserved(c) {
				b.WriteByte(c)
			} else {
				encode(&b, c)
			}
			i += 2
		case c >= 0x80, c == '$' && (!pattern || i < len(s)-1), !pattern && (c <= ' ' || c == '*'):
			encode(&b, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func encode(b *strings.Builder, c byte) {
	b.WriteByte('%')
	b.WriteByte(hex[c>>4])
	b.WriteByte(hex[c&15])
}

func unhex(c byte) int {
	return strings.IndexByte(hex, strings.ToUpper(string(rune(c)))[0])
}

// unreserved reports whether a byte is an unreserved character of RFC 3986 section 2.3.
func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// matches implements RFC 9309 section 2.2.3 for a path in normal form.
func (p *pattern) matches(path string) bool {
	if !strings.HasPrefix(path, p.parts[0]) {
		return false
	}
	path = path[len(p.parts[0]):]
	for i, part := range p.parts[1:] {
		if p.anchored && i == len(p.parts)-2 {
			return strings.HasSuffix(path, part)
		}
		at := strings.Index(path, part)
		if at < 0 {
			return false
		}
		path = path[at+len(part):]
	}
	return !p.anchored || path == ""
}
