// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Diagnostic is a problem in a policy file, with its place.
type Diagnostic struct {
	File       string
	Pos        policy.Pos // lines and columns start at 1; a column is the number of a character
	Severity   policy.Severity
	Code       string // stable code; docs/reference/messages.md explains it
	Message    string // the problem and the fix, for readers who are not engineers
	DidYouMean string // what the author may have meant to write, or empty
	Line       string // the line of the file at Pos.Line, or empty

	fixAt int // where DidYouMean is inserted into Message; 0 means the end
}

// String returns the diagnostic on one line: "file:line:col: error: message [code]".
func (d Diagnostic) String() string {
	return d.place() + ": " + d.Severity.String() + ": " + d.body() + " [" + d.Code + "]"
}

func (d Diagnostic) place() string {
	if d.Pos.Line == 0 {
		return d.File
	}
	return fmt.Sprintf("%s:%d:%d", d.File, d.Pos.Line, d.Pos.Column)
}

func (d Diagnostic) body() string {
	if d.DidYouMean == "" {
		return d.Message
	}
	at := d.fixAt
	if at <= 0 || at > len(d.Message) {
		at = len(d.Message)
	}
	return d.Message[:at] + ` (did you mean "` + d.DidYouMean + `"?)` + d.Message[at:]
}

// MarshalJSON returns the diagnostic as JSON. The names of its fields are stable.
func (d Diagnostic) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		File       string `json:"file"`
		Line       int    `json:"line"`
		Column     int    `json:"column"`
		Severity   string `json:"severity"`
		Code       string `json:"code"`
		Message    string `json:"message"`
		DidYouMean string `json:"did_you_mean,omitempty"`
		Source     string `json:"source,omitempty"`
		URL        string `json:"url"`
	}{d.File, d.Pos.Line, d.Pos.Column, d.Severity.String(), d.Code, d.Message, d.DidYouMean, d.Line, explanation(d.Code)})
}

// explanation returns the address of the page that explains the problems with a code.
func explanation(code string) string {
	return "https://github.com/robotspolicy/caddy-robots-policy/blob/main/docs/reference/messages.md#" + code
}

// Links returns a line for each code in the list ds. The line has the address of the page that explains problems with
// this code.
func (ds Diagnostics) Links() string {
	var b strings.Builder
	seen := map[string]bool{}
	for _, d := range ds.Sorted() {
		if seen[d.Code] {
			continue
		}
		seen[d.Code] = true
		fmt.Fprintf(&b, "[%s] is explained at %s\n", d.Code, explanation(d.Code))
	}
	return b.String()
}

// Diagnostics is a list of problems. It is an error if HasErrors returns true.
type Diagnostics []Diagnostic

// HasErrors reports whether at least one problem is an error. The policy cannot be loaded then.
func (ds Diagnostics) HasErrors() bool {
	return slices.ContainsFunc(ds, func(d Diagnostic) bool { return d.Severity == policy.Error })
}

// Count returns the number of problems with a severity.
func (ds Diagnostics) Count(s policy.Severity) int {
	n := 0
	for _, d := range ds {
		if d.Severity == s {
			n++
		}
	}
	return n
}

