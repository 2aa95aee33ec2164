// SPDX-License-Identifier: Apache-2.0

package crawlertest

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// OddDates lists dates in formats that a reader may or may not know.
var OddDates = []string{
	"20261226T120000Z", "20261226T1200Z", "20261226", "2026-W52-6", "2026-360", "2026-12-26t12:00:00z", "2026-12-26T12:00:00 Europe/Berlin", "2026/12/26", "26.12.2026", "12/26/2026", "1798286400",
	"Sat Dec 26 12:00:00 2026", "Sat Dec 26 12:00:00 CET 2026", "Sat Dec 26 12:00:00 XYZ 2026", "December 26, 2026", "Saturday, December 26, 2026", "Dec. 26, 2026 12:00", "December 26th, 2026", "26 décembre 2026", "26 dec 2026", "26. Dezember 2026",
	"Sat, 26 Dec 2026 12:00:00 America/New_York", "Sat, 26 Dec 2026 12:00:00 ACST", "Sat, 26 Dec 2026 12:00:00 UT", "Sat, 26 Dec 2026 12:00:00 EST5EDT", "Saturday, 26-Dec-26 12:00:00 GMT", "Sat, 26 Dec 26 12:00 +0100", "Sat, 26 Dec 2026 25:00:00 GMT",
	"26 Dec 2026 at noon", "end of 2026", "tomorrow", "2026", "Samstag, 26. Dezember 2026", "31 Feb 2026", "0000-00-00", "+002026-12-26", `"26 Dec 2026 12:00 IST"`, "26 Dec 2026 12:00 PM", "26Dec2026", "2026-12-26 12h",
}

// oddRules lists robots control rules in spellings that a reader may or may not know, and texts that are not rules.
var oddRules = []string{
	"noindex nofollow", "noindex; nosnippet", "noindex ; nosnippet ;", "noindex|nosnippet", "noindex/nofollow", "noindex.", "(noindex)", "(noindex nosnippet)", `"noindex"`, "'nosnippet'", "<noindex>", "noindex\u00a0nofollow", "noindex&nofollow", "noindex\tnosnippet",
	"noindex=1", "noindex:true", "noindex=?0", "noindex=", "noindex:", "noindex:nofollow", "noindex = nosnippet", "NOINDEX", "nOiNdEx=ON", "none!", "none;", "all noindex", "index;noindex", "ACAP noindex", "a b c: nofollow", "noindex 42", "42 noindex",
	"max-snippet:-5", "max-snippet:20 characters", "max-snippet:many", "max-snippet", "max-snippet:1e3", "max-snippet:0x10", "max-snippet:٣", "max-snippet:20.5", "max-snippet:+3", `max-snippet:"20"`, "max-snippet:20;noindex", "max-snippet 20", "max-snippet=10=20",
	"max-image-preview:none;", "max-image-preview:tiny", "max-image-preview:NONE", "max-image-preview:standard!", "max-image-preview none", "max-image-preview=(none)", "max-video-preview:3s", "max-video-preview:none", "max-video-preview:-7", "max-video-preview=:YQ==:", "max-video-preview=@5",
	"noai", "noai=1", "noai;noimageai", "noimageai: yes", "noarchive,,nocache", "notranslate=de", "nositelinkssearchbox", "foo=1, foo=2, noindex", "x:y=z, nosnippet",
	"*", "42", "=", ":", ";", "?1", "@5", `"`, "(", `\`, "ümlaut", `x="a`, "noindex, (", `noindex, "`, `x="a;b", noindex`,
}

// OddRules returns oddRules, and an unavailable_after rule with each of OddDates.
func OddRules() []string {
	odd := slices.Clone(oddRules)
	for _, date := range OddDates {
		odd = append(odd, "unavailable_after: "+date)
	}
	return odd
}

// OddUsages returns values of Content-Usage that a reader may or may not know.
func OddUsages() (odd []string) {
	members := []string{"train-ai=n", "train-ai = n", "train-ai= n", "train-ai =n", "train-ai:n", "Train-AI=N", `train-ai="n"`, "'train-ai'='n'", `"train-ai"="n"`, "train-ai=(n)", "train-ai=n;q=1", "train-ai=n.", "train-ai=no", "TRAIN-AI: no", "train-ai=?0", "train-ai", "train-ai=", "train-ai==n", "*train-ai=n"}
	for _, m := range members {
		for _, with := range []string{"§", "§, 42", "42, §", "§, search=y", "search=n, §", "§; search=n", "§ search=n", "search=n,,§", "§, §=y", "(§", `§, x="a, search=n`, "§, (", "search = n, §"} {
			odd = append(odd, strings.ReplaceAll(with, "§", m))
		}
	}
	return odd
}

