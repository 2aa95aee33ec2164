// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/net/http/httpguts"

	"github.com/robotspolicy/caddy-robots-policy/metainject"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

func (h *Handler) warnOfLongHead(r *http.Request) {
	if h.warned.First("meta_limit") {
		h.Logger.Warn("the head of a page is longer than meta_limit: robots meta tags further down are not merged with the policy's; set meta_limit higher",
			zap.String("host", r.Host), zap.String("path", r.URL.Path), zap.Int("meta_limit", h.MaxHead))
	}
}

// servePage calls the next handler, and adds the policy's headers and meta tags for the path to the response. count
// reports whether to count the request.
func (q *request) servePage(count bool) error {
	page, etag := q.page()
	if count {
		q.h.countPage(q.decision, q.h.Headers != 0 && page.Values.Send(), page.Elements.Send())
	}
	if page.Values == nil && page.Elements == nil && len(page.Declared) == 0 && !q.h.Tailored {
		return q.next.ServeHTTP(q.w, q.Request)
	}
	hook := headerHooks.Get().(*headerHook)
	hook.h, hook.page = q.h, page
	rw := metainject.Wrap(q.w, q.Request, metainject.Options{
		Set: page.Elements, Mode: q.h.Meta, ETagSuffix: etag, MaxHead: q.h.MaxHead, Header: hook, LongHead: q.h.longHead,
	})
	defer func() {
		rw.Release()
		*hook = headerHook{}
		headerHooks.Put(hook)
	}()
	err := q.next.ServeHTTP(rw, rw.Request())
	if closing := rw.Close(err); err == nil {
		err = closing
	}
	return err
}

// page returns the headers and meta tags for the response, and the suffix for the entity tag of a changed page.
func (q *request) page() (*site.Page, string) {
	var now time.Time // zero: site.Page reads the clock only if the policy has dates
	s, suffix := q.snapshot.Site, q.snapshot.ETagSuffix
	if !q.h.Tailored {
		return s.PageOf(&q.target, now), suffix
	}
	if q.several { // the version for everyone has the restrictions of all crawlers
		return s.PageOf(&q.target, now), suffix + "-all"
	}
	crawler := policy.CrawlerID(0)
	if q.decision != nil {
		crawler = q.decision.crawler
	}
	return s.Tailored(crawler, &q.target, now), suffix + "-" + strconv.Itoa(int(crawler))
}

// addHeaders adds the policy's headers for the path to a response that is not a page, just before the response is
// written.
func (q *request) addHeaders() {
	page, _ := q.page()
	(&headerHook{q.h, page}).OnHeader(http.StatusOK, q.w.Header())
}

// headerHook merges the policy's headers for a page into a response, once the response's header is complete.
type headerHook struct {
	h    *Handler
	page *site.Page
}

var headerHooks = sync.Pool{New: func() any { return new(headerHook) }}

// OnHeader implements metainject.HeaderHook.
func (k *headerHook) OnHeader(_ int, header http.Header) {
	h := k.h
	if h.Tailored && !httpguts.HeaderValuesContainsToken(header["Vary"], "User-Agent") {
		header.Add("Vary", "User-Agent")
	}
	if h.Headers == 0 {
		return
	}
	k.page.Declare(header)
	if k.page.Values == nil {
		return
	}
	for _, problem := range robotstag.Apply(header, k.page.Values, h.Headers) {
		if h.warned.First(string(problem.Kind) + problem.Field + problem.Text) {
			h.Logger.Warn("the upstream sent an invalid header, which Caddy cannot merge completely with the policy's header", zap.String("problem", problem.String()))
		}
	}
}
