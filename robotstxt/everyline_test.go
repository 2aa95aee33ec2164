// SPDX-License-Identifier: Apache-2.0

package robotstxt_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/acap"
	"github.com/robotspolicy/caddy-robots-policy/internal/rfc9309"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// Import does not ignore a line without saying so: each line of a file changes the policy, or a note names the line, or
// the line is redundant. A line is redundant in these cases:
//   - it has no value
//   - it repeats another line
//   - a note names a User-agent line of its group, because the group is left out
//   - it is a User-agent, Allow or Disallow line, and no crawler may crawl more or less without it
//   - it states a preference that crawlers also read in other lines
//
// The records of ACAP have their own test.
func TestEveryLineChangesThePolicyOrIsTold(t *testing.T) {
	t.Parallel()
	names := newNames(t)
	files := realFiles(t)
	r := rand.New(rand.NewPCG(*importSeed, 7))
	for range testkit.Rounds(100, 2000) {
		files[fmt.Sprintf("random %d", len(files))] = []byte(oddFile(r))
	}
	changed, told := 0, 0
	for name, data := range files {
		im, err := robotstxt.Import(data, names.Crawlers())
		if err != nil {
			continue
		}
		noted := map[int]bool{}
		for _, n := range im.Notes {
			noted[n.Line] = true
		}
		policyText := withoutComments(im.Spec)
		lines := originalLines(acap.Decode(data))
		for _, i := range r.Perm(len(lines))[:min(len(lines), 40)] {
			if noted[i+1] {
				told++
				continue
			}
			if redundant(lines, i) || inNotedGroup(lines, i, noted) {
				continue
			}
			without := strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "\n")
			if im, err := robotstxt.Import([]byte(without), names.Crawlers()); err == nil && withoutComments(im.Spec) == policyText &&
				(!isComparable(lines[i]) || differ(data, []byte(without), lines[i])) {
				t.Errorf("%s:%d: %q has no effect, and no note names it\n%.1000s\nof\n%.1000s", name, i+1, lines[i], policyText, data)
			}
			changed++
		}
	}
	t.Logf("%d lines change the policy, and notes name %d", changed, told)
	if changed < 500 || told < 100 {
		t.Error("the files are too tame")
	}
}

func withoutComments(spec *policy.Spec) string {
	s := *spec
	s.Publish.Preambles = nil
	return string(policyfile.Print(&s))
}

// keyAndValue splits a line without its comment. The key is in lower case.
func keyAndValue(line string) (key, value string) {
	line, _, _ = strings.Cut(line, "#")
	key, value, _ = strings.Cut(line, ":")
	return strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
}

func redundant(lines []string, at int) bool {
	key, value := keyAndValue(lines[at])
	if value == "" && !strings.Contains(key, " ") || strings.HasPrefix(key, "acap-") {
		return true
	}
	for i, line := range lines {
		if k, v := keyAndValue(line); i != at && k == key && strings.EqualFold(v, value) {
			return true
		}
	}
	return false
}

func isComparable(line string) bool {
	key, _ := keyAndValue(line)
	return strings.Contains(key, "agent") || strings.Contains(key, "llow") || strings.HasPrefix(key, "content-")
}

// differ reports whether the answers of the independent parser change if a line is removed.
func differ(data, without []byte, line string) bool {
	key, _ := keyAndValue(line)
	return slices.ContainsFunc(rfc9309.Compare(rfc9309.Parse(data, nil), rfc9309.Parse(without, nil), nil).Differences, func(d rfc9309.Difference) bool {
		return d.Usage == "" || strings.HasPrefix(key, "content-")
	})
}

// inNotedGroup reports whether a note is about the group of the line with the index at. Such a note has the line number
// of the group's User-agent or User-Agent-Purpose line, which is the last one above the line, or of another line with
// the same key and value. noted contains the line numbers of all notes.
func inNotedGroup(lines []string, at int, noted map[int]bool) bool {
	for i := at - 1; i >= 0; i-- {
		key, value := keyAndValue(lines[i])
		if !strings.HasPrefix(key, "user") {
			continue
		}
		for j, line := range lines {
			if k, v := keyAndValue(line); noted[j+1] && k == key && v == value {
				return true
			}
		}
		return false
	}
	return false
}

// oddFile returns a random file with unusual lines.
func oddFile(r *rand.Rand) string {
	odd := []string{
		"Noindex: /n/", "Request-rate: 1/5", "Visit-time: 0400-0845", "Foo: bar", "Sitemap: /s.xml", "Sitemap https://www.example.com/t.xml", "Sitemap: ftp://x/", "Sitemap:",
		"Disalow: /typo/", "Allowed: /a/x", "Disallow /b", "Disallow: x", "Disallow: /a b", "Disallow: https://x/", "Crawl-delay: soon", "Crawl-delay: 5", "Crawl-delay: 7", "crawldelay: 3",
		"Host: www.example.com", "Host:", "Clean-param: a /x", "Clean-param:", "License: https://www.example.com/l.xml", "License: here", "License:",
		"Content-Signal: ai-train=no", "Content-Signal: /x/ ai-train=no", "Content-Signal: maybe=1", "Content-Signal:", "Content-Usage: train-ai=n", "Content-Usage: /x/ search=n", "Content-Usage: ;;", "Content-Usage:",
		"App-Directives: app;x", "App-Directives: /x/ app;y", "App-Directives: ;", "App-Directives:", "User-Agent-Purpose: training", "User-Agent-Purpose: 1b", "just words", "word", ":", ": x", "x:",
		"User-agent: everyone", "User-agent: purpose-x", "User-agent:", "User-agent: (x)", "User-agent: Mozilla/5.0", "Useragent: FooBot", "User-agent: Foo Bar",
	}
	var b strings.Builder
	for i := range 2 + r.IntN(8) {
		switch r.IntN(4) {
		case 0:
			b.WriteString("User-agent: " + []string{"*", "GPTBot", "Googlebot", "SomeBot"}[r.IntN(4)] + "\n")
		case 1:
			b.WriteString([]string{"Disallow: /", "Allow: /"}[r.IntN(2)] + string(rune('a'+i)) + "/\n")
		}
		b.WriteString(odd[r.IntN(len(odd))] + "\n")
	}
	return b.String()
}
