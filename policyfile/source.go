// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// MaxSize is the maximum size of a policy file in bytes.
const MaxSize = 1 << 20

// document returns the root of the only document in the file, or reports a problem.
func (p *parser) document(data []byte) *yaml.Node {
	if len(data) > MaxSize {
		p.report(policy.Pos{Line: 1, Column: 1}, "file-too-large", "", "a policy file can have up to 1 MiB; use wildcards instead of listing every page")
		return nil
	}
	if !p.isText(data) {
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	p.lines = splitLines(string(data))
	if line := robotsTxtLine(p.lines); line > 0 {
		p.report(policy.Pos{Line: line, Column: 1}, "is-robots-txt", "",
			`this looks like a robots.txt; "caddy robots-policy import" makes a policy file from one`)
		return nil
	}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("<")) {
		p.report(policy.Pos{Line: 1, Column: 1}, "wrong-type", "", "this is a web page, not a policy file")
		return nil
	}
	root, second, err := decode(bytes.NewReader(data))
	switch {
	case errors.Is(err, io.EOF) || err == nil && (len(root.Content) == 0 || isNull(root.Content[0])):
		p.report(policy.Pos{Line: 1, Column: 1}, "file-empty", "",
			`the file is empty; the smallest policy is the line "version: 1"`)
		return nil
	case err != nil:
		p.syntax(string(data), err)
		return nil
	case second != nil:
		p.report(policy.Pos{Line: second.Line, Column: second.Column}, "second-document", "",
			`a line with only "---" starts a second document, but a policy file can have only one; delete that line, or put this part into another file`)
	}
	p.plain(root.Content[0])
	return root.Content[0]
}

func decode(r io.Reader) (root, second *yaml.Node, err error) {
	defer func() {
		if e := recover(); e != nil { // the library panics on comments in some unusual places
			root, second, err = nil, nil, fmt.Errorf("yaml: %v", e)
		}
	}()
	d := yaml.NewDecoder(r)
	root, second = new(yaml.Node), new(yaml.Node)
	if err := d.Decode(root); err != nil {
		return nil, nil, err
	}
	switch err := d.Decode(second); {
	case errors.Is(err, io.EOF):
		return root, nil, nil
	case err != nil:
		return nil, nil, err
	}
	return root, second, nil
}

// isText reports whether the data is a text. It reports an error for characters that editors do not write into text
// files.
func (p *parser) isText(data []byte) bool {
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		p.report(policy.Pos{Line: 1, Column: 1}, "not-text", "", "the file is in UTF-16; save it as UTF-8")
		return false
	}
	ok := true
	for i := 0; i < len(data); {
		c, n := utf8.DecodeRune(data[i:])
		if what := unreadable(data[:i], c, n); what != "" && len(p.list) < maxUnreadable {
			lines := splitLines(string(data[:i]) + "x")
			last := lines[len(lines)-1]
			p.lines = splitLines(string(data))
			p.report(policy.Pos{Line: len(lines), Column: utf8.RuneCountInString(last)}, "not-text", "", "there is %s", what)
			ok = false
		}
		i += n
	}
	return ok
}

const maxUnreadable = 10

func unreadable(before []byte, c rune, n int) string {
	switch {
	case c == utf8.RuneError && n == 1:
		return "a character that is not in UTF-8; save the file as UTF-8"
	case len(before) > 0 && c != ' ' && unicode.In(c, unicode.Cf, unicode.Zs) && !isProse(before):
		return fmt.Sprintf("an invisible character (U+%04X); delete it, or replace it with an ordinary space", c)
	case c < ' ' && c != '\t' && c != '\n' && c != '\r', c == 0x7f, c >= 0x80 && c < 0xa0 && c != 0x85, c == 0xfffe, c == 0xffff:
		return fmt.Sprintf("an invisible control character (U+%04X); delete it", c)
	}
	return ""
}

// isProse reports whether a character is in a comment, a message or a name. These are for people, so they may have
// invisible characters. before is the text before the character.
func isProse(before []byte) bool {
	line := string(before[bytes.LastIndexAny(before, "\r\n")+1:])
	if strings.Contains(line, " #") || strings.HasPrefix(line, "#") {
		return true
	}
	return proseKey.MatchString(line)
}

