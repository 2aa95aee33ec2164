// SPDX-License-Identifier: Apache-2.0

package webbotauth

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// The identifier of a directory is its normalized URL without the query. The fetched URL is unchanged, with its query
// (draft section 5.5).
func TestResolve(t *testing.T) {
	for text, want := range map[string]location{
		"https://bot.example":                   {"https://bot.example" + wellKnown, "https://bot.example" + wellKnown},
		"https://bot.example/":                  {"https://bot.example" + wellKnown, "https://bot.example" + wellKnown},
		"https://bot.example" + wellKnown:       {"https://bot.example" + wellKnown, "https://bot.example" + wellKnown},
		"HTTPS://BOT.example:443/":              {"https://bot.example" + wellKnown, "https://bot.example" + wellKnown},
		"https://bot.example:/keys":             {"https://bot.example/keys", "https://bot.example/keys"},
		"https://bot.example:8443/keys":         {"https://bot.example:8443/keys", "https://bot.example:8443/keys"},
		"https://bot.example/Keys?tenant=7":     {"https://bot.example/Keys", "https://bot.example/Keys?tenant=7"},
		"https://bot.example?v=1":               {"https://bot.example" + wellKnown, "https://bot.example" + wellKnown + "?v=1"},
		"https://bot.example/%6Beys%2fa%7e":     {"https://bot.example/keys%2Fa~", "https://bot.example/%6Beys%2fa%7e"},
		"https://bot.example/a/../b/./keys":     {"https://bot.example/b/keys", "https://bot.example/a/../b/./keys"},
		"https://bot.example/a/%2e%2E/keys":     {"https://bot.example/keys", "https://bot.example/a/%2e%2E/keys"},
		"https://bot.example/../..":             {"https://bot.example" + wellKnown, "https://bot.example" + wellKnown},
		"https://bot.example/keys/..%2f../x/..": {"https://bot.example/keys/..%2F../", "https://bot.example/keys/..%2f../x/.."},
		"https://bot.example//keys":             {"https://bot.example//keys", "https://bot.example//keys"},
		"https://[2001:DB8::1]:443/keys":        {"https://[2001:db8::1]/keys", "https://[2001:db8::1]/keys"},
		"http://bot.example":                    {},
		"https://":                              {},
		"https://:443/keys":                     {},
		"https:bot.example":                     {},
		"https://x@bot.example/":                {},
		"https://bot.example/keys#first":        {},
		"https://bot.example/%zz":               {},
		"bot.example":                           {},
	} {
		got, err := resolve(text)
		if got != want || (err != nil) != (want == location{}) {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
}

// Resolving an identifier gives the same identifier again. No identifier has a query.
func FuzzResolve(f *testing.F) {
	for _, s := range []string{"https://bot.example", "https://BOT.example:443/a/../%2e%7e?x#y", "https://h/.", "https://h//..//", "https://[::1]:/%2F"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		where, err := resolve(text)
		if err != nil {
			return
		}
		again, err := resolve(where.id)
		if err != nil || again.id != where.id || again.url != where.id {
			t.Fatalf("%q: %+v, and again %+v, %v", text, where, again, err)
		}
		if fetched, err := resolve(where.url); err != nil || fetched != where {
			t.Fatalf("%q: %+v; from what is fetched %+v, %v", text, where, fetched, err)
		}
		if strings.ContainsAny(where.id, "?#") || !strings.HasPrefix(where.id, "https://") {
			t.Fatalf("%q: %+v", text, where)
		}
	})
}

// The directory in a row of the catalog is fetched with its query. A request may name the directory with the same
// query, with another query or without a query.
func TestDirectoryWithAQuery(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	v, origin := serveDirectory(t, Options{AllowedRanges: loopback}, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.RequestURI)
		mu.Unlock()
		w.Header().Set("Content-Type", "application/jwk-set+json")
		if r.URL.RawQuery != "tenant=7&v=1" {
			_, _ = io.WriteString(w, `{"keys":[]}`)
			return
		}
		_, _ = io.WriteString(w, jwks(signerKey))
	})
	for agent, want := range map[string]Status{
		"/keys?tenant=7&v=1": Verified, "/keys": Verified, "/keys?tenant=8": Verified, "/%6Beys": Verified,
		"/keys/": Unverified, "": Unverified, "/Keys": Unverified,
	} {
		r := signed(func(p *pieces) { p.agent, p.more = `sig1="`+origin+agent+`"`, "" })
		if got := v.Check(t.Context(), r, origin+"/keys?tenant=7&v=1"); got.Status != want {
			t.Errorf("%q: %+v", agent, got)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(asked) != 1 || asked[0] != "/keys?tenant=7&v=1" {
		t.Errorf("asked for %q", asked)
	}
}
