// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"github.com/robotspolicy/caddy-robots-policy/acap"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

const (
	// maxLines limits the number of lines in all groups. A line is counted once for each User-agent line of its group.
	maxLines = 1 << 18
	maxName  = 200

	// maxTop limits the number of lines with preferences above the first group, because each group gets them.
	// maxTopLine limits the length of such a line in bytes.
	maxTop     = 8
	maxTopLine = 100
)

type reader struct {
	file    *File
	number  int            // the number of the current line
	groups  []*Group       // groups that the current line belongs to
	shut    bool           // the file has too many lines, so these groups disallow everything
	naming  bool           // a User-agent line was read, and no Allow or Disallow since then
	between bool           // only lines such as Crawl-delay have followed the last User-agent line
	started bool           // a line that is not a comment was read
	pending []string       // comments that belong to the next line
	header  []string       // comments above the first line
	texts   map[string]int // the first line with each text; see reader.same
	delays  map[int]bool   // the Crawl-delay lines that have a note
	sum     hash.Hash      // see File.Sum

	text       string // the current line without its comment
	misspelled bool   // the key of the current line is misspelled, or its colon is missing
}

func read(data []byte) *File {
	r := reader{file: &File{byName: map[string]*Group{}, comments: map[int]string{}}, texts: map[string]int{}, delays: map[int]bool{}, sum: sha256.New()}
	f := r.file
	decoded := acap.Decode(data)
	if !bytes.HasSuffix(data, decoded) {
		f.unread = ErrUTF16
	}
	cut := len(decoded) > MaxSize
	if cut {
		// A line that is cut off could disallow more than the whole line, such as "Disallow: /". So drop it.
		decoded = decoded[:bytes.LastIndexAny(decoded[:MaxSize], "\r\n")+1]
	}
	text := strings.ReplaceAll(string(decoded), "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	if cut {
		f.note(1+strings.Count(text, "\n"), "the file is larger than 500 KiB; crawlers do not read this line and the following lines, so import and merge leave them out")
	}
	if IsPage(decoded) {
		f.unread = ErrPage
	}
	if f.unread == ErrUTF16 {
		f.note(1, "%s", f.unread)
	}
	for line := range strings.SplitSeq(text, "\n") {
		r.number++
		r.read(line)
	}
	f.read = r.number
	f.header = strings.TrimLeft(strings.Join(append(r.header, "", strings.Join(r.pending, "\n")), "\n"), "\n")
	r.sum.Sum(f.Sum[:0])
	return f
}

func (r *reader) read(text string) {
	text, _, _ = strings.Cut(text, "\x00") // Google's parser ends a line here
	before, comment, commented := strings.Cut(text, "#")
	r.text = strings.TrimSpace(before)
	key, value, ok := r.split(trim(before))
	if !r.started && len(r.pending) > 0 && (strings.TrimSpace(text) == "" || ok && len(r.header) == 0) {
		r.header = append(r.header, strings.Join(r.pending, "\n"))
		r.pending = nil
	}
	if commented {
		r.pending = append(r.pending, strings.TrimSpace(strings.TrimLeft(asUTF8(comment), "#")))
	}
	r.file.text = r.file.text || trim(before) != ""
	if !ok {
		return
	}
	r.started = true
	if key != "sitemap" && fileKeys[key] == "" {
		fmt.Fprintf(r.sum, "%s:%s:%t\n", key, value, r.misspelled)
	}
	switch {
	case strings.HasPrefix(key, "acap-"):
		r.file.acap++
	case key == "sitemap":
		r.sitemap(value)
	case fileKeys[key] != "":
		r.other(fileKeys[key], value)
	case key == "license" && len(r.groups) == 0:
		r.file.licenses = append(r.file.licenses, &line{number: r.number, key: key, value: value})
	case len(r.groups) == 0 && (key == "content-signal" || key == "content-usage"):
		r.above(key, value)
	case key == "user-agent", key == "user-agent-purpose":
		r.agent(key, value)
	case len(r.groups) == 0:
		if r.file.unread != ErrPage {
			r.note("%q comes before any User-agent line, so no crawler reads it", r.text)
		}
	default:
		r.line(key, value)
	}
}

// above keeps a line with preferences above the first group. Each group gets these lines, so their number and length
// are limited. If a line exceeds these limits, above keeps only the usages that it disallows, and for the whole site,
// even if the line has a path.
func (r *reader) above(key, value string) {
	f, l := r.file, r.newLine(key, value)
	if len(f.top) < maxTop && len(key+": "+value) <= maxTopLine {
		r.note("%q is above the first User-agent line, where crawlers do not read it. Import and merge add it to each group that does not state this preference for the same path", r.text)
		f.top = append(f.top, l)
		return
	}
	r.note("%q is above the first User-agent line, where crawlers do not read it. Because this line is long, or there are many such lines, import and merge copy only the usages that it disallows, for the whole site", r.text)
	left := &preferences{}
	for _, m := range l.says.members {
		disallowed := func(l *line) bool {
			return l.key == key && l.says.path == "" && slices.ContainsFunc(l.says.members, func(o member) bool { return o.name == m.name && o.no() })
		}
		if m.known && m.no() && !slices.ContainsFunc(f.top, disallowed) {
			left.members = append(left.members, m)
		}
	}
	if len(left.members) > 0 {
		l = r.newLine(key, left.text(vocabularies[key]))
		f.top = append(f.top, l)
	}
}

