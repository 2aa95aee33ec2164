// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// defaultRSLPath is where the RSL document lies if the file does not say.
const defaultRSLPath = "/license.xml"

var (
	contentUsageWords  = []string{"on", "both", "off"}
	contentSignalWords = []string{"on", "off", "immediate", "reference", "full"}
	productToken       = regexp.MustCompile(`^[A-Za-z_-]{1,64}$`) // RFC 9309 section 2.2.1
	priceNumber        = regexp.MustCompile(`^[0-9]{1,12}(\.[0-9]{1,9})?$`)
	currencyCode       = regexp.MustCompile(`^[A-Z]{3}$`)
)

func readContentSignal(p *parser, _, n *yaml.Node, _ struct{}) {
	word, ok := p.choice(n, "content-signal", contentSignalWords...)
	switch {
	case !ok:
	case word == "on", word == "off":
		p.spec.Publish.ContentSignal, p.spec.Publish.ContentSignalUse = switchWords[word], ""
	default:
		p.spec.Publish.ContentSignal, p.spec.Publish.ContentSignalUse = policy.On, word
	}
}

func readRSL(p *parser, _, n *yaml.Node, _ struct{}) {
	text, ok := p.text(n, "rsl")
	switch {
	case !ok || text == "off":
	case text == "on":
		p.spec.Publish.RSL = defaultRSLPath
	case !strings.HasPrefix(text, "/"):
		p.report(posOf(n), "bad-value", "", "invalid rsl %s: must be on, off or the path of the document, such as %s", quote(text), defaultRSLPath)
	case text == "/" || text == "/robots.txt" || text == "/.well-known/tdmrep.json" || strings.HasPrefix(text, "//") || strings.ContainsAny(text, "*$?#%\\<>\"{} ") || pathpattern.NormalizePath(text) != text:
		p.report(posOf(n), "bad-value", "", "invalid rsl %s: must be the path of one document, without special characters, such as %s", quote(text), defaultRSLPath)
	default:
		p.spec.Publish.RSL = text
	}
	p.rslAt = posOf(n)
}

func readLicense(p *parser, _, n *yaml.Node, _ struct{}) {
	text, ok := p.text(n, "license")
	if ok && text != "off" && p.address(n, "license", text, false) {
		p.spec.Publish.License = text
		p.licenseAt = posOf(n)
	}
}

// usageTokenFields are the usages of registers, in the order of policy.RightsUsages.
var usageTokenFields = func() fields[struct{}] {
	var fs fields[struct{}]
	for i, u := range policy.RightsUsages() {
		fs = append(fs, field[struct{}]{u.String(), "the token that stands for " + u.String(), false, textShape("a token of letters, - and _", productToken.String()), func(p *parser, _, n *yaml.Node, _ struct{}) {
			text, ok := p.text(n, "the token for "+u.String())
			if ok && !productToken.MatchString(text) {
				p.report(posOf(n), "bad-value", "", "invalid token %s: must be up to 64 letters, - and _ (RFC 9309)", quote(text))
				return
			}
			p.spec.Publish.UsageTokens[i] = text
			p.tokenAt[i] = posOf(n)
		}})
	}
	return fs
}()

func readUsageTokens(p *parser, _, n *yaml.Node, _ struct{}) {
	readMap(p, n, "usage-tokens", usageTokenFields, struct{}{})
}

var rightsFields = fields[*policy.Rights]{
	{"copyright", "the name of the rightsholder", false, textShape("a name", ""), func(p *parser, _, n *yaml.Node, r *policy.Rights) {
		r.Copyright, _ = p.text(n, "copyright")
	}},
	{"contact", "where to ask for a licence: an address of the web or mailto:NAME@EXAMPLE.COM", false, textShape("an address that starts with https:// or mailto:", `^(https?://|mailto:)`), func(p *parser, _, n *yaml.Node, r *policy.Rights) {
		text, ok := p.text(n, "contact")
		if rest, mail := strings.CutPrefix(text, "mailto:"); ok && mail {
			if at := strings.IndexByte(rest, '@'); at < 1 || at == len(rest)-1 || strings.ContainsAny(rest, " \t<>\"") {
				p.report(posOf(n), "bad-address", "", "invalid contact %s: must be mailto: and an e-mail address", quote(text))
				return
			}
			r.Contact = text
		} else if ok && p.webAddress(n, "contact", text) {
			r.Contact = text
		}
	}},
	{"terms", "the address of the terms in words", false, webShape, func(p *parser, _, n *yaml.Node, r *policy.Rights) {
		if text, ok := p.text(n, "terms"); ok && p.webAddress(n, "terms", text) {
			r.Terms = text
		}
	}},
	{"tdm-policy", "the address of a TDM policy, which TDMRep names beside a reservation", false, webShape, func(p *parser, _, n *yaml.Node, r *policy.Rights) {
		if text, ok := p.text(n, "tdm-policy"); ok && p.webAddress(n, "tdm-policy", text) {
			r.TDMPolicy = text
		}
	}},
	{"offers", "licences that can be had for usages that the rules disallow", false, oneOrMore(mapShape(offerFields)), func(p *parser, _, n *yaml.Node, r *policy.Rights) {
		p.eachItem(n, "offers", func(item *yaml.Node) {
			o := policy.Offer{Pos: posOf(item)}
			readMap(p, item, "an offer", offerFields, &o)
			if (o.Amount == "") != (o.Currency == "") {
				p.report(o.Pos, "bad-value", "", "an offer needs amount and currency together; add the other one, or delete both")
			}
			r.Offers = append(r.Offers, o)
		})
	}},
}

