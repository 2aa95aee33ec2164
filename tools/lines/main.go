// SPDX-License-Identifier: Apache-2.0

// Lines prints the number of lines of production Go code in each package. It prints two numbers: all lines, and the
// lines that contain code. It does not count tests, test kits, bench and tools.
//
//	go -C tools run ./lines
package main

import (
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// leftOut lists the folders without production code.
var leftOut = []string{"bench", "tools", "integration_test", "internal/testkit"}

type count struct{ files, all, code int }

func main() {
	root := flag.String("root", "..", "the repository's folder")
	flag.Parse()
	packages := map[string]count{}
	err := filepath.WalkDir(*root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		dir, _ := filepath.Rel(*root, name)
		if d.IsDir() {
			if slices.Contains(leftOut, filepath.ToSlash(dir)) || d.Name() == "testdata" || dir != "." && strings.HasPrefix(d.Name(), ".") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		c := packages[filepath.Dir(dir)]
		c.files++
		c.all += strings.Count(string(text), "\n")
		c.code += codeLines(text)
		packages[filepath.Dir(dir)] = c
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	var total count
	fmt.Printf("%-36s %5s %7s %7s\n", "package", "files", "lines", "code")
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		c := packages[dir]
		fmt.Printf("%-36s %5d %7d %7d\n", dir, c.files, c.all, c.code)
		total = count{total.files + c.files, total.all + c.all, total.code + c.code}
	}
	fmt.Printf("%-36s %5d %7d %7d\n", "all", total.files, total.all, total.code)
}

// codeLines counts the lines that contain a token other than a comment.
func codeLines(text []byte) int {
	fset := token.NewFileSet()
	file := fset.AddFile("", fset.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	lines := map[int]bool{}
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return len(lines)
		}
		if tok == token.SEMICOLON && lit == "\n" {
			continue // the scanner inserted this semicolon at the end of a line
		}
		for i := range strings.Count(lit, "\n") + 1 {
			lines[file.Line(pos)+i] = true
		}
	}
}
