// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

// The code in this file reads the rules in responses, and combines them as the specifications demand of a crawler. It
// does not use any code of the packages that write the rules.

// effect holds the rules that restrict one audience. The numbers are ranks: a higher rank is stricter, and 0 means that
// there is no rule.
type effect struct {
	words                         string // bare rules, sorted, each between spaces
	snippet, video, image, expiry int64
}

const never = int64(1) << 50 // above every number that a rule can hold

// reading holds the rules in a field, by audience in lower case; "*" is everyone.
type reading map[string]effect

var imageRank = map[string]int64{"large": 1, "standard": 2, "none": 3}

// limitRank returns the rank of a limit. -1, which means "no limit", has the lowest rank, and 0 the highest.
func limitRank(n int64) int64 {
	if n < 0 {
		return 1
	}
	return never - n
}

// with adds a rule. It ignores rules that only allow something.
func (e effect) with(name, value string) effect {
	n, nerr := strconv.ParseInt(value, 10, 64)
	switch {
	case slices.Contains([]string{"", "all", "index", "follow", "snippet", "archive"}, name):
	case name == "none":
		e = e.with("noindex", "").with("nofollow", "")
	case name == "max-snippet" && nerr == nil:
		e.snippet = max(e.snippet, limitRank(n))
	case name == "max-video-preview" && nerr == nil:
		e.video = max(e.video, limitRank(n))
	case name == "max-image-preview" && imageRank[strings.ToLower(value)] > 0:
		e.image = max(e.image, imageRank[strings.ToLower(value)])
	case name == "unavailable_after":
		for _, layout := range []string{time.RFC3339, "2 Jan 2006 15:04:05 MST", "Mon, 2 Jan 2006 15:04:05 MST", "2006-01-02"} {
			if at, err := time.Parse(layout, value); err == nil {
				e.expiry = max(e.expiry, never-at.Unix())
			}
		}
	default:
		e.words += " " + name + " "
	}
	return e.normal()
}

// normal drops rules that have no effect because of a stricter rule. For example, nosnippet is stricter than any
// max-snippet, and noarchive is stricter than nocache (documentation of the search engines).
func (e effect) normal() effect {
	words := strings.Fields(e.words)
	if e.snippet == limitRank(0) {
		words = append(words, "nosnippet")
	}
	slices.Sort(words)
	words = slices.Compact(words)
	if slices.Contains(words, "nosnippet") {
		e.snippet = 0
	}
	if slices.Contains(words, "noarchive") {
		words = slices.DeleteFunc(words, func(w string) bool { return w == "nocache" })
	}
	e.words = ""
	for _, w := range words {
		e.words += " " + w + " "
	}
	return e
}

// and combines the rules of e and f. The result restricts at least as much as each of them (draft-illyes-repext-03).
func (e effect) and(f effect) effect {
	return effect{e.words + f.words, max(e.snippet, f.snippet), max(e.video, f.video), max(e.image, f.image), max(e.expiry, f.expiry)}.normal()
}

func (r reading) add(audience string, e effect) { r[audience] = r[audience].and(e) }

// to returns the rules for a crawler: the rules for everyone combined with its own.
func (r reading) to(crawler string) effect { return r["*"].and(r[crawler]) }

func (r reading) and(s reading) reading {
	sum := maps.Clone(r)
	for audience, e := range s {
		sum.add(audience, e)
	}
	return sum
}

// difference describes the first difference between two readings for a crawler, or returns "".
func (r reading) difference(want reading) string {
	crawlers := slices.AppendSeq(slices.Collect(maps.Keys(r)), maps.Keys(want))
	crawlers = append(crawlers, "a-crawler-that-nobody-names")
	for _, c := range slices.Sorted(slices.Values(crawlers)) {
		if got, want := r.to(c), want.to(c); got != want {
			return fmt.Sprintf("%s got %+v, want %+v", c, got, want)
		}
	}
	return ""
}

// covers reports whether r restricts every crawler at least as much as s.
func (r reading) covers(s reading) bool { return r.and(s).difference(r) == "" }

