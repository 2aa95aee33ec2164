// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"golang.org/x/net/http/httpguts"

	"github.com/robotspolicy/caddy-robots-policy/metainject"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// ServeHTTP gives each channel its turn. It decides on the request as the
// client sent it, whatever rewrites have made of it since.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	tunnel := r.Method == http.MethodConnect
	if tunnel && !strings.HasPrefix(r.RequestURI, "/") {
		return next.ServeHTTP(w, r) // it asks for another server, and for no path
	}
	l, err := h.policyOf(r)
	if l == nil || err != nil {
		if err != nil {
			return err
		}
		return next.ServeHTTP(w, r)
	}
	host, path := r.Host, sent(r)
	if h.RobotsTxt != "off" && isRobotsTxt(path) && !tunnel {
		h.serveRobots(w, r, l, next)
		return nil
	}
	if isPart(r) {
		return next.ServeHTTP(w, r)
	}
	crawler := l.site.Recognize(r.Header["User-Agent"])
	var v *visit
	if crawler != 0 {
		v = new(visit)
		v.judge(h, l, r, crawler, path)
	}
	v.tell(r)
	// What goes on for an error was judged and counted before there was one.
	first := v != nil && !(h.hasErrorRoutes(v.server) && r.Context().Value(caddyhttp.ErrorCtxKey) != nil)
	if first {
		if refused, err := h.edge(w, r, v); refused {
			return err
		}
	}
	if tunnel {
		return next.ServeHTTP(w, r)
	}
	page, etag := h.page(l, crawler, host, path)
	if first {
		v.countPage(page, h.channels != 0)
	}
	if page.Values == nil && page.Elements == nil && !h.tailored {
		return next.ServeHTTP(w, r)
	}
	hook := hooks.Get().(*headerHook)
	hook.handler, hook.page = h, page
	rw := metainject.Wrap(w, r, metainject.Options{Set: page.Elements, Mode: h.meta, ETagSuffix: etag, Header: hook})
	defer func() {
		rw.Release()
		*hook = headerHook{}
		hooks.Put(hook)
	}()
	err = next.ServeHTTP(rw, rw.Request())
	if closing := rw.Close(err); err == nil {
		err = closing
	}
	return err
}

// page finds what the response carries, and what marks the entity tag of a page
// that is changed by it.
func (h *Handler) page(l *live, crawler policy.CrawlerID, host, path string) (*site.Page, string) {
	var now time.Time // the clock is asked where the policy has dates
	if !h.tailored {
		return l.site.Page(host, path, now), l.etag
	}
	return l.site.Tailored(crawler, host, path, now), l.etag + "-" + strconv.Itoa(int(crawler))
}

// sent returns the path and query of the request target as the client sent it.
// The host is what it is when the request gets here: Caddy keeps no original of it.
func sent(r *http.Request) string {
	if original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		r = &original
	}
	if strings.HasPrefix(r.RequestURI, "/") {
		return r.RequestURI
	}
	return pathpattern.Target(r.URL) // of a target in absolute form
}

// isPart tells whether Caddy's templates ask for a part of a page (httpInclude).
// No crawler asks for it, though the request has the header of the one that asks
// for the page, and elements in it would speak for the page. A client can send the
// header too, but no request without a target.
func isPart(r *http.Request) bool {
	if r.Header["Caddy-Templates-Include"] == nil {
		return false
	}
	original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request)
	return ok && original.RequestURI == ""
}

func isRobotsTxt(path string) bool {
	if strings.IndexByte(path, '%') >= 0 {
		path = pathpattern.NormalizePath(path) // "/%72obots.txt" is the same resource
	}
	rest, ok := strings.CutPrefix(path, "/robots.txt")
	return ok && (rest == "" || rest[0] == '?')
}

// headerHook merges the headers of a page into a response.
type headerHook struct {
	handler *Handler
	page    *site.Page
}

var hooks = sync.Pool{New: func() any { return new(headerHook) }}

// OnHeader implements metainject.HeaderHook.
func (hk *headerHook) OnHeader(_ int, header http.Header) {
	h := hk.handler
	if h.tailored && !httpguts.HeaderValuesContainsToken(header["Vary"], "User-Agent") {
		header.Add("Vary", "User-Agent")
	}
	if hk.page.Values == nil || h.channels == 0 {
		return
	}
	for _, p := range robotstag.Apply(header, hk.page.Values, robotstag.Options{Channels: h.channels}) {
		if h.told.first(string(p.Kind) + p.Field + p.Text) {
			h.logger.Warn("header of the upstream", zap.String("problem", p.String()))
		}
	}
}

// once remembers what was told already, up to a bound: the rest is told no more.
type once struct {
	mu   sync.Mutex
	seen map[string]bool
}

const maxTold = 100

func (o *once) first(what string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen[what] || len(o.seen) >= maxTold {
		return false
	}
	if o.seen == nil {
		o.seen = map[string]bool{}
	}
	o.seen[what] = true
	return true
}
