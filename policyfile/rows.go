// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile/lint"
)

type crawlerRow struct {
	crawlers.Row
	intended []string // safety checks that the crawler's entry waives
}

var rowFields = fields[*crawlerRow]{
	textKey("operator", "the company or person that runs the crawler", textShape("a name", ""), nil,
		func(r *crawlerRow) *string { return &r.Operator }),
	key("category", "the crawler's category: the purpose for which it fetches pages", choiceShape(kindNames()...),
		func(p *parser, n *yaml.Node, r *crawlerRow) {
			word, _ := p.choice(n, "category", kindNames()...)
			r.Category = crawlers.Category(word)
		}, func(w *printer, r *crawlerRow) { w.text("category", string(r.Category)) }),
	key("results", "the kind of results that a search engine shows: web (the default), or ai for answers that an AI writes",
		choiceShape(string(crawlers.ResultsWeb), string(crawlers.ResultsAI)),
		func(p *parser, n *yaml.Node, r *crawlerRow) {
			word, _ := p.choice(n, "results", string(crawlers.ResultsWeb), string(crawlers.ResultsAI))
			r.Results = crawlers.Results(word)
		}, func(w *printer, r *crawlerRow) { w.text("results", string(r.Results)) }),
	textKey("user-agent", "the words that identify the crawler in the User-Agent header, if they differ from the product token",
		textShape("a part of the User-Agent", ""), nil, func(r *crawlerRow) *string { return &r.UserAgent }),
	listKey("follows", "other crawlers: if no group in robots.txt names this crawler, it follows the groups for these crawlers", tokenShape,
		func(r *crawlerRow) *[]string { return &r.Follows }),
	boolKey("ignores-star", "true if the crawler ignores the rules for everyone in robots.txt",
		func(r *crawlerRow) **bool { return &r.IgnoresStar }),
	boolKey("reads-meta", "true if the operator documents that the crawler reads meta tags that name it, such as name=\"ExampleBot\" instead of name=\"robots\"",
		func(r *crawlerRow) **bool { return &r.ReadsMeta }),
	listKey("purposes", "the purpose tokens of the crawler, which robots.txt names in User-Agent-Purpose lines", textShape("a purpose", `^[A-Za-z0-9_-]+$`),
		func(r *crawlerRow) *[]string { return &r.Purposes }),
	boolKey("robots-only", "true for a token that is used only in robots.txt, and never in a User-Agent",
		func(r *crawlerRow) **bool { return &r.RobotsOnly }),
	listKey("address-lists", "the web addresses of the operator's lists of the crawler's IP addresses",
		textShape("an https URL", "^https://"), func(r *crawlerRow) *[]string { return &r.AddressLists }),
	listKey("reverse-dns", "the host names of the crawler's IP addresses: the end of the names, such as .crawl.example.com, or a name with a star",
		textShape("a name such as .crawl.example.com", ""), func(r *crawlerRow) *[]string { return &r.ReverseDNS }),
	key("signature-directory", "the address of the operator's keys for signed requests (Web Bot Auth)",
		textShape("an https URL", "^https://"), func(p *parser, n *yaml.Node, r *crawlerRow) {
			text, _ := p.text(n, "signature-directory")
			r.WebBotAuth = &text
		}, func(w *printer, r *crawlerRow) {
			if r.WebBotAuth != nil {
				w.text("signature-directory", *r.WebBotAuth)
			}
		}),
	key("intended", "the safety checks that are switched off for this crawler, such as [blocks-search]", oneOrMore(choiceShape(lint.SafetyChecks()...)),
		func(p *parser, n *yaml.Node, r *crawlerRow) { r.intended = p.guards(n) },
		func(w *printer, r *crawlerRow) { w.texts("intended", r.intended) }),
}

// words returns the texts in n, which is one text or a list of texts. For an empty list, it returns an empty slice and
// not nil, because an empty list removes the values that the catalog has.
func (p *parser) words(n *yaml.Node, what string) []string {
	words := []string{}
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		return words
	}
	p.texts(n, what, func(_ *yaml.Node, text string) { words = append(words, text) })
	return words
}

