// SPDX-License-Identifier: Apache-2.0

package rfc9309

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Comparison is the result of Compare.
type Comparison struct {
	Crawlers    int          // number of crawlers in the questions
	Questions   int          // number of pairs of a crawler and a path
	Preferences int          // number of triples of a crawler, a path and a usage whose preference was asked
	Differ      int          // number of these pairs and triples with different answers of the two files
	Differences []Difference // in the order of the first file's lines
	Complete    bool         // false if some questions were not asked
}

// Difference holds two different answers, Old from the first file and New from the second file, and the questions that
// have these answers. If the questions are about crawling, they are about all paths with these answers, and about
// crawlers that obey the same groups. If the questions are about the preference for a usage, they are about one path,
// and about all crawlers with these answers.
type Difference struct {
	Crawlers []string
	Sent     bool     // the paths are compared as they are sent, not in normal form
	Usage    string   // the usage whose preferences differ, or "" if the difference is about crawling
	Stated   int      // the first line of the old file with the new preference, whichever crawlers it is for; or 0
	Path     string   // one of the paths, preferably one without "%"
	Asked    []string // all of the paths
	Old, New Answer   // New.Line is 0 if the crawlers read the preference in different lines
}

// Laxer reports whether the second file allows a path that the first file disallows.
func (d *Difference) Laxer() bool { return d.New.Allowed && !d.Old.Allowed }

// budget limits the work of Compare, measured in comparisons of a short rule with a path. A difference costs as much as
// the number of comparisons in differing.
const budget, differing = 60_000_000, 64

// Other is the name of a crawler that neither file names.
const Other = "crawler-that-no-file-names"

// Compare asks two files about many paths and reports different answers. It makes paths from each pattern of both
// files: as written, decoded, encoded, with one more byte, and with one byte less. It adds paths that may match both a
// pattern with "*" and another pattern (see meetings). It asks for each crawler that one of the files names, and for an
// unknown crawler (Other). From the argument crawlers, it adds crawlers that obey the group of a name in the files, and
// crawlers that ignore the group of "*". If a pattern is not in normal form, Compare asks about its paths twice: once
// in normal form, and once unchanged, as Google's parser compares them. It also asks for the preferences in lines with
// Content-Usage and Content-Signal.
func Compare(old, now *File, crawlers []Crawler) *Comparison {
	asked, complete := questions(old, now)
	c := &Comparison{Complete: complete}
	type pair struct{ old, now *group }
	asking := map[pair][]string{}
	for _, who := range crawlersToAsk(old, now, crawlers) {
		p := pair{old.of(who), now.of(who)}
		asking[p] = append(asking[p], who.Names[0])
		c.Crawlers++
	}
	// Pairs with few rules come first, because they cost the least.
	pairs := slices.SortedFunc(maps.Keys(asking), func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.old.size()+a.now.size(), b.old.size()+b.now.size()), strings.Compare(asking[a][0], asking[b][0]))
	})
	left, at := budget, map[kind]int{}
	for _, p := range pairs {
		left -= (p.old.size() + p.now.size()) * len(asked)
		for _, q := range asked {
			if left < 0 {
				c.Complete = false
				break
			}
			if c.answers(q, asking[p], p.old.ask(q), p.now.ask(q), at) {
				left -= differing + len(asking[p])
			}
		}
	}
	for i := range c.Differences {
		d := &c.Differences[i]
		d.Stated = old.stated[[2]string{d.Usage, d.New.Preference}]
	}
	slices.SortStableFunc(c.Differences, func(a, b Difference) int { return cmp.Or(a.Old.Line-b.Old.Line, a.New.Line-b.New.Line) })
	return c
}

// question is a path in normal form or, if sent is true, the path of an unnormalized URL. It asks for the preference
// about a usage, or, if the usage is "", whether a crawler may fetch the path.
type question struct {
	path  string
	sent  bool
	usage string
}

// kind is equal for answers that belong to the same Difference.
type kind struct {
	question
	crawler  string
	old, now Answer
}

