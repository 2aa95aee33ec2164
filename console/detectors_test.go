// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// detectors maps the name of each gap that the program can detect to the name of a test. A gap is the reason why a
// claim cannot be judged. The test creates the gap, and fails if the program does not detect it.
var detectors = map[string]string{
	"future-traffic":     "internal/cli.TestSearchGuard",
	"clocks-apart":       "activity/store.TestGapsOfAFleet",
	"comparison":         "console.TestReady",
	"history":            "console.TestClaimsOfWhatCannotBeRead",
	"incomplete-archive": "internal/cli.TestSearchGuard",
	"last":               "internal/cli.TestVerifyEvidence",
	"log-gap":            "internal/cli.TestVerifyEvidence",
	"no-lists":           "crawlers/identity.TestListsCurrent",
	"pages-not-read":     "audit.TestClean",
	"tests-not-run":      "policyfile.TestTestsPass",
	"unconfirmed":        "internal/cli.TestConfirmation",
	"no-robots-txt-read": "console.TestReadersAreThoseOfTheText",
	"no-traffic":         "internal/cli.TestSearchGuard",
	"no-user-agents":     "internal/cli.TestSearchGuard",
	"not-read":           "console.TestClaimsOfWhatCannotBeRead",
	"not-recorded":       "activity/store.TestUnreadAndLost",
	"repeated-requests":  "activity/replay.TestRepeatedRequests",
	"search-keeps":       "console.TestClaimsOfWhatCannotBeRead",
	"silent-server":      "activity/store.TestGapsOfAFleet",
	"site-robots-txt":    "site/compare.TestLossesOverTheFilesOfSites",
	"summed-paths":       "activity/replay.TestSearchKeepsWithRowsThatLackData",
	"too-large":          "site/compare.TestBounded",
	"traffic-ends":       "internal/cli.TestSearchGuard",
	"unlogged-hosts":     "internal/cli.TestSearchGuard",
	"unread":             "console.TestClaimsOfWhatCannotBeRead",
	"unreadable-lines":   "internal/cli.TestSearchGuard",
	"unsent-rows":        "activity/store.TestGapsOfAFleet",
	"unsigned":           "internal/cli.TestVerifyEvidence",
	"unsigned-day":       "activity/evidence.TestForged",
	"unstored-paths":     "activity/store.TestUnstoredPathsAreAGap",
	"unstored-queries":   "activity/replay.TestSearchKeepsWithRowsThatLackData",
	"verified-otherwise": "internal/cli.TestSearchGuard",
}

// goFile is a parsed file of the program.
type goFile struct {
	path string // relative to the root of the module
	text []byte
	set  *gotoken.FileSet
	file *ast.File
}

func (s *goFile) offset(p gotoken.Pos) int { return s.set.Position(p).Offset }

// producers finds the places where the file creates gaps. For each place, it returns the expression with the name of
// the gap.
func (s *goFile) producers() (names []ast.Expr) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			of, ok := n.Type.(*ast.SelectorExpr)
			if !ok || of.Sel.Name != "Gap" || len(n.Elts) == 0 {
				break
			}
			if x, ok := of.X.(*ast.Ident); !ok || x.Name != "claim" {
				break
			}
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok && kv.Key.(*ast.Ident).Name == "Name" {
					names = append(names, kv.Value)
				}
			}
		case *ast.AssignStmt:
			if to, ok := n.Lhs[0].(*ast.SelectorExpr); ok && to.Sel.Name == "Name" && strings.HasPrefix(string(s.text[s.offset(n.Rhs[0].Pos()):]), "Gap") {
				names = append(names, n.Rhs[0])
			}
		}
		return true
	})
	return names
}

var (
	gapConst = regexp.MustCompile(`(?m)^\s*[gG]ap\w+\s*= "([a-z-]+)"`)
	gapTag   = regexp.MustCompile("`gap:\"([a-z-]{2,})\"")
)

// sourcesOfGaps returns the files that create gaps, and the names of all gaps.
func sourcesOfGaps(t *testing.T) (files []*goFile, names map[string]bool) {
	t.Helper()
	names = map[string]bool{}
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte("/claim\"")) {
			return err
		}
		s := &goFile{path: strings.TrimPrefix(filepath.ToSlash(path), "../"), text: text, set: gotoken.NewFileSet()}
		if s.file, err = parser.ParseFile(s.set, path, text, 0); err != nil {
			return err
		}
		for _, e := range s.producers() {
			files = append(files, s)
			if lit, ok := e.(*ast.BasicLit); ok {
				name, _ := strconv.Unquote(lit.Value)
				names[name] = true
			}
		}
		for _, expr := range []*regexp.Regexp{gapConst, gapTag} {
			for _, m := range expr.FindAllSubmatch(text, -1) {
				names[string(m[1])] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Compact(files), names
}

// Each gap has a test that creates it.
func TestEachDetectorIsTested(t *testing.T) {
	_, names := sourcesOfGaps(t)
	known := testsOfTheModule(t)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !known[detectors[name]] {
			t.Errorf("the gap %s has no test: %q", name, detectors[name])
		}
	}
	for name := range detectors {
		if !names[name] {
			t.Errorf("there is no gap %s", name)
		}
	}
}

