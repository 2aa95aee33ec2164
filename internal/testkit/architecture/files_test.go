// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// edge records that one file (from) uses a declaration in another file (to).
type edge struct{ from, to string }

// fileEdges type-checks a package of this module. It finds the files that use functions, types, variables, methods or
// fields of other files in the package. It maps each edge to the names of the declarations that the file "from" uses.
func fileEdges(t *testing.T, dir string) map[edge][]string {
	t.Helper()
	exports := exportData(t, dir)
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range exports.files {
		f, err := parser.ParseFile(fset, filepath.Join(root, dir, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", exports.open)}
	pkg, err := config.Check(dir, fset, files, info)
	if err != nil {
		t.Fatal(err)
	}
	edges := map[edge][]string{}
	for ident, obj := range info.Uses {
		if obj.Pkg() != pkg || !obj.Pos().IsValid() {
			continue
		}
		e := edge{filepath.Base(fset.Position(ident.Pos()).Filename), filepath.Base(fset.Position(obj.Pos()).Filename)}
		if e.from != e.to && !slices.Contains(edges[e], obj.Name()) {
			edges[e] = append(edges[e], obj.Name())
		}
	}
	for _, names := range edges {
		slices.Sort(names)
	}
	return edges
}

// exported holds the files of a package, and the compiled packages that it needs.
type exported struct {
	files   []string          // the Go files of the package on this system, without tests
	objects map[string]string // files with the compiled packages, keyed by import path
}

func (e *exported) open(path string) (io.ReadCloser, error) { return os.Open(e.objects[path]) }

// exportData lets the go command compile the packages that a package needs, or find them in its cache.
func exportData(t *testing.T, dir string) *exported {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-f", `{{.ImportPath}}	{{.Export}}	{{if not .DepOnly}}{{join .GoFiles " "}}{{end}}`, "./"+dir)
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	e := &exported{objects: map[string]string{}}
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		e.objects[fields[0]] = fields[1]
		if fields[2] != "" {
			e.files = strings.Fields(fields[2])
		}
	}
	return e
}

// cycles finds groups of files that use each other, directly or indirectly.
func cycles(edges map[edge][]string) [][]string {
	uses := map[string]map[string]bool{}
	for e := range edges {
		if uses[e.from] == nil {
			uses[e.from] = map[string]bool{}
		}
		uses[e.from][e.to] = true
	}
	var reach func(from string, seen map[string]bool)
	reach = func(from string, seen map[string]bool) {
		for to := range uses[from] {
			if !seen[to] {
				seen[to] = true
				reach(to, seen)
			}
		}
	}
	reached := map[string]map[string]bool{}
	for file := range uses {
		reached[file] = map[string]bool{}
		reach(file, reached[file])
	}
	var found [][]string
	done := map[string]bool{}
	for _, file := range slices.Sorted(maps.Keys(uses)) {
		if !reached[file][file] || done[file] {
			continue
		}
		var cycle []string
		for other := range reached[file] {
			if reached[other][file] {
				cycle = append(cycle, other)
				done[other] = true
			}
		}
		slices.Sort(cycle)
		found = append(found, cycle)
	}
	return found
}

// TestRootFilesGoDown checks that the files of the root package do not use each other in a cycle. So people can read
// the files one after the other.
func TestRootFilesGoDown(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles Caddy")
	}
	edges := fileEdges(t, ".")
	if len(edges) == 0 {
		t.Fatal("no file uses another, so the test cannot fail")
	}
	shown := slices.SortedFunc(maps.Keys(edges), func(a, b edge) int { return strings.Compare(a.from+" "+a.to, b.from+" "+b.to) })
	for _, e := range shown {
		t.Logf("%-22s -> %-22s %s", e.from, e.to, strings.Join(edges[e], " "))
	}
	for _, cycle := range cycles(edges) {
		var inside []string
		for _, e := range shown {
			if slices.Contains(cycle, e.from) && slices.Contains(cycle, e.to) {
				inside = append(inside, fmt.Sprintf("%s -> %s (%s)", e.from, e.to, strings.Join(edges[e], ", ")))
			}
		}
		t.Errorf("%d files use each other:\n\t%s", len(cycle), strings.Join(inside, "\n\t"))
	}
}

func TestCycles(t *testing.T) {
	edges := map[edge][]string{{"a", "b"}: nil, {"b", "c"}: nil, {"c", "b"}: nil, {"c", "d"}: nil, {"e", "f"}: nil, {"f", "e"}: nil}
	got := cycles(edges)
	if want := [][]string{{"b", "c"}, {"e", "f"}}; !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%v, want %v", got, want)
	}
}
