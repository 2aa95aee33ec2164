// SPDX-License-Identifier: Apache-2.0

// Package handler publishes and enforces a policy for crawlers around any HTTP handler. It answers requests for
// robots.txt and for the rights documents, and blocks and limits crawlers. It adds headers and meta tags to
// responses, and passes requests to recorders. It does not depend on Caddy: [Handler.Wrap] is middleware for
// net/http.
package handler

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/channels"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/handler/upstream"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/logsample"
	"github.com/robotspolicy/caddy-robots-policy/metainject"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// Policies finds the policy of a host. A [source.Store] implements it.
type Policies interface {
	// Get returns the policy of a host, or nil if the host has none. An error means that the implementation cannot find
	// out now whether the host has a policy. The handler then answers every request with status 503. If the error is a
	// [source.UnavailableError], the handler answers only requests for robots.txt with status 503, and passes other
	// requests on.
	Get(ctx context.Context, host string) (*source.Snapshot, error)
}

// RobotsTxt selects how requests for /robots.txt are answered.
type RobotsTxt int

const (
	RobotsTxtReplace RobotsTxt = iota // answer with the policy's robots.txt
	RobotsTxtMerge                    // answer with the policy's robots.txt, merged with the next handler's
	RobotsTxtOff                      // leave the answer to the next handler
)

// Options configure a Handler. Only Policies is required.
type Options struct {
	Policies Policies

	// MaxMode is the strictest reaction to crawlers that the policy disallows. If the policy has a stricter mode,
	// MaxMode is used instead. The zero value, ModeUnset, means ModeBlock, so that only the policy decides.
	MaxMode policy.Mode

	// RaiseRefusals makes the handler return an [*Error] for a blocked request, instead of writing a response. Use it
	// in servers with error routes.
	RaiseRefusals bool

	RobotsTxt RobotsTxt

	// MaxAge limits the time during which clients may cache robots.txt. 0 means [robotsserve.DefaultMaxAge]; a
	// negative duration means that they may not cache it.
	MaxAge time.Duration

	// Headers selects the headers to add. 0 means all headers, NoHeaders none.
	Headers   robotstag.Channels
	NoHeaders bool

	// Tailored means that headers and meta tags contain only the rules for the requesting crawler. If Tailored is
	// false, every response contains the rules for all crawlers.
	Tailored bool

	// Meta selects how the robots meta tags of pages are changed. MaxHead limits how many bytes of a page are searched
	// for the end of its head; 0 means [metainject.DefaultMaxHead].
	Meta    metainject.Mode
	MaxHead int

	// Verifier verifies the identity of clients. If it is nil, clients are not verified. The handler does not close
	// it.
	Verifier *identity.Verifier

	Logger    *zap.Logger         // nil disables logging
	Metrics   *Metrics            // nil if the counters are not exported
	Recorders *activity.Recorders // record the requests; may be nil
	Server    Server              // nil means NetHTTP

	// Decide is the protocol in which other servers ask about requests that they have received, or "". With a
	// protocol, use Handler.Decide instead of Wrap and Serve. Meta and RobotsTxtMerge have no effect then, because
	// the handler does not see pages.
	Decide Style
}

// Handler applies policies to requests. It is safe for concurrent use.
type Handler struct {
	Options
	override  atomic.Int32 // a policy.Mode that limits MaxMode; ModeUnset means no limit
	samples   logsample.Sampler[lineKind]
	warned    logsample.Once
	robots    *wellKnown[robotstxt.File] // nil means RobotsTxtOff
	documents map[*channels.Channel]wellKnown[upstream.Document]
	decisions decisions
	unknown   func(*http.Request) // publishes a request that is not from a known crawler
	longHead  func(*http.Request) // called for pages whose head is longer than MaxHead
}

// New returns a handler. It panics if Options.Policies is nil.
func New(o Options) *Handler {
	if o.Policies == nil {
		panic("handler.New: Options.Policies is nil")
	}
	o.MaxMode = cmp.Or(o.MaxMode, policy.ModeBlock)
	o.MaxHead = cmp.Or(o.MaxHead, metainject.DefaultMaxHead)
	o.Headers = cmp.Or(o.Headers, robotstag.AllChannels)
	o.MaxAge = max(cmp.Or(o.MaxAge, robotsserve.DefaultMaxAge), 0)
	if o.NoHeaders {
		o.Headers = 0
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics()
	}
	if o.Server == nil {
		o.Server = NetHTTP{}
	}
	if o.Decide != "" {
		o.Meta = metainject.Off
	}
	h := &Handler{Options: o, unknown: o.Server.Publisher(nil)}
	h.longHead = h.warnOfLongHead
	h.provisionWellKnown()
	return h
}