func (r *reader) newLine(key, value string) *line {
	l := &line{number: r.number, key: key, value: value, same: r.same(key, value), written: r.text}
	if l.isPreferences() {
		l.says = preferencesOf(l)
	}
	return l
}

// same returns the number of the first line in the file that has the given key and value, which may be the current
// line. Equal lines get the same number, so they can be found without comparing their texts, which may be long.
func (r *reader) same(key, value string) int {
	text := key + ":" + value
	first, ok := r.texts[text]
	if !ok {
		first = r.number
		r.texts[text] = first
	}
	return first
}

// asUTF8 converts a comment to UTF-8. Text that is not valid UTF-8 is read as Windows-1252, which includes Latin-1.
func asUTF8(text string) string {
	if !utf8.ValidString(text) {
		text, _ = charmap.Windows1252.NewDecoder().String(text) // this decoder accepts any bytes
	}
	return text
}

// other adds a line that applies to the whole file, such as Clean-param. key must be spelled as in the merged file.
func (r *reader) other(key, value string) {
	switch text := key + ": " + value; {
	case value == "":
	case !printable(value) || len(text) > maxLine:
		r.note("import and merge leave out a %s line, because it has invalid or control characters, or is too long for crawlers", key)
	default:
		r.file.others = append(r.file.others, text)
	}
}

// sitemap adds the URL of a sitemap. For a URL without a host, it adds only the path, because the host of the file is
// not known.
func (r *reader) sitemap(value string) {
	u, err := url.Parse(value)
	switch {
	case value == "":
		return
	case err != nil, len(value) > maxLine/2, !printable(value), strings.ContainsAny(value, " \t"), u.IsAbs() && (u.Host == "" || u.Scheme != "http" && u.Scheme != "https"), u.Host == "" && strings.HasPrefix(value, "//"):
		r.note("the sitemap %q is not a URL such as https://www.example.com/sitemap.xml; import and merge leave it out", value)
		return
	case u.Host == "":
		path := base.ResolveReference(u).RequestURI()
		r.note("the sitemap %q is not a full URL, so crawlers may ignore it. A server that publishes this robots.txt writes the site's address in front of %s", value, path)
		value = path
	case u.Scheme == "":
		r.note("the sitemap %q is not a full URL, so crawlers may ignore it. Import and merge write %s instead", value, "https:"+value)
		value = "https:" + value
	}
	r.file.sitemaps = append(r.file.sitemaps, value)
}

// base is a URL of a robots.txt on an invented host, because the host of the file is not known. sitemap uses it to turn
// a relative URL into an absolute path.
var base = &url.URL{Scheme: "https", Host: "host", Path: "/robots.txt"}

func (r *reader) agent(key, value string) {
	if !r.naming {
		r.groups, r.naming, r.shut = nil, true, false
	} else if r.between && len(r.groups) > 0 {
		r.note("there is no Allow or Disallow between the lines for %s and this line, so by RFC 9309 the lines below also apply to the crawlers above. If that is wrong, "+
			"write \"Allow: /\" before this line", r.groups[len(r.groups)-1].Name)
	}
	r.between = false
	g := r.purpose
	if key == "user-agent" {
		g = r.group
	}
	r.groups = append(r.groups, g(value))
}

// line adds a line to the current groups. A line with an unknown key does not end a block of User-agent lines (RFC 9309
// section 2.2.4).
func (r *reader) line(key, value string) {
	r.between = r.naming && key != "allow" && key != "disallow"
	r.naming = r.between
	f := r.file
	if f.lines += len(r.groups); f.lines > maxLines {
		if !f.TooLong {
			f.TooLong = true
			r.note("the groups of the file have too many lines and crawlers. Import and merge leave out this line and the following ones, and disallow everything for the crawlers that these lines are for")
		}
		if !r.shut {
			r.shut = true
			for _, g := range r.groups {
				g.rules, g.lines = shut(r.number), nil
			}
		}
		return
	}
	var rules []Rule
	if key == "allow" || key == "disallow" {
		if rules = r.rules(key == "allow", value); rules == nil {
			return
		}
		for i := range rules {
			rules[i].same = r.same(key+strconv.Itoa(rules[0].Size), rules[0].text())
		}
	}
	l := r.newLine(key, value)
	wait := delay{*l, secondsOf(value), r.misspelled}
	r.comment()
	for _, g := range r.groups {
		switch {
		case rules != nil:
			g.rules = append(g.rules, rules...)
		case key == "crawl-delay":
			r.delay(g, wait)
		default:
			g.lines = append(g.lines, l)
		}
	}
}

