// SPDX-License-Identifier: Apache-2.0

package agreement

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/verify"
	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// client is the source of a request.
type client struct {
	address  string          // "" means this machine
	identity policy.Identity // the identity that the server must find out
	byName   bool            // the identity depends on the host name of the address, so only sites with "verify dns" find it out
}

// at returns the identity that a site finds out for the client.
func (c client) at(s *running) policy.Identity {
	if c.byName && !s.names {
		return policy.Unknown
	}
	return c.identity
}

// operators are the operators of some crawlers in random policies. operated maps each of these crawlers to the index of
// its operator. The addresses of the operators have host names: for example, 20.0.1.N has the name
// N.crawl.alpha.example.
var (
	operators = []string{"alpha", "beta"}
	operated  = map[string]int{"alphabot": 0, "alphabot-image": 0, "deltabot": 0, "betabot": 1}
)

// ownCatalog is a catalog with the DNS names that verify the crawlers of the random policies.
var ownCatalog = sync.OnceValue(func() *crawlers.Catalog {
	var text strings.Builder
	text.WriteString("version: 1\ncrawlers:\n")
	for _, c := range policytest.Crawlers {
		row := "reads-meta: true"
		if i, ok := operated[strings.ToLower(c.Token)]; ok {
			row += fmt.Sprintf(", reverse-dns: .crawl.%s.example", operators[i])
		}
		fmt.Fprintf(&text, "  %s: {%s}\n", c.Token, row)
	}
	f, diagnostics := policyfile.Load("own.yaml", []byte(text.String()+"rules:\n  - for: everyone\n    allow:\n      crawl: /\n"))
	if diagnostics.HasErrors() {
		panic(diagnostics.Text())
	}
	return f.Catalog
})

// clientOf returns a random client whose User-Agent names the crawler with the given token. The client's address may
// belong to this machine, to the crawler's operator, or to a different network.
func clientOf(r *rand.Rand, token string) client {
	if from := addresses()[token]; len(from) > 0 && r.IntN(2) == 0 {
		return client{address: from[r.IntN(len(from))], identity: policy.Verified}
	}
	if r.IntN(2) == 0 {
		return client{}
	}
	i, named := operated[strings.ToLower(token)]
	if !named {
		// If operated has no entry for a crawler, the clients of this crawler are never impostors in these tests. A
		// client of a real crawler has the address of this machine, because the result for another address would depend
		// on the age of the embedded address lists.
		if slices.Contains(policytest.RealTokens, token) {
			return client{}
		}
		return client{address: "20.0.0.1"}
	}
	c := client{byName: true, identity: policy.Impostor}
	switch n := 1 + r.IntN(4); r.IntN(4) {
	case 0: // an address without a host name
		c.address = fmt.Sprintf("20.0.9.%d", n)
	case 1: // an address of another operator
		c.address = fmt.Sprintf("20.0.%d.%d", 2-i, n)
	default:
		c.address, c.identity = fmt.Sprintf("20.0.%d.%d", i+1, n), policy.Verified
	}
	return c
}

// addresses returns some addresses of each crawler from the embedded address lists.
var addresses = sync.OnceValue(func() map[string][]string {
	found := map[string][]string{}
	text, err := os.ReadFile("../../crawlers/verify/snapshot.txt")
	known, kerr := crawlers.Default()
	if err != nil || kerr != nil {
		panic(errors.Join(err, kerr))
	}
	list := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if url, ok := strings.CutPrefix(line, "list "); ok {
			list = url
		}
		prefix, err := netip.ParsePrefix(line)
		if err != nil || !prefix.Addr().Is4() {
			continue
		}
		for _, token := range policytest.RealTokens {
			if row, ok := known.Lookup(token); ok && slices.Contains(row.Verification.AddressLists, list) && len(found[token]) < 20 {
				found[token] = append(found[token], prefix.Addr().String())
			}
		}
	}
	return found
})

// resolve makes this process use only ownResolver for name lookups.
func resolve() { net.DefaultResolver = ownResolver() }

// ownResolver returns a DNS resolver that knows the host names of the operators' addresses. It also knows dns.google,
// which a verifier looks up to test whether the resolver works. Without that name, impostors would be detected only
// after the first client was verified.
func ownResolver() *net.Resolver {
	zone := caddytest.Zone{"8.8.8.8.in-addr.arpa.": caddytest.Name{PTR: []string{"dns.google."}}, "dns.google.": caddytest.Name{A: "8.8.8.8"}}
	for i, operator := range operators {
		for n := 1; n <= 4; n++ {
			name := fmt.Sprintf("%d.crawl.%s.example.", n, operator)
			zone[fmt.Sprintf("%d.%d.0.20.in-addr.arpa.", n, i+1)] = caddytest.Name{PTR: []string{name}}
			zone[name] = caddytest.Name{A: fmt.Sprintf("20.0.%d.%d", i+1, n)}
		}
	}
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go zone.ServeConn(server)
		return client, nil
	}}
}

func TestImpostorsAreFoundFirst(t *testing.T) {
	v := verify.New(verify.NewLists(nil, verify.ListOptions{}), verify.DNSOptions{Resolver: ownResolver()})
	facts := crawlers.Verification{ReverseDNS: []string{".crawl.alpha.example"}}
	for _, c := range []struct {
		addr string
		want policy.Identity
	}{{"20.0.2.3", policy.Impostor}, {"20.0.9.1", policy.Impostor}, {"20.0.1.3", policy.Verified}} {
		var got verify.Result
		for range 40 { // a negative answer is used only after the next probe of the resolver
			if got = v.Check(t.Context(), facts, netip.MustParseAddr(c.addr)); got.Identity == c.want {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if got.Identity != c.want {
			t.Errorf("%s is %v, want %v", c.addr, got.Identity, c.want)
		}
	}
}
