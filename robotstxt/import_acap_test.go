// SPDX-License-Identifier: Apache-2.0

package robotstxt_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// naiveRecord is an ACAP record as understood by a simple parser that follows only the text of ACAP 1.0. A record with
// purposes is a sub-record.
type naiveRecord struct {
	crawlers, purposes []string
	fields             []naiveField
}

type naiveField struct {
	allow          bool
	usage, pattern string
	purposes       []string
	re             *regexp.Regexp
	any            bool // true if the field comes from a record for any crawler
}

// naiveRecords parses the lines of a file. It returns a function that returns the fields of all records for a crawler.
// A record must not be for both "*" and named crawlers (section 2.3.1). If a record breaks this rule, its permissions
// do not apply to the named crawlers.
func naiveRecords(text string) (of func(crawler string) []naiveField) {
	var records []*naiveRecord
	open := false
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		last := len(records) - 1
		switch {
		case key == "ACAP-crawler" && open:
			records[last].crawlers = append(records[last].crawlers, value)
		case key == "ACAP-crawler":
			records, open = append(records, &naiveRecord{crawlers: []string{value}}), true
			continue
		case key == "ACAP-usage-purpose" && len(records[last].purposes) > 0 && len(records[last].fields) == 0:
			records[last].purposes = append(records[last].purposes, value)
		case key == "ACAP-usage-purpose":
			records = append(records, &naiveRecord{crawlers: records[last].crawlers, purposes: []string{value}})
		case strings.HasPrefix(key, "ACAP-"):
			usage, allow := strings.CutPrefix(key, "ACAP-allow-")
			records[last].fields = append(records[last].fields, naiveField{
				allow, strings.TrimPrefix(usage, "ACAP-disallow-"), strings.ToLower(value), records[last].purposes, naiveExpression(strings.ToLower(value)), false,
			})
		}
		open = open && key == "ACAP-crawler"
	}
	return func(crawler string) (all []naiveField) {
		for _, r := range records {
			everyone, named := slices.Contains(r.crawlers, "*"), slices.Contains(r.crawlers, crawler)
			for _, f := range r.fields {
				if named && !(everyone && f.allow) {
					all = append(all, f)
				}
				if f.any = true; everyone {
					all = append(all, f)
				}
			}
		}
		return all
	}
}

func (f *naiveField) matches(path string) bool { return f.re.MatchString(strings.ToLower(path)) }

func naiveExpression(pattern string) *regexp.Regexp {
	expression := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*")
	if open, anchored := strings.CutSuffix(expression, `\$`); anchored {
		expression = open + "$"
	}
	return regexp.MustCompile("^" + expression)
}

// narrower reports whether the pattern of f is narrower than the pattern of another field (ACAP 1.0 section 2.4.5).
func (f *naiveField) narrower(than *naiveField) bool {
	a, b := f.pattern, than.pattern
	for i := 0; ; i++ {
		switch {
		case i == len(a):
			return false
		case i == len(b):
			return true
		case a[i] != b[i]:
			return a[i] != '$' && (b[i] == '$' || a[i] != '*' && b[i] == '*')
		}
	}
}

// naiveProhibits reports whether the fields prohibit a usage of a path for a purpose, and whether any field is about
// it. In ACAP 1.0 section 2.2, a field for a named crawler overrides a field for "*" about the same path and usage. The
// text does not say whether this also requires that both fields have the same purposes. So naiveProhibits tries both
// interpretations, and reports that the usage is prohibited if either of them prohibits it.
func naiveProhibits(fields []naiveField, usage, purpose, path string) (prohibits, states bool) {
	for _, samePurposes := range []bool{false, true} {
		p, s := naiveReading(fields, usage, purpose, path, samePurposes)
		prohibits, states = prohibits || p, states || s
	}
	return prohibits, states
}

