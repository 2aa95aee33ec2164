// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/outbound"
)

// OwnToken is the product token that the audit obeys in robots.txt.
const OwnToken = activity.AuditProduct

const (
	aboutURL     = "https://github.com/robotspolicy/caddy-robots-policy"
	ownUserAgent = OwnToken + "/1.0 (+" + aboutURL + ")"
)

// agent is a client whose User-Agent the audit sends.
type agent struct {
	Name      string // product token, or "a browser"
	userAgent string
	crawler   *crawlers.Crawler // nil if the client is not in the catalog
}

// browserAgent has the User-Agent of a browser, with the name of the audit at the end.
var browserAgent = agent{Name: "a browser", userAgent: "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 " + OwnToken + "/1.0"}

// claimedAgent returns an agent whose User-Agent contains the name of a crawler. The User-Agent also contains the name
// of the audit, for people who read the server's log.
func claimedAgent(c *crawlers.Crawler) agent {
	return agent{Name: c.Token, crawler: c, userAgent: "Mozilla/5.0 (compatible; " + c.Patterns()[0] + "/1.0; " + OwnToken + "; +" + aboutURL + ")"}
}

const (
	requestInterval = time.Second
	maxInterval     = 30 * time.Second // maximum Crawl-delay
	requestTimeout  = 20 * time.Second
	maxRedirects    = 5       // RFC 9309 section 2.3.1.2
	maxBody         = 1 << 20 // maximum size of a page or sitemap; more than the 500 KiB of RFC 9309 section 2.5
)

// fetcher sends one request at a time.
type fetcher struct {
	client   *http.Client
	wait     func(context.Context, time.Duration) error
	interval time.Duration
	requests int
}

