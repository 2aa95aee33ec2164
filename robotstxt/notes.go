// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Note reports a line that was left out or interpreted while a robots.txt was read.
type Note struct {
	Line    int    `json:"line,omitempty"` // the line number in the robots.txt, from 1; or 0 if the note is not about a line
	Message string `json:"message"`
	Wrong   bool   `json:"wrong,omitempty"` // true if the line cannot have the effect that its author intended
	Cause   string `json:"-"`               // equal for notes about the same problem in several lines; "" if a note cannot be grouped
}

// Notes returns notes about lines that crawlers do not read, or that crawlers interpret differently from what their
// text suggests. The notes are in the order of the lines. If a line is for several crawlers, it still has only one note
// for each problem.
func (f *File) Notes() []Note {
	notes := slices.Clone(f.notes)
	slices.SortStableFunc(notes, func(a, b Note) int { return a.Line - b.Line })
	return slices.Compact(notes)
}

// Grouped merges notes with the same cause, as in "… (and 412 more like this, lines 7, 9, …)".
func Grouped(notes []Note) []Note {
	grouped := []Note{} // [] rather than null in JSON
	at := map[string]int{}
	lines := map[string][]string{}
	for _, n := range notes {
		if i, ok := at[n.Cause]; ok && n.Cause != "" {
			if line := fmt.Sprint(n.Line); n.Line > 0 && n.Line != grouped[i].Line && !slices.Contains(lines[n.Cause][max(0, len(lines[n.Cause])-1):], line) {
				lines[n.Cause] = append(lines[n.Cause], line)
			}
			continue
		}
		at[n.Cause] = len(grouped)
		grouped = append(grouped, n)
	}
	for i := range grouped {
		if more := lines[grouped[i].Cause]; len(more) > 0 {
			shown, rest := more, ""
			if len(more) > maxLinesShown {
				shown, rest = more[:maxLinesShown], ", …"
			}
			word := "lines"
			if len(more) == 1 {
				word = "line"
			}
			grouped[i].Message += fmt.Sprintf(" (and %d more like this, %s %s%s)", len(more), word, strings.Join(shown, ", "), rest)
		}
	}
	return grouped
}

func (f *File) note(line int, format string, args ...any) {
	f.notes = append(f.notes, Note{Line: line, Message: message(format, args), Cause: format})
}

// message is like fmt.Sprintf, but quotes texts as their author wrote them. Only characters that cannot be printed are
// escaped.
func message(format string, args []any) string {
	args = slices.Clone(args)
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = escaped(text)
		}
	}
	return fmt.Sprintf(strings.ReplaceAll(format, "%q", `"%s"`), args...)
}

func escaped(text string) string {
	var b strings.Builder
	for text != "" {
		c, n := utf8.DecodeRuneInString(text)
		if c == utf8.RuneError && n == 1 || !strconv.IsPrint(c) {
			quoted := strconv.Quote(text[:n])
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteString(text[:n])
		}
		text = text[n:]
	}
	return b.String()
}

func (r *reader) note(format string, args ...any) { r.file.note(r.number, format, args...) }

// wrong adds a note about a line that cannot have the effect that its author intended.
func (r *reader) wrong(format string, args ...any) {
	r.file.notes = append(r.file.notes, Note{Line: r.number, Message: message(format, args), Wrong: true, Cause: format})
}
