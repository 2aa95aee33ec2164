// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// line is an Allow or a Disallow of a group.
type line struct {
	pattern   pathpattern.Pattern // starts with "/", has no "*" at its end
	spelled   pathpattern.Spellings
	texts     []string // that are printed
	low, high int      // lengths of the shortest and the longest text, to readers that decode it as well
	of        *stated
	order     int
	gone      bool
	guard     bool // against Google's parser: see guardIndexPages
}

func (l *line) len() int { return l.pattern.Len() }

// beats reports whether l wins over m, one of them an Allow, for every reader to which both match.
func (l *line) beats(m *line) bool {
	a, d := l, m
	if !l.of.allow {
		a, d = m, l
	}
	wins := func(allow, disallow int) bool { return (allow >= disallow) == l.of.allow }
	if !wins(a.len(), d.len()) || !wins(len(a.spelled.Upper), len(d.spelled.Upper)) { // readers that decode or encode both
		return false
	}
	written := len(a.spelled.Written)
	if a.spelled.Octets > 0 { // to others the Allow only matches URLs in its own spelling
		meet := pathpattern.Raw(a.spelled.Written).Overlaps(pathpattern.Raw(d.spelled.Written))
		if meet && !wins(written, len(d.spelled.Written)) {
			return false
		}
		if same := d.spelled.Like(&a.spelled); same != "" {
			return wins(written, len(same))
		}
	}
	return wins(written, d.low) && wins(written, d.high)
}

// sharesScope reports whether l may stand for m: whoever obeys m obeys l too, and lines of
// the policy do not depend on those of a merged file.
func (l *line) sharesScope(m *line) bool {
	return (l.of.scope == "" || l.of.scope == m.of.scope) && (l.of.applied != nil || m.of.applied == nil)
}

// rooted is the written text of a pattern from Rooted, "" for the normal form.
func (s *stated) rooted(p pathpattern.Pattern) string {
	switch {
	case s.written == "" || p == s.pattern:
		return s.written
	case p.String() == "/"+s.pattern.String():
		return "/" + s.written
	}
	return s.written[1:] // the one of "*/x" that is "/x"
}

func newLine(p pathpattern.Pattern, written string, s *stated) line {
	l := line{pattern: p, spelled: pathpattern.Spell(p, written), of: s}
	if l.texts = []string{l.spelled.Written}; !s.allow {
		l.texts = l.spelled.Prohibition()
	}
	l.low, l.high = p.Len(), p.Len()
	for _, t := range l.texts {
		l.low, l.high = min(l.low, len(t)), max(l.high, len(t))
	}
	return l
}

// written is the text of a pattern that is added for a line. For an Allow it has the Allow's spelling.
func (l *line) written(p pathpattern.Pattern) (text string, ok bool) {
	if !l.of.allow || l.spelled.Octets == 0 {
		return "", true
	}
	spelled := pathpattern.Spell(p, "")
	text = spelled.Like(&l.spelled)
	return text, text != ""
}

// mayReplace reports whether whoever obeys m also obeys l, and readers that understand m understand l.
func (l *line) mayReplace(m *line) bool {
	return l.sharesScope(m) && (l.pattern.IsPlain() || !m.pattern.IsPlain())
}

// coversTexts reports whether each unusual spelling of m is matched by a text of l, which
// readers that know no normal form need.
func (l *line) coversTexts(m *line) bool {
	if m.spelled.Octets == 0 && m.spelled.Written == m.spelled.Normal {
		return true
	}
	return !slices.ContainsFunc(m.texts, func(text string) bool {
		return !slices.ContainsFunc(l.texts, func(by string) bool { return pathpattern.Raw(by).Covers(pathpattern.Raw(text)) })
	})
}

// between reports whether a line of the other kind of n bytes loses to one of long bytes and wins over one of short.
func between(n, short, long int, allow bool) bool {
	if allow { // a tie allows
		return n > short && n <= long
	}
	return n >= short && n < long
}

func printed(l *line) []Line {
	key := "Disallow"
	if l.of.allow {
		key = "Allow"
	}
	lines := make([]Line, len(l.texts))
	for i, text := range l.texts {
		lines[i] = Line{Text: key + ": " + text, key: strings.ToLower(key), pattern: l.pattern, raw: pathpattern.Raw(text)}
		if p, err := pathpattern.Parse(text); err == nil {
			lines[i].pattern = p // a plain "*" is any text
		}
		if by := l.of.applied; by != nil {
			lines[i].Rule, lines[i].Statement, lines[i].Pos = by.Rule, by.Statement, by.Statement.Pos
		}
	}
	return lines
}

