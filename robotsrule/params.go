// SPDX-License-Identifier: Apache-2.0

package robotsrule

import (
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/ascii"
)

// Params returns the rules as Parameters of Robots-Tag members (draft-illyes-repext-03). Rules without a value are
// true, numbers are Integers, and the value of max-image-preview is a Token. The date is a String in ISO 8601 form. It
// is not a Date, because the draft refers to RFC 8941, which does not have Dates. A parser for RFC 8941 would discard
// the whole field.
//
// Usually there is one member, or none. If a rule has several values, for example a valid and a malformed one, each
// further value needs its own member. These members come first, because readers of draft -02 read the field as a
// Dictionary and use only the last member.
//
// Permissive words are left out, because in the draft all rules are restrictive. Unknown rules that RFC 8941 cannot
// express are left out, too. The order is always the same.
func (s Set) Params() (members []*httpsfv.Params) {
	p := httpsfv.NewParams()
	if s.index >= noindexEmbedded {
		p.Add("noindex", true)
	}
	for i, n := range flagNames {
		if s.flags&(1<<i) != 0 {
			p.Add(n, true)
		}
	}
	for i, size := range s.sizes {
		switch {
		case size == limitUnsaid:
		case i == image:
			p.Add(sizeNames[i], httpsfv.Token(imageNames[size]))
		default:
			p.Add(sizeNames[i], numberOf(size))
		}
	}
	if t, ok := s.UnavailableAfter(); ok {
		p.Add("unavailable_after", t.Format(time.RFC3339))
	}
	for _, w := range s.words() {
		name, value, ok := wordItem(w)
		if !ok {
			continue
		}
		to := p
		if had, taken := p.Get(name); taken {
			if reflect.DeepEqual(had, value) {
				continue
			}
			to = httpsfv.NewParams()
			members = append(members, to)
		}
		to.Add(name, value)
	}
	if len(p.Names()) > 0 {
		members = append(members, p)
	}
	return members
}

// ParamsLose returns the unknown rules that Params leaves out, in the spelling of X-Robots-Tag, or nil. It does not
// return permissive words.
func (s Set) ParamsLose() (lost []string) {
	for _, w := range s.words() {
		if _, _, ok := wordItem(w); !ok && !permissive(w) {
			lost = append(lost, w)
		}
	}
	return lost
}

func wordItem(w string) (name string, value any, ok bool) {
	name, valued := wordName(w)
	if !isKey(name) || !valued && permissive(name) {
		return name, nil, false
	}
	if !valued {
		return name, true, true
	}
	text := w[len(name)+1:]
	if w[len(name)] == '=' {
		item, err := httpsfv.UnmarshalItem([]string{text})
		return name, item.Value, err == nil
	}
	// A malformed value of a known rule is written as text, so that its type does not change.
	if item, err := httpsfv.UnmarshalItem([]string{text}); err == nil && len(item.Params.Names()) == 0 && !takesValue(name) {
		switch v := item.Value.(type) {
		case int64, httpsfv.Token:
			return name, v, true
		}
	}
	if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' }) {
		if !takesValue(name) {
			return name, nil, false
		}
		text = url.PathEscape(text) // a String cannot contain such characters, and a changed value is better than none
	}
	return name, text, true
}

// isKey reports whether name is a key of RFC 8941 §3.1.2.
func isKey(name string) bool {
	if name == "" || name[0] != '*' && (name[0] < 'a' || name[0] > 'z') {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_-.*") == ""
}

// FromParams reads the parameters of a Robots-Tag member. It never fails:
//   - A rule that does not take a value applies even if it has one, such as false. If the value is the name of another
//     rule, that rule also applies.
//   - A number may also be a Decimal, whose fraction is dropped, or a text.
//   - A date may be a Date, a String or a Token.
//   - Unknown rules and values keep their type, except that a Date and a Display String become Strings, because RFC
//     8941 does not define the types Date and Display String.
func FromParams(p *httpsfv.Params) Set {
	var set, more Set
	if p == nil {
		return set
	}
	var words []string
	for _, name := range p.Names() {
		v, _ := p.Get(name)
		e := paramElement(name, v)
		switch {
		case !set.add(e):
			words = append(words, paramWord(name, v))
		case e.value != "" && !takesValue(e.name):
			more = more.Union(Parse(e.value).WithoutUnknown().Restrictive())
		}
	}
	set.other = joinWords(words)
	return set.canonical().Union(more)
}

func paramElement(name string, v any) element {
	e := element{name: ascii.Lower(name), sep: '='}
	switch v := v.(type) {
	case int64:
		if v >= -1 {
			e.value = strconv.FormatInt(v, 10)
		}
	case float64:
		if v >= 0 {
			e.value = strconv.FormatInt(int64(min(v, maxNumber)), 10)
		}
	case string:
		e.value = strings.TrimSpace(v)
	case httpsfv.Token:
		e.value = string(v)
	case time.Time:
		e.isDate, e.date = true, date{unix: clampDate(v.Unix())}
		return e
	}
	if e.name == "unavailable_after" {
		switch v.(type) {
		case string, httpsfv.Token:
			e.date, e.isDate = parseDate(e.value)
		}
	}
	return e
}

// paramWord returns an unknown parameter as text, which is how a Set stores unknown rules.
func paramWord(name string, v any) string {
	switch x := v.(type) {
	case bool:
		if x {
			return name
		}
	case time.Time:
		v = x.UTC().Format(time.RFC3339)
	case httpsfv.DisplayString:
		text, err := httpsfv.Marshal(httpsfv.NewItem(x))
		if err != nil {
			return name
		}
		v = strings.TrimSuffix(strings.TrimPrefix(text, `%"`), `"`)
	}
	// If possible, the word has the form "name:value", because it then equals the word of the same rule in
	// X-Robots-Tag.
	word := fmt.Sprint(name, ":", v)
	if _, back, ok := wordItem(word); ok && back == v && Parse(word).other == word {
		return word
	}
	text, err := httpsfv.Marshal(httpsfv.NewItem(v))
	if err != nil {
		return name
	}
	return name + "=" + text
}
