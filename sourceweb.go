// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
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
}

const (
	webInterval  = time.Minute
	maxRedirects = 3
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

// newWebSource returns the source of a URL. Plain HTTP is for this machine only:
// anybody on the way could change the policy.
func newWebSource(text string) (*webSource, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the policy's address: %w", err)
	case u.Host == "":
		return nil, fmt.Errorf("%q names no server", text)
	case u.User != nil:
		return nil, errors.New("the policy's address holds a password, which logs and the admin API would show")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return nil, fmt.Errorf("%q is not https: anybody on the way could change the policy", text)
	}
	return &webSource{url: u, client: &http.Client{Transport: webTransport, CheckRedirect: checkRedirect}}, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
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
	return m
}

func (w *webSource) read(ctx context.Context, last any) (reading, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url.String(), nil)
	if err != nil {
		return reading{}, err
	}
	r.Header.Set("User-Agent", "caddy-robots-policy")
	r.Header.Set("Accept", "application/yaml, text/yaml, text/plain;q=0.9, */*;q=0.1")
	mark, _ := last.(webMark)
	if mark.ETag != "" {
		r.Header.Set("If-None-Match", mark.ETag)
	} else if mark.LastModified != "" {
		r.Header.Set("If-Modified-Since", mark.LastModified)
	}
	resp, err := w.client.Do(r)
	if err != nil {
		return reading{}, err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotModified && mark != (webMark{}):
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
	return reading{data: data, mark: webMark{ETag: resp.Header.Get("ETag"), LastModified: resp.Header.Get("Last-Modified")}}, nil
}

// isHTML recognises the page of a login, or of an error that is sent as 200. A
// policy never starts with "<".
func isHTML(contentType string, data []byte) bool {
	media, _, _ := mime.ParseMediaType(contentType)
	return media == "text/html" || media == "application/xhtml+xml" || bytes.HasPrefix(bytes.TrimSpace(data), []byte("<"))
}

// isWebAddress reports whether a policy's name is an address on the web.
func isWebAddress(name string) bool {
	return strings.HasPrefix(name, "https://") || strings.HasPrefix(name, "http://")
}
