// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// syntax reports the error of a file that is not valid YAML. The YAML library often reports the start of the block
// instead of the line with the mistake. So syntax first searches the lines for common mistakes, and uses the library's
// message only if it finds none.
func (p *parser) syntax(data string, err error) {
	line := p.errorLine(data, err)
	explained := false
	for i, text := range p.lines {
		if s := p.suspect(text); s != nil {
			p.report(policy.Pos{Line: i + 1, Column: s.column}, s.code, s.didYouMean, "%s", s.message)
			explained = explained || i+1 <= line
		}
	}
	if explained {
		return
	}
	if opened, column := p.openQuote(line); opened > 0 {
		p.report(policy.Pos{Line: opened, Column: column}, "yaml-syntax", "", unclosed)
		return
	}
	column := 1
	if line >= 1 && line <= len(p.lines) {
		text := p.lines[line-1]
		column = utf8.RuneCountInString(text) - utf8.RuneCountInString(strings.TrimLeft(text, " \t")) + 1
	}
	message := explain(err)
	if message == misaligned && line >= 1 && line <= len(p.lines) {
		if strings.HasPrefix(strings.TrimSpace(p.lines[line-1]), "- ") {
			message = "this entry does not line up with the entries above it; write the same number of spaces before all hyphens of a list"
		}
	}
	p.report(policy.Pos{Line: line, Column: column}, "yaml-syntax", "", "%s", message)
}

// openQuote returns the place of the first value with an unclosed quotation mark. It only looks at lines up to last.
func (p *parser) openQuote(last int) (line, column int) {
	for i, text := range p.lines[:min(last, len(p.lines))] {
		m := entryStart.FindStringSubmatch(text)
		if m == nil || m[4] == "" || m[4][0] != '"' && m[4][0] != '\'' {
			continue
		}
		if strings.Count(strings.ReplaceAll(m[4], `\"`, ""), m[4][:1])%2 == 1 {
			return i + 1, utf8.RuneCountInString(m[1]+m[2]+m[3]) + 1
		}
	}
	return 0, 0
}

var (
	lineOf   = regexp.MustCompile(`^(?:yaml: )?line (\d+): `)
	scanning = regexp.MustCompile(`end of stream|cannot start any token|not allowed in this context|alphabetic or numeric|unknown escape|escape sequence|hexdecimal|block scalar|document indicator`)
)

// maxSteps limits how often an invalid file is parsed again.
const maxSteps = 8

// errorLine returns the line of a syntax error. Errors of the scanner name the line. For an error of the parser, the
// result is the last line of the shortest beginning of the text that still gives this error. At most maxSteps lines
// are removed to find it.
func (p *parser) errorLine(data string, err error) int {
	if m := lineOf.FindStringSubmatch(err.Error()); m != nil && scanning.MatchString(err.Error()) {
		n, _ := strconv.Atoi(m[1])
		return min(max(n, 1), max(len(p.lines), 1))
	}
	in := &byteReader{text: data}
	_, _, _ = decode(in)
	lines := splitLines(data[:in.read])
	n := len(lines)
	for range maxSteps {
		if n <= 1 {
			break
		}
		_, _, again := decode(strings.NewReader(strings.Join(lines[:n-1], "\n")))
		if again == nil || again.Error() != err.Error() {
			break
		}
		n--
	}
	return max(n, 1)
}

// byteReader returns one byte for each call, to find out how far a parser has read.
type byteReader struct {
	text string
	read int
}

func (o *byteReader) Read(b []byte) (int, error) {
	if o.read == len(o.text) || len(b) == 0 {
		return 0, io.EOF
	}
	b[0] = o.text[o.read]
	o.read++
	return 1, nil
}

// explanations maps parts of the YAML library's messages to clearer messages. The first matching part is used.
var explanations = []struct{ part, message string }{
	{"unexpected end of stream", unclosed},
	{"unexpected document indicator", unclosed},
	{"',' or ']'", `a list in brackets needs "]" at the end, and commas between its values`},
	{"',' or '}'", `keys in braces need "}" at the end, and commas between them`},
	{"mapping values are not allowed", "this line is indented too far; write the same number of spaces before keys that belong together"},
	{"could not find expected ':'", `this line is neither "key: value" nor "- value"; write a colon and a space after the key`},
	{"did not find expected key", misaligned},
	{"'-' indicator", misaligned},
	{"block end", misaligned},
	{"block sequence entries", misaligned},
	{"exceeded max depth", "there are too many lists within lists; write them on one level"},
}

