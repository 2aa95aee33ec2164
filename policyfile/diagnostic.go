// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Diagnostic is something that the author of a policy file should know, with its
// place.
type Diagnostic struct {
	File     string
	Pos      policy.Pos // lines and columns count from 1; columns count characters
	Severity policy.Severity
	// Code is stable; docs/lint.md has a section of that name. See [Codes].
	Code string
	// Message is for people who are no engineers, with the cure.
	Message string
	// DidYouMean is what the author may have meant to write, or empty.
	DidYouMean string
	// Line is the line of the file at Pos.Line, or empty.
	Line string
}

// String is the diagnostic on one line, without the source line:
// "file:line:col: error: message [code]".
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
	return d.Message + fmt.Sprintf(" (did you mean %q?)", d.DidYouMean)
}

// MarshalJSON gives the diagnostic with field names that do not change: file,
// line, column, severity, code, message, did_you_mean, source.
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
	}{d.File, d.Pos.Line, d.Pos.Column, d.Severity.String(), d.Code, d.Message, d.DidYouMean, d.Line})
}

// Diagnostics is a list of problems. It is an error, so that a caller can return
// it; HasErrors says whether there is one.
type Diagnostics []Diagnostic

// HasErrors reports whether a problem keeps the policy from loading.
func (ds Diagnostics) HasErrors() bool {
	return slices.ContainsFunc(ds, func(d Diagnostic) bool { return d.Severity == policy.Error })
}

// Sorted returns the problems by file, line and column; at one place errors come
// first.
func (ds Diagnostics) Sorted() Diagnostics {
	sorted := slices.Clone(ds)
	slices.SortStableFunc(sorted, func(a, b Diagnostic) int {
		return cmp.Or(strings.Compare(a.File, b.File),
			cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column),
			cmp.Compare(b.Severity, a.Severity))
	})
	return sorted
}

// maxErrorLines is how many problems Error spells out.
const maxErrorLines = 20

// Error is the problems one a line, errors before warnings, for a log. After 20
// it only counts.
func (ds Diagnostics) Error() string {
	sorted := ds.Sorted()
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

// Text is what Write writes, without colour.
func (ds Diagnostics) Text() string {
	var b bytes.Buffer
	_ = ds.Write(&b, false) // a Buffer never fails
	return b.String()
}

// Colours for terminals (ECMA-48).
const (
	bold   = "\x1b[1m"
	red    = "\x1b[1;31m"
	yellow = "\x1b[1;33m"
	green  = "\x1b[1;32m"
	reset  = "\x1b[0m"
)

// Write writes the problems in the order of the file, each with its source line
// and a caret under the place.
func (ds Diagnostics) Write(w io.Writer, color bool) error {
	paint := func(style, s string) string {
		if !color {
			return s
		}
		return style + s + reset
	}
	for _, d := range ds.Sorted() {
		style := yellow
		if d.Severity == policy.Error {
			style = red
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%s: %s: %s [%s]\n", paint(bold, d.place()), paint(style, d.Severity.String()), d.body(), d.Code)
		if d.Line != "" {
			line, indent := excerpt(d.Line, d.Pos.Column)
			fmt.Fprintf(&b, "    %s\n    %s%s\n", line, indent, paint(green, "^"))
		}
		if _, err := io.WriteString(w, b.String()); err != nil {
			return fmt.Errorf("writing diagnostics: %w", err)
		}
	}
	return nil
}

// maxExcerpt is how many characters of a long line are shown around the place.
const maxExcerpt = 120

// excerpt is the part of a line to show, and what goes before the caret. Control
// characters are shown as spaces, so that no file can write to the terminal.
func excerpt(line string, column int) (shown, indent string) {
	before, mark := 0, max(column-1, 0)
	if mark > maxExcerpt/2 && utf8.RuneCountInString(line) > maxExcerpt {
		before = mark - maxExcerpt/2
	}
	var b, in strings.Builder
	if before > 0 {
		b.WriteString("…")
		in.WriteByte(' ')
	}
	n := 0
	for _, c := range line {
		if n >= before+maxExcerpt {
			b.WriteString("…")
			break
		}
		if n >= before {
			if c < ' ' || c >= 0x7f && c < 0xa0 {
				c = ' '
			}
			b.WriteRune(c)
			if n < mark {
				in.WriteByte(' ')
			}
		}
		n++
	}
	return strings.TrimRight(b.String(), " "), in.String()
}
