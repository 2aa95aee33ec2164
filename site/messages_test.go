// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// withoutExample lists the codes that have no example file in messages.md, each with the reason.
var withoutExample = map[string]string{
	"file-too-large": "a file of more than 1 MiB", "too-many-rules": "thousands of rules", "robots-txt-too-large": "500 KiB of paths",
	"line-too-long": "a path of 16 KiB", "hosts-not-rendered": "hundreds of hosts", "more-than-allowed": "needs a policy that was served before",
	"many-meta-tags": "a rule for each of 20 crawlers", "header-too-large": "hundreds of crawlers", "not-text": "no page can show it",
	"expectation-no-longer-holds": "needs a later day",
	"content-usage-cross":         "dozens of paths that cross", "app-directives-cross": "the same", "acap-cross": "dozens of paths or purposes that overlap", "rights-crossed": "the same",
	"purpose-groups-differ": "needs crawlers of two purposes", "purpose-not-published": "needs a name that no file can have",
	"acap-modification": "needs rules for several usages that only ACAP tells apart", "app-directive-hash": "the parser finds it first, as bad-app-directive",
}

// channelCodes maps the codes of problems that channels report to their severity and title.
var channelCodes = map[string]string{
	"other-spelling": "hint: A path with more spellings than robots.txt lists", "not-flattenable": "warning: robots.txt is stricter than the policy",
	"content-usage-cross": "warning: Paths for Content-Usage overlap in too many ways", "app-directives-cross": "error: Paths of application directives overlap in too many ways",
	"app-directive-hash": "error: A hash in an application directive", "app-directives-named": "hint: Application directives for one crawler",
	"robots-txt-too-large": "error: The robots.txt is too large", "line-too-long": "error: A line of robots.txt is too long",
	"hosts-not-rendered": "warning: Too many hosts to check all",
	"many-meta-tags":     "warning: Pages have many meta tags", "header-too-large": "error: The headers are too large",
	"not-in-headers": "hint: A crawler that headers cannot name",
	"rights-crossed": "warning: A rights document disallows more than the policy", "rights-stricter": "hint: A rights document addresses everyone",
	"rights-differ": "warning: Content-Signal contradicts the rules", "purpose-groups-differ": "hint: Groups of two purposes differ",
	"purpose-not-published": "warning: A purpose that robots.txt cannot name", "acap-undecidable": "warning: ACAP readers cannot decide",
	"acap-cross": "error: Paths or purposes of ACAP records overlap in too many ways", "acap-crawler-name": "hint: A name that ACAP readers skip",
	"acap-purpose":      "warning: ACAP cannot make an exception for a purpose",
	"acap-modification": "warning: A qualifier that ACAP does not have for this usage", "acap-not-ready": "warning: A qualifier that ACAP calls not ready for use",
	"acap-resource-disallowed": "warning: A page that crawlers must fetch is disallowed", "acap-circular": "error: A permissions-reference to a robots.txt of this policy",
}

// pageCodes returns the severity and title of each code in messages.md. The codes come from policy files and from
// channels.
func pageCodes() map[string]string {
	all := maps.Clone(channelCodes)
	for _, c := range policyfile.Codes() {
		all[c.Name] = c.Severity.String() + ": " + c.Title
	}
	return all
}

// TestChannelCodesAreReported checks that the program reports each code in channelCodes.
func TestChannelCodesAreReported(t *testing.T) {
	var code strings.Builder
	for _, dir := range []string{"acap", "appdirectives", "channels", "metainject", "policy", "rights", "robotsserve", "robotstag", "site"} {
		files, err := filepath.Glob("../" + dir + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(text)
		}
	}
	for name := range channelCodes {
		if !strings.Contains(code.String(), strconv.Quote(name)) {
			t.Errorf("no channel reports %s", name)
		}
	}
}

// TestMessagesPage compares docs/reference/messages.md with the code. Each code has a heading. Below the heading, the
// page has an example file with its message, and a corrected file that does not get the message.
func TestMessagesPage(t *testing.T) {
	const name = "../docs/reference/messages.md"
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	sections := regexp.MustCompile(`(?m)^### ([a-z-]+)\n\n`).FindAllStringSubmatchIndex(string(page), -1)
	if len(sections) == 0 {
		t.Fatal("no sections")
	}
	var got strings.Builder
	got.Write(page[:sections[0][0]])
	shown := map[string]bool{}
	for i, at := range sections {
		end := len(page)
		if i+1 < len(sections) {
			end = sections[i+1][0]
		}
		code, text := string(page[at[2]:at[3]]), string(page[at[0]:end])
		if shown[code] {
			t.Errorf("%s has two headings", code)
		}
		shown[code] = true
		got.WriteString(section(t, code, text))
	}
	for code := range pageCodes() {
		if !shown[code] {
			t.Errorf("%s has no heading ### %s", name, code)
		}
		delete(shown, code)
	}
	for code := range shown {
		t.Errorf("%s has the heading %s, and nothing reports that code", name, code)
	}
	if got.String() == string(page) {
		return
	}
	if !*update {
		t.Fatalf("%s is out of date: go test ./site -run TestMessagesPage -update", name)
	}
	if err := os.WriteFile(name, []byte(got.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// section returns the page's section about a code, with the title and the message that the code has now.
func section(t *testing.T, code, text string) string {
	t.Helper()
	about, ok := pageCodes()[code]
	if !ok {
		return text
	}
	severity, title, _ := strings.Cut(about, ": ")
	head, rest, _ := strings.Cut(text, "\n\n")
	_, rest, _ = strings.Cut(rest, "\n\n") // this skips the line with the title, which is written again
	text = head + "\n\n*" + severity + "*: " + title + ".\n\n" + rest
	blocks := regexp.MustCompile("(?ms)^```yaml wrong\n(.*?)^```\n\n```text\n(.*?)^```\n\n.*?^```yaml\n(.*?)^```$").FindStringSubmatchIndex(text)
	if (blocks == nil) != (withoutExample[code] != "") {
		t.Errorf("%s: has an example: %v, reason for none: %q", code, blocks != nil, withoutExample[code])
	}
	if blocks == nil {
		return text
	}
	bad, good := text[blocks[2]:blocks[3]], text[blocks[6]:blocks[7]]
	_, ds := site.Load("policy.yaml", []byte(bad))
	i := slices.IndexFunc(ds, func(d policyfile.Diagnostic) bool { return d.Code == code })
	if i < 0 || ds[i].Severity.String() != severity {
		t.Errorf("%s: the wrong file gets no such %s, but:\n%s", code, severity, ds.Text())
	}
	if _, ds := site.Load("policy.yaml", []byte(good)); len(ds) > 0 {
		t.Errorf("%s: the right file gets:\n%s", code, ds.Text())
	}
	return text[:blocks[4]] + ds.Text() + text[blocks[5]:]
}
