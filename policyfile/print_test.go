// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// meaning returns a Spec as text, without the places of its parts and the name of its file. It visits all fields, so that a
// new field cannot be forgotten. The order of engine rules does not matter, so they are sorted.
func meaning(t testing.TB, spec *policy.Spec) string {
	t.Helper()
	c := *spec
	c.File, c.Table = "", nil
	var lines []string
	describe(&lines, "", reflect.ValueOf(c))
	return strings.Join(lines, "\n")
}

// describe appends a line for each value in v that is not zero. name is the path from the Spec to v, such as
// ".Rules[0].For".
func describe(lines *[]string, name string, v reflect.Value) {
	switch x := v.Interface().(type) {
	case policy.Pos:
		return
	case fmt.Stringer:
		if !v.IsZero() {
			*lines = append(*lines, fmt.Sprintf("%s %s", name, x))
		}
		return
	}
	switch v.Kind() { //nolint:exhaustive // all other kinds are printed
	case reflect.Pointer:
		if !v.IsNil() {
			describe(lines, name, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				describe(lines, name+"."+field.Name, v.Field(i))
			}
		}
	case reflect.Slice, reflect.Array:
		unordered := v.Type().Elem() == reflect.TypeFor[policy.EngineRule]()
		var items []string
		for i := range v.Len() {
			at := fmt.Sprintf("%s[%d]", name, i)
			if unordered {
				at = name
			}
			var item []string
			describe(&item, at, v.Index(i))
			items = append(items, strings.Join(item, "\n"))
		}
		if unordered {
			slices.Sort(items)
		}
		*lines = append(*lines, items...)
	default:
		if !v.IsZero() {
			*lines = append(*lines, fmt.Sprintf("%s %v", name, v.Interface()))
		}
	}
}

// agents returns the data for recognizing and verifying crawlers as text. This data is in the catalog of a file, but
// not in a Spec.
func agents(c *crawlers.Catalog) string {
	var b strings.Builder
	for _, cr := range c.All() {
		fmt.Fprintf(&b, "%s %q %q\n", cr.Token, cr.Patterns(), cr.Verification)
	}
	return b.String()
}

// checkPrinted prints a file, and checks that the output has the same meaning as the file.
func checkPrinted(t testing.TB, f *File) {
	t.Helper()
	printed := f.Print()
	again, ds := LoadWith(f.Name, printed, Options{Now: testNow})
	if again == nil {
		t.Fatalf("what was printed does not load:\n%s\n%s", ds.Text(), printed)
	}
	if want, got := meaning(t, f.Spec), meaning(t, again.Spec); want != got {
		t.Fatalf("printing changed the meaning:\n%s\nwant:\n%s\ngot:\n%s", printed, want, got)
	}
	if want, got := agents(f.Catalog), agents(again.Catalog); want != got {
		t.Fatalf("what is known of crawlers differs:\n%s\nwant:\n%s\ngot:\n%s", printed, want, got)
	}
	if second := again.Print(); string(second) != string(printed) {
		a, b := strings.Split(string(printed), "\n"), strings.Split(string(second), "\n")
		i := 0
		for i < min(len(a), len(b)) && a[i] == b[i] {
			i++
		}
		t.Fatalf("printing twice differs from line %d:\n%s\nsecond:\n%s", i+1, printed, strings.Join(b[i:min(len(b), i+5)], "\n"))
	}
}

func TestPrintKeepsTheMeaning(t *testing.T) {
	paths := filesOf(t, "testdata/good/*.yaml")
	for _, path := range append(paths, filesOf(t, "testdata/bad/*.yaml")...) {
		f, _ := loadFile(t, path)
		if f == nil {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			checkPrinted(t, f)
		})
	}
}

func TestPrintLooksAsWritten(t *testing.T) {
	f, _ := loadFile(t, "testdata/good/full.yaml")
	compareGolden(t, "testdata/print/full.yaml", string(f.Print()))
	commented := PrintWith(f.Spec, PrintOptions{Header: "From robots.txt\nof www.example.com", Comments: map[int]string{0: "everyone", 2: "two\nlines"}})
	compareGolden(t, "testdata/print/comments.yaml", string(commented))
}

func TestPrintRandomPolicies(t *testing.T) {
	const seed = 7
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	files, loaded := testkit.Rounds(30, 150), 0
	if testkit.Long() {
		files = 2000
	}
	for range files {
		spec := policytest.Random(r, policytest.Options{})
		spec.Publish, spec.Enforcement = defaultPublish, policy.Enforcement{Mode: policy.ModeOff, Status: defaultStatus, Impostors: policy.ModeOff}
		printed := Print(spec)
		f, ds := LoadWith("random.yaml", printed, Options{Now: policytest.Now})
		if f == nil {
			if onlyErrors(ds, "contradiction") { // the generator allows and disallows at random
				continue
			}
			t.Fatalf("%s\n%s", ds.Text(), printed)
		}
		loaded++
		compareDecisions(t, r, spec, f, printed)
	}
	if loaded < files*3/4 {
		t.Errorf("only %d policies loaded", loaded)
	}
}

func onlyErrors(ds Diagnostics, codes ...string) bool {
	for _, d := range ds {
		if d.Severity == policy.Error && !slices.Contains(codes, d.Code) {
			return false
		}
	}
	return true
}

// compareDecisions asks a Spec and the file that was printed from it the same questions.
func compareDecisions(t *testing.T, r *rand.Rand, spec *policy.Spec, f *File, printed []byte) {
	t.Helper()
	want := policy.Compile(spec)
	for range 50 {
		token := policytest.Tokens[r.IntN(len(policytest.Tokens))]
		q := policy.Query{
			Identity: policy.Identity(r.IntN(3)), Host: policytest.Hosts[r.IntN(len(policytest.Hosts))],
			Path: policytest.Path(r), Usage: policy.Usages()[r.IntN(len(policy.Usages()))], Now: policytest.Now,
		}
		asked, asks := q, q
		asked.Crawler, asks.Crawler = want.Crawler(token), f.Policy.Crawler(token)
		a, b := want.Decide(asked), f.Policy.Decide(asks)
		if a.Verdict != b.Verdict || strings.Join(a.Qualifiers().Strings(), " ") != strings.Join(b.Qualifiers().Strings(), " ") {
			t.Fatalf("%s %+v: %v, and after printing %v\n%s", token, q, a.Verdict, b.Verdict, printed)
		}
	}
}

func TestScalarsAreReadAsWritten(t *testing.T) {
	for _, s := range []string{
		"/", "/a/", "*", "/*.jpg$", "/search?q=", "a: b", "a #b", "-", "- a", "~", "null", "on", "1e3", "2027-01-31", "'", `"`, `\`, `a"b`, `it's`, `"'`,
		"é", "/caf%C3%A9/", "[a]", "{a}", "a,b", "&a", "!a", "|", ">", "%a", "@a", "`a`", "...", "---", "a:", ":a", "?", "? a", "=", "0x10", "1_000", "12:30:45", ".5", "y",
	} {
		f, ds := Load("scalar.yaml", []byte("version: 1\nrules:\n  - for: everyone\n    name: "+Scalar(s)+"\n    disallow:\n      crawl: /a/\n"))
		if f == nil {
			t.Errorf("%q as %s: %s", s, Scalar(s), ds.Error())
			continue
		}
		if got := f.Spec.Rules[0].Name; got != s {
			t.Errorf("%q as %s is read as %q", s, Scalar(s), got)
		}
	}
}
