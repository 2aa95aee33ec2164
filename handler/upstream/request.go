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

// Next is the handler that follows. Its error is the response of the error routes.
type Next interface {
	ServeHTTP(http.ResponseWriter, *http.Request) error
}

// Server is the knowledge of a request that the server around a handler has.
type Server interface {
	// Original returns the target and the URL of a request as the client sent it, before any rewrite.
	Original(r *http.Request) (target string, u *url.URL)
	// TrustsProxy reports whether the request came through a proxy whose X-Forwarded-Host
	// and X-Forwarded-Proto are true.
	TrustsProxy(r *http.Request) bool
	// InErrorRoute reports whether an error page is being served.
	InErrorRoute(r *http.Request) bool
	// ForUpstream returns a context for a request that is made in place of a client's, as
	// if a client had sent it for this URL and target.
	ForUpstream(ctx context.Context, u *url.URL, target string) context.Context
	// ErrorStatus returns the status of the response to an error.
	ErrorStatus(err error) int
}

// maxHostField bounds the fields that identify a site.
const maxHostField = 300

// newRequest returns the request for a file of the upstream, or for where the upstream redirects. The response is served
// to every client, so nothing specific to the client at hand goes into the request: not its headers, query, cookies, or
// spelling of the host. Information about the site from a trusted proxy stays, and so does the query of a rewrite if the
// client sent none.
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

// plainURL returns a URL with this query and without anything else that a client can
// add to it, and its request target.
func (c *Cache[T]) plainURL(u *url.URL, query string) (*url.URL, string) {
	plain := *u
	plain.RawQuery, plain.ForceQuery, plain.Fragment, plain.RawFragment, plain.User = query, false, "", "", nil
	if plain.Path == c.kind.Path {
		plain.RawPath = "" // "/%72obots.txt" is the same resource
	}
	return &plain, plain.RequestURI()
}

// siteKey identifies a site by everything that newRequest takes from the client's
// request. It is false for a host that no site can have.
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

// siteHost returns the host of a request in the one spelling that stands for the site. The port is kept only if the
// site listens on it and it is not the default: with another port some upstreams redirect.
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

// siteFields yields the fields in which a trusted proxy names the site that the client asked for, ordered by name.
// Fields about the client do not count, since the response is for every client.
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

// canFetch reports whether a request can be used to fetch the site's file. In an error route the following handlers
// serve the error page. And if a rewrite has added to the client's query, the two cannot be separated.
func (c *Cache[T]) canFetch(r *http.Request) bool {
	if c.server.InErrorRoute(r) {
		return false
	}
	_, original := c.server.Original(r)
	return original.RawQuery == "" || original.RawQuery == r.URL.RawQuery && original.Path == r.URL.Path
}