var webShape = textShape("an address that starts with https://", `^https?://`)

var offerFields = fields[*policy.Offer]{
	{"usage", "the usage that is offered: train-ai, ai-use or search", true, choiceShape(usageTokenFields.names()...), func(p *parser, _, n *yaml.Node, o *policy.Offer) {
		if word, ok := p.choice(n, "usage", usageTokenFields.names()...); ok {
			o.Usage, _ = policy.ParseUsage(word)
		}
	}},
	{"payment", "what is to be paid for: purchase, subscription, training, crawl, use or contribution", true, choiceShape(policy.OfferPayments()...), func(p *parser, _, n *yaml.Node, o *policy.Offer) {
		text, _ := p.text(n, "payment")
		if text == "free" || text == "attribution" {
			p.report(posOf(n), "bad-value", "", "invalid payment %s: an offer is for what costs something; to permit a usage for nothing, write it under allow in a rule", quote(text))
			return
		}
		o.Payment, _ = p.choice(n, "payment", policy.OfferPayments()...)
	}},
	{"url", "where the licence can be obtained", true, webShape, func(p *parser, _, n *yaml.Node, o *policy.Offer) {
		if text, ok := p.text(n, "url"); ok && p.webAddress(n, "url", text) {
			o.URL = text
		}
	}},
	{"amount", "a price, such as 0.015", false, shape{"anyOf": []any{shape{"type": "number", "minimum": 0}, textShape("a decimal number", priceNumber.String())}}, func(p *parser, _, n *yaml.Node, o *policy.Offer) {
		text, ok := p.text(n, "amount")
		if ok && !priceNumber.MatchString(text) {
			p.report(posOf(n), "bad-value", "", "invalid amount %s: must be a decimal number, such as 0.015", quote(text))
			return
		}
		o.Amount = text
	}},
	{"currency", "the currency of amount, such as EUR", false, textShape("a code of ISO 4217", currencyCode.String()), func(p *parser, _, n *yaml.Node, o *policy.Offer) {
		text, ok := p.text(n, "currency")
		if ok && !currencyCode.MatchString(text) {
			p.report(posOf(n), "bad-value", strings.ToUpper(text), "invalid currency %s: must be three capital letters (ISO 4217), such as EUR", quote(text))
			return
		}
		o.Currency = text
	}},
	{"users", "which users the offer is for; everyone if missing", false, oneOrMore(choiceShape(policy.OfferUsers()...)), func(p *parser, _, n *yaml.Node, o *policy.Offer) {
		p.eachItem(n, "users", func(item *yaml.Node) {
			if word, ok := p.choice(item, "a user", policy.OfferUsers()...); ok && !slices.Contains(o.Users, word) {
				o.Users = append(o.Users, word)
			}
		})
	}},
}

func readRights(p *parser, _, n *yaml.Node, _ struct{}) {
	readMap(p, n, "rights", rightsFields, &p.spec.Rights)
}

// webAddress checks an absolute URL that stands in headers, JSON and XML.
func (p *parser) webAddress(n *yaml.Node, what, text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.ContainsAny(text, " <>\"\\^`{|}") || strings.ContainsFunc(text, func(c rune) bool { return c > '~' }) {
		near := ""
		if strings.HasPrefix(text, "www.") {
			near = "https://" + text
		}
		p.report(posOf(n), "bad-address", near, "invalid address %s: %s must be an address that starts with https://, in plain letters (write others as %%XX)", quote(text), what)
		return false
	}
	return true
}

// checkRights reports registers that contradict each other or the rest of the file.
func (p *parser) checkRights() {
	publish := &p.spec.Publish
	if publish.RSL != "" && publish.License != "" {
		p.report(p.licenseAt, "contradiction", "", "rsl (line %d) publishes a licence that is made from the rules, and license names another one; readers take one of the two; delete one of these lines", p.rslAt.Line)
	}
	seen := map[string]bool{}
	for i, token := range publish.UsageTokens {
		if token == "" {
			continue
		}
		if _, ok := p.catalogue.Lookup(token); ok || p.ruleTokens[strings.ToLower(token)] {
			p.report(p.tokenAt[i], "bad-value", "", "the token %s is that of a crawler, whose group says something else; use the token that the draft or the operator documents", quote(token))
		} else {
			p.checkTokenInNames(token, p.tokenAt[i])
		}
		if seen[strings.ToLower(token)] {
			p.report(p.tokenAt[i], "bad-value", "", "the token %s stands for two usages, and robots.txt has one group for a token; use two tokens", quote(token))
		}
		seen[strings.ToLower(token)] = true
	}
}

// checkTokenInNames reports a usage token that is part of a crawler's name: readers that
// compare parts of names, such as Python's urllib and Protego, have such a crawler follow
// the token's group.
func (p *parser) checkTokenInNames(token string, at policy.Pos) {
	var names []string
	for _, c := range p.catalogue.All() {
		if strings.Contains(strings.ToLower(c.Token), strings.ToLower(token)) {
			names = append(names, c.Token)
		}
	}
	if len(names) == 0 {
		return
	}
	others := ""
	if n := len(names) - 1; n > 0 {
		others = fmt.Sprintf(" and of %d more", n)
	}
	p.report(at, "usage-token-in-name", "", "the token %s is part of the name of %s%s; some readers take its group for theirs, and such a crawler stays away from what is closed to the usage only; use a token that is in no crawler's name", quote(token), names[0], others)
}