const (
	unclosed   = "this quotation mark is not closed; put another one at the end of the value"
	misaligned = "this line does not line up with the lines above it; write the same number of spaces before keys that belong together"
)

func explain(err error) string {
	text := lineOf.ReplaceAllString(strings.TrimPrefix(err.Error(), "yaml: "), "")
	for _, e := range explanations {
		if strings.Contains(text, e.part) {
			return e.message
		}
	}
	return "invalid YAML: " + text
}

type suspicion struct {
	column     int
	code       string
	message    string
	didYouMean string
}

var (
	entryStart = regexp.MustCompile(`^( *)((?:- +)*)((?:[A-Za-z][\w.-]*: +)?)(.*)$`)
	joinedKey  = regexp.MustCompile(`^([a-z][a-z-]*):([^\s:].*)$`)
	inFlow     = regexp.MustCompile("(?:^|[\\[{,] *|: +)([*&!%@`][^,\\]}]*|[^\"',:\\[\\]{}]*\\?[^,\\]}]*)")
)

// suspect looks in a line for text that is never valid YAML.
func (p *parser) suspect(line string) *suspicion {
	if indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]; strings.Contains(indent, "\t") {
		if strings.TrimSpace(line) == "" {
			return nil
		}
		return &suspicion{
			strings.IndexByte(indent, '\t') + 1, "yaml-tab",
			"this line starts with a tab; YAML is indented with spaces only, so replace each tab with two spaces", "",
		}
	}
	m := entryStart.FindStringSubmatch(line)
	if m == nil {
		return nil
	}
	before, key, value := m[1]+m[2]+m[3], m[3], m[4]
	column := utf8.RuneCountInString(before) + 1
	if value == "" || value[0] == '#' || value[0] == '"' || value[0] == '\'' {
		return nil
	}
	if g := joinedKey.FindStringSubmatch(value); g != nil && key == "" && p.keys[g[1]] {
		return &suspicion{column + len(g[1]), "missing-space", "a space is missing after the colon", g[1] + ": " + g[2]}
	}
	if value[0] == '[' || value[0] == '{' {
		f := inFlow.FindStringSubmatchIndex(value)
		if f == nil {
			return nil
		}
		return needsQuotes(column+utf8.RuneCountInString(value[:f[2]]), strings.TrimSpace(value[f[2]:f[3]]))
	}
	bare := uncomment(value)
	if strings.IndexByte(indicators, value[0]) >= 0 && !blockHeader.MatchString(value) {
		return needsQuotes(column, bare)
	}
	if key != "" && (strings.Contains(bare, ": ") || strings.HasSuffix(bare, ":")) {
		return needsQuotes(column, bare)
	}
	return nil
}

// indicators holds the characters that have a special meaning at the start of a YAML value.
const indicators = "*&!%@`|>]},"

var blockHeader = regexp.MustCompile(`^[|>][-+0-9]{0,2}\s*(#.*)?$`)

func uncomment(s string) string {
	if i := strings.Index(s, " #"); i >= 0 {
		s = s[:i]
	}
	return strings.TrimSpace(s)
}

func needsQuotes(column int, value string) *suspicion {
	why := `contains ": ", which separates a key from a value in YAML`
	if strings.HasSuffix(value, ":") {
		why = `ends with ":", which makes it a key in YAML`
	}
	if strings.Contains(value, "?") {
		why = `contains "?", which is special within brackets in YAML`
	}
	if strings.IndexByte(indicators, value[0]) >= 0 {
		why = `starts with "` + value[:1] + `", which is special in YAML`
	}
	return &suspicion{column, "needs-quotes", "this value " + why + "; put quotes around it: " + quote(strings.ReplaceAll(value, `"`, "%22")), ""}
}
