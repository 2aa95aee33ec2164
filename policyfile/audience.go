// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

func readFor(p *parser, n *yaml.Node, r *ruleReader) {
	if n.Kind == yaml.SequenceNode {
		r.rule.For = make([]policy.Audience, 0, len(n.Content))
		r.source.Audiences = make([]policy.Pos, 0, len(n.Content))
	}
	seen := map[policy.Audience]bool{}
	p.texts(n, "for", func(n *yaml.Node, text string) {
		a, ok := p.audience(n, text)
		if !ok {
			return
		}
		key := policy.Audience{Kind: a.Kind, Name: strings.ToLower(a.Name)}
		if seen[key] {
			p.report(posOf(n), "listed-twice", "", "%s is already in this list; delete this entry", quote(text))
			return
		}
		seen[key] = true
		if a.Kind == policy.ForToken {
			p.ruleTokens[key.Name] = true
		}
		r.rule.For = append(r.rule.For, a)
		r.source.Audiences = append(r.source.Audiences, posOf(n))
	})
}

func (p *parser) audience(n *yaml.Node, text string) (policy.Audience, bool) {
	text = strings.TrimSpace(text)
	a := policy.ParseAudience(text)
	switch a.Kind {
	case policy.ForToken:
		if crawlers.IsSigner(a.Name) {
			if err := crawlers.CheckSigner(a.Name); err != nil {
				return a, p.refuse(n, "bad-audience", "", "%s", err)
			}
			a.Name = strings.ToLower(a.Name)
			return a, true
		}
		return a, p.token(n, a.Name)
	case policy.ForCategory:
		if !crawlers.Category(strings.ToLower(a.Name)).Valid() {
			unknown, near := "unknown category "+quote(a.Name), Nearest(a.Name, categoryNames())
			if tokens := productWords[squash(a.Name)]; tokens != nil {
				p.reportAdvice(posOf(n), "unknown-category", tokens[0], unknown, "name the crawlers that you mean, such as "+english.List(tokens, "or"))
			} else if audience, what := p.known().group(a.Name); audience != "" && near == "" {
				p.reportAdvice(posOf(n), "unknown-category", audience, unknown, what)
			} else {
				p.reportChoice(posOf(n), "unknown-category", prefixed("category:", near), unknown, categoryNames())
			}
			return a, false
		}
		a.Name = strings.ToLower(a.Name)
	case policy.ForOperator:
		if a.Name == "" {
			return a, p.refuse(n, "bad-audience", "", `write the name of the operator after "operator:"`)
		}
		if !p.known().operator(a.Name) {
			near := prefixed("operator:", Nearest(a.Name, p.catalog.Operators()))
			p.report(posOf(n), "unknown-operator", near, "no crawler of the operator %s is known, so the rule has no effect; name the operator's crawlers, or list them under \"crawlers\"", quote(a.Name))
		}
	case policy.ForPurpose:
		if !policy.IsPurpose(a.Name) {
			return a, p.refuse(n, "bad-audience", "", "invalid purpose %s: write a letter, then letters, digits, hyphens, underscores and dots", quote(a.Name))
		}
	case policy.ForEveryone, policy.ForEveryoneElse, policy.ForAI:
	}
	return a, true
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

func kindNames() []string { return plainTexts(crawlers.Categories()) }

// categoryNames returns the words that may follow "category:".
func categoryNames() []string { return append(kindNames(), string(crawlers.CategoryAI)) }

// token checks a name that must be the product token of a crawler.
func (p *parser) token(n *yaml.Node, text string) bool {
	if _, ok := p.catalog.Lookup(text); !ok && !p.otherToken(n, text) {
		return false
	}
	p.checkToken(n, text)
	return true
}

// otherToken checks the name of a crawler that is not in the catalog, and reports whether the name is valid.
func (p *parser) otherToken(n *yaml.Node, text string) bool {
	if strings.ContainsAny(text, "()") || strings.HasPrefix(text, "Mozilla/") {
		return p.refuse(n, "bad-audience", p.tokenWithin(text), "this is a whole User-Agent; write only the name that the crawler has in robots.txt, such as Googlebot")
	}
	if i := strings.IndexByte(text, ':'); i >= 0 {
		prefixes := []string{"category", "operator", "purpose", "signed", "crawler"}
		near := prefixed(Nearest(text[:i], prefixes), text[i:])
		if near == text[i:] {
			near = ""
		}
		if crawlers.Category(strings.ToLower(text[i+1:])).Valid() {
			near = "category:" + strings.ToLower(text[i+1:])
		}
		p.reportChoice(posOf(n), "bad-audience", near, "invalid word before the colon, "+quote(text[:i]), prefixes)
		return false
	}
	if strings.Contains(text, ",") {
		return p.refuse(n, "bad-audience", "", "to write several names, put them into a list in brackets, or put each name on its own line after a hyphen")
	}
	if near, what := p.known().group(text); near != "" {
		if bot := p.known().crawlerOf(text); bot != "" && strings.HasPrefix(near, "operator:") {
			near = bot
		}
		return p.refuse(n, "bad-audience", near, "invalid name %s: %s; if this is really the name of a crawler, list it under \"crawlers\"", quote(text), what)
	}
	if strings.ContainsAny(text, "#;\"'*$<>[]{}=?@\\`|~!%&^") || strings.ContainsFunc(text, func(c rune) bool { return c > unicode.MaxASCII }) || crawlers.CheckPattern(text) != nil {
		if name, except := strings.CutPrefix(text, "!"); except && crawlers.ValidToken(strings.TrimSpace(name)) {
			return p.refuse(n, "bad-audience", "", "invalid name %s: to allow a crawler, write another rule: %s", quote(text), ownRule(strings.TrimSpace(name)))
		}
		return p.refuse(n, "bad-audience", "", "invalid name %s: the name of a crawler in robots.txt has only the letters A to Z (also in lower case), hyphens and underscores", quote(text))
	}
	return true
}

// checkToken warns about tokens that the author probably did not mean.
func (p *parser) checkToken(n *yaml.Node, text string) {
	if c, ok := p.catalog.Lookup(text); ok {
		if first, _, spaced := strings.Cut(c.Token, " "); spaced {
			p.report(posOf(n), "name-with-space", "", "RFC 9309 does not allow spaces in a crawler's name. The crawler itself finds its group in robots.txt, but strict robots.txt parsers see the name %s instead of %s. To enforce the rule in any case, write \"enforce: block\" in the rule", quote(first), quote(c.Token))
		}
		return
	}
	if tokens := productWords[squash(text)]; tokens != nil {
		p.checkProduct(n, text, tokens)
		return
	}
	if near := p.known().meant(text); near != "" {
		p.misspellings = append(p.misspellings, misspelling{n, text, near, len(p.spec.Rules) - 1})
		return
	}
	if crawlers.NamesBrowser(text) {
		p.report(posOf(n), UnknownCrawler, "", "browsers also have %s in their User-Agent, so the rule works only in robots.txt, and the server does not enforce it. Find a name that only the crawler has", quote(text))
		return
	}
	p.report(posOf(n), UnknownCrawler, "", "no crawler called %s is known; if the name is right, list it under \"crawlers\"", quote(text))
	if !crawlers.ValidToken(text) { // some operators document names that are not valid tokens
		reads := "nothing"
		if short := crawlers.ReadAs(text); short != "" {
			reads = quote(short)
		}
		p.report(posOf(n), "token-not-allowed", "", "RFC 9309 allows only letters, hyphens and underscores in a crawler's name. Strict robots.txt parsers, such as Google's, see %s instead of %s; if the crawler must not miss the rule, write \"enforce: block\" in the rule", reads, quote(text))
	}
}

func (p *parser) checkProduct(n *yaml.Node, text string, tokens []string) {
	near, instead := "", "the crawlers that you mean"
	if len(tokens) == 1 {
		near, instead = tokens[0], "its crawler instead"
	}
	names := make([]string, len(tokens))
	for i, t := range tokens {
		names[i] = p.withKind(t)
	}
	p.report(posOf(n), UnknownCrawler, near, "%s is a product, not a crawler, so this rule probably has no effect; name %s: %s", quote(text), instead, english.List(names, "or"))
}

func (p *parser) withKind(token string) string {
	if c, ok := p.catalog.Lookup(token); ok {
		return token + " (" + string(c.Category) + ")"
	}
	return token
}

type misspelling struct {
	n          *yaml.Node
	text, near string
	rule       int // the index of its rule in Spec.Rules, or -1
}

// misspelled reports names of crawlers that are probably misspelled. It runs after the whole file has been parsed,
// because a misspelled name is an error if the rule is enforced, and a warning otherwise.
func (p *parser) misspelled() {
	for _, m := range p.misspellings {
		mode := p.spec.Enforcement.Mode
		if m.rule >= 0 && p.spec.Rules[m.rule].Enforce != policy.ModeUnset {
			mode = p.spec.Rules[m.rule].Enforce
		}
		code, effect := "misspelled-crawler", ""
		if mode == policy.ModeBlock && m.rule >= 0 {
			code, effect = "misspelled-crawler-enforced", ", so this rule would not block any crawler"
		}
		p.report(posOf(m.n), code, m.near, "no crawler called %s is known%s; if it exists, list it under \"crawlers\"", quote(m.text), effect)
	}
}

func (p *parser) tokenWithin(ua string) string {
	i, ok := crawlers.NewRecognizer(p.catalog.Patterns()).Recognize(ua)
	if !ok {
		return ""
	}
	return p.catalog.At(i).Token
}
