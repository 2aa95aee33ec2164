// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"html"
	"regexp"
	"strconv"
	"strings"
)

// kind is the kind of place where a text is read.
type kind int

const (
	docs kind = iota + 1
	messages
	console // templates of pages
	comments
)

var kinds = []kind{docs, messages, console, comments}

func (k kind) String() string {
	return [...]string{"", "docs", "messages", "console", "comments"}[k]
}

// paragraph is one paragraph of a file, joined to one line.
type paragraph struct {
	kind kind
	line int
	text string
}

var (
	listItem = regexp.MustCompile(`^\s*([-*]|\d+\.) `)
	link     = regexp.MustCompile(`\]\([^)]*\)`)
	code     = regexp.MustCompile("`[^`]+`")
	comment  = regexp.MustCompile(`(?s)<!--.*?-->`)
)

// fromMarkdown returns the paragraphs, list items and table rows of a page, without headings and code.
func fromMarkdown(text string) (all []paragraph) {
	text = comment.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })
	var now paragraph
	end := func() {
		if now.text != "" {
			all = append(all, now)
		}
		now = paragraph{}
	}
	fence := ""
	for i, line := range strings.Split(text, "\n") {
		bare := strings.TrimSpace(line)
		if mark := bare[:len(bare)-len(strings.TrimLeft(bare, "`"))]; len(mark) >= 3 && (fence == "" || mark == fence) {
			end()
			if fence == "" {
				fence = mark
			} else {
				fence = ""
			}
			continue
		}
		if fence != "" {
			continue
		}
		if bare == "" || strings.HasPrefix(bare, "#") || strings.HasPrefix(bare, "|") || listItem.MatchString(line) {
			end()
		}
		if bare == "" || strings.HasPrefix(bare, "#") || strings.HasPrefix(bare, "<") || strings.HasPrefix(bare, "|--") || strings.HasPrefix(bare, "| --") {
			continue
		}
		bare = link.ReplaceAllString(strings.TrimSpace(strings.TrimLeft(bare, ">")), "]")
		if now.text == "" {
			now = paragraph{docs, i + 1, bare}
		} else {
			now.text += " " + bare
		}
		if strings.HasPrefix(bare, "|") {
			end()
		}
	}
	end()
	for i := range all {
		all[i].text = code.ReplaceAllString(all[i].text, "`code`")
	}
	return all
}

// fromGo returns the comments of a Go file. If the file is not a test, it also returns the string literals that are
// sentences.
func fromGo(name, text string) (all []paragraph, err error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	for _, g := range file.Comments {
		line := fset.Position(g.Pos()).Line
		for _, p := range strings.Split(g.Text(), "\n\n") {
			if p = prose(p); p != "" && !strings.HasPrefix(p, "SPDX") && !strings.HasPrefix(p, "Output: ") {
				all = append(all, paragraph{comments, line, p})
			}
		}
	}
	if strings.HasSuffix(name, "_test.go") {
		return all, nil
	}
	ast.Inspect(file, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		s, ok := literal(e)
		if !ok {
			return true
		}
		for _, p := range strings.Split(s, "\n\n") {
			if p = prose(p); strings.Count(p, " ") >= 2 && !fields.MatchString(p) {
				all = append(all, paragraph{messages, fset.Position(e.Pos()).Line, p})
			}
		}
		return false
	})
	return all, nil
}

// fields matches strings that look like sentences but are not, such as HTTP header fields, SQL, and lists of words.
var fields = regexp.MustCompile(`^ON CONFLICT |^AАΑ |^all any every |^noindex ; |^a bridge over |^Mozilla/|; rel=|; charset=|^default-src|^SELECT |^INSERT |^CREATE |; x64$|; K$|^worker_processes|^daemon off|^\{ admin off|^import sys`)

// literal returns the text of a string literal or of a concatenation. In a concatenation, "…" replaces each part that
// is not a literal.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		a, first := literal(e.X)
		b, second := literal(e.Y)
		switch {
		case first && second:
			return a + b, true
		case first:
			return a + "…", true
		case second:
			return "…" + b, true
		}
	}
	return "", false
}

// prose joins the lines of a text. It omits indented lines, which are code.
func prose(text string) string {
	var words []string
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "\t") && !strings.HasPrefix(line, "  ") {
			words = append(words, strings.Fields(line)...)
		}
	}
	return strings.Join(words, " ")
}

var (
	unread  = regexp.MustCompile(`(?s)<(style|script)\b.*?</(style|script)>|\{\{/\*.*?\*/\}\}`)
	control = regexp.MustCompile(`\{\{-?\s*(if|else|end|range|with|define|template|block|\$\w+ :?=)[^}]*\}\}`)
	action  = regexp.MustCompile(`\{\{[^}]*\}\}`)
	inline  = regexp.MustCompile(`</?(a|b|code|em|i|strong|span|time|abbr)\b[^>]*>`)
	tag     = regexp.MustCompile(`<[^>]*>`)
)

// fromTemplate returns the texts in an HTML template. "…" replaces each value.
func fromTemplate(text string) (all []paragraph) {
	keep := func(mark string) func(string) string {
		return func(s string) string { return mark + strings.Repeat("\n", strings.Count(s, "\n")) }
	}
	text = unread.ReplaceAllStringFunc(text, keep(""))
	text = control.ReplaceAllStringFunc(text, keep("\x00"))
	text = action.ReplaceAllString(text, "…")
	text = inline.ReplaceAllStringFunc(text, keep(""))
	text = tag.ReplaceAllStringFunc(text, keep("\x00"))
	line := 1
	for _, s := range strings.Split(text, "\x00") {
		if p := strings.Join(strings.Fields(html.UnescapeString(s)), " "); strings.Count(p, " ") >= 2 {
			all = append(all, paragraph{console, line, p})
		}
		line += strings.Count(s, "\n")
	}
	return all
}
