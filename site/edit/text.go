// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// document is the text of a valid policy file with its YAML nodes. The methods that change something return the new
// text and do not change the document. They return false if the layout of the file does not allow the change.
type document struct {
	text   string
	starts []int // starts of lines
	root   *yaml.Node
	eol    string
}

func parse(text string) (*document, bool) {
	d := &document{text: text, eol: "\n", starts: []int{0}}
	if strings.Contains(text, "\r\n") {
		d.eol = "\r\n"
	}
	for i := range len(text) {
		if text[i] == '\n' {
			d.starts = append(d.starts, i+1)
		}
	}
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(text), &n); err != nil || len(n.Content) == 0 || n.Content[0].Kind != yaml.MappingNode {
		return nil, false
	}
	d.root = n.Content[0]
	return d, true
}

// start returns the position where the text of a node begins.
func (d *document) start(n *yaml.Node) int {
	at := d.starts[n.Line-1]
	if n.Line == 1 && strings.HasPrefix(d.text, bom) {
		at += len(bom)
	}
	for range n.Column - 1 {
		_, size := utf8.DecodeRuneInString(d.text[at:])
		at += size
	}
	return at
}

const bom = "\ufeff"

// end returns the position where the text of a node ends. It returns false if the node's text has several lines, or is
// not written in a form that the editor can locate.
func (d *document) end(n *yaml.Node) (int, bool) {
	at := d.start(n)
	switch {
	case n.Kind == yaml.ScalarNode && n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		end := d.quoted(at)
		return end, !strings.Contains(d.text[at:end], "\n")
	case n.Kind == yaml.ScalarNode:
		return at + len(n.Value), n.Style == 0 && strings.HasPrefix(d.text[at:], n.Value)
	case n.Style&yaml.FlowStyle != 0:
		return d.closing(at)
	case len(n.Content) > 0:
		return d.end(n.Content[len(n.Content)-1])
	}
	return 0, false
}

// quoted returns the position where a quoted text ends.
func (d *document) quoted(at int) int {
	mark := d.text[at]
	for i := at + 1; i < len(d.text); i++ {
		switch {
		case mark == '"' && d.text[i] == '\\':
			i++
		case d.text[i] != mark:
		case mark == '\'' && strings.HasPrefix(d.text[i+1:], "'"):
			i++
		default:
			return i + 1
		}
	}
	return len(d.text)
}

// closing returns the position after the bracket that closes the opening bracket at a position.
func (d *document) closing(at int) (int, bool) {
	depth := 0
	for i := at; i < len(d.text); i++ {
		switch c := d.text[i]; {
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			if depth--; depth == 0 {
				return i + 1, true
			}
		case (c == '"' || c == '\'') && strings.ContainsRune(" \t\r\n[{,:", rune(d.text[i-1])):
			i = d.quoted(i) - 1
		case c == '#' && strings.ContainsRune(" \t\n", rune(d.text[i-1])):
			i = d.lineEnd(i) - 1
		}
	}
	return 0, false
}

func (d *document) lineStart(at int) int { return strings.LastIndexByte(d.text[:at], '\n') + 1 }