// secondsOf returns the value of a Crawl-delay line, or 0 if it is not plausible.
func secondsOf(value string) float64 {
	s, err := strconv.ParseFloat(value, 64)
	if err != nil || !(s > 0) || s > maxDelay.Seconds() {
		return 0
	}
	return s
}

// delay sets the crawl-delay of the group g to wait, unless the group already has a better one. A delay whose key is
// written correctly is better than one with a misspelled key, because more crawlers read it. If both keys are written
// correctly, or both are misspelled, the longer delay is better.
func (r *reader) delay(g *Group, wait delay) {
	left, why := g.delay, "has a longer delay for some of the same crawlers"
	better := left.seconds > wait.seconds
	if left.value != "" && left.misspelled != wait.misspelled {
		better, why = wait.misspelled, "spells the key correctly, so more crawlers read its delay"
	}
	if better {
		wait, left = left, wait
	}
	g.delay = wait
	if left.value == "" || left.same == wait.same || r.delays[left.number] {
		return
	}
	r.delays[left.number] = true // a line can be for thousands of groups
	if left.implausible() {
		r.file.note(left.number, implausibleDelay, left.value)
	} else {
		r.file.note(left.number, "import and merge leave out this crawl-delay for crawlers such as %s, because line %d "+why, g.Name, wait.number)
	}
}

func (r *reader) comment() {
	if len(r.pending) > 0 {
		r.file.comments[r.number] = strings.Join(r.pending, "\n")
		r.pending = nil
	}
}

// noBreak removes a no-break space at the start of a value, in UTF-8 or Latin-1.
func noBreak(value string) string {
	return strings.TrimPrefix(strings.TrimPrefix(value, "\u00a0"), "\xa0")
}

// rules returns the rules for the value of an Allow or Disallow line. It returns nil if the line has no effect.
func (r *reader) rules(allow bool, value string) []Rule {
	switch {
	case value == "":
		return nil
	case strings.HasPrefix(value, "http://"), strings.HasPrefix(value, "https://"):
		r.wrong("%q is a URL instead of a path such as /x/. Google's parser never matches it, and "+
			"other crawlers may apply it to the whole site; import and merge leave it out", value)
		return nil
	case strings.ContainsFunc(value, func(c rune) bool { return c <= ' ' || c == 0x7f }):
		r.wrong("%q never matches, because an address cannot have a space; "+
			"import and merge leave it out. Write each path on its own line, and a space as %%20", value)
		return nil
	case noBreak(value) != value:
		r.wrong("%q starts with a no-break space, which crawlers read as part of the path, so it never matches. "+
			"Import and merge leave it out. Write %s in the policy if you meant this path", value, noBreak(value))
		return nil
	case value[0] != '/' && value[0] != '*':
		r.wrong("%q does not start with /, so it never matches; "+
			"import and merge leave it out. Write %s in the policy if you meant this path", value, rooted(value))
		return nil
	}
	if value == "*" {
		value = "/" // "/" has the same length and meaning as "*"; "/*" would be longer
	}
	p, err := pathpattern.Parse(value)
	if err != nil {
		r.wrong("%q is not a path (%v); import and merge leave it out", value, err)
		return nil
	}
	rule := func(p pathpattern.Pattern, value string) Rule {
		return Rule{Allow: allow, Pattern: p, Written: pathpattern.Written(p, value), Size: writtenSize(value), number: r.number}
	}
	rules := []Rule{rule(p, value)}
	// Google's parser reads an Allow for an index page as an Allow for its directory, too.
	if i := strings.LastIndexByte(value, '/'); allow && i >= 0 && strings.HasPrefix(value[i:], "/index.htm") {
		dir := value[:i+1] + "$"
		if p, err := pathpattern.Parse(dir); err == nil {
			rules = append(rules, rule(p, dir))
		}
	}
	return rules
}

// rooted returns the path that a value without a slash at the start probably means.
func rooted(value string) string {
	last := value[strings.LastIndexByte(strings.TrimSuffix(value, "/"), '/')+1:]
	if isFolder := !strings.ContainsAny(last, ".*$?"); isFolder && !strings.HasSuffix(value, "/") {
		value += "/"
	}
	return "/" + value
}

// writtenSize returns the length in bytes that Google's parser compares: the length as written, with non-ASCII bytes
// encoded.
func writtenSize(value string) int { return len(pathpattern.EncodeBeyondASCII(value)) }
