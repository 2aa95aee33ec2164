// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// maxDiagnostics bounds what one file can make us say. Warnings never crowd out
// the errors that keep a file from loading.
const maxDiagnostics = 500

// reporter collects diagnostics about one file.
type reporter struct {
	file   string
	lines  []string
	list   Diagnostics
	errors int
}

// report adds a diagnostic. The code's row in the table of codes gives its
// severity.
func (r *reporter) report(at policy.Pos, code, didYouMean, format string, args ...any) {
	severity := severityOf(code)
	if severity == policy.Error {
		r.errors++
	}
	if len(r.list) == maxDiagnostics {
		last := len(r.list) - 1
		for last >= 0 && r.list[last].Severity == policy.Error {
			last--
		}
		if severity != policy.Error || last < 0 {
			return
		}
		r.list = slices.Delete(r.list, last, last+1)
	}
	message := format
	if len(args) > 0 {
		message = fmt.Sprintf(format, args...)
	}
	r.list = append(r.list, r.diagnostic(policy.Problem{Severity: severity, Code: code, Pos: at, Message: message}, didYouMean))
}

func (r *reporter) diagnostic(p policy.Problem, didYouMean string) Diagnostic {
	d := Diagnostic{
		File: r.file, Pos: p.Pos, Severity: p.Severity, Code: p.Code,
		Message: oneLine(p.Message), DidYouMean: oneLine(didYouMean),
	}
	if n := p.Pos.Line; n > 0 && n <= len(r.lines) {
		d.Line = r.lines[n-1]
	}
	return d
}

// oneLine keeps what a file says from breaking the line of a message.
func oneLine(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c >= 0x7f && c < 0xa0 || c == '\u2028' || c == '\u2029' {
			return ' '
		}
		return c
	}, s)
}

// maxQuoted is how much of a value a message repeats.
const maxQuoted = 60

// quote is a value of the file for use in a message.
func quote(s string) string {
	short := []rune(s)
	if len(short) > maxQuoted {
		short = append(short[:maxQuoted], '…')
	}
	return `"` + string(short) + `"`
}

// splitLines splits where YAML 1.1 breaks lines, which is how the parser counts
// them.
func splitLines(s string) []string {
	var lines []string
	start := 0
	for i := 0; i < len(s); i++ {
		width := 0
		switch {
		case s[i] == '\n':
			width = 1
		case s[i] == '\r':
			width = 1
			if i+1 < len(s) && s[i+1] == '\n' {
				width = 2
			}
		case s[i] == 0xc2 && i+1 < len(s) && s[i+1] == 0x85:
			width = 2
		case s[i] == 0xe2 && i+2 < len(s) && s[i+1] == 0x80 && (s[i+2] == 0xa8 || s[i+2] == 0xa9):
			width = 3
		}
		if width > 0 {
			lines = append(lines, s[start:i])
			start = i + width
			i = start - 1
		}
	}
	if start < len(s) {
		lines = append(lines, s[start:])
	}
	return lines
}

// list is words as a sentence lists them.
func list(words []string, last string) string {
	switch len(words) {
	case 0:
		return ""
	case 1:
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " " + last + " " + words[len(words)-1]
}

// some is the first words of a list that may be long.
func some(words []string, n int) string {
	if len(words) <= n {
		return list(words, "and")
	}
	return strings.Join(words[:n], ", ") + " and others"
}
