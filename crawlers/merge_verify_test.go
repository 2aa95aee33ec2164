// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"errors"
	"slices"
	"testing"
)

// A policy file can define how a crawler is verified. The crawler may be new or from the catalog.
func TestMergeVerification(t *testing.T) {
	base, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	directory := "https://bot.example"
	c, err := base.Merge(
		Row{Token: "PartnerBot", AddressLists: []string{"https://partner.example/ips.json"}, ReverseDNS: []string{".partner.example"}, WebBotAuth: &directory},
		Row{Token: "Googlebot", AddressLists: []string{}},
	)
	if err != nil {
		t.Fatal(err)
	}
	p, _ := c.Lookup("partnerbot")
	if !slices.Equal(p.Verification.AddressLists, []string{"https://partner.example/ips.json"}) ||
		!slices.Equal(p.Verification.ReverseDNS, []string{".partner.example"}) || p.Verification.WebBotAuth != directory {
		t.Errorf("%+v", p.Verification)
	}
	g, _ := c.Lookup("Googlebot")
	if len(g.Verification.AddressLists) != 0 || len(g.Verification.ReverseDNS) == 0 {
		t.Errorf("%+v", g.Verification)
	}
	if !slices.Contains(c.AddressLists(), "https://partner.example/ips.json") {
		t.Error("the catalog does not list the row's address list")
	}
	for _, tt := range []struct {
		field string
		row   Row
	}{
		{"address-lists", Row{AddressLists: []string{"http://a.example/x.json"}}},
		{"reverse-dns", Row{ReverseDNS: []string{"example.com"}}},
		{"signature-directory", Row{WebBotAuth: ptr("http://bot.example")}},
		{"signature-directory", Row{WebBotAuth: ptr("https://")}},
		{"signature-directory", Row{WebBotAuth: ptr("https://:443/")}},
		{"signature-directory", Row{WebBotAuth: ptr("https://me@bot.example")}},
		{"signature-directory", Row{WebBotAuth: ptr("https://bot.example/keys#first")}},
	} {
		tt.row.Token = "A"
		var e *RowError
		if _, err := base.Merge(tt.row); !errors.As(err, &e) || e.Field != tt.field {
			t.Errorf("%s: %v", tt.field, err)
		}
	}
	for _, fine := range []string{"https://bot.example", "https://bot.example/keys?tenant=7", "https://127.0.0.1:8443/jwks.json"} {
		if _, err := base.Merge(Row{Token: "A", WebBotAuth: &fine}); err != nil {
			t.Errorf("%s: %v", fine, err)
		}
	}
}
