// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

func readFor(p *parser, _, n *yaml.Node, r *ruleReader) {
	if n.Kind == yaml.SequenceNode {
		r.rule.For = make([]policy.Audience, 0, len(n.Content))
		r.source.audiences = make([]policy.Pos, 0, len(n.Content))
	}
	seen := map[policy.Audience]bool{}
	p.texts(n, "for", func(n *yaml.Node, text string) {
		a, ok := p.audience(n, text)
		if !ok {
			return
		}
		key := policy.Audience{Kind: a.Kind, Name: strings.ToLower(a.Name)}
		if seen[key] {
			p.report(posOf(n), "listed-twice", "", "%s stands in this list already; delete it here", quote(text))
			return
		}
		seen[key] = true
		r.rule.For = append(r.rule.For, a)
		r.source.audiences = append(r.source.audiences, posOf(n))
	})
}

// audience reads one name under for.
func (p *parser) audience(n *yaml.Node, text string) (policy.Audience, bool) {
	text = strings.TrimSpace(text)
	a := policy.ParseAudience(text)
	switch a.Kind {
	case policy.ForToken:
		return a, p.token(n, text)
	case policy.ForCategory:
		if !crawlers.Kind(strings.ToLower(a.Name)).Valid() {
			p.report(posOf(n), "unknown-category", prefixed("category:", nearest(a.Name, kindNames())), "there is no category %s; there are %s", quote(a.Name), list(kindNames(), "and"))
			return a, false
		}
		a.Name = strings.ToLower(a.Name)
	case policy.ForOperator:
		if a.Name == "" {
			p.report(posOf(n), "bad-audience", "", `write the name of the operator after "operator:"`)
			return a, false
		}
		if !p.known().operator(a.Name) {
			near := prefixed("operator:", nearest(a.Name, p.catalogue.Operators()))
			p.report(posOf(n), "unknown-operator", near, "no crawler of the operator %s is known, so this speaks to nobody; name its crawlers, or add them under crawlers", quote(a.Name))
		}
	case policy.ForPurpose:
		if !crawlers.ValidToken(a.Name) {
			p.report(posOf(n), "bad-audience", "", "a purpose is a word of letters, hyphens and underscores, and this is %s", quote(a.Name))
			return a, false
		}
	}
	return a, true
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

func kindNames() []string {
	var names []string
	for _, k := range crawlers.Kinds() {
		names = append(names, string(k))
	}
	return names
}

// token checks a name that must be a crawler's product token.
func (p *parser) token(n *yaml.Node, text string) bool {
	if strings.ContainsAny(text, "()") || strings.HasPrefix(text, "Mozilla/") {
		p.report(posOf(n), "bad-audience", p.tokenWithin(text), "this is the whole User-Agent of a client; write only the name that stands for the crawler in robots.txt, such as Googlebot")
		return false
	}
	if i := strings.IndexByte(text, ':'); i >= 0 {
		prefixes := []string{"category", "operator", "purpose"}
		near := prefixed(nearest(text[:i], prefixes), text[i:])
		if near == text[i:] {
			near = ""
		}
		if crawlers.Kind(strings.ToLower(text[i+1:])).Valid() {
			near = "category:" + strings.ToLower(text[i+1:])
		}
		p.report(posOf(n), "bad-audience", near, `before a colon under for stands category, operator or purpose, and this is %s`, quote(text[:i]))
		return false
	}
	if strings.Contains(text, ",") {
		p.report(posOf(n), "bad-audience", "["+text+"]", "several names are written as a list in brackets, or one a line with a hyphen before each")
		return false
	}
	if _, ok := p.catalogue.Lookup(text); !ok {
		if near, what := p.known().group(text); near != "" {
			p.report(posOf(n), "bad-audience", near, "%s is %s and no crawler's name, so the rule would speak to nobody; if a crawler is called that, add it under crawlers", quote(text), what)
			return false
		}
	}
	if strings.ContainsAny(text, "#;\"'*$<>[]{}=?@\\`|~!%&^") || strings.ContainsFunc(text, func(c rune) bool { return c > unicode.MaxASCII }) || crawlers.CheckPattern(text) != nil {
		p.report(posOf(n), "bad-audience", "", "%s cannot be a crawler's name in robots.txt: such a name has letters, hyphens and underscores", quote(text))
		return false
	}
	p.checkToken(n, text)
	return true
}

// checkToken warns of tokens that are probably not what the author means.
func (p *parser) checkToken(n *yaml.Node, text string) {
	if _, ok := p.catalogue.Lookup(text); !ok {
		if tokens := productWords[squash(text)]; tokens != nil {
			near := tokens[0]
			if len(tokens) > 1 {
				near = "[" + strings.Join(tokens, ", ") + "]"
			}
			p.report(posOf(n), "unknown-crawler", near, "%s is the name of a product and of no known crawler, so this probably speaks to nobody; name the crawlers that are meant", quote(text))
			return
		}
		if near := p.known().meant(text); near != "" {
			p.report(posOf(n), "misspelt-crawler", near, "no crawler called %s is known; if it exists, add it under crawlers", quote(text))
			return
		}
		if crawlers.NamesBrowser(text) {
			p.report(posOf(n), "unknown-crawler", "", "%s is in the User-Agent of browsers, so that nobody is refused under this name and the rule stands in robots.txt only; find the name that only the crawler has", quote(text))
			return
		}
		p.report(posOf(n), "unknown-crawler", "", "no crawler called %s is known; if the name is right, add it under crawlers", quote(text))
	}
	if !crawlers.ValidToken(text) {
		reads := "nothing"
		if short := crawlers.ReadAs(text); short != "" {
			reads = quote(short)
		}
		p.report(posOf(n), "token-not-allowed", "", "RFC 9309 allows only letters, hyphens and underscores in a crawler's name; readers that follow it, Google's among them, read %s instead of %s, and others read all of it; enforce the rule if it matters", reads, quote(text))
	}
}

// tokenWithin finds a crawler of the catalogue in a User-Agent.
func (p *parser) tokenWithin(ua string) string {
	i, ok := crawlers.NewRecognizer(p.catalogue.Patterns()).Recognize(ua)
	if !ok {
		return ""
	}
	return p.catalogue.At(i).Token
}
