// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files and the published schema")

// testNow is the time for loading the files in testdata.
var testNow = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func loadFile(t *testing.T, path string) (*File, Diagnostics) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return LoadWith(filepath.Base(path), data, Options{Now: testNow})
}

func filesOf(t testing.TB, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %d files, error %v", pattern, len(paths), err)
	}
	return paths
}

// compareGolden compares a text with a file, or writes the file.
func compareGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s:\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

func TestGoodFilesLoad(t *testing.T) {
	for _, path := range filesOf(t, "testdata/good/*.yaml") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f, ds := loadFile(t, path)
			if f == nil || ds.HasErrors() {
				t.Fatalf("does not load:\n%s", ds.Text())
			}
			compareGolden(t, strings.TrimSuffix(path, ".yaml")+".txt", ds.Text())
		})
	}
}

func TestInvalidFilesSayWhy(t *testing.T) {
	for _, path := range filesOf(t, "testdata/bad/*.yaml") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f, ds := loadFile(t, path)
			if len(ds) == 0 {
				t.Fatal("nothing is wrong with this file")
			}
			if (f == nil) != ds.HasErrors() {
				t.Errorf("there is a File (%v) although there are errors (%v), or the other way round", f != nil, ds.HasErrors())
			}
			compareGolden(t, strings.TrimSuffix(path, ".yaml")+".txt", ds.Text())
		})
	}
}
