// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/policyname"
)

// webSource is a policy on a web server, asked for with the validators of the
// answer before (RFC 9110 section 13).
type webSource struct {
	url    *url.URL
	client *http.Client
}

// webMark is the validators of an answer.
type webMark struct {
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`

	read time.Time
}

const (
	webInterval  = time.Minute
	maxRedirects = 3

	// Validators can be wrong, such as a date of whole seconds: now and then the
	// policy is fetched whatever they say.
	rereadWeb = time.Hour
	// What is longer is not sent back: a server might refuse a request for it.
	maxValidator = 1024
)

var webTransport = &http.Transport{
	Proxy:                  http.ProxyFromEnvironment,
	DialContext:            (&net.Dialer{Timeout: readTimeout}).DialContext,
	TLSHandshakeTimeout:    readTimeout,
	ForceAttemptHTTP2:      true,
	MaxIdleConnsPerHost:    1,
	IdleConnTimeout:        2 * webInterval,
	MaxResponseHeaderBytes: 64 << 10,
}

// newWebSource returns the source of an address.
func newWebSource(text string) (*webSource, error) {
	u, err := policyname.WebAddress(text)
	if err != nil {
		return nil, err
	}
	return &webSource{url: u, client: &http.Client{Transport: webTransport, CheckRedirect: checkRedirect}}, nil
}

// checkRedirect follows a few redirects, and none to another server: the one
// that is configured is the one that is trusted.
func checkRedirect(r *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	if r.URL.Scheme != via[0].URL.Scheme || r.URL.Host != via[0].URL.Host {
		return fmt.Errorf("a redirect to another server, %s://%s, is not followed; name that in the configuration if it is right", r.URL.Scheme, r.URL.Host)
	}
	return nil
}

func (w *webSource) name() string { return w.url.String() }

func (w *webSource) key() string { return "web " + w.url.String() }

func (w *webSource) pace() (usual, least time.Duration) { return webInterval, time.Second }

func (w *webSource) settle() time.Duration { return 0 }

func (w *webSource) remote() bool { return true }

func (w *webSource) late() bool { return true }

func (w *webSource) keeps() keepPlace { return keepShared }

// restore implements storedMark.
func (w *webSource) restore(data json.RawMessage) any {
	var m webMark
	if json.Unmarshal(data, &m) != nil {
		return nil
	}
	m.read = time.Now()
	return m
}

// validators sets the fields of a conditional request, and reports whether there
// are any.
func (m webMark) validators(h http.Header) bool {
	switch {
	case time.Since(m.read) >= rereadWeb:
		return false
	case m.ETag != "" && len(m.ETag) <= maxValidator:
		h.Set("If-None-Match", m.ETag)
	case m.LastModified != "" && len(m.LastModified) <= maxValidator:
		h.Set("If-Modified-Since", m.LastModified)
	default:
		return false
	}
	return true
}

func (w *webSource) read(ctx context.Context, last any) (reading, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url.String(), nil)
	if err != nil {
		return reading{}, err
	}
	r.Header.Set("User-Agent", "caddy-robots-policy")
	r.Header.Set("Accept", "application/yaml, text/yaml, text/plain;q=0.9, */*;q=0.1")
	mark, _ := last.(webMark)
	conditional := mark.validators(r.Header)
	resp, err := w.client.Do(r)
	if err != nil {
		return reading{}, err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotModified && conditional:
		return reading{}, errUnchanged
	case resp.StatusCode != http.StatusOK:
		return reading{}, fmt.Errorf("%s answered %s", w.url.Host, resp.Status)
	}
	data, err := readAll(resp.Body)
	if err != nil {
		return reading{}, fmt.Errorf("reading from %s: %w", w.url.Host, err)
	}
	if isHTML(resp.Header.Get("Content-Type"), data) {
		return reading{}, fmt.Errorf("%s answered with a web page and no policy", w.url.Host)
	}
	return reading{data: data, mark: webMark{ETag: resp.Header.Get("ETag"), LastModified: resp.Header.Get("Last-Modified"), read: time.Now()}}, nil
}

// isHTML recognises the page of a login, or of an error that is sent as 200. A
// policy never starts with "<".
func isHTML(contentType string, data []byte) bool {
	media, _, _ := mime.ParseMediaType(contentType)
	return media == "text/html" || media == "application/xhtml+xml" || bytes.HasPrefix(bytes.TrimSpace(data), []byte("<"))
}
