// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"cmp"
	"html"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/ascii"
	"github.com/robotspolicy/caddy-robots-policy/metainject/deflateedit"
	"github.com/robotspolicy/caddy-robots-policy/metainject/internal/headscan"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// Mode decides how the policy's meta tags are combined with robots meta tags that a page already has.
type Mode uint8

const (
	// Merge combines the page's rules with the policy's rules. If two rules differ, the more restrictive one applies.
	Merge Mode = iota
	// Replace replaces the page's elements with the policy's elements, and removes the page's elements for other
	// audiences. If the policy has no robots rules for the page, Replace is the same as Merge.
	Replace
	// Off does not change any page.
	Off
)

// An edit is a change of the page's bytes.
type edit = deflateedit.Edit

// editsOf appends to es the edits for a page whose head s has scanned. The edits are sorted by their position.
func editsOf(es []edit, s *headscan.Scanner, set *Set, mode Mode, fragments bool) []edit {
	if s.HeadAt < 0 || s.Foreign || !s.Document && !fragments {
		return es
	}
	if mode == Replace && set != nil && !set.robots {
		mode = Merge // the policy has no robots rules for the page, see Replace
	}
	if len(set.html) == 0 && len(s.Metas()) == 0 {
		return es
	}
	if s.Headless {
		start := "<head>"
		if s.HeadEnd > s.HeadAt {
			start = ">" // the end of the existing tag
		}
		return append(es, edit{Start: s.HeadAt, End: s.HeadEnd, Text: []byte(start + string(set.xhtml) + "</head>")})
	}
	if set.plain != nil && mode == Merge && set.lift&robotsrule.LiftIndex == 0 && slices.ContainsFunc(s.Metas(), func(f headscan.Meta) bool {
		return f.Audience != Everyone && robotsrule.Parse(f.Content).PlainNoindex()
	}) {
		set = set.plain
	}
	m := merger{Scanner: s, set: set, mode: mode}
	if len(s.Metas()) == 0 && (s.Charset == "" || !m.pushes(nil, len(m.all()))) {
		at := m.insertAt(nil, len(m.all()))
		return append(es, edit{Start: at, End: at, Text: m.all()})
	}
	n := len(es)
	es = m.merge(es, false)
	if m.pushesCharset(es[n:]) {
		es = m.merge(es[:n], true)
	}
	slices.SortStableFunc(es[n:], func(a, b edit) int { return cmp.Compare(a.Start, b.Start) })
	return es
}

// A merger computes the edits of one page.
type merger struct {
	*headscan.Scanner
	set    *Set
	mode   Mode
	insert strings.Builder // new elements
	// behindCharset means that elements before the declaration of the encoding are moved after it.
	behindCharset bool
}

// all returns all elements of the policy, in the syntax of the page.
func (m *merger) all() []byte {
	if m.XML() {
		return m.set.xhtml
	}
	return m.set.html
}

// insertAt returns the position for n new bytes. Normally this is the start of the head. In an AMP page, or if n bytes
// would push the declaration of the encoding beyond the first 1,024 bytes, the position is after that declaration.
func (m *merger) insertAt(es []edit, n int) int {
	if m.Charset == "" && (m.pushes(es, n) || m.AMP && m.CharsetEnd > 0 && m.inHead(m.CharsetEnd)) {
		return m.CharsetEnd
	}
	return m.HeadAt
}

// pushesCharset reports whether the edits push the declaration of the encoding beyond the first 1,024 bytes. Browsers
// do not look for a declaration after these bytes.
func (m *merger) pushesCharset(es []edit) bool {
	return m.Charset == "" && m.pushes(es, 0)
}

func (m *merger) pushes(es []edit, n int) bool {
	return m.CharsetEnd > 0 && m.CharsetEnd <= headscan.CharsetLimit && m.CharsetEnd+n+growth(es, m.CharsetEnd) > headscan.CharsetLimit
}

// inHead reports whether the position at is also in the head for parsers without scripting.
func (m *merger) inHead(at int) bool { return m.NoscriptAt < 0 || at <= m.NoscriptAt }

// growth returns the number of bytes that edits add to the part of the page before end.
func growth(es []edit, end int) (n int) {
	for _, e := range es {
		if e.End <= end && e.Start < end {
			n += len(e.Text) - (e.End - e.Start)
		}
	}
	return n
}

// merge combines all elements for each audience into one. It adds the edits for this to es.
func (m *merger) merge(es []edit, behindCharset bool) []edit {
	metas := m.Metas()
	for i := range metas {
		metas[i].Done = false
	}
	m.insert.Reset()
	m.behindCharset = behindCharset
	n := len(es)
	for i := range metas {
		if !metas[i].Done {
			es = m.mergeAudience(es, i)
		}
	}
	for i := range m.set.elements {
		p := &m.set.elements[i]
		if p.Silent || slices.ContainsFunc(metas, func(f headscan.Meta) bool { return f.Audience == p.lower }) {
			continue
		}
		if m.XML() {
			m.insert.WriteString(p.xhtml)
		} else {
			m.insert.WriteString(p.html)
		}
	}
	at := m.HeadAt
	if m.Charset != "" && m.pushes(es[n:], m.insert.Len()) {
		// The page declares its encoding outside the head, or where nothing can be inserted after the declaration. The new
		// elements would push the declaration beyond the first 1,024 bytes. So the declaration is repeated before them.
		rest := m.insert.String()
		m.insert.Reset()
		m.insert.WriteString(`<meta charset="` + html.EscapeString(m.Charset) + `">` + rest)
	}
	if m.insert.Len() > 0 {
		if at = m.insertAt(es[n:], m.insert.Len()); behindCharset {
			at = m.CharsetEnd
		}
		es = slices.Insert(es, n, edit{Start: at, End: at, Text: []byte(m.insert.String())})
	}
	if m.Implied && (m.insert.Len() == 0 || at != m.HeadAt) {
		// The head has no start tag, and the edits remove the element that opened it. So a start tag takes the place of this
		// element.
		for i := n; i < len(es); i++ {
			if e := &es[i]; e.Start == m.HeadAt && e.End > e.Start && len(e.Text) == 0 {
				e.Text = []byte("<head>")
			}
		}
	}
	return es
}

