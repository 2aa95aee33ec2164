// SPDX-License-Identifier: Apache-2.0

package robotsrule

import (
	"fmt"
	"slices"
	"strings"
)

// documented are the rules that search engines document, with the values they take.
// Google: https://developers.google.com/search/docs/crawling-indexing/robots-meta-tag
// Bing: https://www.bing.com/webmasters/help/which-robots-metatags-does-bing-support-5198d240
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

// ParseStrict reads a list as Parse does, but only documented rules with documented values. The error names the
// rule and what would be accepted. A date needs its time and zone, because engines do not say what they assume.
// A rule with two values, a permissive word beside its contrary, and indexifembedded without noindex are errors.
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
		// Only a list that ends with a comma has an empty rest and a member to come.
		more = rest != "" || strings.HasSuffix(s, ",")
		s = rest
		if err := e.check(); err != nil {
			return Set{}, err
		}
		value := lower(e.value)
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

// check reports whether e is a documented rule with a documented value.
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
			return fmt.Errorf("%q is not a rule; to write %s for one crawler only, name the crawler as the rule's audience", e.name, e.value)
		}
	}
	names := make([]string, len(documented))
	for i, d := range documented {
		names[i] = d.name
	}
	return fmt.Errorf("%q is not a rule that a search engine documents; those are %s", e.name, strings.Join(names, ", "))
}

// consistent looks for words that cannot both be meant.
func (s Set) consistent(seen map[string]string) error {
	_, none := seen["none"]
	for _, word := range []string{"index", "follow"} {
		_, yes := seen[word]
		_, no := seen["no"+word]
		if yes && (no || none) {
			return fmt.Errorf("%s and its contrary are both given; leave one out", word)
		}
	}
	if _, all := seen["all"]; all && s.restricts(s.words()) {
		return fmt.Errorf("all says that nothing is restricted, but another rule restricts; leave one out")
	}
	if s.index == embeddedOnlyWord {
		return fmt.Errorf("indexifembedded is an exception to noindex; write noindex, indexifembedded")
	}
	return nil
}

// IsCanonical reports whether every known rule of a list is spelled as search engines document it, in any case and
// with white space around it, so that they read it as Parse does. Parse also reads "noindex=false" and "noindex:
// nofollow" as noindex, where an engine may ignore the word.
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
	for i := range len(text) {
		if text[i] < ' ' || text[i] == 0x7f {
			return false
		}
	}
	text = lower(text)
	if e.sep == 0 {
		return text == e.name
	}
	value, ok := strings.CutPrefix(text, e.name+":")
	if !ok || !takesValue(e.name) || strings.TrimLeft(value, " ") != lower(e.value) {
		return false
	}
	if n, ok := parseNumber(e.value); ok && e.name != "unavailable_after" {
		return number(limit(n)) == e.value
	}
	return !e.isDate || e.date.exact && !e.date.localZone
}
