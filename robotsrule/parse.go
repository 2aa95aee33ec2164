// SPDX-License-Identifier: Apache-2.0

package robotsrule

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/ascii"
)

// Parse reads a list of rules in the syntax of a robots meta tag's content. X-Robots-Tag has the same syntax after the
// user agent. Parse never fails:
//
//   - Names may have any case. "=" means the same as ":". The rule "none" means "noindex" and "nofollow".
//   - The date of unavailable_after may have the form of RFC 822, RFC 850, ISO 8601 or asctime, or begin with the
//     month. It may contain commas. A date without a time is the start of the day. A date without a zone is in UTC.
//   - A number that is too large is replaced with the largest valid number.
//   - A rule that does not take a value applies even if the list gives it one (noindex:true).
//   - Unknown rules, and known rules with an unreadable value, are kept unchanged.
//
// indexifembedded weakens only a noindex in the same list. So before parsing, join the lists that one author wrote for
// one audience with commas.
func Parse(s string) Set {
	var set Set
	var words []string
	for s != "" {
		var e element
		e, s = nextElement(s)
		for text := true; e.name != ""; {
			if !set.add(e) {
				if text {
					words = append(words, e.word())
				}
				break
			}
			if e.sep == 0 || takesValue(e.name) {
				break
			}
			// After a rule that takes no value, the text behind a colon may be another rule. The text behind an equals
			// sign is always a value.
			text = text && e.sep == ':'
			value := e.value
			if e = elementOf(value); takesValue(e.name) {
				e, _ = nextElement(value)
			}
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
	isDate bool // value is the date of an unavailable_after, which was parsed into date
	date   date
}

func (e element) word() string {
	if e.sep == 0 || e.value == "" {
		return e.name
	}
	return e.name + ":" + e.value
}

// nextElement splits off the first member of a list. If there is no text before the next comma, the name of e is empty.
func nextElement(s string) (e element, rest string) {
	s = strings.TrimLeftFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f || r == ':' || r == '=' })
	first, rest, _ := strings.Cut(s, ",")
	if e = elementOf(clean(first)); e.name != "unavailable_after" || e.sep == 0 {
		return e, rest
	}
	// The date may contain commas, so the longest text that is a date is used. If no text is a date, the whole
	// value is kept.
	value := s[strings.IndexAny(s, ":=")+1:]
	most := dateEnd(value)
	for end := most; end >= 0; end = strings.LastIndexByte(value[:end], ',') {
		text := strings.Trim(clean(value[:end]), ` "'`)
		if d, ok := parseDate(text); ok {
			e.value, e.date, e.isDate = text, d, true
			return e, strings.TrimPrefix(value[end:], ",")
		}
	}
	e.value = strings.Trim(clean(value[:most]), ` "'`)
	return e, strings.TrimPrefix(value[most:], ",")
}

// elementOf parses a member without commas that contains no date. text must be a result of the function clean.
func elementOf(text string) element {
	text = strings.TrimLeft(text, " :=")
	i := strings.IndexAny(text, ":=")
	if i < 0 {
		return element{name: ascii.Lower(text)}
	}
	name := ascii.Lower(strings.TrimRight(text[:i], " "))
	return element{name: name, sep: text[i], value: strings.Trim(text[i+1:], ` "'`)}
}

// datePart matches the beginning of a part of a date after a comma: a number, or the name of a month.
var datePart = regexp.MustCompile(`(?i)^[\x00-\x20]*(?:[0-9]+(?:z\b|[^0-9a-z=]|$)|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?[\x00-\x20]+[0-9])`)

// dateEnd returns the index of the comma that ends a date, or the length of s. A date contains at most two commas.
func dateEnd(s string) int {
	end := 0
	for range 3 {
		i := strings.IndexByte(s[end:], ',')
		if i < 0 {
			return len(s)
		}
		if end += i; !datePart.MatchString(s[end+1:]) {
			return end
		}
		end++
	}
	return end - 1
}

func takesValue(name string) bool {
	return strings.HasPrefix(name, "max-") || name == "unavailable_after"
}

// add adds a known rule. It returns false if the rule is unknown or its value cannot be read.
func (s *Set) add(e element) bool {
	switch e.name {
	case "noindex":
		s.noindex()
	case "none":
		s.noindex()
		s.flags |= nofollow
	case "indexifembedded":
		s.embedded()
	case "unavailable_after":
		if e.isDate && (s.expires == 0 || e.date.unix+1 < s.expires) {
			s.expires = e.date.unix + 1
		}
		return e.isDate
	default:
		if i := slices.Index(flagNames[:], e.name); i >= 0 {
			s.flags |= 1 << i
			return true
		}
		return s.addSize(e)
	}
	return true
}

// noindex adds the rule noindex to s, as part of parsing a list. The method embedded adds indexifembedded. These two
// methods may be called in any order.
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

