// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// field is one key of a map in the file: what reads it, what prints it, and what the
// JSON Schema and the messages say of it.
type field[T any] struct {
	name     string
	about    string
	required bool
	shape    shape
	read     func(p *parser, value *yaml.Node, into T)
	print    func(w *printer, from T) // nil for what another field prints too
}

type fields[T any] []field[T]

// key is a field that need not be there.
func key[T any](name, about string, s shape, read func(*parser, *yaml.Node, T), print func(*printer, T)) field[T] {
	return field[T]{name: name, about: about, shape: s, read: read, print: print}
}

func (f field[T]) must() field[T] {
	f.required = true
	return f
}

// textKey is a field with a text, which valid checks and reports on if it is not nil.
func textKey[T any](name, about string, s shape, valid func(p *parser, n *yaml.Node, name, text string) bool, of func(T) *string) field[T] {
	return key(name, about, s, func(p *parser, n *yaml.Node, into T) {
		if text, ok := p.text(n, name); ok && (valid == nil || valid(p, n, name, text)) {
			*of(into) = text
		}
	}, func(w *printer, from T) { w.text(name, *of(from)) })
}

// listKey is a field with a text or a list of texts. An empty list is a value, too.
func listKey[T any](name, about string, s shape, of func(T) *[]string) field[T] {
	return key(name, about, oneOrMore(s), func(p *parser, n *yaml.Node, into T) {
		*of(into) = p.words(n, name)
	}, func(w *printer, from T) {
		if values := *of(from); values != nil && len(values) == 0 {
			w.plain(name, "[]")
		}
		w.texts(name, *of(from))
	})
}

// boolKey is a field that is true, false or not there.
func boolKey[T any](name, about string, of func(T) **bool) field[T] {
	return key(name, about, shape{"type": "boolean"}, func(p *parser, n *yaml.Node, into T) {
		word, _ := p.choice(n, name, "true", "false")
		yes := word == "true"
		*of(into) = &yes
	}, func(w *printer, from T) {
		if value := *of(from); value != nil {
			w.plain(name, map[bool]string{true: "true", false: "false"}[*value])
		}
	})
}

// subMap is a field with a map that has fields of its own.
func subMap[T, U any](name, about string, fs fields[U], of func(T) U) field[T] {
	return key(name, about, mapShape(fs), func(p *parser, n *yaml.Node, into T) {
		readMap(p, n, name, fs, of(into))
	}, func(w *printer, from T) {
		w.under(name, func() { printMap(w, fs, of(from)) })
	})
}

func (fs fields[T]) names() []string {
	names := make([]string, len(fs))
	for i, f := range fs {
		names[i] = f.name
	}
	return names
}

// index returns the place of a key, or -1.
func (fs fields[T]) index(key *yaml.Node) int {
	if key.Kind != yaml.ScalarNode {
		return -1
	}
	return slices.IndexFunc(fs, func(f field[T]) bool { return f.name == key.Value })
}

// readMap reads a map with known keys, in the order of the table. What names it in
// messages.
func readMap[T any](p *parser, n *yaml.Node, what string, fs fields[T], into T) {
	if !p.isMap(n, what) {
		return
	}
	found := make([]int, len(fs)) // the key's place in n.Content, plus one
	var misspelt []int            // places of misspelt keys
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if p.skip[key] {
			continue
		}
		j := fs.index(key)
		switch {
		case j < 0:
			p.unknownKey(key, n.Content[i+1], what, fs.names())
			misspelt = append(misspelt, i)
		case found[j] > 0:
			p.duplicate(key, n.Content[found[j]-1], "")
		default:
			found[j] = i + 1
		}
	}
	for _, i := range misspelt { // read them too, so that all problems show in one pass
		near := nearestKey(n.Content[i].Value, what, fs.names())
		if j := slices.Index(fs.names(), near); j >= 0 && found[j] == 0 {
			found[j] = i + 1
		}
	}
	for j, f := range fs {
		switch {
		case found[j] > 0:
			if value := n.Content[found[j]]; !p.skip[value] {
				f.read(p, value, into)
			}
		case f.required:
			p.report(posOf(n), "missing-key", "", "%s needs %q: %s", what, f.name, f.about)
		}
	}
}

func printMap[T any](w *printer, fs fields[T], from T) {
	for _, f := range fs {
		if f.print != nil {
			f.print(w, from)
		}
	}
}