// mergeAudience combines all elements for one audience. first is the index of the first of these elements.
func (m *merger) mergeAudience(es []edit, first int) []edit {
	metas := m.Metas()
	f := &metas[first]
	content, count := m.contents(first)
	element, name := m.set.find(f.Audience), f.Audience
	if element != nil {
		name = element.Name
	}
	c := m.set.combined(f.Audience, content, element, m.mode)
	switch {
	case c.keep && (element == nil || count == 1 && f.Named && m.inHead(f.Start)):
		return es
	case c.value == "" || m.behindCharset && f.End <= m.CharsetEnd || !m.inHead(f.Start):
		es = append(es, edit{Start: f.Start, End: f.End, Text: m.rest(f, "")})
		if c.value != "" {
			m.insert.WriteString(renderValue(name, c.value, m.XML()))
		}
	case f.Named:
		es = append(es, edit{Start: f.ValueStart, End: f.ValueEnd, Text: c.quoted})
	default:
		es = append(es, edit{Start: f.Start, End: f.End, Text: m.rest(f, renderValue(name, c.value, m.XML()))})
	}
	for i := first + 1; count > 1; i++ {
		if g := &metas[i]; g.Audience == f.Audience {
			es = append(es, edit{Start: g.Start, End: g.End, Text: m.rest(g, "")})
			count--
		}
	}
	return es
}

// rest returns the bytes that replace the page's element f. These are the argument text and, if f also declares the
// encoding, a declaration of the encoding before it.
func (m *merger) rest(f *headscan.Meta, text string) []byte {
	if f.Charset == "" {
		return []byte(text)
	}
	end := `">`
	if m.XML() {
		end = `"/>`
	}
	return []byte(`<meta charset="` + html.EscapeString(f.Charset) + end + text)
}

// contents joins the rules of all elements for one audience, and returns the number of these elements. first is the
// index of the first of them.
func (m *merger) contents(first int) (content string, count int) {
	metas := m.Metas()
	var joined strings.Builder
	for i := first; i < len(metas); i++ {
		g := &metas[i]
		if g.Audience != metas[first].Audience {
			continue
		}
		g.Done = true
		switch count++; count {
		case 1:
			content = g.Content
			continue
		case 2:
			joined.WriteString(content)
		}
		joined.WriteString(",")
		joined.WriteString(g.Content)
	}
	if count > 1 {
		content = joined.String()
	}
	return content, count
}

// combine returns the new rules of a page's elements for one audience. content is the text of their present rules, and
// have is the parsed content. element is the policy's element for the audience, or nil. denied holds the policy's other
// rules that the audience obeys (see deniedTo). If the returned set is empty, the caller removes the page's elements.
// If keep is true, the elements already have the new rules in a spelling that every engine understands.
//
// Elements for one crawler need not repeat the rules for everyone, because crawlers combine both. But two kinds of
// rules must be removed from elements for one crawler, because some engines obey the rule that allows more. One kind
// allows something, such as "index", that the rules in denied forbid. The other kind is indexifembedded, if the rules
// in denied have a noindex without indexifembedded.
func combine(have robotsrule.Set, content string, element *prepared, denied robotsrule.Set, mode Mode) (want robotsrule.Set, keep bool) {
	if mode == Replace {
		if element == nil {
			return robotsrule.Set{}, false
		}
		return element.Rules, have.Equal(element.Rules) && robotsrule.IsCanonical(content) && !permits(content, have, have)
	}
	want = have
	if element != nil {
		want = want.Union(element.Rules)
	}
	if all := want.Union(denied); permits(content, have, all) || want.Has("indexifembedded") && all.PlainNoindex() {
		if !want.Has("indexifembedded") {
			all = all.WithoutEmbedding() // the page may have a noindex for everyone, which indexifembedded would weaken
		}
		return all, false
	}
	return want, want.Equal(have) && (element == nil || robotsrule.IsCanonical(content))
}

var permissive = [...]string{"all", "index", "follow", "snippet", "archive", "cache", "translate", "imageindex"}

// permits reports whether content has a permission, such as "index", that is not in rules. have is the parsed content.
func permits(content string, have, rules robotsrule.Set) bool {
	for _, word := range permissive {
		if have.Has(word) && !rules.Has(word) {
			return true
		}
	}
	for part := range strings.SplitSeq(content, ",") {
		part = strings.TrimFunc(part, func(r rune) bool { return r <= ' ' || r == 0x7f || r == ':' || r == '=' })
		for _, word := range permissive {
			if ascii.EqualFold(part, word) && !rules.Has(word) {
				return true
			}
		}
	}
	return false
}
