// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// Setting is a change in the value of a key in the policy file. Diff.Settings has the changes that Diff.Changes does
// not show completely. If both values are lists, Old and New only hold the items that the other list lacks.
type Setting struct {
	Key string `json:"key"` // such as enforcement.status or rules[GPTBot].intended
	Old string `json:"old"` // "" if the key was missing
	New string `json:"new"`
}

// maxValue is the maximum number of characters of a value in a sentence.
const maxValue = 200

// String returns the setting with both values, as in "enforcement.status: 403 → 410".
func (s *Setting) String() string {
	short := func(value string) string {
		if value = english.OneLine(value); value == "" {
			return noValue
		}
		if runes := []rune(value); len(runes) > maxValue {
			return string(runes[:maxValue]) + "…"
		}
		return value
	}
	return s.Key + ": " + short(s.Old) + " → " + short(s.New)
}

// maxRendered limits how many hosts' robots.txt are compared.
const maxRendered = 50

// rendersDifferently reports whether the robots.txt of any host differs. It does not render equal policies.
func (d *Diff) rendersDifferently(old, now *site.Site, hosts []policy.Host) bool {
	if d.Empty() && bytes.Equal(old.File.Print(), now.File.Print()) {
		return false
	}
	return slices.ContainsFunc(hosts[max(0, len(hosts)-maxRendered):], func(h policy.Host) bool {
		a, _ := old.Robots.Text(nameOf(h))
		b, _ := now.Robots.Text(nameOf(h))
		return a != b
	})
}

// settingsOf compares all keys of policy files, except the keys that allow or disallow something.
func settingsOf(old, now *policyfile.File) (all []Setting) {
	all = differing("", old.Keys(), now.Keys())
	all = append(all, ofRules(old.RuleKeys(), now.RuleKeys())...)
	return append(all, ofCrawlers(old, now)...)
}

// differing lists the keys whose values differ.
func differing(prefix string, old, now policyfile.Keys) (all []Setting) {
	for _, key := range union(sortedKeys(old), sortedKeys(now)) {
		a, b := old[key], now[key]
		if slices.Equal(a, b) {
			continue
		}
		if gone, added := without(a, b), without(b, a); len(gone)+len(added) > 0 { // else only the order differs
			a, b = gone, added
		}
		all = append(all, Setting{prefix + key, strings.Join(a, ", "), strings.Join(b, ", ")})
	}
	return all
}

// without returns the elements of a that are not in b. If an element occurs more often in a than in b, the extra
// occurrences are returned.
func without(a, b []string) (left []string) {
	count := map[string]int{}
	for _, v := range b {
		count[v]++
	}
	for _, v := range a {
		if count[v]--; count[v] < 0 {
			left = append(left, v)
		}
	}
	return left
}

// ofRules compares the keys of each old rule with the keys of the new rule that replaces it. This is a new rule with
// the same Scope, which means that it has the same audiences, hosts and conditions. If several new rules have this
// Scope, ofRules prefers one that also has the same decisions.
func ofRules(old, now []policyfile.RuleKeys) (all []Setting) {
	type identity struct{ scope, decides string }
	successors := func(of func(*policyfile.RuleKeys) identity) {
		at := map[identity][]int{}
		for i := range now {
			at[of(&now[i])] = append(at[of(&now[i])], i)
		}
		left := old[:0:0]
		taken := map[int]bool{}
		for i := range old {
			key := of(&old[i])
			if len(at[key]) == 0 {
				left = append(left, old[i])
				continue
			}
			n := at[key][0]
			at[key], taken[n] = at[key][1:], true
			all = append(all, differing("rules["+key.scope+"].", old[i].Keys, now[n].Keys)...)
		}
		rest := now[:0:0]
		for i := range now {
			if !taken[i] {
				rest = append(rest, now[i])
			}
		}
		old, now = left, rest
	}
	successors(func(r *policyfile.RuleKeys) identity { return identity{r.Scope, r.Decides} })
	successors(func(r *policyfile.RuleKeys) identity { return identity{scope: r.Scope} })
	for i := range old {
		all = append(all, differing("rules["+old[i].Scope+"].", old[i].Keys, nil)...)
	}
	for i := range now {
		all = append(all, differing("rules["+now[i].Scope+"].", nil, now[i].Keys)...)
	}
	return all
}

// remarks holds the fields of a crawler that are only for people, so a change of them is not a Setting.
var remarks = []string{"docs", "note", "as-of", "examples"}

// ofCrawlers compares the facts about each crawler in both files.
func ofCrawlers(old, now *policyfile.File) (all []Setting) {
	a, b := tableOf(old), tableOf(now)
	for _, token := range union(sortedKeys(a), sortedKeys(b)) {
		x, y := a[token], b[token]
		if x.entry == y.entry && x.known == y.known || reflect.DeepEqual(x, y) {
			continue
		}
		prefix := "crawlers." + token
		switch {
		case x.entry == nil && y.entry != nil:
			all = append(all, Setting{prefix, "", y.String()})
		case x.entry != nil && y.entry == nil:
			all = append(all, Setting{prefix, x.String(), ""})
		default:
			found := differing(prefix+".", x.keys(), y.keys())
			if len(found) == 0 && !reflect.DeepEqual(x.known, y.known) {
				found = []Setting{{prefix, x.derived(), y.derived()}}
			}
			all = append(all, found...)
		}
	}
	return all
}

// crawler holds the facts of the catalog and of the policy about one crawler.
type crawler struct {
	entry *crawlers.Crawler
	known *policy.Crawler
}

func tableOf(f *policyfile.File) map[string]crawler {
	all := map[string]crawler{}
	for _, c := range f.Catalog.All() {
		all[c.Token] = crawler{entry: c}
	}
	for i := range f.Spec.Crawlers {
		c := &f.Spec.Crawlers[i]
		x := all[c.Token]
		x.known = c
		all[c.Token] = x
	}
	return all
}

func (c crawler) keys() policyfile.Keys {
	text, err := json.Marshal(c.entry)
	var fields map[string]any
	if err != nil || json.Unmarshal(text, &fields) != nil {
		panic(fmt.Sprintf("compare: a crawler cannot be written as JSON: %v", err))
	}
	keys := policyfile.Keys{}
	add := func(at string, value any) {
		if text := fmt.Sprint(value); text != "false" {
			keys[at] = append(keys[at], text)
		}
	}
	for name, field := range fields {
		key := strings.ReplaceAll(name, "_", "-")
		if slices.Contains(remarks, key) {
			continue
		}
		switch field := field.(type) {
		case []any:
			for _, v := range field {
				add(key, v)
			}
		case map[string]any:
			for name, v := range field {
				add(strings.ReplaceAll(name, "_", "-"), v)
			}
		default:
			add(key, field)
		}
	}
	if c.known != nil {
		keys["intended"] = c.known.IntendedChecks
		if x := c.known.Control; x != nil {
			keys["control"] = []string{fmt.Sprintf("%s for %v", x.Rules.Meta(), x.Takes)}
		}
	}
	return keys
}

// derived returns all facts that the policy has about the crawler, except its control. It is used to find differences
// that the method keys does not show.
func (c crawler) derived() string {
	known := *c.known
	known.Control = nil
	return fmt.Sprintf("%+v", known)
}

// String returns the facts in one line.
func (c crawler) String() string {
	keys := c.keys()
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if text := strings.Join(keys[key], " "); text != "" && key != "token" {
			parts = append(parts, key+" "+text)
		}
	}
	return strings.Join(parts, ", ")
}
