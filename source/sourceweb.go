// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/outbound"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

type webPolicy struct {
	url    *url.URL
	client *http.Client
}

const (
	webInterval  = time.Minute
	maxRedirects = 3
)

// webTransport is Go's default transport with a smaller limit for the header, because the server may send anything.
var webTransport = &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, IdleConnTimeout: 2 * webInterval, MaxResponseHeaderBytes: 64 << 10}

func newWebSource(text string) (*source, error) {
	u, err := WebAddress(text)
	if err != nil {
		return nil, err
	}
	w := &webPolicy{url: u, client: &http.Client{Transport: webTransport, CheckRedirect: checkRedirect}}
	return &source{
		name: u.String(), key: "web " + u.String(), interval: webInterval, minInterval: time.Second,
		remote: true, startsFromLastGood: true, read: bounded(w.read),
	}, nil
}

// checkRedirect follows a few redirects to the same server. It rejects redirects to other servers, because the
// configuration names only the first server as trusted.
func checkRedirect(r *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("the server redirected more than %d times", maxRedirects)
	}
	if r.URL.Scheme != via[0].URL.Scheme || r.URL.Host != via[0].URL.Host {
		return fmt.Errorf("the policy's address redirects to another server, %s://%s; if you trust that server, configure the policy's address there", r.URL.Scheme, r.URL.Host)
	}
	return nil
}

func (w *webPolicy) read(ctx context.Context, _ any) (content, error) {
	header := map[string]string{"User-Agent": "caddy-robots-policy", "Accept": "application/yaml, text/yaml, text/plain;q=0.9, */*;q=0.1"}
	resp, err := outbound.Get(ctx, w.client, w.url.String(), header, policyfile.MaxSize+1)
	if err != nil {
		return content{}, err
	}
	if resp.StatusCode != http.StatusOK {
		return content{}, fmt.Errorf("%s answered %s", w.url.Host, resp.Status)
	}
	if isHTML(resp.Header.Get("Content-Type"), resp.Data) {
		return content{}, fmt.Errorf("%s answered with a web page instead of a policy", w.url.Host)
	}
	return content{data: resp.Data}, nil
}

// isHTML reports whether a response is a web page instead of a policy, such as a login page or an error page with
// status 200. A policy never begins with "<".
func isHTML(contentType string, data []byte) bool {
	media, _, _ := mime.ParseMediaType(contentType)
	return media == "text/html" || media == "application/xhtml+xml" || bytes.HasPrefix(bytes.TrimSpace(data), []byte("<"))
}
