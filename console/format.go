// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"fmt"
	"html/template"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/dustin/go-humanize"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

// functions are the functions that templates call. In the browser, a script formats numbers and times again for the
// browser's locale.
var functions = template.FuncMap{
	"num": num, "bytes": size, "pct": percent, "time": minute, "day": dayOf, "date": dateOf, "breakable": breakable, "version": shortVersion,
	"category": kindName, "shorten": shorten, "decision": verdictOf, "plural": plural, "add": func(a, b int) int { return a + b },
	"dict": dict, "int": func(n int64) int { return int(n) }, "neg": func(n int) int { return -n },
	"line": lineIn, "sentence": sentence, "effect": func(e string) string { return effects[e] }, "total": requestsOf,
}

// dict returns a map from alternating names and values. Templates use it to pass several arguments.
func dict(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}

func num(n any) template.HTML {
	i := toInt(n)
	if i < 1000 { // small numbers look the same in all locales
		return template.HTML(strconv.FormatInt(i, 10))
	}
	return template.HTML(`<data value="` + strconv.FormatInt(i, 10) + `">` + english.Number(i) + `</data>`)
}

func toInt(n any) int64 {
	switch n := n.(type) {
	case int:
		return int64(n)
	case int64:
		return n
	case uint64:
		return int64(n)
	}
	return 0
}

// size formats a number of bytes, such as "1.3 MB".
func size(n int64) string { return humanize.Bytes(uint64(max(0, n))) }

// percent formats a share, such as "34.6%".
func percent(part, whole int64) string {
	if whole == 0 {
		return "0%"
	}
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 1, 64) + "%"
}

// plural formats a number with its noun, such as "1 test" or "2 tests".
func plural(n any, one, many string) string {
	if i := toInt(n); i != 1 {
		return english.Number(i) + " " + many
	}
	return "1 " + one
}

// minute formats a time in UTC without seconds, such as "20 Nov, 14:31".
func minute(t time.Time) template.HTML {
	if t.IsZero() {
		return "never"
	}
	return timeElement(t, t.UTC().Format("2 Jan 2006, 15:04"), "minute")
}

// dayOf formats a day, such as "Fri 20 Nov".
func dayOf(t time.Time) template.HTML { return timeElement(t, t.UTC().Format("Mon 2 Jan"), "day") }

// dateOf formats a day with its year, such as "20 Nov 2026".
func dateOf(t time.Time) template.HTML { return timeElement(t, t.UTC().Format("2 Jan 2006"), "date") }

func timeElement(t time.Time, text, class string) template.HTML {
	layout := map[bool]string{true: time.RFC3339, false: time.DateOnly}[class == "minute"]
	return template.HTML(`<time datetime="` + t.UTC().Format(layout) + `" data-s="` + class + `">` + text + `</time>`)
}

// shortVersion returns the first eight digits of a hash, which are enough for people to recognize the hash.
func shortVersion(s string) string { return s[:min(8, len(s))] }

var kindNames = map[crawlers.Category]string{
	crawlers.CategorySearch: "Search", crawlers.CategoryAITraining: "AI training", crawlers.CategoryAIInput: "AI answers",
	crawlers.CategoryAIAssistant: "AI assistants", crawlers.CategoryAIAgent: "AI agents", crawlers.CategoryArchive: "Archives", crawlers.CategorySEO: "SEO",
	crawlers.CategoryAds: "Advertising", crawlers.CategoryPreview: "Link previews", crawlers.CategoryFeed: "Feeds", crawlers.CategoryMonitoring: "Monitoring",
	crawlers.CategorySecurity: "Security", crawlers.CategoryAcademic: "Research", activity.CategoryUnlisted: "Unlisted",
	crawlers.CategoryAI: "All for AI",
	"none":              "No category", "": "Other",
}

// kindName returns the name that pages show for a category of crawlers.
func kindName(kind string) string {
	return cmp.Or(kindNames[crawlers.Category(kind)], kind)
}

// maxShown limits the number of characters that pages show of a text from a client.
const maxShown = 120

// shorten removes the middle of a long text, and replaces control characters by spaces.
func shorten(s string) string {
	s = english.OneLine(s)
	r := []rune(s)
	if len(r) <= maxShown {
		return s
	}
	return string(r[:maxShown/2]) + "…" + string(r[len(r)-maxShown/2:])
}

var breaks = regexp.MustCompile(`\.|-|[a-z][A-Z]`)

// breakable returns the markup of a name, with line breaks allowed between the parts of the name.
func breakable(s string) template.HTML {
	return template.HTML(breaks.ReplaceAllStringFunc(template.HTMLEscapeString(shorten(s)), func(part string) string {
		return part[:1] + "<wbr>" + part[1:]
	}))
}

// verdict is the word for a decision, with the CSS class for its shape and color.
type verdict struct{ Class, Word string }

var verdicts = map[string]verdict{
	"allowed": {"v-allowed", "Allowed"}, "partly": {"v-partly", "Partly disallowed"},
	"blocked": {"v-blocked", "Blocked"}, "would": {"v-would", "Would be blocked"}, "unlisted": {"v-unlisted", "Unlisted"},
	"unstated": {"v-unverified", "Not stated"}, "disallowed": {"v-disallowed", "Disallowed"}, "would_block": {"v-would", "Would be blocked"},
	"limited": {"v-blocked", "Limited"}, "would_limit": {"v-would", "Would be limited"}, "impostor": {"v-impostor", "Impostor"}, "verified": {"v-verified", "Verified"},
	"unverified": {"v-unverified", "Unverified"}, "unknown": {"v-unverified", "Not known yet"},
}

// verdictOf returns the markup of a verdict. name is its key in verdicts.
func verdictOf(name string) template.HTML {
	v := cmp.Or(verdicts[name], verdicts["unlisted"])
	return template.HTML(fmt.Sprintf(`<span class="v %s">%s</span>`, v.Class, v.Word))
}

// sentence returns a text with a capital letter at the beginning and a period at the end.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	r := []rune(s)
	if len(r) > 1 && unicode.IsLower(r[0]) && (unicode.IsLower(r[1]) || r[1] == ' ') && !strings.HasPrefix(s, "robots.txt") {
		r[0] = unicode.ToUpper(r[0])
	}
	if !strings.ContainsRune(".?!:", r[len(r)-1]) {
		r = append(r, '.')
	}
	return string(r)
}
