// SPDX-License-Identifier: Apache-2.0

// Package architecture has tests of the structure of the code, and no other code. To print the structure, run
//
//	go test ./internal/testkit/architecture -v
package architecture

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	root   = "../../.."
	module = "github.com/robotspolicy/caddy-robots-policy"
)

// layers lists the packages of the repository, the highest layer first. A package may import only packages of lower
// layers. An entry of the list also stands for the folders below it that are not in the list themselves. Packages with
// the same entry may import each other.
var layers = []struct {
	about    string
	packages []string
}{
	{"tests of a running Caddy", []string{"integration_test"}},
	{"commands", []string{"cmd/caddy", "examples/nethttp"}},
	{"what Caddy sees", []string{".", "console"}},
	{"the command line", []string{"internal/cli"}},
	{"Caddy's side", []string{"internal/caddyside"}},
	{"what serves requests", []string{"handler"}},
	{"where policies come from, audits of a site from outside", []string{"source", "audit"}},
	{"activity", []string{"activity"}},
	{"a policy with all its channels", []string{"site"}},
	{"the file", []string{"policyfile"}},
	{"what crawlers get, and lose", []string{"effect"}},
	{"channels and identity", []string{"robotsserve", "robotstag", "metainject", "crawlers/identity"}},
	{"the table of channels", []string{"channels"}},
	{"other robots.txt, rights documents and signals, and proofs of identity", []string{"robotstxt", "rights", "crawlers/verify", "crawlers/webbotauth"}},
	{"records and directives in robots.txt", []string{"acap", "appdirectives"}},
	{"the model", []string{"policy"}},
	{"patterns, rules, crawlers", []string{"pathpattern", "robotsrule", "crawlers", "internal/rfc9309"}},
	{"leaves", []string{"internal/leaf"}},
	{"how conclusions are drawn", []string{"claim"}},
}

// testHelpers lists packages that only tests may import.
var testHelpers = []string{"internal/testkit"}

// importCaddy lists the packages that may import Caddy. It includes the folders below them.
var importCaddy = []string{
	".", "console", "cmd/caddy", "integration_test", "internal/caddyside", "internal/cli",
}

// notLinked lists packages that a Caddy must not contain if it imports only the root package of this module. The
// folders below them are included. The activity database is one of them, because it belongs to the console.
var notLinked = []string{"activity/store", "console", "internal/cli/storecmd", "modernc.org/sqlite", "database/sql"}

// graph holds the imports of each package. Packages of this module are named by their folders.
type graph map[string][]string

// readImports finds the imports of all packages of this module. It also reads files that are only for other operating
// systems. It ignores tests, because tests may import packages of higher layers.
func readImports(t *testing.T) graph {
	t.Helper()
	imports := map[string]map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || hasGoMod(path)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		dir = filepath.ToSlash(dir)
		if imports[dir] == nil {
			imports[dir] = map[string]bool{}
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if imported == module {
				imported = "."
			}
			imports[dir][strings.TrimPrefix(imported, module+"/")] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	g := graph{}
	for dir, set := range imports {
		g[dir] = slices.Sorted(maps.Keys(set))
	}
	return g
}

func hasGoMod(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// own returns the packages of this module that a package imports.
func (g graph) own(dir string) []string {
	return slices.DeleteFunc(slices.Clone(g[dir]), func(i string) bool { _, ok := g[i]; return !ok })
}

// below adds all packages that a package imports, directly or indirectly, to seen.
func (g graph) below(dir string, seen map[string]bool) {
	for _, i := range g.own(dir) {
		if !seen[i] {
			seen[i] = true
			g.below(i, seen)
		}
	}
}

// within reports whether dir equals name or is a folder below name.
func within(dir, name string) bool { return dir == name || strings.HasPrefix(dir, name+"/") }

// place finds the layer of a package. It returns the number of the layer, and the entry that stands for the package. If
// several entries match, it uses the longest one.
func place(dir string) (layer int, name string) {
	layer = -1
	for i, l := range layers {
		for _, p := range l.packages {
			if within(dir, p) && len(p) > len(name) {
				layer, name = i, p
			}
		}
	}
	return layer, name
}

func TestImportsGoDown(t *testing.T) {
	g := readImports(t)
	for _, dir := range slices.Sorted(maps.Keys(g)) {
		t.Logf("%-34s %s", dir, strings.Join(g.own(dir), " "))
		if slices.ContainsFunc(testHelpers, func(p string) bool { return within(dir, p) }) {
			continue
		}
		from, name := place(dir)
		if from < 0 {
			t.Errorf("%s has no layer: add it to the table in this test", dir)
			continue
		}
		for _, i := range g.own(dir) {
			if slices.ContainsFunc(testHelpers, func(p string) bool { return within(i, p) }) {
				t.Errorf("%s imports %s, which is for tests", dir, i)
				continue
			}
			to, below := place(i)
			if to < from || to == from && name != below {
				t.Errorf("%s (%s) imports %s (%s), but may import only lower layers", dir, layers[from].about, i, layers[max(to, 0)].about)
			}
		}
	}
}

func TestOnlySomeImportCaddy(t *testing.T) {
	g := readImports(t)
	for _, dir := range slices.Sorted(maps.Keys(g)) {
		allowed := slices.ContainsFunc(importCaddy, func(p string) bool { return within(dir, p) })
		for _, i := range g[dir] {
			if within(i, "github.com/caddyserver") && !allowed {
				t.Errorf("%s imports %s", dir, i)
			}
		}
	}
}

func TestRootLinksNoDatabase(t *testing.T) {
	g := readImports(t)
	seen := map[string]bool{".": true}
	g.below(".", seen)
	for dir := range seen {
		for _, i := range g[dir] {
			if slices.ContainsFunc(notLinked, func(p string) bool { return within(i, p) }) {
				t.Errorf("the root package needs %s, which imports %s", dir, i)
			}
		}
	}
	if !seen["policy"] {
		t.Error("the root package does not import policy, so this test does not work")
	}
}

// TestCommandHasTheSameModules checks that the Caddy command of the integration tests imports the same packages as
// cmd/caddy.
func TestCommandHasTheSameModules(t *testing.T) {
	g := readImports(t)
	shared := slices.Concat(g["integration_test/internal/caddytest"], g["."]) // caddytest imports the root package
	for _, i := range g["cmd/caddy"] {
		first, _, _ := strings.Cut(i, "/")
		standard := g[i] == nil && !strings.Contains(first, ".")
		if !standard && !slices.Contains(shared, i) {
			t.Errorf("cmd/caddy imports %s, which integration_test/internal/caddytest does not", i)
		}
	}
}
