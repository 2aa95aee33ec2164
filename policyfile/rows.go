// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"errors"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile/lint"
)

// rowReader is an entry under crawlers while it is read.
type rowReader struct {
	row      crawlers.Row
	places   map[string]policy.Pos // of its fields, by name
	intended []string              // guards
}

var rowFields = fields[*rowReader]{
	{"operator", "who runs the crawler", false, textShape("a name", ""), func(p *parser, _, n *yaml.Node, r *rowReader) {
		r.row.Operator, _ = p.text(n, "operator")
	}},
	{"kind", "what the crawler fetches pages for: its category", false, choiceShape(kindNames()...), func(p *parser, key, n *yaml.Node, r *rowReader) {
		word, _ := p.choice(n, "kind", kindNames()...)
		r.row.Kind = crawlers.Kind(word)
		r.places["kind"] = posOf(n)
	}},
	{"user-agent", "what identifies the crawler in the User-Agent header, if it is not the product token", false, textShape("a part of the User-Agent", ""), func(p *parser, _, n *yaml.Node, r *rowReader) {
		r.row.UserAgent, _ = p.text(n, "user-agent")
		r.places["user-agent"] = posOf(n)
	}},
	{"follows", "the crawlers whose group in robots.txt it follows when none names it", false, oneOrMore(tokenShape), func(p *parser, _, n *yaml.Node, r *rowReader) {
		r.row.Follows = p.words(n, "follows")
		r.places["follows"] = posOf(n)
	}},
	{"ignores-star", "true if it does not obey the rules for everyone in robots.txt", false, shape{"type": "boolean"}, func(p *parser, _, n *yaml.Node, r *rowReader) {
		r.row.IgnoresStar = p.optional(n, "ignores-star")
	}},
	{"purposes", "the purposes that it declares", false, oneOrMore(textShape("a purpose", `^[A-Za-z0-9_-]+$`)), func(p *parser, _, n *yaml.Node, r *rowReader) {
		r.row.Purposes = p.words(n, "purposes")
		r.places["purposes"] = posOf(n)
	}},
	{"robots-only", "true for a token that exists in robots.txt only, and that no request carries", false, shape{"type": "boolean"}, func(p *parser, _, n *yaml.Node, r *rowReader) {
		r.row.RobotsOnly = p.optional(n, "robots-only")
		r.places["robots-only"] = posOf(n)
	}},
	{"address-lists", "the web addresses of the lists of its IP addresses that its operator publishes", false, oneOrMore(textShape("an https URL", "^https://")), func(p *parser, _, n *yaml.Node, r *rowReader) {
		r.row.AddressLists = p.words(n, "address-lists")
		r.places["address-lists"] = posOf(n)
	}},
	{"reverse-dns", "the names that its IP addresses resolve to: the end of a name, starting with a dot, or a name with a star", false, oneOrMore(textShape("a name such as .crawl.example.com", "")), func(p *parser, _, n *yaml.Node, r *rowReader) {
		r.row.ReverseDNS = p.words(n, "reverse-dns")
		r.places["reverse-dns"] = posOf(n)
	}},
	{"signature-directory", "where its operator publishes the keys by which it signs requests (Web Bot Auth)", false, textShape("an https URL", "^https://"), func(p *parser, _, n *yaml.Node, r *rowReader) {
		text, _ := p.text(n, "signature-directory")
		r.row.WebBotAuth = &text
		r.places["signature-directory"] = posOf(n)
	}},
	{"intended", "the guards that no longer protect this crawler, such as [refuses-search]", false, oneOrMore(choiceShape(lint.Guards()...)), func(p *parser, _, n *yaml.Node, r *rowReader) {
		r.intended = p.guards(n)
	}},
}

// words are the values of a text or a list. An empty list removes what the catalogue
// has.
func (p *parser) words(n *yaml.Node, what string) []string {
	words := []string{}
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		return words
	}
	p.texts(n, what, func(_ *yaml.Node, text string) { words = append(words, text) })
	return words
}

func (p *parser) optional(n *yaml.Node, what string) *bool {
	b := p.boolean(n, what)
	return &b
}

// readCrawlers merges the file's crawlers into the catalogue.
func readCrawlers(p *parser, _, n *yaml.Node, _ struct{}) {
	var rows []crawlers.Row
	readers := map[string]*rowReader{}
	before := p.errors
	p.eachPair(n, "crawlers", func(key, value *yaml.Node) {
		r := &rowReader{row: crawlers.Row{Token: key.Value}, places: map[string]policy.Pos{"token": posOf(key)}}
		if strings.ContainsAny(key.Value, ":#,*;()") || strings.ContainsFunc(key.Value, func(c rune) bool { return c < ' ' || c > '~' }) {
			p.report(posOf(key), "bad-crawler", "", "invalid name %s: the name of a crawler in robots.txt has only letters, hyphens and underscores", quote(key.Value))
			return
		}
		if value.Kind != yaml.MappingNode || len(value.Content) > 0 {
			readMap(p, value, "the crawler "+quote(key.Value), rowFields, r)
		}
		readers[strings.ToLower(key.Value)] = r
		if len(r.intended) > 0 {
			p.intended[strings.ToLower(key.Value)] = r.intended
		}
		rows = append(rows, r.row)
	})
	if p.errors > before {
		return
	}
	merged, err := p.base.Merge(rows...)
	if err == nil {
		p.catalogue = merged
		return
	}
	problems := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		problems = joined.Unwrap()
	}
	for _, problem := range problems {
		at, message := posOf(n), problem.Error()
		if row, ok := errors.AsType[*crawlers.RowError](problem); ok {
			r := readers[strings.ToLower(row.Token)]
			place, ok := r.places[row.Field]
			if !ok {
				place = r.places["token"]
			}
			at, message = place, row.Field+" "+row.Err.Error()
		}
		p.report(at, "bad-crawler", "", "%s", message)
	}
}
