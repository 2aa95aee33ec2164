// SPDX-License-Identifier: Apache-2.0

// Package robotstxt reads the robots.txt files of other authors, with their mistakes. It finds the group that a crawler
// obeys, prepares a file for merging with a policy (see robotsserve.Merge), and imports a file as a policy.
package robotstxt

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/acap"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// MaxSize is the number of bytes of a file that crawlers read, according to Google's parser and RFC 9309
// section 2.5.
const MaxSize = 500 << 10

// PurposePrefix is the start of the name of a group that is not for a crawler, but for clients with a purpose, such as
// "purpose-news". No known crawler has a name with this start.
const PurposePrefix = "purpose-"

// File is a robots.txt as Google's parser reads it, which follows RFC 9309 but tolerates some mistakes. Names in
// User-agent lines may contain digits, spaces and dots, while Google's parser reads a name only up to the first of
// them. A File is immutable and may be shared.
type File struct {
	Name string // the name of the file for messages, or ""
	// Groups holds the group of each product token, and of "*".
	Groups  []*Group
	TooLong bool              // true if the groups had too many lines, so the remaining lines were not read
	Sum     [sha256.Size]byte // equal for files with equal lines, apart from sitemaps and lines for the whole file

	byName   map[string]*Group // groups by their names in lower case
	purposes []*Group          // groups of User-Agent-Purpose lines
	top      []*line           // preferences above the first group
	derived  derived           // see withTop
	sitemaps []string
	licenses []*line
	others   []string       // lines for the whole file; see fileKeys
	acap     int            // number of ACAP lines
	read     int            // number of all lines
	unread   error          // why crawlers find no lines in the file, or nil
	text     bool           // the file has a line that is not a comment
	lines    int            // number of lines of all groups
	comments map[int]string // comments by line, without "#"
	header   string         // the comment at the start of the file
	notes    []Note
}

// Group holds the lines of a file for one product token, or for "*".
type Group struct {
	Name string

	written string // the value of the first User-agent line
	number  int    // the number of the first User-agent line
	rules   []Rule
	lines   []*line // lines that extend RFC 9309
	delay   delay
}

// Rule is an Allow or Disallow line.
type Rule struct {
	Allow   bool
	Pattern pathpattern.Pattern
	Written string // the pattern as written, or "" if that is Pattern's text; see pathpattern.Written
	Size    int    // the length in bytes that Google's parser compares; see writtenSize

	number int
	same   int // the number of the first line with this text and Size; see reader.same
}

func (r *Rule) text() string {
	if r.Written != "" {
		return r.Written
	}
	return r.Pattern.String()
}

type line struct {
	number     int
	key, value string
	same       int          // the number of the first line with this text; see reader.same
	says       *preferences // set only for lines with preferences
	written    string       // the line as its author wrote it
}

// text returns the line as its author wrote it, for a note.
func (l *line) text() string { return cmp.Or(l.written, l.key+": "+l.value) }

// delay is a Crawl-delay line.
type delay struct {
	line

	seconds    float64 // 0 if the value is not plausible
	misspelled bool    // see reader.misspelled
}

// implausible reports whether the line has a value that is not a number of seconds up to a day.
func (d delay) implausible() bool {
	zero, err := strconv.ParseFloat(d.value, 64)
	return d.seconds == 0 && d.value != "" && (err != nil || zero != 0)
}

const implausibleDelay = "the crawl-delay %q is not a number of seconds up to a day; import and merge leave it out"

// Parse reads the first MaxSize bytes of a robots.txt in UTF-8 or, with a byte order mark, UTF-16.
func Parse(data []byte) *File {
	f := read(data)
	f.Sum = sha256.Sum256(append(f.Sum[:], f.Preamble()...))
	return f
}

// The errors of Unreadable. The first two are for data that is not a robots.txt.
var (
	ErrPage    = errors.New("this is a web page, not a robots.txt")
	ErrNoLines = errors.New("this is not a robots.txt, because crawlers cannot read any of its lines")
	ErrUTF16   = errors.New("crawlers cannot read this file, because it is in UTF-16, so they may fetch everything; save it as UTF-8")
)

// Unreadable returns the reason why crawlers find no lines in the file. It returns nil if they can read the file, or if
// the file only has comments.
func (f *File) Unreadable() error {
	if f.unread == nil && f.text && !f.hasLines() {
		return ErrNoLines
	}
	return f.unread
}

// hasLines reports whether the file has lines that some crawlers read.
func (f *File) hasLines() bool {
	return !f.Empty() || len(f.purposes)+len(f.licenses)+f.acap > 0
}

// IsPage reports whether data is a web page, whatever its media type is. No line of a robots.txt starts with "<".
func IsPage(data []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(acap.Decode(data), " \t\r\n"), []byte("<"))
}

// Empty reports whether the file has no lines that a merge could copy.
func (f *File) Empty() bool { return len(f.Groups)+len(f.top)+len(f.sitemaps)+len(f.others) == 0 }

// Group returns the group of a product token or of "*", or nil if there is none.
func (f *File) Group(name string) *Group { return f.byName[strings.ToLower(name)] }

func (f *File) add(g *Group) {
	f.byName[strings.ToLower(g.Name)] = g
	f.Groups = append(f.Groups, g)
}

// Names lists the product tokens with a group, without "*".
func (f *File) Names() (names []string) {
	for _, g := range f.Groups {
		if g.Name != "*" {
			names = append(names, g.Name)
		}
	}
	return names
}

