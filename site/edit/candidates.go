// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// candidates returns the texts that result from different edits. Each edit may be enough to make the choice.
func (e *editor) candidates(text string) (all []string) {
	add := func(text string, ok bool) {
		if ok && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	d, ok := parse(text)
	if !ok {
		return nil
	}
	switch e.choice.Do {
	case Slow:
		e.limits(d, add)
		return all
	case Snippet:
		e.snippets(d, add)
		return all
	case Allow, Ask, Refuse:
	}
	opposite := "allow"
	if e.choice.Do == Allow {
		opposite = "disallow"
	}
	bases := []string{text}
	for _, without := range e.without(d, opposite) {
		add(without, true)
		bases = append(bases, without)
	}
	for _, base := range bases {
		e.closings(base, add)
	}
	return all
}

// usage returns the key of the chosen usage.
func (e *editor) usage() string { return e.choice.Usage.String() }

func (e *editor) verb() string {
	if e.choice.Do == Allow {
		return "allow"
	}
	return "disallow"
}

// mode returns the value of the key "enforce" that the choice needs in a new rule, or "".
func (e *editor) mode() string {
	if e.choice.Usage != policy.Crawl {
		return "" // a choice about another usage than crawling does not block requests
	}
	byDefault := max(e.before.File.Spec.Enforcement.Mode, policy.ModeOff)
	switch {
	case e.choice.Do == Refuse && byDefault != policy.ModeBlock:
		return policy.ModeBlock.String()
	case e.choice.Do == Ask && byDefault == policy.ModeBlock:
		return policy.ModeOff.String()
	}
	return ""
}

// rule returns a new rule that makes the choice.
func (e *editor) rule() []pair {
	pairs := []pair{{key: "for", value: value(e.choice.Who.String())}}
	if e.choice.Host != "" {
		pairs = append(pairs, pair{key: "hosts", value: value(string(e.choice.Host))})
	}
	switch e.choice.Do {
	case Slow:
		pairs = append(pairs, pair{key: "limit", value: e.choice.Rate})
	case Snippet:
		pairs = append(pairs, pair{key: "robots-tag", value: e.tag()})
	case Allow, Ask, Refuse:
		pairs = append(pairs, pair{key: e.verb(), pairs: []pair{{key: e.usage(), value: value(e.choice.Path.String())}}})
		if mode := e.mode(); mode != "" {
			pairs = append(pairs, pair{key: "enforce", value: mode})
		}
	}
	if e.intended != nil {
		pairs = append(pairs, pair{key: "intended", value: "[" + strings.Join(e.intended, ", ") + "]"})
	}
	return pairs
}

// exact yields the rules that apply to exactly the chosen crawlers and host, and have no other condition.
func (e *editor) exact(d *document, yield func(rule *yaml.Node)) {
	_, rules := child(d.root, "rules")
	for _, r := range items(rules) {
		_, who := child(r, "for")
		_, hosts := child(r, "hosts")
		on := items(hosts)
		sameHost := e.choice.Host == "" && len(on) == 0 || len(on) == 1 && on[0].Value == string(e.choice.Host)
		conditional := slices.ContainsFunc([]string{"identity", "usage-purposes", "permissions-reference"}, func(key string) bool {
			k, _ := child(r, key)
			return k != nil
		})
		if all := items(who); len(all) == 1 && isFor(all[0], e.choice.Who) && sameHost && !conditional {
			yield(r)
		}
	}
}

// closings tries each place where the chosen entry can be added, and calls add with each resulting text.
func (e *editor) closings(text string, add func(string, bool)) {
	d, ok := parse(text)
	if !ok {
		return
	}
	path := value(e.choice.Path.String())
	e.exact(d, func(r *yaml.Node) {
		_, verb := child(r, e.verb())
		_, crawl := child(verb, e.usage())
		_, enforce := child(r, "enforce")
		rightMode := e.choice.Do == Allow || e.choice.Usage != policy.Crawl || enforce == nil && e.mode() == "" || enforce != nil && enforce.Value == e.mode()
		closes := slices.ContainsFunc(items(crawl), func(n *yaml.Node) bool { return same(n, e.choice.Path) })
		switch {
		case closes && !rightMode && len(items(crawl)) == 1:
			mode := policy.ModeOff
			if e.choice.Do == Refuse {
				mode = policy.ModeBlock
			}
			add(e.waive(d.set(r, "enforce", mode.String())))
		case closes || !rightMode:
		case crawl != nil:
			add(e.waive(d.extend(crawl, path)))
		case verb != nil:
			add(e.waive(d.add(verb, pair{key: e.usage(), value: path})))
		default:
			add(e.waive(d.add(r, pair{key: e.verb(), pairs: []pair{{key: e.usage(), value: path}}})))
		}
	})
	add(d.append(e.rule()))
}

// waive is called with the result of an edit of an existing rule, and returns it with ok = false if the edit must not
// be used. This is the case if the choice needs the key "intended", because it fails a safety check. The key applies to
// a whole rule, so the choice must be in a new rule.
func (e *editor) waive(text string, ok bool) (string, bool) { return text, ok && e.intended == nil }

// without looks for entries that state the opposite of the choice, for the same path and crawlers. For each such entry,
// it returns the text of the file without this entry. verb is the key of such entries: "allow" or "disallow".
func (e *editor) without(d *document, verb string) (all []string) {
	add := func(text string, ok bool) {
		if ok {
			all = append(all, text)
		}
	}
	_, rules := child(d.root, "rules")
	e.exact(d, func(r *yaml.Node) {
		_, statements := child(r, verb)
		_, crawl := child(statements, e.usage())
		i := slices.IndexFunc(items(crawl), func(n *yaml.Node) bool { return same(n, e.choice.Path) })
		switch {
		case i < 0:
		case len(items(crawl)) > 1:
			add(d.remove(crawl, i, 1))
		case len(statements.Content) > 2:
			add(d.remove(statements, keyAt(statements, e.usage()), 2))
		case says(r) > 1:
			add(d.remove(r, keyAt(r, verb), 2))
		case len(rules.Content) > 1:
			add(d.remove(rules, slices.Index(rules.Content, r), 1))
		default:
			add(d.remove(d.root, keyAt(d.root, "rules"), 2))
		}
	})
	for _, r := range items(rules) {
		_, who := child(r, "for")
		_, statements := child(r, verb)
		_, crawl := child(statements, e.usage())
		i := slices.IndexFunc(items(who), func(n *yaml.Node) bool { return isFor(n, e.choice.Who) })
		if i >= 0 && len(items(who)) > 1 && len(items(crawl)) == 1 && same(items(crawl)[0], e.choice.Path) {
			add(d.remove(who, i, 1))
		}
	}
	return all
}

func keyAt(n *yaml.Node, key string) int {
	k, _ := child(n, key)
	return slices.Index(n.Content, k)
}

// says returns the number of keys in a rule that decide something. It does not count keys that only restrict or
// describe the rule.
func says(r *yaml.Node) (n int) {
	for i := 0; i+1 < len(r.Content); i += 2 {
		switch r.Content[i].Value {
		case "name", "for", "hosts", "enforce", "intended":
		default:
			n++
		}
	}
	return n
}

// limits calls add with the text after each edit that sets a rate limit.
func (e *editor) limits(d *document, add func(string, bool)) {
	_, rules := child(d.root, "rules")
	e.exact(d, func(r *yaml.Node) {
		if _, limit := child(r, "limit"); limit != nil {
			switch none := e.choice.Rate == "none"; {
			case none && says(r) > 1:
				add(d.remove(r, keyAt(r, "limit"), 2))
			case none && len(rules.Content) > 1:
				add(d.remove(rules, slices.Index(rules.Content, r), 1))
			}
			add(e.waive(d.set(r, "limit", e.choice.Rate)))
			return
		}
		add(e.waive(d.add(r, pair{key: "limit", value: e.choice.Rate})))
	})
	add(d.append(e.rule()))
}

const maxSnippet = "max-snippet"

// snippet returns the rule for search engines that sets the chosen length of snippets, such as "max-snippet:160".
func (e *editor) snippet() string {
	if e.choice.Rate == "none" {
		return maxSnippet + ":-1"
	}
	return maxSnippet + ":" + e.choice.Rate
}

// tag returns an entry of "robots-tag" with the rule that snippet returns.
func (e *editor) tag() string {
	if e.choice.Path.String() == "/" {
		return value(e.snippet())
	}
	return flow([]pair{{key: "paths", value: value(e.choice.Path.String())}, {key: "rules", value: value(e.snippet())}})
}

// snippets calls add with the text after each edit that sets the length of a snippet.
func (e *editor) snippets(d *document, add func(string, bool)) {
	e.exact(d, func(r *yaml.Node) {
		_, tags := child(r, "robots-tag")
		if tags == nil {
			add(e.waive(d.add(r, pair{key: "robots-tag", value: e.tag()})))
			return
		}
		replaced := false
		for _, item := range items(tags) {
			rules, here := item, e.choice.Path.String() == "/"
			if item.Kind == yaml.MappingNode {
				_, rules = child(item, "rules")
				if _, paths := child(item, "paths"); paths != nil {
					here = len(items(paths)) == 1 && same(items(paths)[0], e.choice.Path)
				}
			}
			if here && rules != nil && strings.HasPrefix(rules.Value, maxSnippet) && !strings.Contains(rules.Value, ",") {
				add(d.put(rules, value(e.snippet())))
				replaced = true
			}
		}
		if !replaced { // otherwise two lengths would apply to the same path
			add(e.waive(d.extend(tags, e.tag())))
		}
	})
	add(d.append(e.rule()))
}
