// SPDX-License-Identifier: Apache-2.0

// Package handler publishes and enforces a policy for crawlers around any HTTP handler. It
// answers requests for robots.txt and for the rights documents, and blocks and limits crawlers.
// It adds headers and meta tags to responses, and passes requests to recorders. It needs no
// Caddy; [Handler.Wrap] is middleware for net/http.
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

// Policies finds the policy of a host for a handler, such as a [source.Store].
type Policies interface {
	// Get returns the policy of a host, nil if it has none. An error means that the
	// policy is not known now; the request is answered with 503. With a
	// [source.UnavailableError], that is so for robots.txt only, and pages pass.
	Get(ctx context.Context, host string) (*source.Snapshot, error)
}

// RobotsTxt is the treatment of requests for /robots.txt.
type RobotsTxt int

const (
	RobotsTxtReplace RobotsTxt = iota // answer from the policy
	RobotsTxtMerge                    // add the robots.txt of the handlers that follow
	RobotsTxtOff                      // pass them on
)

// Options say how a handler applies the policies. Only Policies is needed.
type Options struct {
	Policies Policies

	// MaxMode is the most that is done about a crawler that the policy disallows.
	// ModeUnset stands for ModeBlock.
	MaxMode policy.Mode

	// RaiseRefusals returns a block as an [*Error], for the error routes of a server
	// that has some.
	RaiseRefusals bool

	RobotsTxt RobotsTxt

	// MaxAge is the time for which clients may use robots.txt. 0 stands for
	// [robotsserve.DefaultMaxAge], a negative age for none.
	MaxAge time.Duration

	// Headers are the headers to add; 0 stands for all, NoHeaders for none.
	Headers   robotstag.Channels
	NoHeaders bool

	// Tailored gives each crawler, in headers and pages, what the policy says to it alone.
	Tailored bool

	// Meta is the treatment of pages' robots meta tags, and MaxHead the number of bytes of a
	// page that are searched for its head. 0 stands for [metainject.DefaultMaxHead].
	Meta    metainject.Mode
	MaxHead int

	// Verifier verifies clients. With nil, clients are not verified. It is not closed.
	Verifier *identity.Verifier

	Logger    *zap.Logger         // nil: nothing is logged
	Metrics   *Metrics            // nil: what is counted is not seen
	Recorders *activity.Recorders // of requests; nil: none
	Server    Server              // nil: net/http

	// Decide is the protocol in which other servers ask about their requests, "" if none do.
	// With one, use Handler.Decide, and neither Wrap nor Serve. Pages are not seen, so Meta and
	// RobotsTxtMerge have no effect.
	Decide Style
}

// Handler applies policies to requests. It is safe for concurrent use.
type Handler struct {
	Options
	override  atomic.Int32 // a policy.Mode that limits MaxMode; ModeUnset: none
	samples   logsample.Sampler[lineKind]
	warned    logsample.Once
	robots    *wellKnown[robotstxt.File] // nil: RobotsTxtOff
	documents map[*channels.Channel]wellKnown[upstream.Document]
	decisions decisions
	unknown   func(*http.Request) // publishes a request by anyone but a known crawler
	longHead  func(*http.Request) // called for pages whose head is longer than MaxHead
}

// New returns a handler. It panics without Policies.
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

// Serve answers a request, or lets next answer it with what the policy adds. It goes by
// the request target as the client sent it, before any rewrite. An [*Error] is for the
// server's error routes.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request, next upstream.Next) error {
	target, ok := site.PathOf(h.Server.Original(r))
	if !ok {
		answerOpaque(w)
		return nil
	}
	return h.serve(w, r, next, target, nil)
}

// serve is Serve for a target. A check is a request that another server has received.
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

// Wrap returns a handler that applies the policies to what next answers. It fits
// wherever func(http.Handler) http.Handler does.
func (h *Handler) Wrap(next http.Handler) http.Handler {
	following := withoutError{next}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h.Serve(w, r, following); err != nil {
			h.writeError(w, r, err)
		}
	})
}

// writeError answers with an error. The message of a block is the policy's, and meant
// for the client; why a policy is not known is for the log.
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

// withoutError is an http.Handler as one that can return an error.
type withoutError struct{ http.Handler }

// ServeHTTP implements upstream.Next.
func (n withoutError) ServeHTTP(w http.ResponseWriter, r *http.Request) error {
	n.Handler.ServeHTTP(w, r)
	return nil
}

// SetOverride limits what the handler enforces, whatever its options and the policies
// say. ModeUnset lifts the limit; do so when the handler is no longer used.
func (h *Handler) SetOverride(m policy.Mode) {
	if before := policy.Mode(h.override.Swap(int32(m))); before != policy.ModeUnset {
		h.Metrics.override.WithLabelValues(before.String()).Dec()
	}
	if m != policy.ModeUnset {
		h.Metrics.override.WithLabelValues(m.String()).Inc()
	}
}

// mode returns what is enforced at most.
func (h *Handler) mode() policy.Mode {
	if o := policy.Mode(h.override.Load()); o != policy.ModeUnset {
		return min(o, h.MaxMode)
	}
	return h.MaxMode
}

// Upstream returns the robots.txt of a host in the handlers that follow: the last fetched one, or nil if there is none. It
// also reports whether they have answered yet.
func (h *Handler) Upstream(host string) (below *robotstxt.File, known bool) {
	if h.robots == nil || h.robots.upstreams == nil {
		return nil, true
	}
	return h.robots.upstreams.Last(host)
}