// A Reader reads the lines of a header field as a search engine might. Read returns the rights that the lines leave to
// an agent, which is the name of a crawler in lower case. A Reader shares no code with the packages that write the
// field.
type Reader struct {
	Name string
	Read func(lines []string, agent string) Rights
}

// XReaders read X-Robots-Tag. They can also read the content of a robots meta tag, which looks like a field without
// agents. The first reader follows the search engines' documents, the second one splits the text at each delimiter, and
// the third one only looks for words.
var XReaders = []Reader{
	{"document", EvaluateX},
	{"splitter", func(lines []string, agent string) Rights {
		found := map[string][][2]string{}
		for _, line := range lines {
			to := "*"
			for _, piece := range strings.FieldsFunc(line, func(c rune) bool { return c == ',' || c == ';' }) {
				for {
					name, rest, ok := strings.Cut(piece, ":")
					name = trimmed(name)
					if !ok || !isAgentName.MatchString(name) || isRuleName.MatchString(name) {
						break
					}
					to, piece = name, rest
				}
				found[to] = append(found[to], pair(piece))
			}
		}
		return EvaluateFor(found, agent)
	}},
	{"words", func(lines []string, _ string) Rights { return Evaluate(wordRules(lines)) }},
}

// TagReaders read Robots-Tag. The first reader parses a List of RFC 8941, and ignores the whole field if it is invalid.
// The second one splits the text at each delimiter, and the third one only looks for words.
var TagReaders = []Reader{
	{"list", func(lines []string, agent string) Rights {
		found := map[string][][2]string{}
		list, err := Read8941(strings.Join(lines, ", "))
		if err != nil {
			return AllRights()
		}
		for _, m := range list {
			for k, v := range m.Params {
				token := strings.ToLower(m.Token)
				found[token] = append(found[token], [2]string{k, v})
			}
		}
		return EvaluateFor(found, agent)
	}},
	{"splitter", func(lines []string, agent string) Rights {
		found := map[string][][2]string{}
		for member := range strings.SplitSeq(strings.Join(lines, ","), ",") {
			pieces := strings.Split(member, ";")
			for _, piece := range pieces[1:] {
				token := trimmed(pieces[0])
				found[token] = append(found[token], pair(piece))
			}
		}
		return EvaluateFor(found, agent)
	}},
	{"words", func(lines []string, _ string) Rights { return Evaluate(wordRules(lines)) }},
}

var (
	isAgentName = regexp.MustCompile(`^(?:\*|[a-z0-9_.!+/-]*[a-z][a-z0-9_.!+/-]*)$`)
	isRuleName  = regexp.MustCompile(`^(?:max-.*|unavailable_after|none|all|indexifembedded|(?:no)?(?:index|follow|snippet|archive|cache|translate|imageindex|odp)|noai|noimageai|nositelinkssearchbox|noyaca|noydir)$`)
	someWord    = regexp.MustCompile(`[a-z0-9_-]+`)
	someSize    = regexp.MustCompile(`^["' :=(]*(none|standard)\b`)
	someNumber  = regexp.MustCompile(`^["' :=(]*([0-9]+)\b`)
)

func trimmed(s string) string { return strings.ToLower(strings.Trim(s, " \t\"'()")) }

func pair(s string) [2]string {
	name, value, _ := strings.Cut(strings.Replace(s, "=", ":", 1), ":")
	return [2]string{trimmed(name), strings.Trim(value, " \t\"'()")}
}

func wordRules(lines []string) (rules [][2]string) {
	text := strings.ToLower(strings.Join(lines, " , "))
	for _, at := range someWord.FindAllStringIndex(text, -1) {
		word, value := text[at[0]:at[1]], ""
		if m := someNumber.FindStringSubmatch(text[at[1]:]); m != nil {
			value = m[1]
		} else if m := someSize.FindStringSubmatch(text[at[1]:]); m != nil && word == "max-image-preview" {
			value = m[1]
		}
		if word != "unavailable_after" && word != "indexifembedded" {
			rules = append(rules, [2]string{word, value})
		}
		if word == "none" && strings.HasSuffix(strings.TrimRight(text[:at[0]], ` :="'(`), "-preview") {
			rules = rules[:len(rules)-1]
		}
	}
	return rules
}