func newFetcher(base *url.URL, o Options) *fetcher {
	f := &fetcher{wait: o.Wait, interval: requestInterval}
	if f.wait == nil {
		f.wait = Sleep
	}
	transport := o.Transport
	if transport == nil {
		transport = &http.Transport{
			DialContext:         outbound.Dialer(requestTimeout, namedAddresses(base)).DialContext,
			TLSHandshakeTimeout: requestTimeout, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 1,
			IdleConnTimeout: requestTimeout, MaxResponseHeaderBytes: 256 << 10,
		}
	}
	f.client = &http.Client{
		Transport: transport, Timeout: requestTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return f
}

// namedAddresses returns the address in a URL whose host is an IP address or localhost. The audit may connect to this
// address even if it is private.
func namedAddresses(u *url.URL) []netip.Prefix {
	if u.Hostname() == "localhost" {
		return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil {
		addr = addr.Unmap().WithZone("")
		return []netip.Prefix{netip.PrefixFrom(addr, addr.BitLen())}
	}
	return nil
}

// Sleep waits for a duration. If ctx ends before that, it returns the error of ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// response holds the response to a request, after redirects.
type response struct {
	agent     agent
	requested *url.URL
	final     *url.URL
	redirects []string // URLs of the redirects
	status    int
	header    http.Header
	body      []byte
	truncated bool // true if the body is longer than maxBody
	err       error
}

// get sends a request, and follows redirects to any URL. It is used only for robots.txt. For pages, see auditor.get.
func (f *fetcher) get(ctx context.Context, u *url.URL, as agent) *response {
	return f.follow(ctx, u, as, func(*url.URL) error { return nil })
}

// follow sends a request, and follows redirects. Before each request, it calls the function may with the URL. If the
// function returns an error, follow does not send the request, and stores the error in the response.
func (f *fetcher) follow(ctx context.Context, u *url.URL, as agent, may func(*url.URL) error) *response {
	r := &response{agent: as, requested: u, final: u}
	for {
		if r.err = may(r.final); r.err != nil {
			r.status, r.header = 0, nil
			return r
		}
		resp, err := f.once(ctx, r.final, as)
		if err != nil {
			r.err = err
			return r
		}
		r.status, r.header = resp.StatusCode, resp.Header
		next, err := resp.Location()
		if err != nil || r.status < 300 || r.status > 399 {
			r.body, r.truncated, r.err = readBody(resp.Body)
			resp.Body.Close()
			return r
		}
		resp.Body.Close()
		if len(r.redirects) == maxRedirects {
			r.err = errTooManyRedirects
			return r
		}
		if next.Scheme != "http" && next.Scheme != "https" {
			r.err = fmt.Errorf("redirect to %q", next)
			return r
		}
		next.Fragment = ""
		r.redirects = append(r.redirects, next.String())
		r.final = next
	}
}

var errTooManyRedirects = errors.New("more than 5 redirects")

// once sends one request, after a pause.
func (f *fetcher) once(ctx context.Context, u *url.URL, as agent) (*http.Response, error) {
	if f.requests > 0 {
		if err := f.wait(ctx, f.interval); err != nil {
			return nil, err
		}
	}
	f.requests++
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", as.userAgent)
	r.Header.Set("Accept", "text/html,application/xhtml+xml,text/plain,application/xml;q=0.9,*/*;q=0.8")
	resp, err := f.client.Do(r)
	if uerr := (*url.Error)(nil); errors.As(err, &uerr) {
		err = uerr.Err // the report already names the URL
	}
	return resp, err
}

func readBody(body io.Reader) (data []byte, truncated bool, err error) {
	data, err = io.ReadAll(io.LimitReader(body, maxBody+1))
	if len(data) > maxBody {
		return data[:maxBody], true, err
	}
	return data, false, err
}

func (r *response) ok() bool { return r != nil && r.err == nil && r.status >= 200 && r.status < 300 }

// refused reports whether the server blocked the client. It returns false for a missing page.
func (r *response) refused() bool {
	if r == nil || r.err != nil {
		return false
	}
	return slices.Contains(refusals, r.status) || r.header.Get("Cf-Mitigated") != ""
}

var refusals = []int{
	http.StatusUnauthorized, http.StatusForbidden, http.StatusNotAcceptable, http.StatusGone,
	http.StatusTooManyRequests, http.StatusUnavailableForLegalReasons, http.StatusServiceUnavailable,
}

func (r *response) outcome() string {
	if _, closed := errors.AsType[*closedError](r.err); closed {
		return r.err.Error()
	}
	if r.err != nil {
		return "no response: " + r.err.Error()
	}
	s := strings.TrimSpace(strconv.Itoa(r.status) + " " + http.StatusText(r.status))
	if r.header.Get("Cf-Mitigated") != "" {
		s += ", a challenge"
	}
	return s
}

// mediaType returns the media type of the body in lower case, without parameters.
func (r *response) mediaType() string {
	t, _, err := mime.ParseMediaType(r.header.Get("Content-Type"))
	if err != nil {
		t, _, _ = strings.Cut(r.header.Get("Content-Type"), ";")
		t = strings.ToLower(strings.TrimSpace(t))
	}
	return t
}

func (r *response) isHTML() bool {
	t := r.mediaType()
	return t == "text/html" || t == "application/xhtml+xml"
}

// looksLikeHTML reports whether the body looks like a web page, whatever its media type is.
func (r *response) looksLikeHTML() bool {
	start := strings.ToLower(strings.TrimSpace(strings.TrimPrefix(string(r.body[:min(len(r.body), 512)]), "\ufeff")))
	return strings.HasPrefix(start, "<")
}

// cached returns the evidence that a cache answered, or "".
func (r *response) cached() string {
	if r == nil || r.err != nil {
		return ""
	}
	if age, err := strconv.Atoi(r.header.Get("Age")); err == nil && age > 0 {
		return "Age: " + strconv.Itoa(age)
	}
	for _, name := range []string{"Cache-Status", "X-Cache", "X-Cache-Status", "Cf-Cache-Status", "X-Proxy-Cache", "X-Varnish-Cache", "X-Served-From-Cache"} {
		if v := r.header.Get(name); strings.Contains(strings.ToLower(v), "hit") || strings.EqualFold(v, "stale") {
			return name + ": " + v
		}
	}
	return ""
}

// storable reports whether a shared cache may store the response (RFC 9111 section 3).
func (r *response) storable() bool {
	cc := strings.ToLower(strings.Join(r.header.Values("Cache-Control"), ","))
	for d := range strings.SplitSeq(cc, ",") {
		switch d, _, _ = strings.Cut(strings.TrimSpace(d), "="); d {
		case "no-store", "private", "no-cache":
			return false
		}
	}
	return r.header.Get("Set-Cookie") == ""
}

// varies reports whether the Vary header says that the response depends on User-Agent.
func (r *response) varies() bool {
	for name := range strings.SplitSeq(strings.Join(r.header.Values("Vary"), ","), ",") {
		if name = strings.TrimSpace(name); name == "*" || strings.EqualFold(name, "User-Agent") {
			return true
		}
	}
	return false
}
