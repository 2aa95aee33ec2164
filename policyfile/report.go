// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// maxDiagnostics bounds the diagnostics of one file. Warnings never crowd out the
// errors that keep it from loading.
const maxDiagnostics = 10_000

type reporter struct {
	file   string
	lines  []string
	list   Diagnostics
	errors int
	mild   int // warnings and hints in list
}

// report adds a diagnostic. The code's row in the table of codes gives its
// severity.
func (r *reporter) report(at policy.Pos, code, didYouMean, format string, args ...any) {
	severity := severityOf(code)
	if severity == policy.Error {
		r.errors++
	}
	if len(r.list) == maxDiagnostics {
		if severity != policy.Error || r.mild == 0 {
			return
		}
		last := len(r.list) - 1
		for r.list[last].Severity == policy.Error {
			last--
		}
		r.list = slices.Delete(r.list, last, last+1)
		r.mild--
	}
	if severity != policy.Error {
		r.mild++
	}
	message := format
	if len(args) > 0 {
		message = fmt.Sprintf(format, args...)
	}
	r.list = append(r.list, r.diagnostic(policy.Problem{Severity: severity, Code: code, Pos: at, Message: message}, didYouMean))
}

// refuse reports what is wrong with a node, and returns false.
func (r *reporter) refuse(n *yaml.Node, code, didYouMean, format string, args ...any) bool {
	r.report(posOf(n), code, didYouMean, format, args...)
	return false
}

func (r *reporter) reportChoice(at policy.Pos, code, didYouMean, problem string, words []string) {
	r.reportAdvice(at, code, didYouMean, problem, "must be "+oneOf(words))
}

// reportAdvice adds a diagnostic with its suggestion between the problem and the
// advice.
func (r *reporter) reportAdvice(at policy.Pos, code, didYouMean, problem, advice string) {
	n := len(r.list)
	r.report(at, code, didYouMean, "%s: %s", problem, advice)
	if len(r.list) > n || n == maxDiagnostics {
		r.list[len(r.list)-1].fixAt = len(oneLine(problem))
	}
}

func oneOf(words []string) string {
	if len(words) > 3 {
		return "one of " + english.List(words, "or")
	}
	return english.List(words, "or")
}

func (r *reporter) diagnostic(p policy.Problem, didYouMean string) Diagnostic {
	d := Diagnostic{
		File: r.file, Pos: p.Pos, Severity: p.Severity, Code: p.Code,
		Message: oneLine(p.Message), DidYouMean: oneLine(didYouMean),
	}
	if i := strings.Index(d.Message, `": `); i > 0 && strings.HasPrefix(d.Message, "invalid ") {
		d.fixAt = i + 1
	}
	if n := p.Pos.Line; n > 0 && n <= len(r.lines) {
		d.Line = r.lines[n-1]
	}
	return d
}

// oneLine keeps text of the file from breaking the line of a message.
func oneLine(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c >= 0x7f && c < 0xa0 || c == '\u2028' || c == '\u2029' {
			return ' '
		}
		return c
	}, s)
}

const maxQuoted = 60

// quote is a value of the file for use in a message.
func quote(s string) string {
	short := []rune(s)
	if len(short) > maxQuoted {
		short = append(short[:maxQuoted], '…')
	}
	return `"` + string(short) + `"`
}

// lineBreaks are all that break lines in YAML 1.1, which is how the parser counts them.
var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(lineBreaks.Replace(s), "\n"), "\n")
}
