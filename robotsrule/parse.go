// SPDX-License-Identifier: Apache-2.0

package robotsrule

import (
	"strconv"
	"strings"
)

// Parse reads a list of rules as in the content of a robots meta element or in X-Robots-Tag, after the user
// agent. It never fails:
//
//   - names are read in any case, and "=" as ":"; none is noindex, nofollow;
//   - the date of unavailable_after may be in RFC 822, RFC 850 or ISO 8601 form, with its commas; without a
//     time it is the start of that day, without a zone UTC;
//   - a number that is too large is the largest that can be written;
//   - a bare rule with a value (noindex:true) is the rule;
//   - an unknown rule, or a known one with a value that no engine understands, stays as written, unless the
//     rule has a proper value too.
//
// indexifembedded belongs to the noindex of the same list: join the lists of one author and audience with
// commas before parsing them.
func Parse(s string) Set {
	var set Set
	var words []string
	for s != "" {
		var e element
		e, s = nextElement(s)
		for e.name != "" {
			if !set.add(e) {
				words = append(words, e.word())
				break
			}
			if e.sep != ':' || takesValue(e.name) {
				break
			}
			// What follows the colon of a bare rule can be one more rule.
			e, _ = nextElement(e.value)
		}
	}
	set.other = joinWords(words)
	return set.canonical()
}

// element is one member of a list of rules.
type element struct {
	name   string // in lowercase
	sep    byte   // ':' or '=', or 0 for a bare name
	value  string
	isDate bool // value, of an unavailable_after, was read into date
	date   date
}

func (e element) word() string {
	if e.sep == 0 || e.value == "" {
		return e.name
	}
	return e.name + ":" + e.value
}

// nextElement takes the first member off a list. Its name is empty between two commas.
func nextElement(s string) (e element, rest string) {
	s = strings.TrimLeftFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f || r == ':' || r == '=' })
	first, rest, _ := strings.Cut(s, ",")
	first = clean(first)
	i := strings.IndexAny(first, ":=")
	if i < 0 {
		return element{name: lower(first)}, rest
	}
	e = element{name: lower(strings.TrimRight(first[:i], " ")), sep: first[i]}
	e.value = strings.Trim(first[i+1:], ` "'`)
	if e.name != "unavailable_after" {
		return e, rest
	}
	// The date may hold a comma; the longest text that is a date wins.
	value := s[strings.IndexAny(s, ":=")+1:]
	for end := nthComma(value, 2); end >= 0; end = strings.LastIndexByte(value[:end], ',') {
		text := strings.Trim(clean(value[:end]), ` "'`)
		if d, ok := parseDate(text); ok {
			e.value, e.date, e.isDate = text, d, true
			return e, strings.TrimPrefix(value[end:], ",")
		}
	}
	return e, rest
}

// nthComma is the index of the nth comma in s, or the length of s.
func nthComma(s string, n int) int {
	for i := range len(s) {
		if s[i] == ',' {
			if n--; n == 0 {
				return i
			}
		}
	}
	return len(s)
}

// takesValue reports whether a rule has a value.
func takesValue(name string) bool {
	return strings.HasPrefix(name, "max-") || name == "unavailable_after"
}

// add adds a known rule, and reports whether it is one, with a value that can be understood.
func (s *Set) add(e element) bool {
	switch e.name {
	case "noindex":
		s.noindex()
	case "none":
		s.noindex()
		s.flags |= nofollow
	case "indexifembedded":
		s.embedded()
	case "max-snippet":
		return addLimit(&s.snippet, e.value)
	case "max-video-preview":
		return addLimit(&s.video, e.value)
	case "max-image-preview":
		for v := imageLarge; v <= imageNone; v++ {
			if imageNames[v] == lower(e.value) {
				s.image = max(s.image, v)
				return true
			}
		}
		return false
	case "unavailable_after":
		if e.isDate && (s.expires == 0 || e.date.unix+1 < s.expires) {
			s.expires = e.date.unix + 1
		}
		return e.isDate
	default:
		for i, n := range flagNames {
			if n == e.name {
				s.flags |= 1 << i
				return true
			}
		}
		return false
	}
	return true
}

// noindex and embedded record the two words of one list, in either order.
func (s *Set) noindex() {
	switch s.index {
	case embeddedOnlyWord:
		s.index = noindexEmbedded
	case indexUnsaid:
		s.index = noindexPlain
	}
}

func (s *Set) embedded() {
	switch s.index {
	case noindexPlain:
		s.index = noindexEmbedded
	case indexUnsaid:
		s.index = embeddedOnlyWord
	}
}

func addLimit(to *int64, value string) bool {
	n, ok := parseNumber(value)
	if ok {
		*to = stricterLimit(*to, limit(n))
	}
	return ok
}

func parseNumber(value string) (int64, bool) {
	if value == "-1" {
		return -1, true
	}
	if value == "" || strings.Trim(value, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n > maxNumber {
		return maxNumber, true
	}
	return n, true
}
