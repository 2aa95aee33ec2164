// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// fields holds the lines of the header fields in fieldNames.
type fields map[string][]string

var fieldNames = []string{"Robots-Tag", "X-Robots-Tag", "Content-Usage"}

func fieldsOf(h http.Header) fields {
	f := fields{}
	for _, name := range fieldNames {
		if v := h.Values(name); len(v) > 0 {
			f[name] = v
		}
	}
	return f
}

func (f fields) and(g fields) fields {
	sum := fields{}
	maps.Copy(sum, f)
	for name, lines := range g {
		sum[name] = slices.Concat(sum[name], lines)
	}
	return sum
}

// numbered returns n copies of a line, each with its number.
func numbered(n int, format string) (lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf(format, i))
	}
	return lines
}

// upstreamSays lists headers that an upstream may send.
var upstreamSays = []struct {
	name   string
	fields fields
}{
	{"none", fields{}},
	{"agreeing", fields{
		"Robots-Tag":    {"*;noindex;max-snippet=50, examplebot;nofollow"},
		"X-Robots-Tag":  {"noindex, max-snippet:50", "examplebot: nofollow"},
		"Content-Usage": {"train-ai=n"},
	}},
	{"stricter", fields{
		"Robots-Tag":    {"*;noindex;nofollow;max-snippet=0", `googlebot;unavailable_after="2031-02-03T04:05:06Z"`},
		"X-Robots-Tag":  {"none, nosnippet", "unavailable_after: Mon, 03 Feb 2031 04:05:06 GMT, noarchive"},
		"Content-Usage": {"train-ai=n, search=n, ai-use=n"},
	}},
	{"conflicting", fields{
		"Robots-Tag":    {"*;max-snippet=20;max-image-preview=large, googlebot;nosnippet;max-image-preview=none, examplebot;noarchive;max-snippet=-1"},
		"X-Robots-Tag":  {"index, follow, all, max-snippet:20", "googlebot: index, nosnippet, max-image-preview:none", "examplebot: noarchive, max-snippet:-1"},
		"Content-Usage": {"train-ai=y, search=n, ai-use=y, later=n"},
	}},
	{"several lines", fields{
		"Robots-Tag":    {"*;noimageindex", "bingbot;nocache", "bingbot;noarchive"},
		"X-Robots-Tag":  {"NoImageIndex", "bingbot: nocache", "BingBot: noarchive"},
		"Content-Usage": {"ai-use=y", "ai-use=n"},
	}},
	{"malformed", fields{
		"Robots-Tag":    {"*;noindex;;nosnippet, ExampleBot=;", "otherbot;noarchive"},
		"X-Robots-Tag":  {",,noarchive , ,"},
		"Content-Usage": {"train-ai=(", "search=n"},
	}},
	{"X- syntax", fields{
		"Robots-Tag":    {"noindex, nofollow", "googlebot: nosnippet"},
		"X-Robots-Tag":  {"noindex, nofollow", "googlebot: nosnippet"},
		"Content-Usage": {"ai-use=?0"},
	}},
	{"bytes", fields{
		"Robots-Tag":    {"*;noarchive;x=\"\xfc\"", "\xff\xfe", "*;noimageindex"},
		"X-Robots-Tag":  {"noarchive,\tnoimageindex"},
		"Content-Usage": {"\xe4=n", "ai-use=n"},
	}},
	{"300 lines", fields{
		"Robots-Tag":    numbered(300, "bot-%d;noindex"),
		"X-Robots-Tag":  numbered(300, "bot-%d: noindex"),
		"Content-Usage": numbered(300, "key-%d=n"),
	}},
	{"64 KiB, the same again", fields{
		"Robots-Tag":    {strings.Repeat("*;noarchive, ", 5000) + "*;noarchive"},
		"X-Robots-Tag":  {strings.Repeat("noarchive, ", 6000) + "noarchive"},
		"Content-Usage": {strings.Repeat("ai-use=n, ", 6500) + "ai-use=n"},
	}},
	{"64 KiB of crawlers", fields{
		"Robots-Tag":    {strings.Join(numbered(4000, "bot-%d;noindex"), ", ")},
		"X-Robots-Tag":  numbered(4000, "bot-%d: noindex"),
		"Content-Usage": {strings.Join(numbered(4000, "key-%d=n"), ", ")},
	}},
}

