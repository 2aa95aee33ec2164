// SPDX-License-Identifier: Apache-2.0

package policyinput

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// The limits of a fetch. RFC 9309 asks crawlers to follow at least five redirects
// (section 2.3.1.2).
const (
	fetchTimeout = 30 * time.Second
	maxRedirects = 10
)

// userAgent names the program to the servers that it asks.
const userAgent = "caddy-robots-policy"

// fetched is what a server answered.
type fetched struct {
	url  string // after redirects
	data []byte // decoded, up to maxRead
	note string
	none bool // RFC 9309 section 2.3.1.3: there is no file
}

// isURL reports whether an argument is a URL of the web.
func isURL(name string) bool {
	low := strings.ToLower(name)
	return strings.HasPrefix(low, "https://") || strings.HasPrefix(low, "http://")
}

// fetch gets what is at a URL; at the URL of a site, its /robots.txt.
//
// A status of 400 to 499 means that there is no robots.txt, so that crawlers take
// everything for allowed (RFC 9309 section 2.3.1.3); with any other but 200 to 299
// nothing is known (section 2.3.1.4), which is an error.
func fetch(ctx context.Context, client *http.Client, name string) (*fetched, error) {
	u, err := url.Parse(name)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("invalid URL %q: must be one such as https://www.example.com/robots.txt", name)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/robots.txt"
	}
	u.Fragment = ""
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", userAgent)
	r.Header.Set("Accept", "text/plain, */*;q=0.1")
	r.Header.Set("Accept-Encoding", "gzip")
	followed := *client
	followed.CheckRedirect = func(_ *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return fmt.Errorf("more than %d redirects", maxRedirects)
		}
		return nil
	}
	res, err := followed.Do(r)
	if err != nil {
		return nil, fmt.Errorf("fetching %s failed: %w", u, err)
	}
	defer res.Body.Close()
	f := &fetched{url: res.Request.URL.String()}
	if f.url != u.String() {
		f.note = fmt.Sprintf("%s redirects to %s", u, f.url)
	}
	switch {
	case res.StatusCode >= 400 && res.StatusCode < 500 && res.StatusCode != http.StatusTooManyRequests:
		f.none = true
		f.note = fmt.Sprintf("%s: status %s: there is no robots.txt, and crawlers treat everything as allowed (RFC 9309 section 2.3.1.3)", f.url, res.Status)
		return f, nil
	case res.StatusCode < 200 || res.StatusCode > 299:
		return nil, fmt.Errorf("fetching %s failed: status %s; crawlers treat everything as disallowed until the file can be read (RFC 9309 section 2.3.1.4)", f.url, res.Status)
	}
	f.data, err = decoded(res)
	if err != nil {
		return nil, fmt.Errorf("reading %s failed: %w", f.url, err)
	}
	return f, nil
}

// decoded reads a body, up to one byte more than maxRead.
func decoded(res *http.Response) ([]byte, error) {
	body := io.Reader(res.Body)
	switch coding := strings.ToLower(strings.TrimSpace(strings.Join(res.Header.Values("Content-Encoding"), ","))); coding {
	case "", "identity":
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(body)
		if err != nil {
			return nil, err
		}
		body = z
	default:
		return nil, fmt.Errorf("unsupported Content-Encoding %q", coding)
	}
	data, err := io.ReadAll(io.LimitReader(body, maxRead+1))
	if errors.Is(err, io.ErrUnexpectedEOF) && len(data) > 0 {
		err = errors.New("the response was cut off")
	}
	return data, err
}