func naiveReading(fields []naiveField, usage, purpose, path string, samePurposes bool) (prohibits, states bool) {
	usages := []string{usage}
	if strings.HasPrefix(usage, "present-") {
		usages = append(usages, "present")
	}
	for _, u := range append(usages, "other") {
		var apply []*naiveField
		for i := range fields {
			f := &fields[i]
			if f.usage == u && f.matches(path) && (len(f.purposes) == 0 || slices.Contains(f.purposes, purpose)) {
				apply = append(apply, f)
			}
		}
		apply = slices.DeleteFunc(slices.Clone(apply), func(f *naiveField) bool {
			return f.any && slices.ContainsFunc(apply, func(g *naiveField) bool {
				return !g.any && (!samePurposes || slices.Equal(f.purposes, g.purposes))
			})
		})
		for _, f := range apply {
			states = true
			if !f.allow && !slices.ContainsFunc(apply, func(g *naiveField) bool { return g.allow && g.narrower(f) }) {
				prohibits = true
			}
		}
		if states {
			return prohibits, true
		}
	}
	return false, false
}

// TestImportACAPOpensNothing imports ACAP records, and asks whether a crawler that obeys them may use some paths. The
// policy must never allow more than the records (ACAP 1.0 sections 2.2, 2.3.1, 2.3.3, 2.4.5, 2.5.5 and 2.5.6).
func TestImportACAPOpensNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(*importSeed, 54))
	names := newNames(t)
	usages := []policy.Usage{policy.Crawl, policy.Index, policy.Follow, policy.Preserve, policy.Present, policy.PresentOldCopy, policy.PresentSnippet, policy.Other}
	patterns := []string{"/", "/a/", "/a/b", "/*c", "/a/*c", "/d$", "/a/b/"}
	laxer, stricter, asked := 0, 0, 0
	for range testkit.Rounds(400, 2000) {
		var b strings.Builder
		b.WriteString("##ACAP version=1.0\n")
		field := func() {
			fmt.Fprintf(&b, "ACAP-%s-%s: %s\n", []string{"allow", "disallow"}[r.IntN(2)], usages[r.IntN(len(usages))], patterns[r.IntN(len(patterns))])
		}
		for _, name := range [][]string{{"*"}, {"GPTBot"}, {"*", "GPTBot"}, {"GPTBot", "*"}, {"GPTBot", "GPTBot"}}[r.IntN(5)] {
			fmt.Fprintf(&b, "ACAP-crawler: %s\n", name)
			for range 1 + r.IntN(4) {
				field()
			}
			for range r.IntN(3) {
				for _, purpose := range [][]string{{"news"}, {"books"}, {"news", "books"}}[r.IntN(3)] {
					fmt.Fprintf(&b, "ACAP-usage-purpose: %s\n", purpose)
				}
				for range 1 + r.IntN(2) {
					field()
				}
			}
		}
		im, err := robotstxt.Import([]byte(b.String()), names.Crawlers())
		if err != nil {
			t.Fatal(err)
		}
		file, ds := policyfile.Load("imported.yaml", policyfile.Print(im.Spec))
		if ds.HasErrors() {
			t.Fatalf("%v\n%s", ds, b.String())
		}
		fieldsOf := naiveRecords(b.String())
		for _, crawler := range []string{"GPTBot", "zetabot"} {
			fields := fieldsOf(crawler)
			for _, path := range []string{"/", "/a/", "/a/b", "/a/bc", "/c", "/d", "/dx", "/a/b/c"} {
				for _, u := range usages {
					for _, purpose := range []string{"", "news", "books"} {
						asked++
						prohibits, states := naiveProhibits(fields, u.String(), purpose, path)
						q := policy.Query{Crawler: file.Policy.Crawler(crawler), Identity: policy.Verified, Path: path, Usage: u}
						if purpose != "" {
							q.Purposes = []string{purpose}
						}
						got := file.Policy.Decide(q).Verdict
						switch {
						case prohibits && got != policy.Disallowed, !states && got == policy.Allowed:
							if laxer++; laxer < 4 {
								t.Errorf("%s for %q to %v %s: prohibited %t, stated %t in the file, %v imported\n%s%s%v", crawler, purpose, u, path, prohibits, states, got, b.String(), policyfile.Print(im.Spec), im.Notes)
							}
						case !prohibits && got == policy.Disallowed:
							stricter++
						}
					}
				}
			}
		}
	}
	t.Logf("%d questions: laxer %d, stricter %d", asked, laxer, stricter)
}