// addSize adds the rule in e if it limits a size. It returns false if the rule does not limit a size, or if the value
// cannot be read.
func (s *Set) addSize(e element) bool {
	i := slices.Index(sizeNames[:], e.name)
	if i < 0 {
		return false
	}
	n, ok := parseNumber(e.value)
	size := limit(n)
	if i == image {
		size = int64(slices.Index(imageNames[:], ascii.Lower(e.value)))
		ok = size > limitUnsaid
	}
	if ok {
		s.sizes[i] = stricterLimit(s.sizes[i], size)
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

// documented lists the rules that search engines document, with their possible values. Documents of Google and Bing:
// https://developers.google.com/search/docs/crawling-indexing/robots-meta-tag and
// https://www.bing.com/webmasters/help/which-robots-metatags-does-bing-support-5198d240
var documented = []documentedRule{
	{"all", ""},
	{"follow", ""},
	{"index", ""},
	{"indexifembedded", ""},
	{"max-image-preview", "none, standard or large"},
	{"max-snippet", "a number of characters, 0 for no snippet or -1 for no limit"},
	{"max-video-preview", "a number of seconds, 0 for a still image or -1 for no limit"},
	{"noarchive", ""},
	{"nocache", ""},
	{"nofollow", ""},
	{"noimageindex", ""},
	{"noindex", ""},
	{"none", ""},
	{"noodp", ""},
	{"nosnippet", ""},
	{"notranslate", ""},
	{"unavailable_after", "a date with time and zone such as 2026-12-31T23:59:59Z"},
}

type documentedRule struct{ name, value string }

// ParseStrict parses a list like Parse, but accepts only documented rules with documented values. The error names
// the rule and the valid values. A date must have a time and a zone, because engines do not document their
// defaults. It is also an error if a rule has two values, a permissive word is combined with its opposite, or
// indexifembedded comes without noindex.
func ParseStrict(s string) (Set, error) {
	var set Set
	seen := map[string]string{}
	if clean(s) == "" {
		return Set{}, fmt.Errorf("no rule is given; write one such as noindex or max-snippet:20")
	}
	for more := true; more; {
		if first, _, _ := strings.Cut(s, ","); clean(first) == "" {
			return Set{}, fmt.Errorf("a rule is missing before or after a comma")
		}
		e, rest := nextElement(s)
		// If the list ends with a comma, rest is empty, but there is one more member, which is empty.
		more = rest != "" || strings.HasSuffix(s, ",")
		s = rest
		if err := e.check(); err != nil {
			return Set{}, err
		}
		value := ascii.Lower(e.value)
		if before, ok := seen[e.name]; ok && before != value {
			return Set{}, fmt.Errorf("%s is given twice, as %q and as %q; write it once", e.name, before, value)
		}
		seen[e.name] = value
		if !set.add(e) {
			set.other = mergeWords(set.other, e.name)
		}
	}
	if err := set.consistent(seen); err != nil {
		return Set{}, err
	}
	return set.canonical(), nil
}

func (e element) check() error {
	i := slices.IndexFunc(documented, func(d documentedRule) bool { return d.name == e.name })
	if i < 0 {
		return e.unknown()
	}
	accepts := documented[i].value
	switch {
	case e.sep == '=':
		return fmt.Errorf("write %s:%s with a colon, not with an equals sign", e.name, e.value)
	case accepts == "" && e.sep != 0:
		return fmt.Errorf("%s takes no value, but has %q; put a comma between two rules", e.name, e.value)
	case accepts == "":
		return nil
	case e.value == "":
		return fmt.Errorf("%s needs a value: %s", e.name, accepts)
	case e.isDate && !e.date.exact:
		return fmt.Errorf("unavailable_after needs the time and the zone as well, not only %q; for the end of a day write it as 2026-12-31T23:59:59Z", e.value)
	}
	var probe Set
	if !probe.add(e) {
		return fmt.Errorf("%s cannot be %q; it takes %s", e.name, e.value, accepts)
	}
	return nil
}

func (e element) unknown() error {
	if e.sep == ':' {
		if inner, _ := nextElement(e.value); inner.check() == nil {
			return fmt.Errorf("%q is not a rule; to write %s for one crawler only, name the crawler under \"for\"", e.name, e.value)
		}
	}
	names := make([]string, len(documented))
	for i, d := range documented {
		names[i] = d.name
	}
	return fmt.Errorf("%q is not a rule that a search engine documents; write one of the documented rules: %s", e.name, strings.Join(names, ", "))
}

// consistent returns an error if the list contains contradictory rules.
func (s Set) consistent(seen map[string]string) error {
	_, none := seen["none"]
	for _, word := range []string{"index", "follow"} {
		_, yes := seen[word]
		_, no := seen["no"+word]
		if yes && (no || none) {
			return fmt.Errorf("%s and its opposite are both given; leave one out", word)
		}
	}
	if _, all := seen["all"]; all && s.restricts(s.words()) {
		return fmt.Errorf("\"all\" means that nothing is restricted, but another rule restricts something; leave one of them out")
	}
	if s.index == embeddedOnlyWord {
		return fmt.Errorf("indexifembedded is an exception to noindex; write noindex, indexifembedded")
	}
	return nil
}

// IsCanonical reports whether every known rule of a list has the spelling that search engines document, so that
// they read the list like Parse. Case and white space around a rule do not matter. It returns false for
// "noindex=false" and "noindex: nofollow", which Parse reads as noindex, but engines may ignore.
func IsCanonical(list string) bool {
	for list != "" {
		e, rest := nextElement(list)
		text := strings.Trim(strings.TrimSuffix(list[:len(list)-len(rest)], ","), " \t\n\f\r")
		if !e.isCanonical(text) {
			return false
		}
		list = rest
	}
	return true
}

func (e element) isCanonical(text string) bool {
	if probe := (Set{}); !probe.add(e) {
		return true
	}
	if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return false
	}
	text = ascii.Lower(text)
	if e.sep == 0 {
		return text == e.name
	}
	value, ok := strings.CutPrefix(text, e.name+":")
	if !ok || !takesValue(e.name) || strings.TrimLeft(value, " ") != ascii.Lower(e.value) {
		return false
	}
	if n, ok := parseNumber(e.value); ok && e.name != "unavailable_after" {
		return strconv.FormatInt(n, 10) == e.value
	}
	return !e.isDate || e.date.exact && !e.date.localZone
}