// DateLost reports whether a date that an upstream server has sent is missing in the merged lines. The date is not lost
// if the lines contain it in its original spelling, or contain an equal or earlier date.
func DateLost(date string, merged []string) bool {
	if at, ok := readDate(date); ok {
		for _, text := range afterDates(merged) {
			if first, ok := readDate(text); ok && first <= at {
				return false
			}
		}
	}
	after := strings.Join(merged, ",")
	if plain, err := url.PathUnescape(after); err == nil {
		after = plain
	}
	return !strings.Contains(squeezed(after), squeezed(date))
}

// afterDates returns the text after each unavailable_after.
func afterDates(lines []string) (texts []string) {
	for _, line := range lines {
		for i, text := range strings.Split(line, "unavailable_after") {
			if i > 0 {
				texts = append(texts, strings.TrimLeft(text, `:= "`))
			}
		}
	}
	return texts
}

func squeezed(s string) string {
	return strings.Join(someWord.FindAllString(strings.ToLower(s), -1), " ")
}

// readDate reads the longest date that text begins with.
func readDate(text string) (int64, bool) {
	for end := min(len(text), 45); end > 0; end-- {
		for _, layout := range []string{
			time.RFC3339, "20060102T150405Z", "20060102T1504Z", "20060102", "2 Jan 2006 15:04:05 GMT", "2 Jan 2006 15:04:05 UT", "Mon, 2 Jan 2006 15:04:05 GMT", "Mon, 2 Jan 2006 15:04:05 UT", "Mon, 2 Jan 06 15:04 -0700",
			"Monday, 2-Jan-06 15:04:05 GMT", time.ANSIC, "Jan 2, 2006", "January 2, 2006", "Monday, January 2, 2006", "Jan. 2, 2006 15:04", "2 Jan 2006",
		} {
			if at, err := time.Parse(layout, strings.ToUpper(text[:end])); err == nil {
				return at.Unix(), true
			}
		}
		if at, err := time.Parse("Mon Jan 2 15:04:05 CET 2006", text[:end]); err == nil {
			return at.Unix() - 3600, true
		}
	}
	return 0, false
}

// UsageReaders read which usages Content-Usage disallows. The first reader parses a Dictionary of RFC 8941, and ignores
// the whole field if it is invalid. The second one splits the text at each delimiter, and the third one only looks for
// the name of a usage, followed by "n" or "no".
var UsageReaders = []struct {
	Name string
	Read func(lines []string) map[string]bool
}{
	{"dictionary", func(lines []string) map[string]bool {
		last := map[string]bool{}
		line := strings.Join(lines, ", ")
		if !dictionary.MatchString(line) {
			return nil
		}
		for _, m := range dictionaryMember.FindAllStringSubmatch(line, -1) {
			last[m[1]] = m[2] == "=n"
		}
		return last
	}},
	{"splitter", func(lines []string) map[string]bool {
		no := map[string]bool{}
		for _, piece := range strings.FieldsFunc(strings.Join(lines, ","), func(c rune) bool { return c == ',' || c == ';' }) {
			if p := pair(piece); strings.EqualFold(p[1], "n") || strings.EqualFold(p[1], "no") {
				no[p[0]] = true
			}
		}
		return no
	}},
	{"words", func(lines []string) map[string]bool {
		no := map[string]bool{}
		for _, m := range usageWords.FindAllStringSubmatch(strings.ToLower(strings.Join(lines, ",")), -1) {
			no[m[1]] = true
		}
		return no
	}},
}

const sfMember = `([a-z*][a-z0-9_.*-]*)(=n\b|=[A-Za-z*][^\s"(),;=]*|="[^"\\]*"|=\?[01]|=[0-9]+|=\([^()"]*\))?(?:; *[a-z*][a-z0-9_.*-]*(?:=[A-Za-z0-9*?][^\s"(),;=]*|="[^"\\]*")?)*`

var (
	dictionary       = regexp.MustCompile(`^ *` + sfMember + `(?:[ \t]*,[ \t]*` + sfMember + `)* *$`)
	dictionaryMember = regexp.MustCompile(`(?:^|,)[ \t]*` + sfMember)
	usageWords       = regexp.MustCompile(`(train-ai|search)["' :=()]*[:=]["' :=(]*no?\b`)
)

// Words returns the names of the rules, such as noai, that Rights has no field for. It returns each name once.
func Words(lines []string) (words []string) {
	for _, r := range wordRules(lines) {
		if slices.Contains([]string{"noai", "noimageai", "noodp", "nositelinkssearchbox"}, r[0]) {
			words = append(words, r[0])
		}
	}
	slices.Sort(words)
	return slices.Compact(words)
}