// Obeyed returns the group that the crawler c obeys. It looks for a group with one of the following names, in this
// order: the crawler's token, the part of the token that Google's parser reads, and the names in c.Follows. If the file
// has none of these groups, c obeys the group of "*", unless it ignores that group. If c does not obey any group,
// Obeyed returns nil.
func (f *File) Obeyed(c policy.Crawler) *Group {
	for _, name := range append([]string{c.Token, readAs(c.Token)}, c.Follows...) {
		if g := f.Group(name); g != nil {
			return g
		}
	}
	if c.IgnoresStar {
		return nil
	}
	return f.Group("*")
}

// Lines returns the line numbers of the group's Allow and Disallow lines.
func (g *Group) Lines() (numbers []int) {
	for _, r := range g.rules {
		numbers = append(numbers, r.number)
	}
	return numbers
}

// Decisive returns the rules of a group that can decide about a path. If a group has several rules with the same
// pattern, such as `*.html` and `/*.html`, only one of them decides. This is the rule with the longest text in the
// file, or an Allow if the texts are equally long. The text of a pattern can also be spelled with or without escapes,
// such as `/a,b` and `/a%2Cb`. Some crawlers distinguish these spellings, but a policy does not. So Decisive leaves out
// an Allow if the group disallows another spelling of the pattern. If the group disallows several spellings, Decisive
// returns only the first of these rules, and sets its Size to the largest Size.
func (g *Group) Decisive() []Rule {
	rules, _ := g.decisive()
	return rules
}

// decisive is like Decisive, but also returns the Allow rules that it left out because the group disallows another
// spelling of their pattern.
func (g *Group) decisive() (rules, respelled []Rule) {
	at := map[spelling]int{}
	for _, r := range g.rules {
		k := spelling{r.Pattern, r.Written}
		i, ok := at[k]
		switch {
		case !ok:
			at[k] = len(rules)
			rules = append(rules, r)
		case r.Size > rules[i].Size || r.Size == rules[i].Size && r.Allow && !rules[i].Allow:
			rules[i] = r
		}
	}
	rules = impliedSpellings(rules)
	left := respelledAllows(rules)
	rules = slices.DeleteFunc(rules, func(r Rule) bool {
		if r.Allow && left[spelling{r.Pattern, r.Written}] {
			respelled = append(respelled, r)
			return true
		}
		return false
	})
	return rules, respelled
}

// spelling is a pattern and the text that it was written as, such as `/a%2Cb`.
type spelling struct {
	pattern pathpattern.Pattern
	written string
}

// respelledAllows finds Allow lines that have no effect on a Disallow in the file, but would cancel it in a policy.
// Some parsers compare the spellings `/a,b` and `/a%2Cb` as different texts, so "Allow: /a,b" does not match the paths
// of "Disallow: /a%2Cb". A policy treats both spellings as the same pattern, so the Allow would win for all paths of
// the Disallow.
func respelledAllows(rules []Rule) map[spelling]bool {
	if !slices.ContainsFunc(rules, func(r Rule) bool { return r.Written != "" }) {
		return nil
	}
	left := map[spelling]bool{}
	of := map[pathpattern.Pattern][]*Rule{}
	var entries []pathpattern.Entry[pathpattern.Pattern]
	for i := range rules {
		if r := &rules[i]; r.Allow {
			of[r.Pattern] = append(of[r.Pattern], r)
			entries = append(entries, pathpattern.Entry[pathpattern.Pattern]{Pattern: r.Pattern, Value: r.Pattern})
		}
	}
	allows := pathpattern.NewIndex(entries, func(a, _ pathpattern.Pattern) pathpattern.Pattern { return a })
	for i := range rules {
		d := &rules[i]
		if d.Allow {
			continue
		}
		allows.Covering(d.Pattern, func(p pathpattern.Pattern) {
			for _, a := range of[p] {
				if p == d.Pattern || winsInPolicy(*a, *d) && !a.meets(d) {
					left[spelling{p, a.Written}] = true
				}
			}
		})
	}
	return left
}

// impliedSpellings removes Disallow lines that the policy does not need. For each disallowed pattern, the robots.txt of
// a policy lists several spellings, such as `/a,b` and `/a%2Cb`. So if the file disallows both, the second line is
// removed.
func impliedSpellings(rules []Rule) (left []Rule) {
	implied := map[spelling]int{}
	for _, r := range rules {
		spelled := pathpattern.Spell(r.Pattern, r.Written)
		if r.Allow || spelled.Octets == 0 {
			left = append(left, r)
			continue
		}
		if i, ok := implied[spelling{r.Pattern, spelled.Written}]; ok {
			left[i].Size = max(left[i].Size, r.Size)
			continue
		}
		for _, text := range spelled.Prohibition() {
			implied[spelling{r.Pattern, text}] = len(left)
		}
		left = append(left, r)
	}
	return left
}

const respelledNote = "import and merge leave out %q, because a policy treats its path and the path of a Disallow line in this group as two spellings of one path"

const maxDelay = 24 * time.Hour

// CrawlDelay returns the group's crawl-delay in seconds, or 0 if the group has no plausible value.
func (g *Group) CrawlDelay() float64 { return g.delay.seconds }

// key returns the same text for two groups if they have equal lines. The text contains a number for each line instead
// of the line, because a line can be long, and thousands of groups may share it.
func (g *Group) key() string {
	key := binary.AppendUvarint(nil, uint64(g.delay.same))
	for i := range g.rules {
		key = binary.AppendUvarint(key, uint64(g.rules[i].same))
	}
	key = append(key, 0) // separates the rules from the other lines
	for i := range g.lines {
		key = binary.AppendVarint(key, int64(g.lines[i].same))
	}
	return string(key)
}

const maxLinesShown = 10