// Sorted returns the problems sorted by file, line and column. At the same place, the most severe problem comes first.
// In each file, hints come after all other problems.
func (ds Diagnostics) Sorted() Diagnostics {
	sorted := slices.Clone(ds)
	isHint := func(d Diagnostic) int {
		if d.Severity == policy.Hint {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(sorted, func(a, b Diagnostic) int {
		return cmp.Or(strings.Compare(a.File, b.File), isHint(a)-isHint(b),
			cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column),
			cmp.Compare(b.Severity, a.Severity))
	})
	return sorted
}

const maxErrorLines = 20

// Error returns a text with the first 20 problems, one on each line. The most severe ones come first. Similar problems
// are combined.
func (ds Diagnostics) Error() string {
	sorted := ds.Summed()
	slices.SortStableFunc(sorted, func(a, b Diagnostic) int { return cmp.Compare(b.Severity, a.Severity) })
	var b strings.Builder
	for i, d := range sorted {
		if i > 0 {
			b.WriteByte('\n')
		}
		if i == maxErrorLines {
			fmt.Fprintf(&b, "and %d more", len(sorted)-i)
			break
		}
		b.WriteString(d.String())
	}
	return b.String()
}

// Colors for terminals (ECMA-48).
const (
	bold   = "\x1b[1m"
	red    = "\x1b[1;31m"
	yellow = "\x1b[1;33m"
	green  = "\x1b[1;32m"
	blue   = "\x1b[1;34m"
	reset  = "\x1b[0m"
)

// Text returns the problems in the order of the file, with their source lines. Hints come last, and similar problems
// are combined.
func (ds Diagnostics) Text() string { return ds.Colored(false) }

// Colored is like Text, with colors for terminals if color is true.
func (ds Diagnostics) Colored(color bool) string {
	paint := func(style, s string) string {
		if !color {
			return s
		}
		return style + s + reset
	}
	var b strings.Builder
	for _, d := range ds.Summed() {
		style := map[policy.Severity]string{policy.Error: red, policy.Warning: yellow, policy.Hint: blue}[d.Severity]
		fmt.Fprintf(&b, "%s: %s: %s [%s]\n", paint(bold, d.place()), paint(style, d.Severity.String()), d.body(), d.Code)
		if d.Line != "" {
			line, indent := excerpt(d.Line, d.Pos.Column)
			fmt.Fprintf(&b, "    %s\n    %s%s\n", line, indent, paint(green, "^"))
		}
	}
	return b.String()
}

const maxExcerpt = 120

// excerpt returns the part of a line that a message shows, and the spaces that place the caret under the column. It
// replaces control characters with spaces, so that a file cannot control the terminal. It copies only the shown part,
// because a line can be as long as the file.
func excerpt(line string, column int) (shown, indent string) {
	before, after := cut(line, max(column-1, 0))
	start, end := "", ""
	if _, more := cut(line, maxExcerpt); more != "" {
		at := len(before)
		for n := 0; n < maxExcerpt/2 && at > 0; n++ {
			_, size := utf8.DecodeLastRuneInString(before[:at])
			at -= size
		}
		if at > 0 {
			before, start = before[at:], "…"
		}
	}
	mark := utf8.RuneCountInString(before)
	after, more := cut(after, maxExcerpt-mark)
	if more != "" {
		end = "…"
	}
	return strings.TrimRight(start+english.OneLine(before+after)+end, " "), strings.Repeat(" ", utf8.RuneCountInString(start)+mark)
}

// cut splits a text after n characters.
func cut(s string, n int) (head, rest string) {
	for i := range s {
		if n == 0 {
			return s[:i], s[i:]
		}
		n--
	}
	return s, ""
}

// Summed shortens lists of more than maxAlike warnings or hints of the same kind to leftOfMany.
const (
	maxAlike   = 10
	leftOfMany = 3
)

// Summed returns the sorted problems. It shortens long lists of warnings or hints of the same kind in a file, but
// keeps all errors.
func (ds Diagnostics) Summed() (left Diagnostics) {
	type kind struct{ file, code string }
	byKind := map[kind]Diagnostics{}
	sorted := ds.Sorted()
	for _, d := range sorted {
		if k := (kind{d.File, d.Code}); d.Severity != policy.Error {
			byKind[k] = append(byKind[k], d)
		}
	}
	before := map[kind]int{}
	for _, d := range sorted {
		k := kind{d.File, d.Code}
		if alike := byKind[k]; len(alike) > maxAlike {
			if before[k]++; before[k] > leftOfMany {
				continue
			}
			if before[k] == leftOfMany {
				d.fixAt = cmp.Or(d.fixAt, len(d.Message))
				d.Message += fmt.Sprintf("; there are %d more like this, down to line %d", len(alike)-leftOfMany, alike[len(alike)-1].Pos.Line)
			}
		}
		left = append(left, d)
	}
	return left
}
