// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"encoding/json"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// field describes one key of a map in the file: how it is parsed, printed and documented.
type field[T any] struct {
	name     string
	about    string
	required bool
	shape    shape
	read     func(p *parser, value *yaml.Node, into T)
	print    func(w *printer, from T) // nil if another field prints it
}

type fields[T any] []field[T]

// key returns an optional field.
func key[T any](name, about string, s shape, read func(*parser, *yaml.Node, T), print func(*printer, T)) field[T] {
	return field[T]{name: name, about: about, shape: s, read: read, print: print}
}

func (f field[T]) must() field[T] {
	f.required = true
	return f
}

// textKey returns a field with a text. valid, if not nil, checks the text and reports errors.
func textKey[T any](name, about string, s shape, valid func(p *parser, n *yaml.Node, name, text string) bool, of func(T) *string) field[T] {
	return key(name, about, s, func(p *parser, n *yaml.Node, into T) {
		if text, ok := p.text(n, name); ok && (valid == nil || valid(p, n, name, text)) {
			*of(into) = text
		}
	}, func(w *printer, from T) { w.text(name, *of(from)) })
}

// listKey returns a field with a text or a list of texts. An empty list is different from a missing field.
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

// boolKey returns a field that is true, false or missing.
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

// index returns the index of a key, or -1.
func (fs fields[T]) index(key *yaml.Node) int {
	return slices.IndexFunc(fs, func(f field[T]) bool { return f.name == key.Value })
}

// readMap parses a map with the keys fs, in the order of fs.
func readMap[T any](p *parser, n *yaml.Node, what string, fs fields[T], into T) {
	if !p.isMap(n, what) {
		return
	}
	found := make([]int, len(fs)) // the key's place in n.Content, plus one
	var wrong []int               // indexes of misspelled keys
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if p.skip[key] {
			continue
		}
		j := fs.index(key)
		switch {
		case j < 0:
			p.unknownKey(n, key, n.Content[i+1], what, fs.names())
			wrong = append(wrong, i)
		case found[j] > 0:
			p.duplicate(key, n.Content[found[j]-1], "")
		default:
			found[j] = i + 1
		}
	}
	for _, i := range wrong { // parse their values, too, so that one run reports all problems
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

// shape is a JSON Schema (2020-12) for a value, for editors. It may accept values that the parser rejects.
type shape map[string]any

var (
	pathShape     = shape{"$ref": "#/$defs/path"}
	audienceShape = textShape("everyone, the name of a crawler, category:NAME, operator:NAME, purpose:NAME or signed:HOST", "")
	tokenShape    = textShape("a crawler's name in robots.txt", "")
	nameShape     = textShape("letters, digits, hyphens, underscores and dots", namePattern.String())
	modeShape     = choiceShape("off", "log", "block")
	usageShape    = shape{"type": "string", "enum": anys(usageNames())}
	usagesShape   = namedShape("a usage with qualifiers, or a list of usages", nameShape, shape{"anyOf": []any{mapShape(qualifiedFields), oneOrMore(textShape("a usage, or the name of a usage with qualifiers", ""))}})
)

func textShape(about, pattern string) shape {
	s := shape{"type": "string", "description": about, "minLength": 1}
	if pattern != "" {
		s["pattern"] = pattern
	}
	return s
}

func choiceShape(words ...string) shape {
	if slices.Contains(words, "on") || slices.Contains(words, "off") { // editors may read these words as true and false
		return shape{"enum": anys(words)}
	}
	return shape{"type": "string", "enum": anys(words)}
}

func anys[T any](values []T) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}

func oneOrMore(s shape) shape {
	return shape{"anyOf": []any{s, shape{"type": "array", "items": s, "minItems": 1}}}
}

// namedShape returns the shape of a map whose keys the author chooses.
func namedShape(about string, key, value shape) shape {
	return shape{"type": "object", "description": about, "propertyNames": key, "additionalProperties": value, "minProperties": 1}
}

func mapShape[T any](fs fields[T]) shape {
	properties, required := shape{}, []any{}
	for _, f := range fs {
		property := shape{}
		maps.Copy(property, f.shape)
		property["description"] = f.about
		properties[f.name] = property
		if f.required {
			required = append(required, f.name)
		}
	}
	s := shape{"type": "object", "properties": properties, "additionalProperties": false, "minProperties": 1}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

func rowShape() shape {
	s := mapShape(rowFields)
	delete(s, "minProperties")
	return s
}

func directivesShape(fs fields[*directive]) shape {
	return oneOrMore(shape{"anyOf": []any{fs[1].shape["anyOf"].([]any)[0], mapShape(fs)}})
}

func statementsShape(allow bool) shape {
	value := shape{"$ref": "#/$defs/disallowed"}
	if allow {
		value = shape{"$ref": "#/$defs/allowed"}
	}
	properties := shape{}
	for _, u := range policy.Usages() {
		if allow && u == policy.Other {
			continue
		}
		properties[u.String()] = shape{"description": usageAbout[u], "$ref": value["$ref"]}
	}
	s := shape{"type": "object", "properties": properties, "minProperties": 1, "additionalProperties": false}
	if allow {
		s["additionalProperties"] = value
		s["propertyNames"] = shape{"anyOf": []any{usageShape, nameShape}, "not": shape{"const": policy.Other.String()}}
	}
	return s
}

var usageAbout = map[policy.Usage]string{
	policy.Crawl:               "fetch the page",
	policy.Follow:              "follow the links in the page",
	policy.Index:               "put the page into a search index",
	policy.Preserve:            "keep a copy of the page",
	policy.Present:             "show the page or anything made from it",
	policy.PresentOriginal:     "show the page itself, as in a frame",
	policy.PresentCurrentCopy:  "show the newest copy of the page",
	policy.PresentOldCopy:      "show an older copy of the page",
	policy.PresentSnippet:      "show a piece of the text",
	policy.PresentThumbnail:    "show a small image of the page",
	policy.PresentOldSnippet:   "show a piece of the text from an older copy of the page",
	policy.PresentOldThumbnail: "show a small image of an older copy of the page",
	policy.PresentLink:         "show a link to the page",
	policy.Other:               "every usage that no rule mentions, except crawl",
	policy.TrainAI:             "train AI models with the page (AIPREF)",
	policy.AIUse:               "feed the page to an AI model that answers a person (AIPREF)",
	policy.Search:              "use the page in a search application (AIPREF)",
}

// Schema returns the JSON Schema (2020-12) of policy files, made from the parser's tables. Load may reject files
// that the schema allows, because it also checks the meaning of names.
func Schema() []byte {
	s := mapShape(fileFields)
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Site policy for crawlers"
	s["$defs"] = shape{
		"path":       textShape("a path that starts with / or *, where * stands for anything and $ for the end, or the name of a set", ""),
		"allowed":    oneOrMore(shape{"anyOf": []any{pathShape, mapShape(entryFields)}}),
		"disallowed": oneOrMore(shape{"anyOf": []any{pathShape, mapShape(entryFields[:1])}}),
	}
	s["description"] = "The rules for what each crawler may do with each part of a site."
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic("policyfile: the schema cannot be written: " + err.Error()) // only strings, numbers, lists and maps can occur
	}
	return append(out, '\n')
}
