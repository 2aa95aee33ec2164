// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// TestSuggestionsLoad loads files with errors, and applies each suggested correction (DidYouMean). Afterwards, the
// message must be gone, and there must not be a new error.
func TestSuggestionsLoad(t *testing.T) {
	t.Parallel()
	suggestions := 0
	for _, path := range filesOf(t, "testdata/bad/*.yaml") {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.ContainsRune(data, '\r') {
			continue
		}
		_, ds := LoadWith("bad.yaml", data, Options{Now: testNow})
		for _, d := range ds {
			if d.DidYouMean == "" {
				continue
			}
			suggestions++
			var problems []string
			for _, after := range pasted(string(data), d) {
				problem := problemAfter(string(data), after, d)
				if problem == "" {
					problems = nil
					break
				}
				problems = append(problems, problem)
			}
			if problems != nil {
				t.Errorf("%s: %s\n%s", filepath.Base(path), d, strings.Join(problems, "\n"))
			}
		}
	}
	if suggestions < 100 {
		t.Errorf("only %d suggestions were tried", suggestions)
	}
}

// problemAfter describes the problem of a file after a suggestion was applied. It returns "" if there is no problem.
func problemAfter(before, after string, d Diagnostic) string {
	errors := func(file string) (on map[string]int, still bool) {
		_, ds := LoadWith("bad.yaml", []byte(file), Options{Now: testNow})
		on = map[string]int{}
		for _, x := range ds {
			still = still || x.Pos == d.Pos && x.Message == d.Message
			if x.Severity == policy.Error && x.Pos.Line == d.Pos.Line {
				on[x.Message]++
			}
		}
		return on, still
	}
	was, _ := errors(before)
	is, still := errors(after)
	line := strings.Split(after, "\n")[d.Pos.Line-1]
	if still {
		return "still there in: " + line
	}
	for message, n := range is {
		if n > was[message] && !strings.HasPrefix(message, "this test fails") {
			return "new: " + message + " in: " + line
		}
	}
	return ""
}

// pasted returns the file after an author has applied a suggestion. For a value in quotation marks, there are two
// results: the author replaces the whole value, or only the text between the quotation marks.
func pasted(file string, d Diagnostic) (all []string) {
	lines := strings.Split(file, "\n")
	line := []rune(lines[d.Pos.Line-1])
	start := d.Pos.Column - 1
	put := func(from, to int) {
		changed := append([]string(nil), lines...)
		changed[d.Pos.Line-1] = string(line[:from]) + d.DidYouMean + string(line[to:])
		all = append(all, strings.Join(changed, "\n"))
	}
	var root yaml.Node
	if yaml.Unmarshal([]byte(file), &root) != nil {
		put(start, start+len([]rune(uncomment(string(line[start:])))))
		return all
	}
	n, value := nodeAt(&root, d.Pos)
	if n == nil {
		return nil
	}
	end := endOf(line, start, n)
	if value != nil && strings.Contains(d.DidYouMean, ": ") && !isNull(value) { // replace the key and its value
		if value.Line != n.Line {
			return nil
		}
		end = endOf(line, value.Column-1, value)
	}
	put(start, end)
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		put(start+1, end-1)
	}
	return all
}

// nodeAt returns the innermost node at a place. If the node is a key, nodeAt also returns its value.
func nodeAt(n *yaml.Node, at policy.Pos) (found, value *yaml.Node) {
	if n.Kind != yaml.DocumentNode && n.Line == at.Line && n.Column == at.Column {
		found = n
	}
	for i, c := range n.Content {
		f, v := nodeAt(c, at)
		if f == nil {
			continue
		}
		if v == nil && n.Kind == yaml.MappingNode && i%2 == 0 && f == c {
			v = n.Content[i+1]
		}
		return f, v
	}
	return found, nil
}

// endOf returns the column after a node that is on one line.
func endOf(line []rune, start int, n *yaml.Node) int {
	if n.Kind != yaml.ScalarNode {
		depth := 0
		for i := start; i < len(line); i++ {
			switch line[i] {
			case '[', '{':
				depth++
			case ']', '}':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
		return len(line)
	}
	if quote := line[start]; n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		for i := start + 1; i < len(line); i++ {
			if line[i] == '\\' && quote == '"' {
				i++
			} else if line[i] == quote {
				return i + 1
			}
		}
	}
	return min(start+len([]rune(n.Value)), len(line))
}
