// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Import and merge interpret the members of a line in the same way. For each spelling of a line, both find the same
// usages that it disallows for the whole site.
func TestImportAndMergeReadPreferencesAlike(t *testing.T) {
	t.Parallel()
	for lines, want := range map[string]string{
		"Content-Signal: ai-train = no":                                                          "train-ai",
		"Content-Signal: / search=no":                                                            "search",
		"Content-Signal: * search=no":                                                            "search",
		"Content-Usage: / train-ai=n":                                                            "train-ai",
		"Content-Usage: /\ttrain-ai=n":                                                           "train-ai",
		"Content-Usage: TRAIN-AI=n":                                                              "train-ai",
		"Content-Usage: train-ai=N":                                                              "train-ai",
		"Content-Usage: train-ai = n ;x=1 , search=y":                                            "train-ai",
		"Content-Usage: train-genai=n":                                                           "train-ai",
		"Content-Usage: ai-output=n, ai-use=n":                                                   "ai-use",
		"Content-Usage: train-ai=n, train-ai=y":                                                  "train-ai",
		"Content-Usage: train-ai=y\nContent-Usage: train-ai=n":                                   "train-ai",
		"Content-Usage: train-ai=y, train-ai=no":                                                 "train-ai",
		"Content-Usage: /x train-ai=n":                                                           "",
		"Content-Usage: train-ai=maybe, =n, n, ,":                                                "",
		"Content-Signal: ai-train=yes, search=yes\nContent-Signal: /a/ Ai-Train = No":            "train-ai",
		"Content-Signal: /x ai-train=n\nContent-Usage: /x train-ai = n\nContent-Usage: search=N": "search train-ai",
		"Content-Signal: use=reference, AI-Input=No":                                             "ai-use",
	} {
		text := []byte("User-agent: *\nDisallow: /b/\n" + lines + "\n")
		im, err := Import(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		var imported, merged []string
		for _, s := range im.Spec.Rules[0].Statements {
			pathed := s.Pattern != pathpattern.All && !strings.Contains(lines, "Content-Signal: "+s.Pattern.String())
			if s.Usage.IsRight() && !s.Allow && !pathed {
				imported = append(imported, s.Usage.String())
			}
		}
		for key, names := range Parse(text).Below(policy.Compile(&policy.Spec{})).File.Group("*").Disallowed() {
			for _, name := range names {
				merged = append(merged, usageOf(t, key, name))
			}
		}
		for _, names := range []*[]string{&imported, &merged} {
			slices.Sort(*names)
			*names = slices.Compact(*names)
		}
		if got := strings.Join(imported, " "); got != want {
			t.Errorf("%q: import disallows %q, want %q", lines, got, want)
		}
		if got := strings.Join(merged, " "); got != want {
			t.Errorf("%q: merge disallows %q, want %q", lines, got, want)
		}
	}
}

// usageOf returns the usage that a preference such as "ai-train" means in lines with the given key. It fails the test
// if the lines cannot have this preference.
func usageOf(t *testing.T, key, name string) string {
	t.Helper()
	if key == "content-usage" && slices.Contains([]string{"train-ai", "ai-use", "search"}, name) {
		return name
	}
	usage := map[string]string{"ai-train": "train-ai", "ai-input": "ai-use", "search": "search"}[name]
	if key != "content-signal" || usage == "" {
		t.Errorf("%q is not a name in lines with the key %s", name, key)
	}
	return usage
}

func below(t *testing.T, text string) *Below {
	t.Helper()
	return Parse([]byte(text)).Below(policy.Compile(&policy.Spec{}))
}

func extensionsOf(g *Group) (texts []string) {
	for _, l := range g.Extensions(Stated{}) {
		texts = append(texts, l.Text)
	}
	return texts
}

// The lines "Disallow: *print" and "Disallow: /*print" have the same pattern, but different lengths, and the length
// decides whether an Allow line wins. So groups that differ only in such lines are not equal.
func TestGroupsWithOtherLengthsAreNotEqual(t *testing.T) {
	t.Parallel()
	p := below(t, "User-agent: Googlebot\nDisallow: *print\nAllow: /shop/\n\nUser-agent: Bingbot\nDisallow: /*print\nAllow: /shop/\n").Policy
	for name, want := range map[string]bool{"Googlebot": true, "Bingbot": false} {
		if got := p.Decide(policy.Query{Crawler: p.Crawler(name), Path: "/shop/print"}).Verdict != policy.Disallowed; got != want {
			t.Errorf("%s may crawl the page: %v", name, got)
		}
	}
}

// A merge replaces some lines of a group with new lines. If the new lines of two groups differ, the groups must not be
// treated as equal, even if all their other lines are equal.
func TestGroupsWithOtherDerivedLinesAreNotEqual(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"User-agent: AlphaBot\nContent-Signal: /x ai-train=no\nDisallow: /p\n\nUser-agent: BetaBot\nContent-Signal: /x search=no\nDisallow: /p\n",
		"Content-Signal: ai-train=no, search=no\nUser-agent: AlphaBot\nContent-Signal: search=yes\nDisallow: /p\n\nUser-agent: BetaBot\nContent-Signal: ai-train=yes\nDisallow: /p\n",
	} {
		f := below(t, text).File
		a, b := f.Group("AlphaBot"), f.Group("BetaBot")
		if slices.Equal(extensionsOf(a), extensionsOf(b)) || a.key() == b.key() {
			t.Errorf("%q: %q and %q", text, extensionsOf(a), extensionsOf(b))
		}
	}
}

