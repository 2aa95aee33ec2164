// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"iter"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Next is the next handler. If it returns an error, the server's error routes answer.
type Next interface {
	ServeHTTP(http.ResponseWriter, *http.Request) error
}

// Server answers questions about requests. The server around a handler implements it.
type Server interface {
	// Original returns a request's target and URL as the client sent them, before any rewrite.
	Original(r *http.Request) (target string, u *url.URL)
	// TrustsProxy reports whether the request came through a trusted proxy, so that its X-Forwarded-Host and
	// X-Forwarded-Proto are correct.
	TrustsProxy(r *http.Request) bool
	// InErrorRoute reports whether the request is in an error route.
	InErrorRoute(r *http.Request) bool
	// ForUpstream returns a context for the handler's own request for the upstream's file, which is made from a
	// client's request. With this context, the server treats the new request as if a client had sent it with the URL u
	// and the target.
	ForUpstream(ctx context.Context, u *url.URL, target string) context.Context
	// ErrorStatus returns the status of the server's answer to an error.
	ErrorStatus(err error) int
}

// maxHostField limits the length of the header fields that identify a site.
const maxHostField = 300

// newRequest returns the request for the upstream's file, or for the target of a redirect. All clients get the
// response. So the request must not contain anything that this client chose: its header fields, cookies and query are
// left out, and the host is normalized. The request does contain the header fields in which a trusted proxy names the
// site. If the client's request had no query, but a rewrite has added one, the request contains this query.
func (c *Cache[T]) newRequest(ctx context.Context, client *http.Request, to *url.URL) *http.Request {
	query := ""
	_, original := c.server.Original(client)
	if original.RawQuery == "" {
		query = client.URL.RawQuery
	}
	r := client.WithContext(ctx)
	r.URL, r.RequestURI = c.plainURL(client.URL, query)
	if to != nil {
		original = to
		r.URL, r.RequestURI = c.plainURL(to, to.RawQuery)
	}
	u, target := c.plainURL(original, "")
	r = r.WithContext(c.server.ForUpstream(ctx, u, target))
	r.Method = http.MethodGet
	r.Host = siteHost(client)
	r.Body, r.ContentLength, r.TransferEncoding, r.GetBody = http.NoBody, 0, nil, nil
	r.Trailer, r.Form, r.PostForm, r.MultipartForm = nil, nil, nil, nil
	r.Header = http.Header{
		"Accept":          {c.kind.Accept},
		"Accept-Encoding": {"identity"},
		"User-Agent":      {"caddy-robots-policy"},
	}
	maps.Insert(r.Header, c.siteFields(client))
	return r
}

// plainURL returns a URL with the given query, and the request target for it. It removes the other parts that a client
// can add to a URL: the fragment, the user, and a special encoding of the path.
func (c *Cache[T]) plainURL(u *url.URL, query string) (*url.URL, string) {
	plain := *u
	plain.RawQuery, plain.ForceQuery, plain.Fragment, plain.RawFragment, plain.User = query, false, "", "", nil
	if plain.Path == c.kind.Path {
		plain.RawPath = "" // "/%72obots.txt" is the same resource
	}
	return &plain, plain.RequestURI()
}

// siteKey returns the key of a site in the cache. The key consists of the scheme, the host and the header fields in
// which a trusted proxy names the site. The second result is false if one of them is too long, or if the host contains
// characters that no site's name can have.
func (c *Cache[T]) siteKey(r *http.Request) (string, bool) {
	host := siteHost(r)
	if host == "" || len(r.Host) > maxHostField || strings.ContainsAny(host, "/\\@ \t\"'<>") {
		return "", false
	}
	key := "http " + host
	if r.TLS != nil {
		key = "https " + host
	}
	for name, values := range c.siteFields(r) {
		value := strings.Join(values, ",")
		if len(value) > maxHostField {
			return "", false
		}
		key += " " + name + " " + value
	}
	return key, true
}

// siteHost returns the normalized host of a request. A port is part of the result only if the request arrived at this
// port, and the port is not 80 or 443. Other ports are removed, because some upstreams redirect a request whose Host
// field has an unusual port.
func siteHost(r *http.Request) string {
	host := policy.NormalizeHost(r.Host)
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return host
	}
	_, port, err := net.SplitHostPort(local.String())
	if err == nil && port != "80" && port != "443" && strings.HasSuffix(r.Host, ":"+port) {
		host += ":" + port
	}
	return host
}

// siteFields yields the names and values of the header fields in which a trusted proxy names the requested site. The
// order is always the same. siteFields leaves out fields about the client, because the response is for all clients.
func (c *Cache[T]) siteFields(r *http.Request) iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		if !c.server.TrustsProxy(r) {
			return
		}
		for _, name := range [...]string{"X-Forwarded-Host", "X-Forwarded-Proto"} {
			if values := r.Header[name]; values != nil && !yield(name, values) {
				return
			}
		}
	}
}

// canFetch reports whether the handler can make a request for the site's file from this client's request. In an error
// route it cannot, because the next handlers would answer with the error page. It also cannot if the client sent a
// query that a rewrite then changed, because the part from the rewrite cannot be separated from the client's part.
func (c *Cache[T]) canFetch(r *http.Request) bool {
	if c.server.InErrorRoute(r) {
		return false
	}
	_, original := c.server.Original(r)
	return original.RawQuery == "" || original.RawQuery == r.URL.RawQuery && original.Path == r.URL.Path
}