// lineEnd returns the position after the line break of a line, or the end of the text.
func (d *document) lineEnd(at int) int {
	if i := strings.IndexByte(d.text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(d.text)
}

func (d *document) replace(from, to int, with string) string {
	return d.text[:from] + with + d.text[to:]
}

// insertLines inserts lines after the line at a position.
func (d *document) insertLines(at int, lines []string) string {
	at = d.lineEnd(at)
	text := strings.Join(lines, d.eol) + d.eol
	if at > 0 && d.text[at-1] != '\n' {
		text = d.eol + text
	}
	return d.replace(at, at, text)
}

// child returns the nodes of a key and its value in a map, or nil.
func child(n *yaml.Node, key string) (k, v *yaml.Node) {
	for i := 0; n != nil && n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

// items returns the values of a list. For a single value, which policy files accept instead of a list with one item, it
// returns this value.
func items(n *yaml.Node) []*yaml.Node {
	switch {
	case n == nil:
		return nil
	case n.Kind == yaml.SequenceNode:
		return n.Content
	}
	return []*yaml.Node{n}
}

var plainValue = regexp.MustCompile(`^(/[A-Za-z0-9/._~-]*|(?:[a-z]+:)?[A-Za-z][A-Za-z0-9._-]*)$`)

// value returns a text in the spelling that YAML needs, within or outside brackets.
func value(s string) string {
	if plainValue.MatchString(s) {
		return s
	}
	return strconv.Quote(s)
}

// pair is a key with the text of its value, or with its own keys.
type pair struct {
	key, value string
	pairs      []pair
}

func block(indent string, pairs []pair) (lines []string) {
	for _, p := range pairs {
		if p.pairs == nil {
			lines = append(lines, indent+p.key+": "+p.value)
			continue
		}
		lines = append(append(lines, indent+p.key+":"), block(indent+"  ", p.pairs)...)
	}
	return lines
}

func flow(pairs []pair) string {
	all := make([]string, 0, len(pairs))
	for _, p := range pairs {
		if p.pairs != nil {
			p.value = flow(p.pairs)
		}
		all = append(all, p.key+": "+p.value)
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// add adds a pair at the end of a map.
func (d *document) add(n *yaml.Node, p pair) (string, bool) {
	end, ok := d.end(n)
	if !ok || len(n.Content) == 0 {
		return "", false
	}
	if n.Style&yaml.FlowStyle != 0 {
		return d.replace(end-1, end-1, ", "+strings.Trim(flow([]pair{p}), "{}")), len(p.pairs) == 0
	}
	return d.insertLines(end, block(strings.Repeat(" ", n.Column-1), []pair{p})), true
}

// set sets the value of a key in a map, which may already have the key.
func (d *document) set(n *yaml.Node, key, text string) (string, bool) {
	_, v := child(n, key)
	if v == nil {
		return d.add(n, pair{key: key, value: text})
	}
	return d.put(v, text)
}

// put replaces the text of a value.
func (d *document) put(n *yaml.Node, text string) (string, bool) {
	end, ok := d.end(n)
	if !ok {
		return "", false
	}
	return d.replace(d.start(n), end, text), true
}

// extend adds the value text to the list n. If n is a single value, which policy files accept instead of a list, extend
// replaces it with a list of n and the new value.
func (d *document) extend(n *yaml.Node, text string) (string, bool) {
	end, ok := d.end(n)
	switch {
	case !ok || n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle == 0:
		return "", false
	case n.Kind == yaml.MappingNode:
		return d.put(n, "["+d.text[d.start(n):end]+", "+text+"]")
	case n.Kind == yaml.ScalarNode:
		return d.put(n, "["+value(n.Value)+", "+text+"]")
	case n.Style&yaml.FlowStyle != 0:
		return d.replace(end-1, end-1, ", "+text), true
	}
	return d.insertLines(end, []string{strings.Repeat(" ", n.Column-1) + "- " + text}), true
}

// remove removes the nodes n.Content[i:i+size], which are entries of the list or map n. If none are left, n is no
// longer valid, so the caller must remove n instead. Comments are removed only if they are on the same lines as the
// nodes.
func (d *document) remove(n *yaml.Node, i, size int) (string, bool) {
	first, last := n.Content[i], n.Content[i+size-1]
	end, ok := d.end(last)
	if !ok {
		return "", false
	}
	start := d.start(first)
	if n.Style&yaml.FlowStyle != 0 {
		switch {
		case i+size < len(n.Content):
			return d.replace(start, d.start(n.Content[i+size]), ""), true
		case i > 0:
			before, ok := d.end(n.Content[i-1])
			return d.replace(before, end, ""), ok
		}
		return "", false
	}
	start = d.lineStart(start)
	if n.Kind == yaml.MappingNode && strings.Trim(d.text[start:d.start(first)], " ") != "" {
		return "", false // the entry is on the same line as a hyphen
	}
	if rest := strings.TrimSpace(d.text[end:d.lineEnd(end)]); rest != "" && rest[0] != '#' {
		return "", false
	}
	var comments strings.Builder
	for line := range strings.Lines(d.text[start:end]) {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			comments.WriteString(line)
		}
	}
	return d.replace(start, d.lineEnd(end), comments.String()), true
}

// append adds a rule at the end of the rules.
func (d *document) append(pairs []pair) (string, bool) {
	_, rules := child(d.root, "rules")
	switch {
	case rules == nil && d.root.Style&yaml.FlowStyle != 0:
		return "", false
	case rules == nil:
		return d.insertLines(len(d.text), append([]string{"rules:"}, hyphened("  ", "  ", pairs)...)), true
	case rules.Kind != yaml.SequenceNode:
		return "", false
	}
	end, ok := d.end(rules)
	if !ok {
		return "", false
	}
	if rules.Style&yaml.FlowStyle != 0 {
		comma := ", "
		if len(rules.Content) == 0 {
			comma = ""
		}
		return d.replace(end-1, end-1, comma+flow(pairs)), true
	}
	last := rules.Content[len(rules.Content)-1]
	hyphen := strings.Repeat(" ", rules.Column-1)
	lines := hyphened(hyphen, strings.Repeat(" ", max(last.Column-rules.Column, 2)), pairs)
	if before := d.lineStart(d.start(last)); len(rules.Content) > 1 && d.spaced(before) {
		lines = append([]string{""}, lines...)
	}
	return d.insertLines(end, lines), true
}

// spaced reports whether an empty line is directly above a line, or above the comments that precede this line.
func (d *document) spaced(at int) bool {
	for at > 0 {
		from := d.lineStart(at - 1)
		line := strings.TrimSpace(d.text[from:at])
		if line == "" || line[0] != '#' {
			return line == ""
		}
		at = from
	}
	return false
}

func hyphened(hyphen, step string, pairs []pair) []string {
	lines := block(hyphen+step, pairs)
	lines[0] = hyphen + "-" + step[1:] + strings.TrimLeft(lines[0], " ")
	return lines
}

// same reports whether the text of a node means the same path as path.
func same(n *yaml.Node, path pathpattern.Pattern) bool {
	p, err := pathpattern.Parse(n.Value)
	return n.Kind == yaml.ScalarNode && err == nil && p == path
}

// isFor reports whether a node names the audience a.
func isFor(n *yaml.Node, a policy.Audience) bool {
	b := policy.ParseAudience(n.Value)
	return n.Kind == yaml.ScalarNode && a.Kind == b.Kind && strings.EqualFold(a.Name, b.Name)
}