// The test makes a copy of the program in which the detection of each gap can be switched off. It then switches off the
// detection of one gap after the other. Each time, the test that detectors lists for this gap must fail.
func TestWithoutEachDetector(t *testing.T) {
	testkit.Nightly(t)
	files, _ := sourcesOfGaps(t)
	dir := t.TempDir()
	overlay := switchedOff(t, dir, files)
	binaries := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(detectors)) {
		pkg, test, _ := strings.Cut(detectors[name], ".")
		if binaries[pkg] == "" {
			binaries[pkg] = filepath.Join(dir, strings.ReplaceAll(pkg, "/", "_")+".test")
			if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", overlay, "-o", binaries[pkg], "../"+pkg).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", pkg, err, out)
			}
		}
		run := func(off string) error {
			cmd := exec.CommandContext(t.Context(), binaries[pkg], "-test.run", "^"+test+"$")
			cmd.Dir, cmd.Env = filepath.Join("..", pkg), append(os.Environ(), "ROBOTSPOLICY_SLOW=1", "ROBOTSPOLICY_LONG=", "ROBOTSPOLICY_GAP_OFF="+off)
			return cmd.Run()
		}
		if err := run("none"); err != nil {
			t.Errorf("%s fails with every detector on: %v", detectors[name], err)
		}
		if run(name) == nil {
			t.Errorf("%s passes although the detector of %s is off", detectors[name], name)
		} else {
			t.Logf("%-20s off: %s fails", name, detectors[name])
		}
	}
}

// switchedOff writes a copy of the files that create gaps. In the copy, the program does not report the gap whose name
// is in the environment variable ROBOTSPOLICY_GAP_OFF. The result is the name of an overlay file that makes the go
// command build the copy.
func switchedOff(t *testing.T, dir string, files []*goFile) string {
	t.Helper()
	replace := map[string]string{}
	write := func(path string, text []byte) {
		original, err := filepath.Abs(filepath.Join("..", filepath.FromSlash(path)))
		if err != nil {
			t.Fatal(err)
		}
		replace[original] = filepath.Join(dir, strings.ReplaceAll(path, "/", "_"))
		if err := os.WriteFile(replace[original], text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range files {
		text := s.text
		for _, e := range slices.Backward(s.producers()) {
			from, to := s.offset(e.Pos()), s.offset(e.End())
			text = slices.Concat(text[:from], []byte("claim.Switched("), text[from:to], []byte(")"), text[to:])
		}
		write(s.path, text)
	}
	edited := func(path string, edits ...string) {
		text, err := os.ReadFile(filepath.Join("..", path))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(edits); i += 2 {
			if !bytes.Contains(text, []byte(edits[i])) {
				t.Fatalf("%s has no %q", path, edits[i])
			}
			text = bytes.Replace(text, []byte(edits[i]), []byte(edits[i+1]), 1)
		}
		write(path, text)
	}
	edited("claim/claim.go",
		"import (\n", "import (\n\t\"os\"\n",
		`if !read && f.Tag.Get("gap") != "-" {`, `if !read && f.Tag.Get("gap") != "-" && f.Tag.Get("gap") != os.Getenv("ROBOTSPOLICY_GAP_OFF") {`,
		"gaps = append(gaps, c.Gaps...)", "gaps = append(gaps, seen(c.Gaps)...)")
	edited("claim/coverage.go",
		"import (\n", "import (\n\t\"os\"\n",
		"c.Gaps = append(c.Gaps, x.Gaps...)", "c.Gaps = append(c.Gaps, seen(x.Gaps)...)",
		"return Known[T]{value, c, true}", "c.Gaps = seen(c.Gaps); return Known[T]{value, c, true}",
		"// Known is a value", `
func Switched(name string) string {
	if name == os.Getenv("ROBOTSPOLICY_GAP_OFF") {
		return "OFF"
	}
	return name
}

func seen(gaps []Gap) []Gap {
	return slices.DeleteFunc(slices.Clone(gaps), func(g Gap) bool { return g.Name == "OFF" })
}

// Known is a value`)
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