var proseKey = regexp.MustCompile(`(?:^|[{,-]) *(?:message|name): [^,]*$`)

// plain reports aliases, tags and missing values, because they are not valid in policy files.
func (p *parser) plain(n *yaml.Node) {
	bad := func(n *yaml.Node, code, format string, args ...any) {
		p.report(posOf(n), code, "", format, args...)
		p.skip[n] = true
	}
	if n.Anchor != "" {
		bad(n, "yaml-alias", `"&%s" is an anchor, which policy files do not use; delete it, or put quotes around the value if it starts with "&"`, n.Anchor)
	}
	if n.Style&yaml.TaggedStyle != 0 {
		bad(n, "yaml-tag", `%s is a type tag, which policy files do not use; delete it, or put quotes around the value if it starts with "!"`, quote(n.Tag))
	}
	switch n.Kind {
	case yaml.AliasNode:
		bad(n, "yaml-alias", `in YAML, a value that starts with "*" is an alias; put quotes around it: %s`, quote("*"+n.Value)) // aliases are not expanded, because they could become very large
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, v := n.Content[i], n.Content[i+1]
			switch {
			case k.Kind == yaml.MappingNode || k.Kind == yaml.SequenceNode:
				bad(k, "wrong-type", "the name before a colon must be plain text, not %s", kindOf(k))
				continue
			case k.Tag == "!!merge":
				bad(k, "yaml-alias", `"<<" is a merge key, which policy files do not use; write the lines out`)
				p.skip[v] = true
				continue
			case isNull(v) && v.Value == "" && p.isJoined(k):
				p.skip[k], p.skip[v] = true, true
				continue
			case isNull(v) && v.Value == "" && k.Kind == yaml.ScalarNode && k.Value != "" && (k.Value[0] == '/' || k.Value[0] == '*'):
				bad(k, "needs-quotes", "%s", needsQuotes(0, k.Value+":").message)
				p.skip[v], p.skip[n] = true, true
				continue
			case isNull(v) && p.notIndented(n.Content[i:]):
				bad(v, "no-value", `there is nothing under "%s:", because the next line is not indented; indent it by two more spaces`, k.Value)
			case isNull(v):
				bad(v, "no-value", `there is no value after "%s:"; write one, or delete the line`, quoteless(k.Value))
			}
			p.plain(k)
			p.plain(v)
		}
	case yaml.SequenceNode:
		for _, c := range n.Content {
			if isNull(c) {
				bad(c, "no-value", `there is no value after "-"; write one, or delete the line`)
			}
			p.plain(c)
		}
	case yaml.ScalarNode, yaml.DocumentNode:
	}
}

// notIndented handles the mistake that an author does not indent the usages below the key allow or disallow. YAML then
// reads them as keys next to it. If this is the case, notIndented marks these keys in p.skip, so that only the clearer
// message of its caller is reported.
func (p *parser) notIndented(rest []*yaml.Node) (found bool) {
	if rest[0].Value != "allow" && rest[0].Value != "disallow" {
		return false
	}
	for i := 2; i+1 < len(rest); i += 2 {
		if _, ok := policy.ParseUsage(rest[i].Value); !ok {
			break
		}
		p.skip[rest[i]], found = true, true
	}
	return found
}

// robotsTxtLine returns the number of a line that shows that the file is a robots.txt, or 0.
func robotsTxtLine(lines []string) int {
	found := 0
	for i, line := range lines {
		name, _, isKey := strings.Cut(line, ":")
		switch name = strings.TrimSpace(name); {
		case isKey && name == "version":
			return 0
		case isKey && found == 0 && strings.EqualFold(name, "user-agent") && line[0] != ' ':
			found = i + 1
		}
	}
	return found
}

func quoteless(s string) string { return strings.Trim(quote(s), `"`) }

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func posOf(n *yaml.Node) policy.Pos { return policy.Pos{Line: n.Line, Column: n.Column} }
