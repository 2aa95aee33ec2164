// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mayName lists the packages that may name every channel. They are the table of channels, the packages with the
// settings in the section "publish" of a policy file, and the packages that read the files of other sites. Folders
// below these packages may name every channel, too, except for the folders below policy and policyfile.
var mayName = []string{"channels", "policy", "policyfile", "robotstxt", "audit", "internal/rfc9309", "internal/testkit"}

// channelNames lists the channels. own is the package that implements the format of a channel. others are other
// packages that may name the channel.
var channelNames = []struct {
	name   string
	is     *regexp.Regexp
	own    string
	others []string
}{
	// The root package may name these two channels, because it documents the values of the option "headers".
	{"Content-Usage", regexp.MustCompile(`(?i)content-?usage`), "rights", []string{"."}},
	{"Content-Signal", regexp.MustCompile(`(?i)content-?signal`), "rights", []string{"."}},
	{"TDMRep", regexp.MustCompile(`(?i)tdm`), "rights/tdmrep", nil},
	{"RSL", regexp.MustCompile(`\bRSL|\brsl\b|rsl[A-Z.]|[a-z]RSL`), "rights/rsl", nil},
	{"ACAP", regexp.MustCompile(`(?i)acap`), "acap", nil},
	{"App-Directives", regexp.MustCompile(`(?i)app-?directive`), "appdirectives", nil},
	// robotsrule is the package of this channel, because it lists noai and noimageai as rules that no search engine
	// documents.
	{"noai", regexp.MustCompile(`(?i)\bno-?ai\b|noai[A-Z]|[a-z]NoAI|noimageai`), "robotsrule", nil},
}

// TestChannelsAreNamedInTheTable checks that code that serves, explains, checks or shows channels does not name them,
// but uses the table in package channels. So if a channel is added to the table, that code need not change.
func TestChannelsAreNamedInTheTable(t *testing.T) {
	names := make([]map[string][]string, len(channelNames)) // files that name the channel, keyed by package
	for i := range names {
		names[i] = map[string][]string{}
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || hasGoMod(path)):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(file))
		for i, c := range channelNames {
			if c.is.Match(text) {
				names[i][dir] = append(names[i][dir], file)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range channelNames {
		if len(c.others) > 1 { // besides the format's own package, channels and policy, one other package may name it
			t.Errorf("%s: %d packages in addition to the table and the model, want at most one", c.name, len(c.others))
		}
		for _, dir := range append([]string{c.own}, c.others...) {
			if names[i][dir] == nil {
				t.Errorf("%s: %s does not name the channel; remove the package from the list", c.name, dir)
			}
			delete(names[i], dir)
		}
		for dir, files := range names[i] {
			may := func(name string) bool {
				return dir == name || name != "policyfile" && name != "policy" && strings.HasPrefix(dir, name+"/")
			}
			if !slices.ContainsFunc(mayName, may) {
				t.Errorf("%s: %v name the channel; use the table in package channels instead", c.name, files)
			}
		}
	}
}
