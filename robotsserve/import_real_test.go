// SPDX-License-Identifier: Apache-2.0

package robotsserve_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/temoto/robotstxt"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

var importSeed = flag.Uint64("importseed", 1, "seed of the paths of the import tests")

// Import, print, load, render and read again: every crawler that a file names, and
// one that it does not, may fetch the same as by the file itself, as an independent
// reader has it; but for lines of which Import told that it reads them otherwise.
func TestImportMeansTheSame(t *testing.T) {
	own, err := filepath.Glob("testdata/import/*.txt")
	if err != nil || len(own) == 0 {
		t.Fatal("no files of our own", err)
	}
	real, _ := filepath.Glob("../../shared/data/robots/*.txt")
	if len(real) == 0 {
		t.Log("no real files at ../../shared/data/robots: only those of testdata are tried")
	}
	t.Logf("seed %d", *importSeed)
	total := map[string]int{}
	for _, name := range append(own, real...) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			counts := checkImport(t, data, 1<<20)
			for k, n := range counts {
				total[k] += n
			}
		})
	}
	t.Logf("%d files: %v", len(own)+len(real), total)
	// Crawlers whose names a policy file cannot have are left out whole.
	if told := total["told"] - total["told: no name"]; told*50 > total["decisions"] {
		t.Errorf("%d of %d decisions are excepted", told, total["decisions"])
	}
	for _, class := range []string{"told: no name", "told: another length", "told: no path"} {
		if total[class] == 0 {
			t.Errorf("no decision is of the class %q: the files are too tame", class)
		}
	}
}

func checkImport(t *testing.T, data []byte, most int) map[string]int {
	names, err := policyfile.NewNames()
	if err != nil {
		t.Fatal(err)
	}
	spec, told := robotsserve.Import(data, robotsserve.ImportOptions{Name: names.Check, Crawlers: names.Crawlers()})
	text := policyfile.Print(spec)
	file, ds := policyfile.Load("imported.yaml", text)
	if ds.HasErrors() {
		t.Fatalf("what was imported does not load: %v\n%s", ds, text)
	}
	f, problems := robotsserve.Render(file.Policy, "", robotsserve.Options{})
	for _, p := range problems {
		if p.Severity == policy.Error {
			t.Skipf("%+v", p)
		}
	}
	im := imported{spec: spec, file: file, text: originalLines(data), lines: map[int]string{}, before: readOriginal(data, readAs(told)), after: readOriginal(f.Body, nil), rendered: f}
	for _, tl := range told {
		im.lines[tl.Line] += tl.Message + "; "
	}
	counts := map[string]int{"told lines": len(im.lines)}
	r := rand.New(rand.NewPCG(*importSeed, 20))
	crawlers := append(slices.Clone(im.before.names), "zetabot")
	for _, name := range crawlers[max(0, len(crawlers)-most):] {
		if name == "*" {
			continue
		}
		for _, path := range importPaths(r, im.before, name)[:min(most, 200)] {
			if originalNormal(path) != "/robots.txt" { // implied, RFC 9309 section 2.2.2
				im.check(t, name, path, counts)
			}
		}
	}
	if most > 200 {
		counts["temoto"] = checkTemoto(t, r, data, im.before)
	}
	return counts
}

// imported is a file, what it was imported as, and what that is rendered as.
type imported struct {
	spec          *policy.Spec
	file          *policyfile.File
	text          []string       // the file's lines
	lines         map[int]string // what was told of each line
	before, after *original
	rendered      *robotsserve.File
}

func (im *imported) check(t *testing.T, name, path string, counts map[string]int) {
	t.Helper()
	norm := originalPath(path)
	want, by := im.before.may(name, norm)
	p := im.file.Policy
	d := p.Decide(policy.Query{Crawler: p.Crawler(name), Identity: policy.Verified, Path: path})
	counts["decisions"]++
	if !want {
		counts["disallowed"]++
	}
	if got := d.Verdict != policy.Disallowed; got != want {
		decided := im.statementLine(d)
		class := im.class(name, by, decided)
		if class == "" {
			t.Fatalf("%q may fetch %q: %v by line %d of the file, and %v imported from line %d\n%s", name, path, want, by, got, decided, policyfile.Print(im.spec))
		}
		counts[class]++
		counts["told"]++
		return
	}
	if got, at := im.after.may(name, norm); got != want && !lossy(im.rendered, name, norm) {
		t.Fatalf("%q may fetch %q: %v by the file, and %v by line %d of\n%s", name, path, want, got, at, im.rendered.Body)
	}
}

