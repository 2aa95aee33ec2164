// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

const defaultRSLPath = "/license.xml"

var (
	contentSignalWords = []string{"on", "off", "immediate", "reference", "full"}
	productToken       = regexp.MustCompile(`^[A-Za-z_-]{1,64}$`) // RFC 9309 section 2.2.1
	priceNumber        = regexp.MustCompile(`^[0-9]{1,12}(\.[0-9]{1,9})?$`)
	currencyCode       = regexp.MustCompile(`^[A-Z]{3}$`)
)

func readContentSignal(p *parser, n *yaml.Node, b *policy.Publish) {
	word, _ := p.choice(n, "content-signal", contentSignalWords...)
	b.ContentSignal, b.ContentSignalUse = policy.On, word
	if word == "on" || word == "off" {
		b.ContentSignal, b.ContentSignalUse = switchWords[word], ""
	}
}

func readRSL(p *parser, n *yaml.Node, b *policy.Publish) {
	text, ok := p.text(n, "rsl")
	switch {
	case !ok || text == "off":
	case text == "on":
		b.RSL = defaultRSLPath
	case !strings.HasPrefix(text, "/"):
		p.report(posOf(n), "bad-value", "", "invalid rsl %s: must be on, off or the path of the RSL document, such as %s", quote(text), defaultRSLPath)
	case text == "/" || text == "/robots.txt" || text == "/.well-known/tdmrep.json" || strings.HasPrefix(text, "//") || strings.ContainsAny(text, "*$?#%\\<>\"{} ") || pathpattern.NormalizePath(text) != text:
		p.report(posOf(n), "bad-value", "", "invalid rsl %s: must be the path of one document, without special characters, such as %s", quote(text), defaultRSLPath)
	default:
		b.RSL = text
	}
	p.rslAt = posOf(n)
}

func printRSL(w *printer, b *policy.Publish) {
	if b.RSL == defaultRSLPath {
		w.plain("rsl", "on")
		return
	}
	w.text("rsl", b.RSL)
}

func readLicense(p *parser, n *yaml.Node, b *policy.Publish) {
	text, ok := p.text(n, "license")
	if ok && text != "off" && p.address(n, "license", text, false) {
		b.License = text
		p.licenseAt = posOf(n)
	}
}

// usageTokenFields are the usages that can have tokens, in the order of policy.RightsUsages.
var usageTokenFields = func() fields[*policy.Publish] {
	usages := policy.RightsUsages()
	fs := make(fields[*policy.Publish], 0, len(usages))
	for i, u := range usages {
		valid := func(p *parser, n *yaml.Node, _, text string) bool {
			p.tokenAt[i] = posOf(n)
			return productToken.MatchString(text) ||
				p.refuse(n, "bad-value", "", "invalid token %s: must have at most 64 characters: letters, hyphens and underscores (RFC 9309)", quote(text))
		}
		fs = append(fs, textKey(u.String(), "the token that stands for "+u.String(), textShape("a token of letters, - and _", productToken.String()),
			valid, func(b *policy.Publish) *string { return &b.UsageTokens[i] }))
	}
	return fs
}()

var rightsFields = fields[*policy.Rights]{
	textKey("copyright", "the name of the rightsholder", textShape("a name", ""), nil,
		func(r *policy.Rights) *string { return &r.Copyright }),
	textKey("contact", "the address for license requests: a web address or mailto:NAME@EXAMPLE.COM",
		textShape("an address that starts with https:// or mailto:", `^(https?://|mailto:)`), (*parser).contact,
		func(r *policy.Rights) *string { return &r.Contact }),
	textKey("terms", "the address of a page with the terms of the license", webShape, (*parser).webAddress,
		func(r *policy.Rights) *string { return &r.Terms }),
	textKey("tdm-policy", "the address of your policy for text and data mining (TDM); Caddy publishes it with each reservation in TDMRep", webShape, (*parser).webAddress,
		func(r *policy.Rights) *string { return &r.TDMPolicy }),
	key("offers", "licenses that you offer for usages that the rules disallow", oneOrMore(mapShape(offerFields)), readOffers,
		func(w *printer, r *policy.Rights) {
			w.under("offers", func() {
				for i := range r.Offers {
					w.item(func() { printMap(w, offerFields, &r.Offers[i]) })
				}
			})
		}),
}

func readOffers(p *parser, n *yaml.Node, r *policy.Rights) {
	p.eachItem(n, "offers", func(item *yaml.Node) {
		o := policy.Offer{Pos: posOf(item)}
		readMap(p, item, "an offer", offerFields, &o)
		if (o.Amount == "") != (o.Currency == "") {
			p.report(o.Pos, "bad-value", "", "an offer needs both \"amount\" and \"currency\"; add the missing key, or delete the other one")
		}
		r.Offers = append(r.Offers, o)
	})
}

var webShape = textShape("an address that starts with https://", `^https?://`)

