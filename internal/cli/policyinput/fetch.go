// SPDX-License-Identifier: Apache-2.0

package policyinput

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// These constants limit a fetch. RFC 9309 asks crawlers to follow at least five redirects (section 2.3.1.2).
const (
	fetchTimeout = 30 * time.Second
	maxRedirects = 5
)

// userAgent is the User-Agent header of fetches.
const userAgent = "caddy-robots-policy"

// isURL reports whether an argument is an http or https URL.
func isURL(name string) bool {
	low := strings.ToLower(name)
	return strings.HasPrefix(low, "https://") || strings.HasPrefix(low, "http://")
}

// fetch returns the content at a URL. For the URL of a site, it returns the site's /robots.txt.
//
// A status of 400 to 499 means that there is no robots.txt, so crawlers treat everything as allowed (RFC 9309 section
// 2.3.1.3). For any other status outside 200 to 299, the rules are unknown (section 2.3.1.4), and fetch returns an
// error.
func fetch(ctx context.Context, name string) (*Raw, error) {
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
	client := http.Client{CheckRedirect: func(_ *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return fmt.Errorf("more than %d redirects", maxRedirects)
		}
		return nil
	}}
	res, err := client.Do(r)
	if of, ok := errors.AsType[*url.Error](err); ok {
		err = of.Err // the outer error repeats the URL
	}
	if err != nil {
		return nil, fmt.Errorf("fetching %s failed: %w", u, err)
	}
	defer res.Body.Close()
	f := &Raw{Name: res.Request.URL.String()}
	if f.Name != u.String() {
		f.Note = fmt.Sprintf("%s redirects to %s", u, f.Name)
	}
	switch {
	case res.StatusCode >= 400 && res.StatusCode < 500 && res.StatusCode != http.StatusTooManyRequests:
		f.None = true
		f.Note = fmt.Sprintf("%s: status %s: there is no robots.txt, and crawlers treat everything as allowed (RFC 9309 section 2.3.1.3)", f.Name, res.Status)
		return f, nil
	case res.StatusCode < 200 || res.StatusCode > 299:
		return nil, fmt.Errorf("fetching %s failed: status %s; crawlers treat everything as disallowed until they can read the file (RFC 9309 section 2.3.1.4)", f.Name, res.Status)
	}
	// gzip has already been decoded
	if coding := res.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return nil, fmt.Errorf("reading %s failed: unsupported Content-Encoding %q", f.Name, coding)
	}
	f.Data, err = io.ReadAll(io.LimitReader(res.Body, maxRead+1))
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the response was cut off")
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s failed: %w", f.Name, err)
	}
	return f, nil
}
