// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"golang.org/x/net/http/httpguts"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/logsample"
	"github.com/robotspolicy/caddy-robots-policy/metainject"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// pages adds headers and meta elements to responses.
type pages struct {
	logger   *zap.Logger
	channels robotstag.Channels
	tailored bool // each crawler gets what the policy says to it alone
	meta     metainject.Mode
	maxHead  int                 // bytes of a page that are searched for its head
	longHead func(*http.Request) // called for pages whose head is longer
	warned   logsample.Once
}

func newPages(logger *zap.Logger, channels robotstag.Channels, tailored bool, meta metainject.Mode, maxHead int) *pages {
	p := &pages{logger: logger, channels: channels, tailored: tailored, meta: meta, maxHead: maxHead}
	p.longHead = p.warnOfLongHead
	return p
}

func (p *pages) warnOfLongHead(r *http.Request) {
	if p.warned.First("meta_limit") {
		p.logger.Warn("the head of a page is longer than meta_limit: robots meta elements further down are not merged with the policy's; set meta_limit higher",
			zap.String("host", r.Host), zap.String("path", r.URL.Path), zap.Int("meta_limit", p.maxHead))
	}
}

// serve lets next answer, and adds what the policy says about the path. v is nil for
// anyone but a known crawler; count says whether to count the visit.
func (p *pages) serve(w http.ResponseWriter, r *http.Request, s *source.Snapshot, path string, v *visit, count bool, next caddyhttp.Handler) error {
	page, etag := p.page(s, v, r.Host, path)
	if count && v != nil {
		v.countPage(p.channels != 0 && page.Values != nil, page.Elements != nil)
	}
	if page.Values == nil && page.Elements == nil && page.Rights == nil && !p.tailored {
		return next.ServeHTTP(w, r)
	}
	hook := headerHooks.Get().(*headerHook)
	hook.pages, hook.page = p, page
	rw := metainject.Wrap(w, r, metainject.Options{Set: page.Elements, Mode: p.meta, ETagSuffix: etag, MaxHead: p.maxHead, Header: hook, LongHead: p.longHead})
	defer func() {
		rw.Release()
		*hook = headerHook{}
		headerHooks.Put(hook)
	}()
	err := next.ServeHTTP(rw, rw.Request())
	if closing := rw.Close(err); err == nil {
		err = closing
	}
	return err
}

// page returns what the response carries, and the suffix for the entity tag of a
// page that is rewritten.
func (p *pages) page(s *source.Snapshot, v *visit, host, path string) (*site.Page, string) {
	var now time.Time // site.Page asks the clock only if the policy has dates
	if !p.tailored {
		return s.Site.Page(host, path, now), s.ETagSuffix
	}
	crawler := policy.CrawlerID(0)
	if v != nil && v.several { // what everyone reads has the restrictions of each
		return s.Site.Page(host, path, now), s.ETagSuffix + "-all"
	}
	if v != nil {
		crawler = v.crawler
	}
	return s.Site.Tailored(crawler, host, path, now), s.ETagSuffix + "-" + strconv.Itoa(int(crawler))
}

// addHeaders adds what the policy says about a path to the header of a response that is
// about to be written and is no page.
func (p *pages) addHeaders(header http.Header, s *source.Snapshot, v *visit, host, path string) {
	page, _ := p.page(s, v, host, path)
	(&headerHook{p, page}).OnHeader(http.StatusOK, header)
}

// headerHook merges the headers of a page into a response when its header is
// complete.
type headerHook struct {
	pages *pages
	page  *site.Page
}

var headerHooks = sync.Pool{New: func() any { return new(headerHook) }}

// OnHeader implements metainject.HeaderHook.
func (h *headerHook) OnHeader(_ int, header http.Header) {
	p := h.pages
	if p.tailored && !httpguts.HeaderValuesContainsToken(header["Vary"], "User-Agent") {
		header.Add("Vary", "User-Agent")
	}
	if p.channels == 0 {
		return
	}
	h.page.Rights.Apply(header)
	if h.page.Values == nil {
		return
	}
	for _, problem := range robotstag.Apply(header, h.page.Values, p.channels) {
		if p.warned.First(string(problem.Kind) + problem.Field + problem.Text) {
			p.logger.Warn("the upstream sent an invalid header", zap.String("problem", problem.String()))
		}
	}
}