// loseSpellings notes where readers that compare URLs as they are sent find more disallowed than the
// policy does: other spellings of an Allow, and what a Disallow matches with a plain "*" for an octet,
// or with a "$" that some take for the end wherever it stands.
func (f *flattening) loseSpellings() {
	for i := range f.lines {
		l := &f.lines[i]
		if l.gone || l.spelled.Octets == 0 {
			continue
		}
		if l.of.allow {
			f.loseSpelling(l, l.pattern.String())
			continue
		}
		normal, decoded := l.pattern.String(), l.spelled.Decoded
		if decoded != "" && strings.Contains(normal, "%2A") {
			f.loseSpelling(l, decoded)
		}
		if open, anchored := strings.CutSuffix(normal, "%24$"); anchored {
			f.loseSpelling(l, open+"%24")
		}
		if to := strings.IndexByte(decoded, '$'); to >= 0 && strings.Contains(normal, "%24") {
			f.loseSpelling(l, decoded[:to+1])
		}
	}
}

func (f *flattening) loseSpelling(l *line, paths string) {
	if p, err := pathpattern.Parse(paths); err == nil {
		f.lose(l, p)
		f.losses[len(f.losses)-1].spelling = true
		f.losses[len(f.losses)-1].allow = l.of.allow
	}
}

// maxCounted bounds the reserved octets of which the spellings are counted.
const maxCounted = 12

// countSpellings notes the Disallow lines of which not all spellings are printed.
func (g *grouping) countSpellings(lines []line) {
	for i := range lines {
		l := &lines[i]
		if l.of.allow || l.spelled.Octets == 0 {
			continue
		}
		if l.spelled.Decoded == "" {
			h := policy.NewProblem(policy.Hint, "other-spelling", l.of.pos(),
				"crawlers that do not decode paths may fetch what %q disallows: with a plain * it would disallow the whole site to others; disallow a longer path", l.pattern)
			if !slices.Contains(g.problems, h) {
				g.problems = append(g.problems, h)
			}
		}
		if l.spelled.Octets > 1 {
			if g.mixed == nil {
				g.mixed = map[string]*line{}
				g.firstMixed = l
			}
			g.mixed[l.pattern.String()] = l
		}
	}
}

func (g *grouping) hintMixed() {
	if g.mixed == nil {
		return
	}
	l := g.firstMixed
	all := 1
	for range min(l.spelled.Octets, maxCounted) {
		all *= 3
	}
	g.report(policy.Hint, "other-spelling", l.of.pos(),
		"robots.txt has %d of %d spellings of %q%s; crawlers that compare URLs as they come may fetch it in one that mixes plain and encoded octets, and the server blocks them in every spelling; disallow a shorter path, before the first of these octets, if that matters",
		len(l.texts), all, l.spelled.Written, andMore(len(g.mixed)-1))
}

func andMore(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return ", and not all of another path"
	}
	return fmt.Sprintf(", and not all of %d other paths", n)
}

func spellingHint(l *Loss) policy.Problem {
	if l.allow {
		return policy.NewProblem(policy.Hint, "other-spelling", l.Pos, "robots.txt allows %q only as it is written: crawlers that compare URLs as they come may not fetch it in another spelling, which the server does not block", l.written)
	}
	return policy.NewProblem(policy.Hint, "other-spelling", l.Pos, "robots.txt has another spelling of %q for crawlers that do not decode paths, and to some that means %q: it is stricter than the policy there", l.Pattern, l.Paths)
}

// indexPage returns the directory of an Allow for an index page, or "". Google's parser also
// reads "Allow: /x/index.html" as "Allow: /x/$".
func (l *line) indexPage() string {
	text := l.pattern.String()
	i := strings.LastIndexByte(text, '/')
	if !l.of.allow || !strings.HasPrefix(text[i:], "/index.htm") {
		return ""
	}
	return text[:i+1]
}

// guardIndexPages closes directories whose index page is allowed by a Disallow that is longer than
// what Google's parser makes of the Allow, or leaves the Allow out where there is none:
//
//	disallow /x/, allow /x/a/index.html     →     Disallow: /x/*a/$
func (f *flattening) guardIndexPages() bool {
	from := len(f.lines)
	for i := range from {
		dir := f.lines[i].indexPage()
		if f.lines[i].gone || dir == "" {
			continue
		}
		d := f.decides(dir)
		if d == nil || d.low > len(dir)+1 {
			continue
		}
		rest, within := strings.CutPrefix(dir, d.pattern.String())
		if !within || rest == "" || strings.Contains(dir, "*") {
			f.lines[i].gone = true
			f.lose(&f.lines[i], f.lines[i].pattern)
			continue
		}
		f.add(pathpattern.MustParse(d.pattern.String()+"*"+rest+"$"), "", d.of)
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
