// SPDX-License-Identifier: Apache-2.0

package webbotauth

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/outbound"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

const mediaType = "application/http-message-signatures-directory+json"

// fetcher fetches key directories over https. It connects only to public addresses, uses no proxy and follows no
// redirects.
type fetcher struct{ client *http.Client }

func newFetcher(o Options) *fetcher {
	return &fetcher{&http.Client{
		Timeout: o.timeout,
		Transport: &http.Transport{
			DialContext:            outbound.Dialer(o.timeout, o.AllowedRanges).DialContext,
			MaxResponseHeaderBytes: 64 << 10,
			DisableKeepAlives:      true,
			ForceAttemptHTTP2:      true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// fetch returns the document at the URL of a key directory, including its keys. The document may be cached for the time
// keep. A panic caused by a response becomes an error, because in the fetching goroutine a panic would end the program.
func (f *fetcher) fetch(ctx context.Context, url string) (d document, keep time.Duration, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, f.client.Timeout) // one timeout for fetching a card and then its keys
	defer cancel()
	data, keep, err := f.get(ctx, url)
	if err != nil {
		return d, 0, err
	}
	if d, err = parseDocument(data, url); err != nil || d.next == "" {
		return d, keep, err
	}
	data, keepKeys, err := f.get(ctx, d.next)
	if err == nil {
		d.keys, err = parseKeys(data)
	}
	if err != nil {
		err = fmt.Errorf("keys of the card, at %s: %w", d.next, err)
	}
	return d, min(keep, keepKeys), err
}

func (f *fetcher) get(ctx context.Context, url string) (data []byte, keep time.Duration, err error) {
	header := map[string]string{"Accept": mediaType + ", application/jwk-set+json;q=0.9, application/json;q=0.5", "User-Agent": "caddy-robots-policy (keys of crawlers)"}
	resp, err := outbound.Get(ctx, f.client, url, header, maxDirectoryBytes+1)
	if err != nil {
		return nil, 0, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, 0, fmt.Errorf("the response has status %d; it must be 200 (redirects are not followed)", resp.StatusCode)
	}
	if err := checkType(resp.Header.Get("Content-Type"), normalPath(resp.Request.URL.EscapedPath()) == wellKnown); err != nil {
		return nil, 0, err
	}
	if len(resp.Data) > maxDirectoryBytes {
		return nil, 0, fmt.Errorf("the response is larger than %d bytes", maxDirectoryBytes)
	}
	keep, ok := outbound.MaxAge(resp.Header)
	if !ok {
		keep = keepDefault
	}
	return resp.Data, keep, nil
}

// checkType returns an error if the value of a Content-Type header is not the media type of key directories. For a
// document that is not at the well-known path, it also accepts the media types of a JWK Set and of a card.
func checkType(header string, atWellKnown bool) error {
	t, _, err := mime.ParseMediaType(header)
	switch {
	case err != nil:
		return errors.New("the response has no Content-Type")
	case t == mediaType, !atWellKnown && (t == "application/jwk-set+json" || t == "application/json"):
		return nil
	}
	return fmt.Errorf("the response has the Content-Type %s; it must be %s", t, mediaType)
}

// wellKnown is the well-known path for the keys of an origin. According to version -01 of the draft, a client sends the
// whole URL of its keys in the field Signature-Agent. Most clients still send only the origin, so the package adds this
// path.
const wellKnown = "/.well-known/http-message-signatures-directory"

// location holds the identifier and the URL of a key directory.
type location struct {
	// id is the normalized URL (RFC 3986 sections 6.2.2 and 6.2.3) without its query (draft section 5.5). Two
	// directories are the same if their ids are equal.
	id  string
	url string // the URL to fetch, with its query
}

// resolve returns the location of a key directory. text is the URL of the directory or an origin.
func resolve(text string) (location, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Fragment != "" || u.Opaque != "" {
		return location{}, fmt.Errorf("invalid key directory %q: must be an https URL", text)
	}
	path := u.EscapedPath()
	if path == "" || normalPath(path) == "/" {
		path = wellKnown
	}
	origin := "https://" + authority("https", strings.TrimSuffix(u.Host, ":"))
	where := location{id: origin + normalPath(path), url: origin + path}
	if u.RawQuery != "" {
		where.url += "?" + u.RawQuery
	}
	return where, nil
}

// normalPath normalizes a path. It removes dot segments and unnecessary escapes, and writes other escapes in upper
// case. This simple normalization is sufficient, because the package uses only directories that its caller names.
func normalPath(path string) string {
	u, err := url.Parse("https://bot.example" + pathpattern.NormalizePath(path))
	if err != nil {
		return path
	}
	return u.ResolveReference(u).EscapedPath()
}
