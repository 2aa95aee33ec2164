// SPDX-License-Identifier: Apache-2.0

package policyinput

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/rfc9309"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
)

// filler generates a robots.txt from copies of a text. It makes as many copies as parts says, but stops when the
// robots.txt has at least size bytes. In each copy, NUMBER is replaced by the number of the copy in digits, and NAME by
// this number in letters.
type filler struct{ parts, size int }

func (f filler) fill(format string) string {
	var b strings.Builder
	for i := 0; i < f.parts && b.Len() < f.size; i++ {
		var letters []byte
		for n := i; n > 0 || letters == nil; n /= 26 {
			letters = append(letters, byte('a'+n%26))
		}
		b.WriteString(strings.NewReplacer("NAME", string(letters), "NUMBER", fmt.Sprint(i)).Replace(format))
	}
	return b.String()
}

// usual lists the keys of the files that the tests use if ROBOTSPOLICY_LONG is not set (see hostile).
var usual = []string{"groups", "rules", "wildcards of both kinds", "records", "records of sets", "short lines"}

// hostile returns robots.txt files that are expensive to read. The key of each file names what it contains in large
// numbers. The files have the maximum size that crawlers read, or the maximum size that can be imported.
func hostile() map[string]string {
	files := map[string]string{}
	for size, f := range map[string]filler{"full": {1 << 20, rfc9309.Limit - 5000}, "most": {12_300, rfc9309.Limit - 5000}, "quarter": {1350, rfc9309.Limit - 5000}} {
		half, few := filler{f.parts / 2, f.size / 2}, filler{f.parts / 80, f.size / 2}
		if size == "full" {
			few = half
		}
		nested, path := "user-agent:*\n", ""
		for i := 0; i < f.parts && len(nested) < f.size; i++ {
			path += "/a"
			nested += []string{"disallow:", "allow:"}[i%2] + path + "\n"
		}
		for name, text := range map[string]string{
			"groups":                  half.fill("user-agent:NAME\ndisallow:/NUMBER\n"),
			"names":                   f.fill("user-agent:NAME\n"),
			"names times rules":       few.fill("user-agent:NAME\n") + filler{70, half.size}.fill("disallow:/NUMBER\n"),
			"many names, many rules":  half.fill("user-agent:NAME\n") + half.fill("disallow:/NUMBER\n"),
			"one name, many groups":   f.fill("user-agent:a\ndisallow:/NUMBER\n"),
			"rules":                   "user-agent:*\n" + f.fill("disallow:/NUMBER\n"),
			"rules of both kinds":     "user-agent:*\n" + half.fill("disallow:/NUMBER\nallow:/NUMBER/a\n"),
			"wildcards":               "user-agent:*\n" + f.fill("disallow:/*NUMBER*a*b\n"),
			"wildcards of both kinds": "user-agent:*\n" + half.fill("disallow:/*aNUMBER*\nallow:/NUMBER*b\n"),
			"wildcards that run":      "user-agent:*\n" + f.fill("disallow:/*a*a*a*a*a*a*a*a*NUMBER\n"),
			"stars without a slash":   "user-agent:*\n" + half.fill("disallow:*NUMBER.html\nallow:/NUMBER/\n"),
			"long rules":              "user-agent:*\n" + f.fill("disallow:/"+strings.Repeat("a", 2000)+"NUMBER\n"),
			"long rules that meet":    "user-agent:*\n" + f.fill("disallow:/"+strings.Repeat("%e2", 600)+"NUMBER\nallow:/"+strings.Repeat("%e2", 600)+"NUMBER*\n"),
			"long paths of usages":    "user-agent:*\n" + f.fill("content-usage: /"+strings.Repeat("*", 8000)+" "+strings.Repeat("use=NUMBER,", 700)+"\n"),
			"nested rules":            nested,
			"encoded":                 "user-agent:*\n" + f.fill("disallow:/%61%2f%e2NUMBER\n"),
			"comments":                "user-agent:*\n" + f.fill("# NUMBER\ndisallow:/NUMBER\n"),
			"delays":                  half.fill("user-agent:NAME\ncrawl-delay:NUMBER\n"),
			"usages":                  "user-agent:*\n" + f.fill("content-usage: /NUMBER train-ai=n\n"),
			"names times usages":      half.fill("user-agent:NAME\n") + half.fill("content-usage: /NUMBER train-ai=n\n"),
			"names and usages":        half.fill("user-agent:NAME\ncontent-signal: ai-train=no,search=yes\n"),
			"sitemaps":                "user-agent:*\ndisallow:/a\n" + f.fill("sitemap:https://x.example/NUMBER\n"),
			"records":                 "##ACAP version=1.0\nacap-crawler:*\n" + f.fill("acap-disallow-crawl:/NUMBER\n"),
			"records of sets":         "##ACAP version=1.0\nacap-resource-set: s " + few.fill("/*NUMBER ") + "\n" + filler{300, f.size}.fill("acap-crawler:NAME\nacap-disallow-index:the-acap:resource-set:s\nacap-allow-index:/\n"),
			"records and rules":       "##ACAP version=1.0\nacap-crawler:*\n" + filler{100, f.size}.fill("acap-allow-crawl:/q/NUMBER\n") + "user-agent:*\n" + half.fill("disallow:/NUMBER\nallow:/NUMBER/\n"),
			"short lines":             "user-agent:*\ndisallow:/a\n" + f.fill("a\n"),
			"purposes":                half.fill("user-agent-purpose:NAME\ndisallow:/NUMBER\n"),
			"purposes beside *":       filler{f.parts / 4, half.size / 2}.fill("user-agent-purpose:NAME\ndisallow:/NUMBER\n") + "user-agent:*\n" + filler{f.parts / 4, half.size}.fill("disallow:/*NUMBER\n"),
		} {
			if testkit.Long() || size != "quarter" && slices.Contains(usual, name) {
				files[size+": "+name] = text
			}
		}
	}
	return files
}

