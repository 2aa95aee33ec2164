// SPDX-License-Identifier: Apache-2.0

package crawlertest

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The type Google gives the same answers as Google's own parser. The test is skipped if that parser is not available.
func TestGoogleIsFaithful(t *testing.T) {
	if os.Getenv(GoogleCheckout) == "" {
		t.Skipf("set %s to a checkout of github.com/google/robotstxt", GoogleCheckout)
	}
	i := slices.IndexFunc(Parsers, func(p Parser) bool { return p.Name == "Google" })
	original, err := Parsers[i].Start()
	if err != nil || original == nil {
		t.Skipf("Google's parser cannot be compiled here: %v", err)
	}
	defer original.Close()
	patterns := []string{"../../../robotstxt/testdata/import/*.txt", "../../../robotstxt/testdata/sites/*.txt"}
	if dir := os.Getenv("ROBOTSPOLICY_DATA"); dir != "" {
		patterns = append(patterns, filepath.Join(dir, "robots", "*.txt"))
	}
	word := regexp.MustCompile(`[A-Za-z_-]{3,}`)
	place := regexp.MustCompile(`/[!-~]*`)
	r := rand.New(rand.NewPCG(1, 1))
	asked := 0
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no files match %s (%v)", pattern, err)
		}
		for _, name := range files {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			body := strings.ToValidUTF8(string(data), "?")
			agents := append([]string{"Googlebot", "zetabot"}, word.FindAllString(body, -1)...)
			paths := append([]string{"/"}, place.FindAllString(body, -1)...)
			var asks [][2]string
			for range 400 {
				path := strings.NewReplacer("*", "a", "#", "", "$", "").Replace(paths[r.IntN(len(paths))])
				if cut := r.IntN(len(path)); r.IntN(4) == 0 && cut > 0 {
					path = path[:cut]
				}
				asks = append(asks, [2]string{agents[r.IntN(min(len(agents), 40))], path})
			}
			answers, err := original.Ask(body, asks)
			if err != nil {
				t.Fatal(err)
			}
			g := ReadGoogle(body)
			for i, a := range asks {
				asked++
				if got := g.Allowed(a[0], a[1]); got != answers[i] {
					t.Fatalf("%s: %q may fetch %q: %v, Google's parser says %v", name, a[0], a[1], got, answers[i])
				}
			}
		}
	}
	t.Logf("%d questions", asked)
}
