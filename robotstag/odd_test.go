// SPDX-License-Identifier: Apache-2.0

package robotstag

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
)

// oddPolicies returns the header fields of several policies. The tests merge them with odd values, which are malformed
// or unusual rules of an upstream. The limits of the policies are weaker than the ones in the odd values, and their
// dates are later, so the merged field must keep the odd values.
func oddPolicies(t *testing.T) (all []*Values) {
	t.Helper()
	for _, members := range [][]Member{
		list("*", "unavailable_after: 2028-01-02T03:04:05Z, max-snippet:500, max-video-preview:100, max-image-preview:standard"),
		list("*", "noarchive", "googlebot", "max-snippet:400, unavailable_after: 2029-01-02T03:04:05Z"),
		list("*", "nosnippet, noindex, indexifembedded"),
	} {
		v, problems := Build(members, preferences("yy "), testNow)
		if problems != nil {
			t.Fatal(problems)
		}
		all = append(all, v)
	}
	return all
}

// checkOdd checks the lines merged, which are the result of merging the policy's lines ours with the upstream's lines
// theirs. If one of the readers finds a restriction in ours or theirs, it must also find it in merged.
func checkOdd(t *testing.T, readers []crawlertest.Reader, theirs, ours, merged []string) {
	t.Helper()
	for _, agent := range []string{"stranger", "googlebot"} {
		for _, r := range readers {
			got := r.Read(merged, agent)
			if before := r.Read(theirs, agent); !got.Within(before) {
				t.Errorf("%s, %s: %q becomes %q, which restricts %s instead of %s", r.Name, agent, theirs, merged, got, before)
			}
			if before := r.Read(ours, agent); r.Name != "words" && !got.Within(before) {
				t.Errorf("%s, %s: of the policy's %q, %q is left, which restricts %s instead of %s", r.Name, agent, ours, merged, got, before)
			}
		}
	}
	for _, word := range crawlertest.Words(theirs) {
		if !slices.Contains(crawlertest.Words(merged), word) {
			t.Errorf("%q becomes %q, and %s is lost", theirs, merged, word)
		}
	}
}

// When a field of the policy is merged with an upstream's field, an odd value in one of them must not make a valid
// value in the other ineffective. If some reader finds a restriction in the upstream's field, it also finds the
// restriction in the merged field.
func TestOddValues(t *testing.T) {
	tests := []struct {
		field   string
		forms   []string
		readers []crawlertest.Reader
		ours    func(*Values) []string
	}{
		{XRobotsTagField, []string{"§", "nofollow, §", "§, notranslate", "googlebot: §", "nofollow|§"}, crawlertest.XReaders, func(v *Values) []string { return v.XRobotsTag }},
		{RobotsTagField, []string{"*;§", "*;nofollow;§", "*;§;notranslate", "*;nofollow, §", "§, googlebot;notranslate", "googlebot; § ; noarchive", "*;nofollow|*;§"}, crawlertest.TagReaders, func(v *Values) []string { return v.RobotsTag }},
	}
	policies := oddPolicies(t)
	for _, tt := range tests {
		n := 0
		for _, odd := range crawlertest.OddRules() {
			for _, form := range tt.forms {
				theirs := strings.Split(strings.ReplaceAll(form, "§", odd), "|")
				if strings.Contains(odd, "|") {
					theirs = []string{strings.ReplaceAll(form, "§", odd)}
				}
				n++
				for i, v := range policies {
					if testing.Short() && i != n%len(policies) {
						continue
					}
					h := http.Header{tt.field: slices.Clone(theirs)}
					Apply(h, v, AllChannels)
					checkOdd(t, tt.readers, theirs, tt.ours(v), h[tt.field])
					if date, ok := strings.CutPrefix(odd, "unavailable_after: "); ok && crawlertest.DateLost(date, h[tt.field]) {
						t.Errorf("%q becomes %q, and the date is lost", theirs, h[tt.field])
					}
				}
			}
		}
		if n < 200 {
			t.Errorf("%s: only %d values", tt.field, n)
		}
	}
}

func TestOddUsages(t *testing.T) {
	odd := crawlertest.OddUsages()
	if len(odd) < 200 {
		t.Errorf("only %d values", len(odd))
	}
	for _, theirs := range odd {
		for _, ours := range []string{"yy ", "  y", "n n"} {
			v, _ := Build(nil, preferences(ours), testNow)
			h := http.Header{contentUsageField: {theirs}}
			Apply(h, v, AllChannels)
			checkOddUsage(t, []string{theirs}, v.Preferences[0], h[contentUsageField])
		}
	}
}

func checkOddUsage(t *testing.T, theirs, ours, merged []string) {
	t.Helper()
	for _, r := range crawlertest.UsageReaders {
		got := r.Read(merged)
		for _, label := range []string{"train-ai", "search"} {
			if (r.Read(theirs)[label] || r.Read(ours)[label]) && !got[label] {
				t.Errorf("%s: %q and ours %q become %q, which allows %s", r.Name, theirs, ours, merged, label)
			}
		}
	}
}

// FuzzOdd merges arbitrary lines. If a reader that distinguishes audiences finds a restriction in a line, it must also
// find the restriction in the merged field. The test does not use the reader that only looks for words, because a word
// can be a part of a name.
func FuzzOdd(f *testing.F) {
	for i, odd := range crawlertest.OddRules() {
		f.Add("*;"+odd, i%3)
		f.Add("nofollow, "+odd, i%3)
	}
	for _, odd := range crawlertest.OddUsages() {
		f.Add(odd, 0)
	}
	f.Fuzz(func(t *testing.T, line string, policy int) {
		if len(line) > 300 || strings.ContainsFunc(line, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
			return
		}
		v := oddPolicies(t)[uint(policy)%3]
		h := http.Header{XRobotsTagField: {line}, RobotsTagField: {line}, contentUsageField: {line}}
		problems := kinds(Apply(h, v, AllChannels))
		checkOdd(t, crawlertest.XReaders[:2], []string{line}, v.XRobotsTag, h[XRobotsTagField])
		if slices.Contains(problems, BadToken) {
			return // the field cannot have a name such as 360bot
		}
		checkOdd(t, crawlertest.TagReaders[:2], []string{line}, v.RobotsTag, h[RobotsTagField])
		checkOddUsage(t, []string{line}, v.Preferences[0], h[contentUsageField])
	})
}
