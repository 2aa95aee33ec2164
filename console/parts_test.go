// SPDX-License-Identifier: Apache-2.0

package console

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The console has words for each optional part of the module that can stop working.
func TestPartsHaveWords(t *testing.T) {
	name := regexp.MustCompile(`optional\.(?:NewState|NewPool|Open)\("(\w+)"`)
	var parts []string
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range name.FindAllStringSubmatch(string(text), -1) {
			parts = append(parts, m[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(parts)
	if words := slices.Sorted(maps.Keys(withoutPart)); !slices.Equal(words, parts) {
		t.Errorf("there are words for %q, and the parts are %q", words, parts)
	}
}
