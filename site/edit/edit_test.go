// SPDX-License-Identifier: Apache-2.0

package edit_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aryann/difflib"

	"github.com/robotspolicy/caddy-robots-policy/site/edit"
)

var update = flag.Bool("update", false, "write the golden files")

var now = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// The first line of each policy file in testdata contains a choice. TestGolden makes the choice in this file, and
// compares the edited lines, all changes of decisions and the messages with a golden file.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			line, _, _ := strings.Cut(string(b), "\n")
			words := strings.Fields(line)[2:]
			var r *edit.Result
			if words[0] == "publish" {
				r, err = edit.Publish("policy.yaml", string(b), words[1], words[2] == "on", now)
			} else {
				r, err = edit.Apply("policy.yaml", string(b), choice(t, words), now)
			}
			got := outcome(t, string(b), r, err)
			golden := "testdata/" + name + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(golden); err != nil || got != string(want) {
				t.Errorf("got\n%s\nwant\n%s (%v)", got, want, err)
			}
		})
	}
}

// choice parses WHO ACTION [PLACE] [on HOST] [intended].
func choice(t *testing.T, words []string) edit.Choice {
	t.Helper()
	var place, host string
	intended := words[len(words)-1] == "intended"
	if intended {
		words = words[:len(words)-1]
	}
	if n := len(words); n > 2 && words[n-2] == "on" {
		host, words = words[n-1], words[:n-2]
	}
	if len(words) > 2 {
		place = words[2]
	}
	c, err := edit.NewChoice(words[0], edit.Action(strings.ReplaceAll(words[1], "+", " ")), place, host, intended)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func outcome(t *testing.T, text string, r *edit.Result, err error) string {
	t.Helper()
	var b strings.Builder
	if invalid, ok := errors.AsType[*edit.InvalidError](err); ok {
		return "invalid:\n" + invalid.Diagnostics.Text()
	}
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	for _, d := range difflib.Diff(strings.SplitAfter(text, "\n"), strings.SplitAfter(r.Text, "\n")) {
		if d.Delta != difflib.Common {
			fmt.Fprintf(&b, "%s%q\n", d.Delta, d.Payload)
		}
	}
	b.WriteString("changes:\n")
	if err := r.Diff.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, u := range r.Unmet {
		fmt.Fprintf(&b, "unmet: %s\n", u.String())
	}
	b.WriteString(r.Diagnostics.Text())
	return b.String()
}