var offerFields = fields[*policy.Offer]{
	key("usage", "the usage that is offered: train-ai, ai-use or search", choiceShape(usageTokenFields.names()...),
		func(p *parser, n *yaml.Node, o *policy.Offer) {
			word, _ := p.choice(n, "usage", usageTokenFields.names()...)
			o.Usage, _ = policy.ParseUsage(word)
		}, func(w *printer, o *policy.Offer) { w.text("usage", o.Usage.String()) }).must(),
	key("payment", "the kind of payment: purchase, subscription, training, crawl, use or contribution",
		choiceShape(policy.OfferPayments()...), readPayment,
		func(w *printer, o *policy.Offer) { w.text("payment", o.Payment) }).must(),
	textKey("url", "the address where a crawler's operator can get the license", webShape, (*parser).webAddress,
		func(o *policy.Offer) *string { return &o.URL }).must(),
	textKey("amount", "a price, such as 0.015",
		shape{"anyOf": []any{shape{"type": "number", "minimum": 0}, textShape("a decimal number", priceNumber.String())}}, (*parser).price,
		func(o *policy.Offer) *string { return &o.Amount }),
	textKey("currency", "the currency of the amount, such as EUR", textShape("a code of ISO 4217", currencyCode.String()), (*parser).currency,
		func(o *policy.Offer) *string { return &o.Currency }),
	key("users", "the types of users that the offer is for, such as education; the default is everyone", oneOrMore(choiceShape(policy.OfferUsers()...)),
		func(p *parser, n *yaml.Node, o *policy.Offer) {
			p.eachItem(n, "users", func(item *yaml.Node) {
				if word, ok := p.choice(item, "a user", policy.OfferUsers()...); ok && !slices.Contains(o.Users, word) {
					o.Users = append(o.Users, word)
				}
			})
		}, func(w *printer, o *policy.Offer) { w.names("users", o.Users) }),
}

func readPayment(p *parser, n *yaml.Node, o *policy.Offer) {
	text, _ := p.text(n, "payment")
	if text == "free" || text == "attribution" {
		p.report(posOf(n), "bad-value", "", "invalid payment %s: an offer must cost something; to allow a usage without payment, write the usage under allow in a rule", quote(text))
		return
	}
	o.Payment, _ = p.choice(n, "payment", policy.OfferPayments()...)
}

func (p *parser) price(n *yaml.Node, _, text string) bool {
	return priceNumber.MatchString(text) ||
		p.refuse(n, "bad-value", "", "invalid amount %s: must be a decimal number, such as 0.015", quote(text))
}

func (p *parser) currency(n *yaml.Node, _, text string) bool {
	return currencyCode.MatchString(text) ||
		p.refuse(n, "bad-value", strings.ToUpper(text), "invalid currency %s: must be three capital letters (ISO 4217), such as EUR", quote(text))
}

func (p *parser) contact(n *yaml.Node, name, text string) bool {
	if uri := withScheme(text); uri != text {
		return p.refuse(n, "bad-address", uri, "invalid contact %s: write mailto: before an e-mail address", quote(text))
	}
	mailbox, isMail := strings.CutPrefix(text, "mailto:")
	if !isMail {
		return p.webAddress(n, name, text)
	}
	if at := strings.IndexByte(mailbox, '@'); at < 1 || at == len(mailbox)-1 || strings.ContainsAny(mailbox, " \t<>\"") {
		return p.refuse(n, "bad-address", "", "invalid contact %s: must be mailto: and an e-mail address", quote(text))
	}
	return true
}

// webAddress checks an absolute URL that will be written into headers, JSON and XML.
func (p *parser) webAddress(n *yaml.Node, name, text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.ContainsAny(text, " <>\"\\^`{|}") || strings.ContainsFunc(text, func(c rune) bool { return c > '~' }) {
		near := ""
		if strings.HasPrefix(text, "www.") {
			near = "https://" + text
		}
		return p.refuse(n, "bad-address", near, "invalid address %s: %s must be an address that starts with https://, in plain letters (write other characters as %%XX)", quote(text), name)
	}
	return true
}

func (p *parser) checkRights() {
	publish := &p.spec.Publish
	if publish.RSL != "" && publish.License != "" {
		p.report(p.licenseAt, "contradiction", "", "rsl (line %d) publishes a license that is made from the rules, but the key \"license\" names another license. Programs that read licenses use only one of them; delete one of these lines", p.rslAt.Line)
	}
	seen := map[string]bool{}
	for i, token := range publish.UsageTokens {
		if token == "" {
			continue
		}
		if _, ok := p.catalog.Lookup(token); ok || p.ruleTokens[strings.ToLower(token)] {
			p.report(p.tokenAt[i], "bad-value", "", "the token %s belongs to a crawler, so the group of this token would be read as rules for that crawler; use a token such as __usage_ai-training", quote(token))
		}
		if seen[strings.ToLower(token)] {
			p.report(p.tokenAt[i], "bad-value", "", "the token %s is used for two usages, but robots.txt can have only one group for a token; use two tokens", quote(token))
		}
		seen[strings.ToLower(token)] = true
	}
}