// Serve answers a request, or calls next and adds the policy's headers and meta tags to its response. The policy is
// applied to the request target that the client sent, before any rewrite. If the error is an [*Error], the server's
// error routes should answer.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request, next upstream.Next) error {
	target, ok := site.PathOf(h.Server.Original(r))
	if !ok {
		answerOpaque(w)
		return nil
	}
	return h.serve(w, r, next, target, nil)
}

// serve implements Serve for a request target. check is not nil if another server received the request.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, next upstream.Next, target string, check *check) (err error) {
	q := request{Request: r, h: h, w: w, next: next, check: check, target: site.NewTarget(r.Host, target)}
	q.snapshot, err = h.Policies.Get(r.Context(), r.Host)
	if _, ok := errors.AsType[source.UnavailableError](err); ok {
		return q.answerUnavailable()
	}
	if err != nil {
		return &Error{http.StatusServiceUnavailable, err}
	}
	if q.snapshot == nil || check == nil && h.Server.IsInclude(r) && !q.isRobots() {
		return next.ServeHTTP(w, r)
	}
	if h.Server.Vars(r) == nil {
		q.Request = withVars(r)
	}
	if q.judge(); q.decision != nil {
		q.decision.publish(q.Request)
	} else {
		h.unknown(q.Request)
	}
	if rec := q.record(); rec != nil {
		defer func() { rec.end(&q, err) }()
		q.w = rec
		err = q.answer()
		rec.returned = true
		return err
	}
	return q.answer()
}

// Wrap returns a handler that applies the policies to the requests and responses of next. It is middleware of the
// usual form func(http.Handler) http.Handler.
func (h *Handler) Wrap(next http.Handler) http.Handler {
	following := withoutError{next}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h.Serve(w, r, following); err != nil {
			h.writeError(w, r, err)
		}
	})
}

// writeError answers with an error. If err is about a blocked request, the client gets its message, because the author
// of the policy wrote it for clients. If err says why a policy is not available, the client gets only the status, and
// the error is logged.
func (h *Handler) writeError(w http.ResponseWriter, r *http.Request, err error) {
	status, message := h.Server.ErrorStatus(err), err.Error()
	if status >= http.StatusInternalServerError {
		if ok, skipped := h.samples.Sample(lineKind{}, time.Now()); ok {
			h.Logger.Error("answering a request", zap.String("host", r.Host), zap.Error(err), zap.Int("skipped", skipped))
		}
		message = http.StatusText(status)
	}
	http.Error(w, message, status)
}

// withoutError adapts an http.Handler to upstream.Next, whose ServeHTTP returns an error.
type withoutError struct{ http.Handler }

// ServeHTTP implements upstream.Next.
func (n withoutError) ServeHTTP(w http.ResponseWriter, r *http.Request) error {
	n.Handler.ServeHTTP(w, r)
	return nil
}

// SetOverride makes the handler enforce at most the mode m, even if its options and the policies are stricter.
// SetOverride(ModeUnset) removes this limit. Remove the limit before you stop using the handler, because limited
// handlers are counted in the metrics.
func (h *Handler) SetOverride(m policy.Mode) {
	if before := policy.Mode(h.override.Swap(int32(m))); before != policy.ModeUnset {
		h.Metrics.override.WithLabelValues(before.String()).Dec()
	}
	if m != policy.ModeUnset {
		h.Metrics.override.WithLabelValues(m.String()).Inc()
	}
}

// mode returns the strictest mode that the handler enforces.
func (h *Handler) mode() policy.Mode {
	if o := policy.Mode(h.override.Load()); o != policy.ModeUnset {
		return min(o, h.MaxMode)
	}
	return h.MaxMode
}

// Upstream returns the robots.txt that the next handler last sent for a host, or nil if the host has none. known
// reports whether the next handler has answered a request for this file yet.
func (h *Handler) Upstream(host string) (below *robotstxt.File, known bool) {
	if h.robots == nil || h.robots.upstreams == nil {
		return nil, true
	}
	return h.robots.upstreams.Last(host)
}