var (
	dateRule  = regexp.MustCompile(`(?i)unavailable_after\s*:\s*((?:[a-z]{3,}, )?[0-9]{1,2} [a-z]{3} [0-9]{4} [0-9:]{8} [a-z]+|[0-9]{4}-[0-9T:Z-]+)`)
	ruleNames = regexp.MustCompile(`(?i)^(?:all|none|(?:no)?(?:index|follow|snippet|archive|cache|translate|imageindex)|max-[a-z-]+|unavailable_after)$`)
)

// rulesOf parses a comma-separated list, as in the content of a meta tag.
func rulesOf(list string) (e effect) {
	for _, m := range dateRule.FindAllStringSubmatch(list, -1) {
		e = e.with("unavailable_after", m[1])
	}
	for rule := range strings.SplitSeq(dateRule.ReplaceAllString(list, ""), ",") {
		name, value, _ := strings.Cut(rule, ":")
		e = e.with(strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value))
	}
	return e
}

// readX reads X-Robots-Tag. The rules in a line are for everyone. But after the name of a crawler and a colon, they are
// only for this crawler.
func readX(lines []string) reading {
	r := reading{}
	for _, line := range lines {
		audience := "*"
		for _, m := range dateRule.FindAllString(line, -1) {
			r.add(audience, rulesOf(m))
		}
		for rule := range strings.SplitSeq(dateRule.ReplaceAllString(line, ""), ",") {
			if agent, rest, ok := strings.Cut(rule, ":"); ok && !ruleNames.MatchString(strings.TrimSpace(agent)) {
				audience, rule = strings.ToLower(strings.TrimSpace(agent)), rest
			}
			r.add(audience, rulesOf(rule))
		}
	}
	return r
}

// readList parses Robots-Tag as a List, according to draft -03. readDictionary parses it as a Dictionary, according to
// draft -02.
func readList(lines []string) (reading, error) {
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		return nil, err
	}
	r := reading{}
	for _, m := range list {
		item, ok := m.(httpsfv.Item)
		token, isToken := item.Value.(httpsfv.Token)
		if !ok || !isToken {
			return nil, fmt.Errorf("the member %v is not a token", m)
		}
		r.add(strings.ToLower(string(token)), params(item.Params))
	}
	return r, nil
}

func readDictionary(lines []string) (reading, error) {
	d, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return nil, err
	}
	r := reading{}
	for _, name := range d.Names() {
		m, _ := d.Get(name)
		item, ok := m.(httpsfv.Item)
		if !ok || item.Value != true {
			return nil, fmt.Errorf("the member %s is %v", name, m)
		}
		r.add(name, params(item.Params))
	}
	return r, nil
}

func params(p *httpsfv.Params) (e effect) {
	for _, name := range p.Names() {
		v, _ := p.Get(name)
		if v == true {
			v = ""
		}
		e = e.with(name, fmt.Sprint(v))
	}
	return e
}

// readUpstream parses the Robots-Tag lines that an upstream has sent. Some upstreams write Robots-Tag in the syntax of
// X-Robots-Tag, so readUpstream parses this syntax, too. It skips invalid lines. sure reports whether all lines were
// valid.
func readUpstream(lines []string) (r reading, sure bool) {
	r, sure = reading{}, true
	for _, line := range lines {
		names := slices.DeleteFunc(strings.FieldsFunc(line, func(c rune) bool { return c == ',' || c == ':' || c == ' ' }),
			func(s string) bool { return !ruleNames.MatchString(s) })
		switch said, err := readList([]string{line}); {
		case !strings.ContainsAny(line, ";=") && len(names) > 0:
			r = r.and(readX([]string{line}))
		case err == nil:
			r = r.and(said)
		default:
			sure = false
		}
	}
	return r, sure
}

var preference = regexp.MustCompile(`^\s*([a-z*][a-z0-9_.*-]*)=([yn])\s*$`)

// readUsage parses the preferences in Content-Usage lines. If any line has n for a usage, the result is n (AIPREF
// vocabulary section 5.1). It ignores a line that is not a Dictionary.
func readUsage(lines []string) map[string]string {
	found := map[string]string{}
	for _, line := range lines {
		if _, err := httpsfv.UnmarshalDictionary([]string{line}); err != nil {
			continue
		}
		for member := range strings.SplitSeq(line, ",") {
			if m := preference.FindStringSubmatch(member); m != nil && found[m[1]] != "n" {
				found[m[1]] = m[2]
			}
		}
	}
	return found
}