// answers counts a question once for each of the given crawlers. If the answers of the two files, old and now, differ,
// it adds the crawlers and the path to c.Differences, and returns true. at maps each kind to the index of its Difference
// in c.Differences.
func (c *Comparison) answers(q question, crawlers []string, old, now Answer, at map[kind]int) bool {
	if q.usage == "" {
		c.Questions += len(crawlers)
	} else {
		c.Preferences += len(crawlers)
	}
	if old.Allowed == now.Allowed && old.Preference == now.Preference {
		return false
	}
	c.Differ += len(crawlers)
	key := kind{q, "", old, now}
	if q.usage == "" {
		key.path, key.crawler = "", crawlers[0]
	} else {
		key.now.Line = 0 // the groups repeat a preference in different lines
	}
	i, again := at[key]
	if !again {
		i = len(c.Differences)
		at[key] = i
		c.Differences = append(c.Differences, Difference{Sent: q.sent, Usage: q.usage, Path: q.path, Old: old, New: now})
	}
	d := &c.Differences[i]
	if d.New.Line != now.Line && q.usage != "" {
		d.New.Line = 0
	}
	if !again || q.usage != "" {
		d.Crawlers = append(d.Crawlers, crawlers...)
	}
	if !again || q.usage == "" {
		d.Asked = append(d.Asked, q.path)
	}
	if strings.Contains(d.Path, "%") && !strings.Contains(q.path, "%") {
		d.Path = q.path
	}
	return true
}

func (g *group) size() int {
	n := 1
	if g != nil {
		n += g.above.work * (1 + len(g.blocks))
		for _, b := range g.blocks {
			n += b.ruleWork + b.preferences.work - b.before
		}
	}
	return n
}

func crawlersToAsk(old, now *File, crawlers []Crawler) (all []Crawler) {
	named := map[string]bool{}
	for _, f := range []*File{old, now} {
		for name := range f.groups {
			named[name] = true
		}
	}
	seen := map[string]bool{"*": true, "": true}
	add := func(c Crawler) {
		// "purpose-x" is the name of a group with a User-Agent-Purpose line, not the name of a crawler.
		if key := strings.ToLower(c.Names[0]); !seen[key] && !strings.HasPrefix(key, "purpose-") {
			seen[key] = true
			all = append(all, c)
		}
	}
	for _, c := range crawlers {
		if c.IgnoresStar || slices.ContainsFunc(c.Names, func(n string) bool { return named[strings.ToLower(n)] }) {
			add(c)
		}
	}
	for _, f := range []*File{old, now} {
		for _, name := range f.names {
			add(Crawler{Names: []string{name}})
		}
	}
	return append(all, Crawler{Names: []string{Other}})
}

// questions returns the questions about the paths and preferences in the files. Compare asks each of them for each
// crawler. complete is false if there are too many.
func questions(files ...*File) (all []question, complete bool) {
	complete = true
	seen := map[question]bool{}
	ask := func(q question) {
		if strings.HasPrefix(q.path, "/") && !strings.ContainsAny(q.path, " \t\v\f\x7f") && !seen[q] {
			seen[q] = true
			all = append(all, q)
		}
	}
	add := func(path string) { ask(question{path: normalize(path, false)}) }
	add("/")
	add("/~no-file-names-this")
	asked := map[string]bool{}
	for _, f := range files {
		for _, r := range f.rules {
			if asked[r.text] {
				continue
			}
			asked[r.text] = true
			for _, text := range Spellings(r.text) {
				text = strings.TrimSuffix(text, "$")
				for _, star := range []string{"", "x"} {
					path := rooted(strings.ReplaceAll(text, "*", star))
					add(path)
					add(path + "x")
					add(path + "?x")
					add(path[:len(path)-1])
				}
			}
		}
	}
	for _, f := range files {
		for _, p := range f.preferences {
			ask(question{path: "/", usage: p.usage})
			ask(question{path: example(p.path.text), usage: p.usage})
		}
		texts, sent := make([]string, 0, len(f.rules)), make([]string, 0, len(f.rules))
		for _, r := range f.rules {
			texts, sent = append(texts, r.text), append(sent, r.sent.text)
			if r.respelled() {
				for _, path := range []string{example(r.sent.text), example(r.text)} {
					ask(question{path: path, sent: true})
					ask(question{path: path + "x", sent: true})
				}
			}
		}
		paths, enough := meetings(texts)
		complete = complete && enough
		for _, path := range paths {
			add(path)
		}
		if slices.Equal(texts, sent) {
			continue
		}
		paths, enough = meetings(sent)
		complete = complete && enough
		for _, path := range paths {
			if normalize(path, false) != path {
				ask(question{path: path, sent: true})
			}
		}
	}
	return all, complete
}