// A path "/" means no path. So a preference of a group for "/" replaces the preference above the groups.
func TestPreferencesAboveAGroupWithoutPath(t *testing.T) {
	t.Parallel()
	f := below(t, "Content-Signal: ai-train=no, search=yes\nUser-agent: Bingbot\nContent-Signal: / ai-train=yes\nDisallow: /b\n").File
	if got := extensionsOf(f.Group("Bingbot")); !slices.Equal(got, []string{"Content-Signal: / ai-train=yes", "Content-Signal: search=yes"}) {
		t.Errorf("%q", got)
	}
}

// If a line above the groups is too long, or if there are too many such lines, only the usages that the line disallows
// are kept.
func TestLongPreferencesAboveTheGroupsDisallow(t *testing.T) {
	t.Parallel()
	for _, top := range []string{
		"Content-Signal: search=yes, ai-train=no, ai-input=no, use=reference" + strings.Repeat(", search=yes", 4),
		"Content-Signal: /" + strings.Repeat("x", 100) + " search=yes, ai-train=no, ai-input=no",
		strings.Repeat("Content-Usage: /x search=y\n", maxTop) + "Content-Signal: ai-train=no\nContent-Signal: ai-train=no, ai-input=no",
	} {
		f := below(t, top+"\nUser-agent: *\nDisallow: /a\n").File
		if got := f.Group("*").Disallowed()["content-signal"]; !slices.Equal(got, []string{"ai-input", "ai-train"}) {
			t.Errorf("%q: %q", top, got)
		}
	}
}

// Hundreds of groups share lines with thousands of members. The lines derived from them are short, and computed once.
func TestDerivedLinesAreShared(t *testing.T) {
	t.Parallel()
	var names, members strings.Builder
	for i := range 300 {
		names.WriteString("User-agent: bot" + strings.Repeat("x", i%20) + strings.Repeat("y", i/20) + "\n")
	}
	for i := range 2000 {
		members.WriteString("a" + strings.Repeat("b", i%90) + strings.Repeat("c", i/90) + "=no,")
	}
	f := below(t, "Content-Usage: search=y\n"+names.String()+"Content-Signal: /x "+members.String()+"ai-train=no\nContent-Usage: "+strings.Repeat(",", 50_000)+"train-ai=n\nDisallow: /a\n").File
	first := f.Group("bot")
	if !slices.Equal(first.Disallowed()["content-usage"], []string{"train-ai"}) || !slices.Contains(first.Disallowed()["content-signal"], "ai-train") {
		t.Errorf("%v", first.Disallowed())
	}
	for _, g := range f.Groups {
		for i := range g.lines {
			if l := g.lines[i]; g.Name != "*" && (l != first.lines[i] || l.key == "content-signal" && len(l.value) > 10_000) {
				t.Fatalf("%s: line %d is a copy or has %d bytes", g.Name, i, len(l.value))
			}
		}
	}
}

// If a Content-Signal line with a path disallows a usage, a merged file disallows this usage for the whole site. Told
// returns a policy for comparisons with the merged file, so this policy also disallows the usage for the whole site.
func TestToldSignalsHaveNoPath(t *testing.T) {
	t.Parallel()
	told, _ := Parse([]byte("User-agent: *\nContent-Signal: /x ai-train=no, search=yes\n")).Told(policy.Compile(&policy.Spec{}))
	if len(told.Rules) != 1 || len(told.Rules[0].Statements) != 1 || told.Rules[0].Statements[0].Pattern != pathpattern.All || told.Rules[0].Statements[0].Usage != policy.TrainAI {
		t.Errorf("%+v", told.Rules)
	}
}

// A note about a Crawl-delay that is not a number does not compare it with another delay.
func TestNotesOfImplausibleDelays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Crawl-delay: 5\nCrawl-delay: x": "is not a number of seconds", "Crawl-delay: x\nCrawl-delay: 5": "is not a number of seconds",
		"Crawl-delay: 5\nCrawl-delay: 0": "has a longer delay", "Crawl-delay: 10\nCrawl-delay: 5": "has a longer delay",
	} {
		notes := Parse([]byte("User-agent: Bingbot\n" + text + "\n")).Notes()
		if len(notes) != 1 || !strings.Contains(notes[0].Message, want) {
			t.Errorf("%q: %v", text, notes)
		}
	}
}

// The directives of a path such as /a/a replace the directives of /a. In a policy, this needs entries that cancel the
// directives of each shorter path, so their number grows with the square of the number of lines. If there are too many,
// Import returns ErrTooLarge, and the policy that Told returns contains only the directives of the file.
func TestManyNestedDirectives(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("User-agent: *\n")
	for i := range 400 {
		b.WriteString("App-Directives: " + strings.Repeat("/a", i+1) + " app" + strings.Repeat("b", i) + ";x\n")
	}
	told, _ := Parse([]byte(b.String())).Told(policy.Compile(&policy.Spec{}))
	if n := len(told.Rules[0].AppDirectives); n != 400 {
		t.Errorf("%d directives", n)
	}
	if _, err := Import([]byte(b.String()), nil); err != ErrTooLarge {
		t.Errorf("%v", err)
	}
}

// Explanations quote lines as they are in the file, although a merge derives other lines from them.
func TestWrittenLines(t *testing.T) {
	t.Parallel()
	f := below(t, "Content-Signal: ai-train=no, search=no\nUser-agent: Bingbot\nContent-Signal: /x search=no\nContent-Usage: train-ai=y\nDisallow: /b\n").File
	for number, want := range map[int]string{1: "Content-Signal: ai-train=no, search=no", 3: "Content-Signal: /x search=no", 4: "Content-Usage: train-ai=y", 5: ""} {
		if got, above := f.Written(number); got != want || above != (number == 1) {
			t.Errorf("line %d: %q, above %v", number, got, above)
		}
	}
}
