// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestSchemaIsPublished(t *testing.T) {
	compareGolden(t, "../docs/site-policy.schema.json", string(Schema()))
}

// asJSON returns the value that an editor sees for a YAML node, according to the core schema of YAML 1.2.
func asJSON(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = asJSON(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		list := []any{}
		for _, c := range n.Content {
			list = append(list, asJSON(c))
		}
		return list
	}
	if n.Style == 0 || n.Style == yaml.FlowStyle {
		switch n.Value {
		case "true", "True", "TRUE":
			return true
		case "false", "False", "FALSE":
			return false
		case "", "~", "null", "Null", "NULL":
			return nil
		}
		if x, err := strconv.ParseFloat(n.Value, 64); err == nil && regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`).MatchString(n.Value) {
			return x
		}
	}
	return n.Value
}

// validate implements the keywords of JSON Schema 2020-12 that the schema uses. It fails if the schema has another
// keyword.
func validate(root, schema map[string]any, v any, at string) (problems []string) {
	fail := func(format string, args ...any) { problems = append(problems, at+": "+fmt.Sprintf(format, args...)) }
	for keyword, rule := range schema {
		switch keyword {
		case "$schema", "$defs", "title", "description":
		case "$ref":
			name := strings.TrimPrefix(rule.(string), "#/$defs/")
			problems = append(problems, validate(root, root["$defs"].(map[string]any)[name].(map[string]any), v, at)...)
		case "type":
			if typeOf(v) != rule && !(rule == "integer" && typeOf(v) == "number" && v.(float64) == math.Trunc(v.(float64))) {
				fail("is %s, not %v", typeOf(v), rule)
			}
		case "const":
			if v != rule {
				fail("is not %v", rule)
			}
		case "enum":
			if !slices.Contains(rule.([]any), v) {
				fail("%v is none of %v", v, rule)
			}
		case "pattern":
			if s, ok := v.(string); ok && !regexp.MustCompile(rule.(string)).MatchString(s) {
				fail("%q does not match %v", s, rule)
			}
		case "minLength", "minItems", "minProperties", "minimum", "maximum", "exclusiveMinimum":
			if !within(keyword, rule.(float64), v) {
				fail("%s is %v", keyword, rule)
			}
		case "items":
			if list, ok := v.([]any); ok {
				for i, item := range list {
					problems = append(problems, validate(root, rule.(map[string]any), item, fmt.Sprintf("%s[%d]", at, i))...)
				}
			}
		case "anyOf":
			var all []string
			for _, option := range rule.([]any) {
				ps := validate(root, option.(map[string]any), v, at)
				if len(ps) == 0 {
					all = nil
					break
				}
				all = append(all, ps...)
			}
			problems = append(problems, all...)
		case "not":
			if len(validate(root, rule.(map[string]any), v, at)) == 0 {
				fail("%v is excluded", v)
			}
		case "required":
			if m, ok := v.(map[string]any); ok {
				for _, name := range rule.([]any) {
					if _, ok := m[name.(string)]; !ok {
						fail("has no %v", name)
					}
				}
			}
		case "properties", "additionalProperties", "propertyNames":
			problems = append(problems, validateProperties(root, keyword, schema, v, at)...)
		default:
			fail("the schema uses %s, which this test does not know", keyword)
		}
	}
	return problems
}

// within reports whether a value is within the limit that a keyword such as minLength sets.
func within(keyword string, limit float64, v any) bool {
	switch v := v.(type) {
	case string:
		return keyword != "minLength" || float64(len(v)) >= limit
	case []any:
		return keyword != "minItems" || float64(len(v)) >= limit
	case map[string]any:
		return keyword != "minProperties" || float64(len(v)) >= limit
	case float64:
		return (keyword != "minimum" || v >= limit) && (keyword != "maximum" || v <= limit) && (keyword != "exclusiveMinimum" || v > limit)
	}
	return true
}

func validateProperties(root map[string]any, keyword string, schema map[string]any, v any, at string) (problems []string) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	known, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		sub, isKnown := known[name].(map[string]any)
		switch {
		case keyword == "propertyNames":
			problems = append(problems, validate(root, schema[keyword].(map[string]any), name, at+"."+name)...)
		case keyword == "properties" && isKnown:
			problems = append(problems, validate(root, sub, m[name], at+"."+name)...)
		case keyword == "additionalProperties" && !isKnown:
			if rule, ok := schema[keyword].(map[string]any); ok {
				problems = append(problems, validate(root, rule, m[name], at+"."+name)...)
			} else if schema[keyword] == false {
				problems = append(problems, at+": has "+name)
			}
		}
	}
	return problems
}

func typeOf(v any) string {
	switch v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case float64:
		return "number"
	case bool:
		return "boolean"
	}
	return "null"
}

func schemaProblems(t *testing.T, text string) []string {
	t.Helper()
	var schema map[string]any
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(text), &n); err != nil || len(n.Content) == 0 {
		return []string{fmt.Sprint("no YAML: ", err)}
	}
	return validate(schema, schema, asJSON(n.Content[0]), "file")
}

// TestSchemaAcceptsWhatLoads checks that editors do not report problems in correct files.
func TestSchemaAcceptsWhatLoads(t *testing.T) {
	texts := map[string]string{}
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml", "testdata/print/*.yaml", "../examples/policies/*.yaml", "../examples/*.yaml"} {
		for _, path := range filesOf(t, pattern) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts[path] = string(data)
		}
	}
	for i, b := range blocksOf(t, "../docs/reference/policy-file.md") {
		if b.language == "yaml" {
			texts[fmt.Sprintf("example %d", i)] = b.text
		}
	}
	accepted := 0
	for name, text := range texts {
		f, _ := LoadWith(name, []byte(text), Options{Now: testNow})
		if f == nil {
			continue
		}
		accepted++
		if ps := schemaProblems(t, text); len(ps) > 0 {
			t.Errorf("%s:\n%s", name, strings.Join(ps, "\n"))
		}
	}
	if accepted < 30 {
		t.Errorf("only %d files", accepted)
	}
}

// TestSchemaRefusesMistakes checks that editors find all mistakes that can be found without knowing the names of
// crawlers.
func TestSchemaRefusesMistakes(t *testing.T) {
	const rule = "version: 1\nrules:\n  - for: everyone\n    "
	for _, text := range []string{
		"rules: []",
		"version: 2",
		"version: 1\nrule: []",
		rule + "dissallow: {crawl: /}",
		rule + "disallow: {crawll: /}",
		rule + "disallow: /a",
		rule + "disallow: {index: {paths: /, time-limit: 3-days}}",
		rule + "allow: {other: /}",
		rule + "allow: {index: {time-limit: 3-days}}",
		rule + "enforce: on",
		rule + "crawl-delay: 0",
		rule + "crawl-delay: soon",
		rule + "intended: maybe",
		rule + "identity: sure",
		"version: 1\nrules:\n  - disallow: {crawl: /}",
		"version: 1\npublish: {acap: yes}",
		"version: 1\npublish: {license: /x}",
		"version: 1\nenforcement: {status: 200}",
		"version: 1\nresources: {my set: /a}",
		"version: 1\nusages: {a: {usage: nothing}}",
		"version: 1\ncrawlers: {A: {category: feeds}}",
		"version: 1\nsitemaps: sitemap.xml",
	} {
		if ps := schemaProblems(t, text); len(ps) == 0 {
			t.Errorf("accepted:\n%s", text)
		}
	}
}

// TestSchemaDescribes checks that every key has a description for editors.
func TestSchemaDescribes(t *testing.T) {
	var walk func(at string, v any)
	walk = func(at string, v any) {
		m, ok := v.(map[string]any)
		if !ok {
			if list, ok := v.([]any); ok {
				for _, x := range list {
					walk(at, x)
				}
			}
			return
		}
		properties, _ := m["properties"].(map[string]any)
		for name, p := range properties {
			if p.(map[string]any)["description"] == nil || p.(map[string]any)["description"] == "" {
				t.Errorf("%s.%s has no description", at, name)
			}
		}
		for k, x := range m {
			walk(at+"."+k, x)
		}
	}
	var schema any
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	walk("file", schema)
}