func readCrawlers(p *parser, n *yaml.Node, _ *policy.Spec) {
	var rows []crawlers.Row
	keys, values := map[string]*yaml.Node{}, map[string]*yaml.Node{} // by token, in lower case
	before := p.errors
	p.eachPair(n, "crawlers", func(key, value *yaml.Node) {
		if !crawlers.IsListedName(key.Value) {
			p.report(posOf(key), "bad-crawler", "", "invalid name %s: the name of a crawler in robots.txt has only the letters A to Z (also in lower case), hyphens and underscores", quote(key.Value))
			return
		}
		r := &crawlerRow{Row: crawlers.Row{Token: key.Value}}
		if value.Kind != yaml.MappingNode || len(value.Content) > 0 {
			readMap(p, value, "the crawler "+quote(key.Value), rowFields, r)
		}
		token := strings.ToLower(key.Value)
		keys[token], values[token] = key, value
		if len(r.intended) > 0 {
			p.intended[token] = r.intended
		}
		rows = append(rows, r.Row)
	})
	if p.errors > before {
		return
	}
	merged, err := p.base.Merge(rows...)
	if err == nil {
		p.catalog = merged
		return
	}
	problems := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		problems = joined.Unwrap()
	}
	for _, problem := range problems {
		at, message := n, problem.Error()
		if row, ok := errors.AsType[*crawlers.RowError](problem); ok {
			token := strings.ToLower(row.Token)
			at, message = keys[token], row.Field+" "+row.Err.Error()
			if value := child(values[token], row.Field); value != nil {
				at = value
			}
		}
		p.report(posOf(at), "bad-crawler", "", "%s", message)
	}
}

func printCrawlers(w *printer, spec *policy.Spec) {
	base, _ := crawlers.Default() // the built-in catalog is valid
	w.under("crawlers", func() {
		for i := range spec.Crawlers {
			c := &spec.Crawlers[i]
			if c.Signer {
				continue // a rule already names the crawler
			}
			known, ok := base.Lookup(c.Token)
			if !ok {
				known = &crawlers.Crawler{Token: c.Token}
			}
			row := difference(c, known, w.ownEntry(c.Token, known))
			if ok && reflect.ValueOf(row).Elem().IsZero() {
				continue // the policy does not change what the catalog says about this crawler
			}
			if !w.under(Scalar(c.Token), func() { printMap(w, rowFields, row) }) && !ok {
				w.plain(Scalar(c.Token), "{}")
			}
		}
	})
}

// ownEntry returns the policy's own entry for a crawler. If the policy has none, it returns known.
func (w *printer) ownEntry(token string, known *crawlers.Crawler) *crawlers.Crawler {
	if w.options.Catalog != nil {
		if own, ok := w.options.Catalog.Lookup(token); ok && own.FromPolicy {
			return own
		}
	}
	return known
}

func difference(c *policy.Crawler, entry, own *crawlers.Crawler) *crawlerRow {
	r := &crawlerRow{intended: c.IntendedChecks}
	known := convertOne(entry)
	if c.Operator != known.Operator {
		r.Operator = c.Operator
	}
	if c.Category != known.Category {
		r.Category = crawlers.Category(c.Category)
	}
	if r.Category == "" || r.Category == crawlers.CategorySearch {
		switch {
		case c.AI && !known.AI && c.Category == string(crawlers.CategorySearch):
			r.Results = crawlers.ResultsAI
		case known.AI && !c.AI:
			r.Results = crawlers.ResultsWeb
		}
	}
	if len(own.UserAgents) > 0 && !slices.Equal(own.UserAgents, entry.UserAgents) {
		r.UserAgent = own.UserAgents[0]
	}
	if c.IgnoresStar != known.IgnoresStar {
		r.IgnoresStar = &c.IgnoresStar
	}
	if own.ReadsMeta != entry.ReadsMeta {
		r.ReadsMeta = &own.ReadsMeta
	}
	if c.RobotsOnly != known.RobotsOnly {
		r.RobotsOnly = &c.RobotsOnly
	}
	is, was := own.Verification, entry.Verification
	if is.WebBotAuth != was.WebBotAuth {
		r.WebBotAuth = &is.WebBotAuth
	}
	r.Follows = changed(known.Follows, c.Follows)
	r.Purposes = changed(known.Purposes, c.Purposes)
	r.AddressLists = changed(was.AddressLists, is.AddressLists)
	r.ReverseDNS = changed(was.ReverseDNS, is.ReverseDNS)
	return r
}

func changed(from, to []string) []string {
	if slices.Equal(from, to) {
		return nil
	}
	return append([]string{}, to...)
}
