// SPDX-License-Identifier: Apache-2.0

package robotstxt_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/acap"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// TestImportACAPOpensNothing imports ACAP records and asks what a crawler that obeys them may do. The policy may disallow
// more than the records (ACAP 1.0 sections 2.2, 2.4.5 and 2.5.6), and never less.
func TestImportACAPOpensNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(*importSeed, 54))
	names := newNames(t)
	usages := []policy.Usage{policy.Crawl, policy.Index, policy.Follow, policy.Preserve, policy.Present, policy.PresentOldCopy, policy.PresentSnippet, policy.Other}
	patterns := []string{"/", "/a/", "/a/b", "/*c", "/a/*c", "/d$", "/a/b/"}
	laxer, stricter, asked := 0, 0, 0
	for range testkit.Rounds(400, 8000) {
		var b strings.Builder
		b.WriteString("##ACAP version=1.0\n")
		for _, name := range [][]string{{"*"}, {"GPTBot"}, {"*", "GPTBot"}, {"GPTBot", "*"}, {"GPTBot", "GPTBot"}}[r.IntN(5)] {
			fmt.Fprintf(&b, "ACAP-crawler: %s\n", name)
			for range 1 + r.IntN(4) {
				fmt.Fprintf(&b, "ACAP-%s-%s: %s\n", []string{"allow", "disallow"}[r.IntN(2)], usages[r.IntN(len(usages))], patterns[r.IntN(len(patterns))])
			}
		}
		im, err := robotstxt.Import([]byte(b.String()), robotstxt.ImportOptions{Name: names.Check, Browser: crawlers.NamesBrowser, Crawlers: names.Crawlers()})
		if err != nil {
			t.Fatal(err)
		}
		file, ds := policyfile.Load("imported.yaml", policyfile.Print(im.Spec))
		if ds.HasErrors() {
			t.Fatalf("%v\n%s", ds, b.String())
		}
		original := acap.Parse([]byte(b.String()))
		for _, crawler := range []string{"GPTBot", "zetabot"} {
			for _, path := range []string{"/", "/a/", "/a/b", "/a/bc", "/c", "/d", "/dx", "/a/b/c"} {
				for _, u := range usages {
					asked++
					want := original.Decide(acap.Query{Crawler: crawler, Path: path, Usage: u}).Verdict
					got := file.Policy.Decide(policy.Query{Crawler: file.Policy.Crawler(crawler), Identity: policy.Verified, Path: path, Usage: u}).Verdict
					switch {
					case got == want:
					case want == policy.Disallowed, got == policy.Allowed:
						laxer++
						if laxer < 4 {
							t.Errorf("%s to %v %s: %v in the file, %v imported\n%s%s%v", crawler, u, path, want, got, b.String(), policyfile.Print(im.Spec), im.Notes)
						}
					default:
						stricter++
					}
				}
			}
		}
	}
	t.Logf("%d questions: laxer %d, stricter %d", asked, laxer, stricter)
}
