// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"cmp"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// Mode is what becomes of the robots meta elements that a page has already.
type Mode uint8

const (
	// Merge combines them with the policy's to the most restrictive.
	Merge Mode = iota
	// Replace puts the policy's in their place; those of audiences that the
	// policy says nothing about are taken out.
	Replace
	// Off leaves every page as it is.
	Off
)

// charsetLimit is how many bytes of a page a browser reads to find the meta
// element that declares the encoding
// (https://html.spec.whatwg.org/multipage/semantics.html#charset).
const charsetLimit = 1024

// An edit replaces the page's bytes from start up to end by text.
type edit struct {
	start, end int
	text       []byte
}

// edits appends to es, in the order of the page, what has to change in a page
// whose head has been scanned.
func (s *scanner) edits(es []edit, mode Mode, fragments bool) []edit {
	if s.headAt < 0 || s.foreign || !s.document && !fragments {
		return es
	}
	if s.open { // where it ends has not been seen
		s.metas, s.open = s.metas[:len(s.metas)-1], false
	}
	if len(s.metas) == 0 {
		at := s.insertAt(nil, len(s.all()))
		return append(es, edit{at, at, s.all()})
	}
	n := len(es)
	es = s.merge(es, mode, 0)
	if s.pushesCharset(es[n:]) {
		es = s.merge(es[:n], mode, s.charsetEnd)
	}
	slices.SortStableFunc(es[n:], func(a, b edit) int { return cmp.Compare(a.start, b.start) })
	return es
}

// all is every element of the policy.
func (s *scanner) all() []byte {
	if s.xml {
		return s.set.xhtml
	}
	return s.set.html
}

// insertAt is the place for n new bytes: where the head's content begins, but
// after the element that declares the encoding if that would be pushed out of
// the bytes in which browsers look for it.
func (s *scanner) insertAt(es []edit, n int) int {
	if s.charsetEnd > 0 && s.charsetEnd <= charsetLimit && s.charsetEnd+n+grown(es, s.charsetEnd) > charsetLimit {
		return s.charsetEnd
	}
	return s.headAt
}

func (s *scanner) pushesCharset(es []edit) bool {
	return s.charsetEnd > 0 && s.charsetEnd <= charsetLimit && s.charsetEnd+grown(es, s.charsetEnd) > charsetLimit
}

// grown is by how much the edits lengthen the page up to end.
func grown(es []edit, end int) (n int) {
	for _, e := range es {
		if e.end <= end && e.start < end {
			n += len(e.text) - (e.end - e.start)
		}
	}
	return n
}

// merge makes one element of all that speak to one audience. Elements that end
// up to moveBefore are taken out and put in anew behind it, instead of being
// changed where they are.
func (s *scanner) merge(es []edit, mode Mode, moveBefore int) []edit {
	for i := range s.metas {
		s.metas[i].handled = false
	}
	n := len(es)
	var insert strings.Builder
	for i := range s.metas {
		if !s.metas[i].handled {
			es = s.mergeAudience(es, i, mode, moveBefore, &insert)
		}
	}
	for i := range s.set.elements {
		p := &s.set.elements[i]
		if slices.ContainsFunc(s.metas, func(f found) bool { return f.audience == p.lower }) {
			continue
		}
		if s.xml {
			insert.WriteString(p.xhtml)
		} else {
			insert.WriteString(p.html)
		}
	}
	at := s.headAt
	if insert.Len() > 0 {
		if at = s.insertAt(es[n:], insert.Len()); moveBefore > 0 {
			at = moveBefore
		}
		es = slices.Insert(es, n, edit{at, at, []byte(insert.String())})
	}
	if s.implied && (insert.Len() == 0 || at != s.headAt) {
		// The element that opened the head may be gone.
		for i := n; i < len(es); i++ {
			if e := &es[i]; e.start == s.headAt && e.end > e.start && len(e.text) == 0 {
				e.text = []byte("<head>")
			}
		}
	}
	return es
}

// mergeAudience handles the first element for an audience and all others for
// the same one.
func (s *scanner) mergeAudience(es []edit, first int, mode Mode, moveBefore int, insert *strings.Builder) []edit {
	f := &s.metas[first]
	content, count := s.contents(first)
	element, name := s.set.find(f.audience), f.audience
	if element != nil {
		name = element.name
	}
	c := s.set.combined(f.audience, content, element, mode)
	switch {
	case c.keep && (element == nil || count == 1 && f.carrier):
		return es
	case c.value == "" || f.end <= moveBefore:
		es = append(es, edit{f.start, f.end, nil})
		if c.value != "" {
			insert.WriteString(renderValue(name, c.value, s.xml))
		}
	case f.carrier:
		text := c.quoted
		if f.bare {
			text = append([]byte("="), text...)
		}
		es = append(es, edit{f.valueAt, f.valueEnd, text})
	default:
		es = append(es, edit{f.start, f.end, []byte(renderValue(name, c.value, s.xml))})
	}
	for i := first + 1; count > 1; i++ {
		if g := &s.metas[i]; g.audience == f.audience {
			es = append(es, edit{g.start, g.end, nil})
			count--
		}
	}
	return es
}

// contents joins what the elements for the audience of the first say, which
// counts as one list of rules.
func (s *scanner) contents(first int) (content string, count int) {
	var joined strings.Builder
	for i := first; i < len(s.metas); i++ {
		g := &s.metas[i]
		if g.audience != s.metas[first].audience {
			continue
		}
		g.handled = true
		switch count++; count {
		case 1:
			content = g.content
			continue
		case 2:
			joined.WriteString(content)
		}
		joined.WriteString(",")
		joined.WriteString(g.content)
	}
	if count > 1 {
		content = joined.String()
	}
	return content, count
}

// combine tells what the elements for an audience, which have these rules and
// this content, have to say; keep tells that they say it already. Empty rules
// mean that they have to go.
//
// Readers add up the rules for everyone and those for one crawler, so that the
// latter need not repeat the former. Only a permission that everyone's rules
// deny, such as "index", must not stay: some engines let it win.
func combine(have robotsrule.Set, content string, element *prepared, everyone robotsrule.Set, mode Mode) (want robotsrule.Set, keep bool) {
	if mode == Replace {
		if element == nil {
			return robotsrule.Set{}, false
		}
		return element.rules, have.Equal(element.rules) && !permits(content, have, have)
	}
	want = have
	if element != nil {
		want = want.Union(element.rules)
	}
	if all := want.Union(everyone); permits(content, have, all) {
		return all, false
	}
	return want, want.Equal(have)
}

var permissive = [...]string{"all", "index", "follow", "snippet", "archive", "cache", "translate", "imageindex"}

// permits tells whether content, which means have, has a permissive word that
// rules deny. Where have denies it itself, only content still has the word.
func permits(content string, have, rules robotsrule.Set) bool {
	for _, word := range permissive {
		if have.Has(word) && !rules.Has(word) {
			return true
		}
	}
	for part := range strings.SplitSeq(content, ",") {
		part = strings.TrimFunc(part, func(r rune) bool { return isGap(r) || r == ':' || r == '=' })
		for _, word := range permissive {
			if equalFold(part, word) && !rules.Has(word) {
				return true
			}
		}
	}
	return false
}
