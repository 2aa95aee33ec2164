// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"slices"
	"testing"
)

func TestIdentities(t *testing.T) {
	known, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	builtin := NewIdentities(known)
	if builtin != NewIdentities(known) || len(builtin.OwnLists()) != 0 {
		t.Error("the identities of the built-in catalog are not shared")
	}
	const gptbot, openai = "https://openai.com/gptbot.json", "https://chatgpt.com"
	own, other, directory := "https://own.example/list", "https://other.example/list", "https://keys.example"
	merged := func(rows ...Row) *Identities {
		t.Helper()
		c, err := known.Merge(rows...)
		if err != nil {
			t.Fatal(err)
		}
		return NewIdentities(c)
	}
	for _, tt := range []struct {
		name      string
		id        *Identities
		url       string
		list      string   // token of the only crawler that uses the list
		directory []string // tokens of the crawlers that use the directory
		own       []string
	}{
		{"built-in list", builtin, gptbot, "GPTBot", nil, nil},
		{"built-in list that is shared", builtin, "https://developers.google.com/static/crawling/ipranges/common-crawlers.json", "", nil, nil},
		{"built-in directory", builtin, openai, "", []string{"ChatGPT-User"}, nil},
		{"unknown", builtin, own, "", nil, nil},
		{"row without facts", merged(Row{Token: "OwnBot"}), gptbot, "GPTBot", nil, nil},
		{"own list", merged(Row{Token: "OwnBot", AddressLists: []string{own}}), own, "OwnBot", nil, []string{own}},
		{"own list that is shared", merged(Row{Token: "A", AddressLists: []string{own}}, Row{Token: "B", AddressLists: []string{other, own}}), own, "", nil, []string{other, own}},
		{"built-in list that a row shares", merged(Row{Token: "OwnBot", AddressLists: []string{gptbot}}), gptbot, "", nil, nil},
		{"built-in list that a row replaces", merged(Row{Token: "GPTBot", AddressLists: []string{own}}), gptbot, "", nil, []string{own}},
		{"built-in list that moves", merged(Row{Token: "GPTBot", AddressLists: []string{}}, Row{Token: "OwnBot", AddressLists: []string{gptbot}}), gptbot, "OwnBot", nil, nil},
		{"own directory", merged(Row{Token: "OwnBot", WebBotAuth: &directory}), directory, "", []string{"OwnBot"}, nil},
		{"built-in directory that a row replaces", merged(Row{Token: "ChatGPT-User", WebBotAuth: &directory}), openai, "", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list := ""
			if c := tt.id.ByList(tt.url); c != nil {
				list = c.Token
			}
			var tokens []string
			for _, c := range tt.id.ByDirectory(tt.url) {
				tokens = append(tokens, c.Token)
			}
			if list != tt.list || !slices.Equal(tokens, tt.directory) || !slices.Equal(tt.id.OwnLists(), tt.own) {
				t.Errorf("list of %q, directory of %q, own lists %q", list, tokens, tt.id.OwnLists())
			}
			if got := slices.Contains(tt.id.Directories(), tt.url); got != (tt.directory != nil) {
				t.Errorf("directories %q", tt.id.Directories())
			}
		})
	}
}

// A newer catalog has an address list that the embedded catalog does not have. The list is treated as a list of the
// catalog, and not as a policy's own list, even if a policy changes the crawlers that use it.
func TestListsOfANewerCatalog(t *testing.T) {
	known, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	const listed, own = "https://listed.example/list", "https://own.example/list"
	newer := newCatalog(append(known.All(), &Crawler{Token: "NewlyListedBot", Category: CategorySEO, Verification: Verification{AddressLists: []string{listed}}}), nil, "2026-12-01")
	first, err := newer.Merge(Row{Token: "NewlyListedBot", Category: CategoryAds}, Row{Token: "OwnBot", AddressLists: []string{own}})
	if err != nil {
		t.Fatal(err)
	}
	again, err := first.Merge(Row{Token: "OwnBot", Category: CategoryAds})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		of      *Catalog
		catalog []string
		own     []string
	}{
		"the catalog":      {newer, []string{listed}, nil},
		"a policy":         {first, []string{listed}, []string{own}},
		"changed twice":    {again, []string{listed}, []string{own}},
		"the embedded one": {known, nil, nil},
	} {
		id := NewIdentities(tt.of)
		if !slices.Equal(id.CatalogLists(), tt.catalog) || !slices.Equal(id.OwnLists(), tt.own) {
			t.Errorf("%s: lists of the catalog %q, own lists %q", name, id.CatalogLists(), id.OwnLists())
		}
	}
}

func TestOnDevicePreview(t *testing.T) {
	const safari = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_11_1) AppleWebKit/601.2.4 (KHTML, like Gecko) Version/9.0.1 Safari/601.2.4"
	for ua, want := range map[string]bool{
		safari + " facebookexternalhit/1.1 Facebot Twitterbot/1.0": true,
		"WhatsApp/2.23.20.0 A":    true,
		"WhatsApp/2.2413.51 W":    true,
		safari:                    false,
		"WhatsApp":                false,
		"facebookexternalhit/1.1": false,
		"facebookexternalhit/1.1 Facebot Twitterbot/1.0":                      false,
		safari + " facebookexternalhit/1.1 Facebot Twitterbot/1.0 GPTBot/1.2": false,
		safari + " Twitterbot/1.0":                                            false,
		"GPTBot/1.2 WhatsApp/2.23.20.0 A":                                     false,
		"":                                                                    false,
	} {
		if got := OnDevicePreview([]string{ua}); got != want {
			t.Errorf("%q: %v", ua, got)
		}
	}
	if OnDevicePreview(nil) || OnDevicePreview([]string{"WhatsApp/2.23.20.0 A", "GPTBot"}) {
		t.Error("none or two User-Agent lines")
	}
}
