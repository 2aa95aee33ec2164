// SPDX-License-Identifier: Apache-2.0

package webbotauth

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"
)

// cardOf returns the example card in section 2 of draft-meunier-webbotauth-registry-03, with another URL and with
// additional members.
func cardOf(url, more string) string {
	return `{"client_id":"` + url + `","client_name":"Example Bot","contacts":["mailto:bot-support@example.com"],` + more + `,
		"web_bot_auth":{"expected-user-agent":"Mozilla/5.0 ExampleBot","trigger":"fetcher","purpose":"search","rate-control":"429",
		"rate-expectation":"avg=10rps;max=100rps","known-urls":["/"]}}`
}

// A Signature Agent Card contains the keys of a signer, or names the URL of the keys. The limits for key directories
// apply in both cases.
func TestCard(t *testing.T) {
	stated := Card{Purpose: "search", Rate: "avg=10rps;max=100rps"}
	json := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, text)
		}
	}
	keys := json(jwks(signerKey))
	redirected := new(atomic.Bool)
	for _, c := range []struct {
		name string
		card func(url, origin string) string
		keys http.HandlerFunc
		want Status
		says string
	}{
		{"keys inside", func(url, _ string) string { return cardOf(url, `"jwks":`+jwks(signerKey)) }, nil, Verified, ""},
		{"keys at an address", func(url, origin string) string { return cardOf(url, `"jwks_uri":"`+origin+`/keys"`) }, keys, Verified, ""},
		{"of another address", func(url, _ string) string { return cardOf(url+"2", `"jwks":`+jwks(signerKey)) }, nil, Unverified, "client_id is"},
		{"of no address", func(string, string) string { return `{"client_id":7,"jwks":` + jwks(signerKey) + `}` }, nil, Unverified, "client_id is 7"},
		{"without keys", func(url, _ string) string { return cardOf(url, `"x":1`) }, nil, Unverified, "jwks_uri"},
		{"with keys twice", func(url, origin string) string {
			return cardOf(url, `"jwks":`+jwks(signerKey)+`,"jwks_uri":"`+origin+`/keys"`)
		}, keys, Unverified, "both jwks and jwks_uri"},
		{"keys without TLS", func(url, _ string) string { return cardOf(url, `"jwks_uri":"http://127.0.0.1/keys"`) }, nil, Unverified, "https"},
		{"keys on a private network", func(url, _ string) string { return cardOf(url, `"jwks_uri":"https://10.1.2.3/keys"`) }, nil, Unverified, "not a public address"},
		{
			"keys that are a card", func(url, origin string) string { return cardOf(url, `"jwks_uri":"`+origin+`/keys"`) },
			json(`{"client_id":"x","jwks_uri":"https://127.0.0.1/more"}`), Unverified, "keys is missing",
		},
		{"keys that are the card itself", func(url, _ string) string { return cardOf(url, `"jwks_uri":"`+url+`"`) }, nil, Unverified, "keys is missing"},
		{
			"keys that redirect", func(url, origin string) string { return cardOf(url, `"jwks_uri":"`+origin+`/keys"`) },
			http.RedirectHandler("/elsewhere", http.StatusFound).ServeHTTP, Unverified, "status 302",
		},
		{
			"keys of another type", func(url, origin string) string { return cardOf(url, `"jwks_uri":"`+origin+`/keys"`) },
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				_, _ = io.WriteString(w, jwks(signerKey))
			}, Unverified, "text/html",
		},
		{
			"huge keys", func(url, origin string) string { return cardOf(url, `"jwks_uri":"`+origin+`/keys"`) },
			json(strings.Repeat(" ", maxDirectoryBytes) + jwks(signerKey)), Unverified, "larger than",
		},
		{"a huge card", func(url, _ string) string {
			return strings.Repeat(" ", maxDirectoryBytes) + cardOf(url, `"jwks":`+jwks(signerKey))
		}, nil, Unverified, "larger than"},
		{
			"keys that never come", func(url, origin string) string { return cardOf(url, `"jwks_uri":"`+origin+`/keys"`) },
			func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, Unverified, "deadline exceeded",
		},
		{"keys of someone else", func(url, origin string) string { return cardOf(url, `"jwks_uri":"`+origin+`/keys"`) }, json(jwks(testKey)), Unverified, "no such key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Options{AllowedRanges: loopback}
			if strings.Contains(c.name, "never") {
				o.timeout = time.Second
			}
			var card string
			v, origin := serveDirectory(t, o, func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/card":
					json(card)(w, r)
				case "/keys":
					c.keys(w, r)
				default:
					redirected.Store(true)
				}
			})
			url := origin + "/card"
			card = c.card(url, origin)
			got := v.Check(t.Context(), signed(func(p *pieces) { p.agent = `sig1="` + url + `";type=cimd` }), url)
			if got.Status != c.want || (c.says != "" && (got.Err == nil || !strings.Contains(got.Err.Error(), c.says))) {
				t.Errorf("%v %v", got.Status, got.Err)
			}
			if want := map[bool]Card{true: stated}[c.want == Verified]; got.Card != want {
				t.Errorf("card %+v, want %+v", got.Card, want)
			}
		})
	}
	if redirected.Load() {
		t.Error("a redirect was followed")
	}
}

// In earlier drafts, there is no separate card: the members of a card are in the key directory. Whatever these members
// contain, all keys of the directory remain usable.
func TestCardOfDirectory(t *testing.T) {
	const url = "https://bot.example" + wellKnown
	for more, want := range map[string]Card{
		`"purpose":"rag"`: {Purpose: "rag"},
		`"purpose":["search","ai-input"],"rate-expectation":"500 rps"`:       {Purpose: "search, ai-input", Rate: "500 rps"},
		`"purpose":"rag","web_bot_auth":{"purpose":"search"}`:                {Purpose: "search"},
		`"client_id":"` + url + `","purpose":"rag"`:                          {Purpose: "rag"},
		`"client_id":"https://other.example/card","purpose":"rag"`:           {},
		`"purpose":{"a":1},"rate-expectation":10,"web_bot_auth":[],"jwks":1`: {},
		`"purpose":"a\u001b[31m"`:                                            {},
		`"purpose":"` + strings.Repeat("a", maxCardText+1) + `"`:             {},
		`"purpose":null,"client_id":null`:                                    {},
	} {
		text := strings.Replace(jwks(signerKey), "{", "{"+more+",", 1)
		d, err := parseDocument([]byte(text), url)
		if err != nil || len(d.keys) != 1 || d.card != want {
			t.Errorf("%.100s: %d keys, %+v, %v; want %+v", more, len(d.keys), d.card, err, want)
		}
	}
}

func FuzzParseDocument(f *testing.F) {
	const url = "https://bot.example/card"
	f.Add([]byte(cardOf(url, `"jwks_uri":"https://bot.example/keys"`)))
	f.Add([]byte(cardOf(url, `"jwks":`+jwks(signerKey))))
	f.Add([]byte(`{"purpose":"rag",` + jwks(signerKey)[1:]))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := parseDocument(data, url)
		switch {
		case err == nil && (d.keys == nil) == (d.next == ""):
			t.Errorf("keys %v and %q", d.keys, d.next)
		case len(d.keys) > maxKeys || !strings.HasPrefix(d.next, "https://") && d.next != "":
			t.Errorf("%d keys, %q", len(d.keys), d.next)
		}
		if text := fmt.Sprint(d.card); len(text) > 3*maxCardText || strings.ContainsFunc(text, unicode.IsControl) {
			t.Errorf("%q", text)
		}
	})
}
