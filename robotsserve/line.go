// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
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

// mayReplace reports whether whoever obeys m also obeys l, and readers that understand m
// understand l.
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

// between reports whether a line of the other kind of n bytes loses to one of long bytes and
// wins over one of short.
func between(n, short, long int, allow bool) bool {
	if allow { // a tie allows
		return n > short && n <= long
	}
	return n >= short && n < long
}