// class is what Import told of the lines that decide, if that is why something
// else holds for the policy.
func (im *imported) class(name string, lines ...int) string {
	of := im.lines[im.before.named[name]]
	if strings.Contains(of, " cannot be a crawler's name, ") || strings.Contains(of, " names no crawler") {
		return "told: no name"
	}
	for _, n := range lines {
		switch {
		case n > 0 && strings.HasPrefix(strings.ToLower(strings.TrimSpace(im.text[n-1])), "acap-"):
			return "of an ACAP record" // which the reader of the test does not know
		case strings.Contains(im.lines[n], " octets long and "):
			return "told: another length"
		case strings.Contains(im.lines[n], "; it is left out"):
			return "told: too long"
		case strings.Contains(im.lines[n], " is no path"):
			return "told: no path"
		}
	}
	return ""
}

var toldReading = regexp.MustCompile(`is read as ("(?:[^"\\]|\\.)*"), as some crawlers do$`)

// readAs is how lines are read that are written wrongly, as it was told.
func readAs(told []robotsserve.Told) map[int]string {
	lines := map[int]string{}
	for _, tl := range told {
		if m := toldReading.FindStringSubmatch(tl.Message); m != nil {
			lines[tl.Line], _ = strconv.Unquote(m[1])
		}
	}
	return lines
}

// statementLine finds the line of the robots.txt that a statement of the loaded
// file comes from: both have the same rules in the same order.
func (im *imported) statementLine(d policy.Decision) int {
	for i := range im.file.Spec.Rules {
		if &im.file.Spec.Rules[i] != d.Rule || i >= len(im.spec.Rules) {
			continue
		}
		for _, s := range im.spec.Rules[i].Statements {
			if s.Usage == d.Statement.Usage && s.Pattern == d.Statement.Pattern {
				return s.Pos.Line
			}
		}
	}
	return 0
}

func lossy(f *robotsserve.File, name, path string) bool {
	for _, l := range f.Losses {
		if l.Paths.Match(path) && (slices.Contains(l.Crawlers, "*") || slices.ContainsFunc(l.Crawlers, func(c string) bool { return strings.EqualFold(c, name) })) {
			return true
		}
	}
	return false
}

// importPaths are 200 paths: most made of the patterns that the crawler reads.
func importPaths(r *rand.Rand, o *original, name string) []string {
	rules := slices.Concat(o.groups[name], o.groups["*"])
	const letters = "abz/.?=&-_%~AZ09"
	var paths []string
	for range 200 {
		path := "/"
		if len(rules) > 0 && r.IntN(8) > 0 {
			path = strings.TrimSuffix(rules[r.IntN(len(rules))].pattern, "$")
			if r.IntN(4) == 0 {
				path = path[:1+r.IntN(len(path))]
			}
			if r.IntN(8) == 0 {
				path += strings.TrimLeft(rules[r.IntN(len(rules))].pattern, "/")
			}
			if path[0] != '/' {
				path = "/" + path
			}
		}
		for strings.Contains(path, "*") {
			fill := ""
			for range r.IntN(4) {
				fill += letters[r.IntN(len(letters)):][:1]
			}
			path = strings.Replace(path, "*", fill, 1)
		}
		for range r.IntN(6) * r.IntN(2) {
			path += letters[r.IntN(len(letters)):][:1]
		}
		paths = append(paths, path)
	}
	return paths
}

// checkTemoto holds the independent reader of this test to another one, where
// that can be trusted: it does not know wildcards as RFC 9309 does, looks for a
// crawler's name by prefixes and with its version, and passes by a group without
// rules. The number is how often it was asked.
func checkTemoto(t *testing.T, r *rand.Rand, data []byte, o *original) (asked int) {
	robots, err := robotstxt.FromString(originalText(data))
	if err != nil {
		return 0
	}
	for _, name := range append(slices.Clone(o.names), "zetabot") {
		rules := o.groups[name]
		if _, ok := o.named[name]; !ok {
			rules = o.groups["*"]
		}
		if name == "*" || len(rules) == 0 || slices.ContainsFunc(rules, func(r originalRule) bool { return r.encoded || strings.ContainsAny(r.pattern, "*$%") }) ||
			name != "zetabot" && !o.whole[name] || o.unsure[name] || o.unsure["*"] || slices.ContainsFunc(o.names, func(n string) bool { return n != name && strings.HasPrefix(name, n) }) {
			continue
		}
		for _, path := range importPaths(r, o, name)[:20] {
			if strings.ContainsAny(path, "%") {
				continue
			}
			asked++
			want, by := o.may(name, path)
			if got := robots.TestAgent(path, name); got != want {
				t.Errorf("%s", fmt.Sprintf("temoto: %q may fetch %q: %v, the reader of the test %v by line %d", name, path, got, want, by))
			}
		}
	}
	return asked
}
