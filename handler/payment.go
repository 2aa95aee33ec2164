// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights/rsl"
)

// paymentRequired adds to a response with status 402 where a license is to be had: links to the site's license and to
// those that the policy offers, and the price of a single request in the field that Cloudflare's pay per crawl uses. It
// returns the terms of the offers, a line each.
func (q *request) paymentRequired() string {
	header := q.w.Header()
	if link := q.decision.site.LicenseLink(q.Host); link != "" {
		rsl.ApplyLink(header, link)
	}
	var terms []string
	for o := range q.decision.site.Offers(q.query) {
		rsl.ApplyLink(header, "<"+o.URL+`>; rel="license"`)
		if o.Payment == "crawl" && o.Amount != "" && header.Get("Crawler-Price") == "" {
			header.Set("Crawler-Price", o.Currency+" "+o.Amount)
		}
		terms = append(terms, offerTerms(o))
	}
	return strings.Join(terms, "\n")
}

// offerTerms is an offer in words: "License for train-ai, payment per crawl, USD 0.01, for commercial users: URL".
func offerTerms(o *policy.Offer) string {
	text := "License for " + o.Usage.String() + ", payment per " + o.Payment
	switch o.Payment {
	case "purchase", "subscription", "contribution":
		text = "License for " + o.Usage.String() + ", payment by " + o.Payment
	}
	if o.Amount != "" {
		text += ", " + o.Currency + " " + o.Amount
	}
	if len(o.Users) > 0 {
		text += ", for " + strings.Join(o.Users, " and ") + " users"
	}
	return text + ": " + o.URL
}
