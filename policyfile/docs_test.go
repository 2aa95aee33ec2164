// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// block is a fenced code block of a page.
type block struct {
	line     int
	language string
	text     string
}

var fence = regexp.MustCompile("(?ms)^```([a-z]+(?: wrong)?)\n(.*?)^```$")

func blocksOf(t *testing.T, path string) (blocks []block) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range fence.FindAllSubmatchIndex(data, -1) {
		blocks = append(blocks, block{1 + strings.Count(string(data[:m[0]]), "\n"), string(data[m[2]:m[3]]), string(data[m[4]:m[5]])})
	}
	return blocks
}

// documents are the pages with examples of policy files.
var documents = []string{"../docs/reference/policy-file.md", "../docs/reference/policy-file-rules.md", "../docs/reference/policy-file-settings.md", "../docs/concepts/which-rule-wins.md"}

// TestDocumentedExamples loads the examples in the documentation. The correct examples do not get warnings, and the
// wrong examples get the messages that the page shows.
func TestDocumentedExamples(t *testing.T) {
	good, wrong := 0, 0
	for _, path := range documents {
		blocks := blocksOf(t, path)
		for i, b := range blocks {
			_, ds := LoadWith("policy.yaml", []byte(b.text), Options{Now: testNow})
			switch b.language {
			case "yaml":
				good++
				if len(ds) > 0 {
					t.Errorf("%s:%d:\n%s", path, b.line, ds.Text())
				}
			case "yaml wrong":
				wrong++
				if i+1 == len(blocks) || blocks[i+1].language != "text" {
					t.Errorf("%s:%d: no message follows", path, b.line)
				} else if got := ds.Text(); got != blocks[i+1].text {
					t.Errorf("%s:%d:\ngot:\n%s\nshown:\n%s", path, b.line, got, blocks[i+1].text)
				}
			}
		}
	}
	if good < 18 || wrong < 4 {
		t.Errorf("%d good and %d wrong examples: are the blocks still found?", good, wrong)
	}
}

// TestEveryKeyIsDocumented checks that the reference pages mention every key of a policy file.
func TestEveryKeyIsDocumented(t *testing.T) {
	var data []byte
	for _, path := range documents[:3] {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "\n"); n > 250 {
			t.Errorf("%s has %d lines: split it", path, n)
		}
		data = append(data, text...)
	}
	for key := range allKeys() {
		switch key {
		case "paths", "rules", "usage", "directives": // the pages show these keys in examples
			if !strings.Contains(string(data), key+":") {
				t.Errorf("docs/reference/policy-file.md has no example with %s", key)
			}
		default:
			if !strings.Contains(string(data), "`"+key+"`") {
				t.Errorf("docs/reference/policy-file.md does not name %s", key)
			}
		}
	}
}