// Importing a robots.txt needs little memory and time, regardless of its content. If a file is too large to compare,
// the result does not claim that the file and its policy have the same meaning.
func TestImportBudget(t *testing.T) {
	testkit.Nightly(t)
	converted := 0
	for name, robots := range hostile() {
		t.Run(name, func(t *testing.T) {
			testkit.Budget(t, func() {
				c, err := Convert("robots.txt", []byte(robots))
				if err != nil {
					if !errors.Is(err, ErrInvalid) || !errors.Is(err, robotstxt.ErrTooLarge) {
						t.Error(err)
					}
					return
				}
				converted++
				if q := c.Judge(); q.Complete == strings.Contains(q.Sentence(), "cannot be judged") {
					t.Error(q.Sentence())
				}
			})
		})
	}
	if converted == 0 {
		t.Error("nothing was converted")
	}
}

// Comparing two files needs little memory and time: at most twice the memory and three times the CPU time of one
// import. If the files were not compared completely, the result does not claim that they are equal.
func TestDiffBudget(t *testing.T) {
	testkit.Nightly(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	p := write("policy.yaml", "version: 1\nrules:\n  - for: GPTBot\n    disallow: {crawl: /}\n"+
		"  - for: everyone\n    disallow:\n      crawl:\n"+filler{1 << 20, 600_000}.fill("        - /xNUMBER/*/y\n"))
	compared := 0
	for name, robots := range hostile() {
		t.Run(name, func(t *testing.T) {
			r := write("robots.txt", robots)
			for _, other := range []string{p, write("other.txt", strings.ReplaceAll(robots, "1", "2"))} {
				testkit.Within(t, 2*testkit.BudgetMemory, 3*testkit.BudgetCPU, func() {
					var inputs [2]*Input
					for i, name := range []string{other, r} {
						in, err := Read(t.Context(), name, nil)
						if err != nil {
							if !errors.Is(err, ErrInvalid) {
								t.Error(err)
							}
							return
						}
						inputs[i] = in
					}
					compared++
					d := compare.Sites(inputs[0].Site, inputs[1].Site, compare.Options{})
					if q := AskBoth(inputs[0], inputs[1], ""); d.Empty() && d.Complete && q.Differ > 0 {
						t.Error(q.Sentence())
					}
				})
			}
		})
	}
	if compared == 0 {
		t.Error("nothing was compared")
	}
}
