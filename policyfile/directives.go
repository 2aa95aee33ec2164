// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"strings"

	"github.com/dunglas/httpsfv"
	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/channels"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile/lint"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

type directive struct {
	paths []resource
	texts []*yaml.Node
}

var (
	pathsKey = key("paths", "a path, the name of a set, or a list of them; the default is all paths", oneOrMore(pathShape),
		func(p *parser, n *yaml.Node, d *directive) { d.paths = p.resources(n, "paths") }, nil)
	tagFields = fields[*directive]{pathsKey, directivesKey("rules", "values that search engines document for robots meta tags, such as max-image-preview:large and notranslate")}
	appFields = fields[*directive]{pathsKey, directivesKey("directives", "application names with directives, such as examplesearch;widgets=?0")}
)

func directivesKey(name, about string) field[*directive] {
	return key(name, about, oneOrMore(textShape(about, "")), func(p *parser, n *yaml.Node, d *directive) {
		p.texts(n, name, func(n *yaml.Node, _ string) { d.texts = append(d.texts, n) })
	}, nil).must()
}

func (p *parser) eachDirective(n *yaml.Node, key string, fs fields[*directive], visit func(n *yaml.Node, patterns []pathpattern.Pattern)) {
	all := []pathpattern.Pattern{pathpattern.All}
	p.eachItem(n, key, func(item *yaml.Node) {
		if item.Kind == yaml.MappingNode && len(item.Content) == 2 && isPath(item.Content[0].Value) {
			in := map[string]string{"robots-tag": "rules", "app-directives": "directives"}[key]
			p.report(posOf(item), "wrong-type", "", `to give %s a path, write "%s: [{paths: %s, %s: %s}]"`, key, key, lint.AsWritten(item.Content[0].Value), in, lint.AsWritten(item.Content[1].Value))
			return
		}
		if item.Kind != yaml.MappingNode || len(item.Content) == 2 && fs.index(item.Content[0]) < 0 {
			if _, ok := p.text(item, key); ok {
				visit(item, all)
			}
			return
		}
		var d directive
		errors := p.errors
		readMap(p, item, "an entry of "+key, fs, &d)
		if p.errors > errors {
			return
		}
		patterns := all
		if len(d.paths) > 0 {
			patterns = nil
			for _, r := range d.paths {
				patterns = append(patterns, r.patterns...)
			}
		}
		for _, text := range d.texts {
			visit(text, patterns)
		}
	})
}

func readRobotsTag(p *parser, n *yaml.Node, r *ruleReader) {
	p.eachDirective(n, "robots-tag", tagFields, func(n *yaml.Node, patterns []pathpattern.Pattern) {
		set, err := robotsrule.ParseStrict(n.Value)
		if err != nil {
			if channels.Words().Has(strings.ToLower(strings.TrimSpace(n.Value))) {
				p.report(posOf(n), "bad-robots-tag", "", `no search engine documents %s; disallow train-ai for everyone, and write "noai: on" under publish`, quote(n.Value))
				return
			}
			p.report(posOf(n), "bad-robots-tag", "", "%s", err)
			return
		}
		p.hasUsage(n, set)
		rules := engineRules(set)
		if !p.fits(posOf(n), len(patterns)*len(rules)) {
			return
		}
		for _, pattern := range patterns {
			for _, rule := range rules {
				rule.Pos, rule.Pattern = posOf(n), pattern
				r.rule.EngineRules = append(r.rule.EngineRules, rule)
			}
		}
	})
}

// engineRules groups rules by their names. It keeps noindex and its exception indexifembedded together.
func engineRules(set robotsrule.Set) (rules []policy.EngineRule) {
	for text := range strings.SplitSeq(set.String(), ", ") {
		name, _, _ := strings.Cut(text, ":")
		one := robotsrule.Parse(text)
		if name == "indexifembedded" {
			continue
		}
		if name == "noindex" && set.Has("indexifembedded") {
			one = robotsrule.Parse("noindex, indexifembedded")
		}
		rules = append(rules, policy.EngineRule{Name: name, Rule: one})
	}
	return rules
}

func (p *parser) hasUsage(n *yaml.Node, set robotsrule.Set) {
	if set.Has("indexifembedded") {
		return
	}
	var rules, usages []string
	for _, same := range []struct{ rule, usage string }{
		{"noindex", "index"}, {"nofollow", "follow"}, {"nosnippet", "present-snippet"}, {"noarchive", "preserve"},
	} {
		if set.Has(same.rule) {
			rules, usages = append(rules, same.rule), append(usages, same.usage)
		}
	}
	if len(rules) > 0 {
		p.report(posOf(n), "has-a-usage", "", "disallow %s instead of writing %s. Then other channels can publish the restriction, too, and you can write a rule that allows the usage for some crawlers", english.List(usages, "and"), english.List(rules, "and"))
	}
}

func readAppDirectives(p *parser, n *yaml.Node, r *ruleReader) {
	seen := map[string]policy.Pos{}
	p.eachDirective(n, "app-directives", appFields, func(n *yaml.Node, patterns []pathpattern.Pattern) {
		items, ok := p.appItems(n)
		if !ok || !p.fits(posOf(n), len(patterns)*len(items)) {
			return
		}
		for _, pattern := range patterns {
			for _, item := range items {
				app := item.app
				key := app + " " + pattern.String()
				if first, ok := seen[key]; ok {
					p.report(posOf(n), "duplicate-app-directive", "", "%s already has directives for %s in line %d, which override the ones in this line; put all of them in one entry", quote(app), quote(pattern.String()), first.Line)
					continue
				}
				seen[key] = posOf(n)
				r.rule.AppDirectives = append(r.rule.AppDirectives, policy.AppDirective{Pos: posOf(n), Pattern: pattern, App: app, Text: item.text})
			}
		}
	})
}

type appItem struct{ app, text string }

// appItems parses the members of an App-Directives List (draft-nottingham-plan-b).
func (p *parser) appItems(n *yaml.Node) (items []appItem, ok bool) {
	const example = "such as examplesearch;widgets=?0"
	bad := func(format string, args ...any) ([]appItem, bool) {
		return nil, p.refuse(n, "bad-app-directive", "", format, args...)
	}
	if strings.Contains(n.Value, "#") {
		return bad(`"#" starts a comment in robots.txt, so crawlers would not read the rest of the directives; find out whether the application accepts them without "#"`)
	}
	list, err := httpsfv.UnmarshalList([]string{n.Value})
	if err != nil || len(list) == 0 {
		return bad("invalid app-directives %s: must be names of applications with directives, %s; write names in lower case, texts in double quotes, ?1 for yes and ?0 for no", quote(n.Value), example)
	}
	for _, member := range list {
		item, isItem := member.(httpsfv.Item)
		if !isItem {
			return bad("parentheses are not allowed here; write each application with its own directives, %s", example)
		}
		token, isToken := item.Value.(httpsfv.Token)
		if !isToken {
			return bad("the name of an application must be a plain word without quotes, like examplesearch in examplesearch;widgets=?0")
		}
		text, err := httpsfv.Marshal(item)
		if err != nil {
			return bad("%s cannot be written in a robots.txt: %v", quote(n.Value), err)
		}
		items = append(items, appItem{string(token), text})
	}
	return items, true
}