// Respelled reports whether the path in a line is not written in normal form.
func (f *File) Respelled(line int) bool {
	i, found := slices.BinarySearchFunc(f.rules, line, func(r *rule, line int) int { return r.line - line })
	return found && f.rules[i].respelled()
}

// respelled reports whether a rule is not written in normal form.
func (r *rule) respelled() bool { return r.sent.text != r.text }

// Limits of meetings: the number of paths, and their bytes. pathBytes is added to the length of each path.
const maxMeetings, meetingBytes, pathBytes = 1 << 15, 10 << 20, 64

// meetings takes each pair of a pattern with "*" and another pattern, and returns paths that may match both of them.
// For "/*.css$" and "/admin/", it returns "/admin/x.css". Not all of the paths match both patterns. If there are too many
// pairs, the paths are a sample. complete is false if the paths are so long that even the sample is cut.
func meetings(patterns []string) (paths []string, complete bool) {
	examples := make([]string, len(patterns))
	for i, p := range patterns {
		examples[i] = example(p)
	}
	left := meetingBytes
	for _, wild := range patterns {
		before, after, ok := strings.Cut(strings.TrimSuffix(wild, "$"), "*")
		if !ok {
			continue
		}
		after = strings.ReplaceAll(after, "*", "")
		for i, path := range examples {
			if patterns[i] == wild {
				continue
			}
			if len(paths) >= maxMeetings {
				return paths, true
			}
			if left -= 2*(pathBytes+len(path)+len(after)) + len(before); left < 0 {
				return paths, false
			}
			paths = append(paths, path+"x"+after, rooted(before+path[1:]+"x"+after))
		}
	}
	return paths, true
}

// example returns a path that matches a pattern.
func example(pattern string) string {
	return rooted(strings.ReplaceAll(strings.TrimSuffix(pattern, "$"), "*", ""))
}

func rooted(path string) string {
	if !strings.HasPrefix(path, "/") {
		return "/" + path
	}
	return path
}

// Spellings returns up to three spellings of a pattern: unchanged, decoded and encoded. In the decoded spelling, an
// escape remains if the plain byte would have another meaning, or is not a visible ASCII character. For example, %2A
// remains, because a plain "*" matches any text. In the encoded spelling, reserved octets such as "=" (RFC 3986 section
// 2.2), and a "%" that does not start an escape, are encoded as well.
func Spellings(pattern string) []string {
	var decoded, encoded strings.Builder
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		switch {
		case c == '%' && isEscaped(pattern[i+1:]):
			b := byte(unhex(pattern[i+1])<<4 | unhex(pattern[i+2]))
			encode(&encoded, b)
			i += 2
			if b <= ' ' || b >= 0x7f || strings.IndexByte("#*$", b) >= 0 || b == '%' && isEscaped(pattern[i+1:]) {
				encode(&decoded, b)
			} else {
				decoded.WriteByte(b)
			}
		case unreserved(c) || strings.IndexByte("/*$?", c) >= 0:
			decoded.WriteByte(c)
			encoded.WriteByte(c)
		default:
			decoded.WriteByte(c)
			encode(&encoded, c)
		}
	}
	all := []string{pattern}
	for _, s := range []string{decoded.String(), encoded.String()} {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// isEscaped reports whether a "%" before the text would encode an octet.
func isEscaped(text string) bool {
	return len(text) >= 2 && unhex(text[0]) >= 0 && unhex(text[1]) >= 0
}
