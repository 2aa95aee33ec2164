// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// readList reads a list of crawlers and returns their User-Agents or names. The list is JSON, YAML or plain text. In
// JSON and YAML, it is an array of strings or objects. In JSON, it can also be an object with names as keys. field is
// the field that has the User-Agent; a.b means the field b of the object a. In plain text, each line has one User-Agent
// or name.
func readList(data []byte, field string) (all []string, err error) {
	var list any
	if text := strings.TrimSpace(string(data)); strings.HasPrefix(text, "[") || strings.HasPrefix(text, "{") {
		if err := json.Unmarshal(data, &list); err != nil {
			return nil, fmt.Errorf("invalid JSON: %w", err)
		}
	} else if yaml.Unmarshal(data, &list) != nil || !isList(list) {
		if field != "" {
			return nil, fmt.Errorf("has no field %s, because the list is neither JSON nor YAML: each line is a User-Agent; leave --field out", field)
		}
		for line := range strings.Lines(string(data)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				all = append(all, line)
			}
		}
		return all, nil
	}
	if named, ok := list.(map[string]any); ok {
		if field == "" {
			return slices.Sorted(maps.Keys(named)), nil
		}
		list = slices.Collect(maps.Values(named))
	}
	if all = texts(list, nil); field != "" {
		all = texts(list, strings.Split(field, "."))
	}
	if entries := list.([]any); len(all) == 0 && len(entries) > 0 {
		object, _ := entries[0].(map[string]any)
		return nil, fmt.Errorf("with --field, give the name of the field that contains the User-Agents; the first entry has these fields: %s", english.List(slices.Sorted(maps.Keys(object)), "and"))
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// isList reports whether v is a list with elements. If it is not, readList reads the list of crawlers as plain text,
// because lines of plain text can be valid YAML, too.
func isList(v any) bool {
	list, ok := v.([]any)
	return ok && len(list) > 0
}

// texts returns the strings that are in v at a path of field names, such as "a" and "b" for the field b of the object
// a. If there is a list on the way, texts examines each of its elements.
func texts(v any, path []string) (all []string) {
	switch v := v.(type) {
	case string:
		if len(path) == 0 && v != "" {
			all = []string{v}
		}
	case []any:
		for _, e := range v {
			all = append(all, texts(e, path)...)
		}
	case map[string]any:
		if len(path) > 0 {
			all = texts(v[path[0]], path[1:])
		}
	}
	return all
}

// comparedList describes the effect of a policy on the crawlers in a list.
type comparedList struct {
	List    string   `json:"list"`
	Entries int      `json:"entries"`
	Closed  []string `json:"may_not_crawl"`
	Open    []string `json:"may_crawl"`
	Unknown []string `json:"unlisted"` // entries that look automated, but are not in the catalog
	Missed  []string `json:"not_recognized"`
}

// compareList determines which crawlers in a list may crawl the front page of a host that rules do not name.
func compareList(name string, entries []string, s *site.Site) *comparedList {
	c := &comparedList{List: name, Entries: len(entries)}
	r := crawlers.NewRecognizer(s.File.Catalog.Patterns())
	for _, e := range entries {
		i, ok := r.Recognize(e)
		if !ok {
			i, ok = s.File.Catalog.Index(e)
		}
		switch _, automated := crawlers.Automated(e); {
		case ok:
			id := s.Policy.Crawler(s.File.Catalog.At(i).Token)
			if s.Policy.Decide(policy.Query{Crawler: id, Path: "/", Usage: policy.Crawl, Now: time.Now()}).Verdict == policy.Disallowed {
				c.Closed = append(c.Closed, e)
			} else {
				c.Open = append(c.Open, e)
			}
		case automated:
			c.Unknown = append(c.Unknown, e)
		default:
			c.Missed = append(c.Missed, e)
		}
	}
	return c
}

func (c *comparedList) writeText(out io.Writer, long bool) error {
	known := len(c.Closed) + len(c.Open)
	var b strings.Builder
	fmt.Fprintf(&b, "compared with the list %s: the catalog has %d of the %s in the list\n", c.List, known, english.Count(c.Entries, "name"))
	for _, part := range []struct {
		name string
		of   []string
	}{{"may not crawl", c.Closed}, {"may crawl", c.Open}, {"unlisted", c.Unknown}, {"not seen", c.Missed}} {
		text, n := english.Count(len(part.of), "name"), 5
		if long {
			n = len(part.of)
		}
		if len(part.of) > 0 {
			text += ": " + english.Some(part.of, n)
		}
		fmt.Fprintf(&b, "  %-14s %s\n", part.name+":", text)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