// mostRead is the largest size of an upstream's field that the server reads completely. mostWritten is the largest size
// of a field that the server writes. Both are in bytes.
const mostRead, mostWritten = 16 << 10, 8 << 10

func size(lines []string) int { return len(strings.Join(lines, ", ")) }

// judge checks the header fields in got, which a client received for the path. They must combine the upstream's fields
// in before with the policy's rules. judge returns the problems.
func judge(path string, before, got fields) (wrong []string) {
	says := conformanceSays[path]
	for _, name := range fieldNames {
		was, is := before[name], got[name]
		silent := len(says.rules) == 0
		if name == "Content-Usage" {
			silent = len(says.usage) == 0
		}
		if silent {
			if !slices.Equal(was, is) {
				wrong = append(wrong, fmt.Sprintf("%s: %.300q, want it as it was: %.300q", name, is, was))
			}
			continue
		}
		if size(is) > mostWritten {
			wrong = append(wrong, fmt.Sprintf("%s has %d bytes", name, size(is)))
		}
		problem := ""
		switch name {
		case "Robots-Tag":
			problem = judgeRobotsTag(says.rules, was, before["X-Robots-Tag"], is)
		case "X-Robots-Tag":
			problem = judgeRules(says.rules, readX(was), readX(is), size(was) <= mostRead && size(was) < mostWritten-200)
		default:
			problem = judgeUsage(says.usage, was, is)
		}
		if problem != "" {
			wrong = append(wrong, fmt.Sprintf("%s: %.300q: %s", name, is, problem))
		}
	}
	return wrong
}

// judgeRules compares the rules in a field that a client received (is) with the rules of the policy and the upstream's
// rules (was). If exactly is true, the field must contain exactly these rules. If exactly is false, the upstream's
// rules were too long to be read or written completely. In this case, some of the upstream's rules may be missing.
func judgeRules(policy, was, is reading, exactly bool) string {
	both := policy.and(was)
	switch {
	case exactly:
		return is.difference(both)
	case !is.covers(policy):
		return "it says less than the policy"
	case !both.covers(is):
		return "it says more than the policy and the upstream"
	}
	return ""
}

// judgeRobotsTag checks the field Robots-Tag. This field must also contain the upstream's rules from the older field
// X-Robots-Tag, because crawlers that read the new field may ignore the older one.
func judgeRobotsTag(policy reading, was, older, is []string) string {
	list, err := readList(is)
	if err != nil {
		return "no List: " + err.Error()
	}
	dictionary, err := readDictionary(is)
	if err != nil {
		return "no Dictionary: " + err.Error()
	}
	if d := list.difference(dictionary); d != "" {
		return "the List and the Dictionary differ: " + d
	}
	upstream, sure := readUpstream(was)
	if sure {
		upstream = upstream.and(readX(older))
		return judgeRules(policy, upstream, list, size(was)+size(older) <= mostRead && size(was)+size(older) < mostWritten-200)
	}
	if !list.covers(policy.and(upstream)) {
		return "it says less than the policy and the lines that can be read"
	}
	return ""
}

func judgeUsage(policy map[string]string, was, is []string) string {
	want, got := readUsage(was), readUsage(is)
	for key, v := range policy {
		if want[key] != "n" {
			want[key] = v
		}
	}
	if size(was) <= mostRead && size(was) < mostWritten-200 && !maps.Equal(got, want) {
		return fmt.Sprintf("read as %v, want %v", got, want)
	}
	for key, v := range policy {
		if got[key] != v && got[key] != "n" {
			return key + " is lost"
		}
	}
	return ""
}
