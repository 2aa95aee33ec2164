// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/internal/crawllimit"
	"github.com/robotspolicy/caddy-robots-policy/internal/fetchlog"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/logsample"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights/rsl"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// edge evaluates the requests of crawlers, and refuses those that the policy blocks.
type edge struct {
	logger   *zap.Logger
	maxMode  policy.Mode
	override atomic.Int32 // a policy.Mode set by the admin API; ModeUnset: none
	refusal  refusal
	verifier *identity.Verifier
	metrics  *visitMetrics
	samples  logsample.Sampler[lineKind]
}

// lineKind is a kind of log line, for sampling.
type lineKind struct {
	crawler   policy.CrawlerID
	rule      *policy.Rule
	action    policy.Mode
	impostor  bool
	limited   bool
	violation bool
}

// newEdge returns an edge, to be closed. Nothing is fetched before the first
// request.
func newEdge(logger *zap.Logger, maxMode policy.Mode, methods identity.Methods, f refusal) *edge {
	e := &edge{logger: logger, maxMode: maxMode, refusal: f, verifier: identity.New(methods), metrics: processMetrics}
	edges.add(e)
	return e
}

func (e *edge) close() {
	if e != nil {
		edges.remove(e)
		e.verifier.Close()
	}
}

// evaluate fills in v and returns it, or nil if a request is not by a crawler that the
// policy knows. The caller provides v so that it need not be allocated.
func (e *edge) evaluate(s *source.Snapshot, r *http.Request, path string, v *visit) *visit {
	var buf [4]policy.CrawlerID
	all := e.recognize(buf[:0], s, r)
	if len(all) == 0 {
		return nil
	}
	identify := func(id policy.CrawlerID) policy.Identity {
		return e.verifier.Identify(r, s.Site.Identities(), s.Site.Verification(id))
	}
	query, verdict := s.Site.EdgeOfAll(all, policy.Query{
		Host: r.Host, Path: path, Now: time.Now(),
		Purposes: s.Site.Purposes(r.Header["User-Agent"]),
	}, identify)
	v.query, v.several, v.anyCase = query, len(all) > 1, verdict.AnyCase
	// A crawler that proves who it is does not escape by naming our audit.
	v.audit = query.Identity != policy.Verified && strings.Contains(r.UserAgent(), activity.AuditProduct)
	v.statement = verdict.Decision.Statement
	kind := classify(v.query.Identity, verdict, e.mode())
	if !kind.refused() {
		var buf [4]site.Limit
		if limits := s.Site.LimitsOfAll(buf[:0], all, query, identify); len(limits) > 0 {
			countLimits(&sharedOf(s).limiter, e.mode(), limits, s, r, v, &kind)
		}
	}
	v.outcome = outcomesOf(s).get(s.Site, kind, e.metrics)
	return v
}

// recognize appends to ids the crawlers that a request is from: the one that its
// signature or address proves, or else those that its User-Agent names.
func (e *edge) recognize(ids []policy.CrawlerID, s *source.Snapshot, r *http.Request) []policy.CrawlerID {
	named := s.Site.RecognizeAll(ids, r.Header["User-Agent"])
	proven := e.verifier.Recognize(r, s.Site.Identities(), len(named) > 0, func(c *crawlers.Crawler) bool {
		return slices.Contains(named, s.Site.Policy.Crawler(c.Token))
	})
	if proven == nil {
		return named
	}
	if id := s.Site.Policy.Crawler(proven.Token); id != 0 {
		return append(ids, id)
	}
	return named
}

// mode returns what is enforced at most.
func (e *edge) mode() policy.Mode {
	if o := policy.Mode(e.override.Load()); o != policy.ModeUnset {
		return min(o, e.maxMode)
	}
	return e.maxMode
}

// evaluatedVar is the request variable that is set once the edge has enforced the
// policy on a request.
const evaluatedVar = "robots_policy.evaluated"

// applies reports whether the policy is still to be enforced on a visit. Error
// routes handle a request that was evaluated before the error, unless the error came
// first.
func (*edge) applies(r *http.Request) bool {
	vars, ok := r.Context().Value(caddyhttp.VarsCtxKey).(map[string]any)
	if !ok {
		return true
	}
	if vars[evaluatedVar] != nil && r.Context().Value(caddyhttp.ErrorCtxKey) != nil {
		return false
	}
	vars[evaluatedVar] = true
	return true
}

// enforce counts a visit and does what the policy demands. If the visit is refused,
// it is answered, or err is the answer.
func (e *edge) enforce(w http.ResponseWriter, r *http.Request, s *source.Snapshot, v *visit) (refused bool, err error) {
	v.countEdge()
	e.checkViolation(r, s, v)
	if v.action <= policy.ModeOff {
		return false, nil
	}
	e.logRefusal(r, v)
	if v.action != policy.ModeBlock {
		return false, nil
	}
	if v.limited {
		return true, e.refusal.tooMany(w, r, v.wait)
	}
	if link := v.site.LicenceLink(r.Host); link != "" && v.site.File.Spec.Enforcement.Status == http.StatusPaymentRequired {
		rsl.ApplyLink(w.Header(), link) // where to pay
	}
	return true, e.refusal.answer(w, r, &v.site.File.Spec.Enforcement)
}

// logRefusal logs a refusal or, in mode log, what would be one.
func (e *edge) logRefusal(r *http.Request, v *visit) {
	c := e.logger.Check(zapcore.InfoLevel, refusalMessage(v))
	if c == nil {
		return
	}
	kind := lineKind{crawler: v.crawler, rule: v.rule, action: v.action, impostor: v.impostor, limited: v.limited}
	ok, skipped := e.samples.Sample(kind, v.query.Now)
	if !ok {
		return
	}
	reason, place := "disallowed", v.site.File.Name
	switch {
	case v.impostor:
		reason = "impostor"
	case v.limited:
		reason, place = "limited", v.site.Place(v.limitPos)
	case v.anyCase:
		reason, place = "disallowed in another letter case", v.site.Place(v.statement.Pos)
	default:
		place = v.site.Place(v.statement.Pos)
	}
	c.Write(append(v.logFields(r),
		zap.String("reason", reason), zap.String("rule", v.ruleName()), zap.String("policy", place), zap.Int("skipped", skipped))...)
}

// refusalMessage returns a constant: most requests pay for it without being logged.
func refusalMessage(v *visit) string {
	switch {
	case v.action == policy.ModeBlock && v.limited:
		return "crawler limited"
	case v.action == policy.ModeBlock:
		return "crawler refused"
	case v.limited:
		return "crawler would be limited"
	}
	return "crawler would be refused"
}

// checkViolation counts and logs a visit that violates the robots.txt that the
// crawler has fetched.
func (e *edge) checkViolation(r *http.Request, s *source.Snapshot, v *visit) {
	version, d, ok := fetchesOf(s).Violation(v.fetcher, v.site, v.query)
	if !ok || v.audit {
		return
	}
	v.violation = true
	e.metrics.violations.WithLabelValues(e.metrics.crawler(v.info.Token), e.metrics.rule(version.Site, d.Rule)).Inc()
	c := e.logger.Check(zapcore.InfoLevel, "crawler violates robots.txt")
	if c == nil {
		return
	}
	ok, skipped := e.samples.Sample(lineKind{crawler: v.crawler, rule: d.Rule, violation: true}, v.query.Now)
	if !ok {
		return
	}
	c.Write(append(v.logFields(r),
		zap.String("robots_txt", version.ETag), zap.Time("fetched", version.At),
		zap.String("rule", version.Site.RuleName(d.Rule)), zap.String("policy", version.Site.Place(d.Statement.Pos)),
		zap.Int("skipped", skipped))...)
}

// Bounds of the fetch log of one policy. The policy of one host needs little, and
// there can be thousands of them.
const (
	maxFetchers, maxFetchedPolicies         = 4096, 32
	maxFetchersPerHost, maxFetchedOfOneHost = 64, 8
)

// shared is what all versions of a policy share.
type shared struct {
	fetches *fetchlog.Log
	limiter crawllimit.Limiter
}

func sharedOf(s *source.Snapshot) *shared {
	return s.Shared(func() any {
		if s.PerHost {
			return &shared{fetches: fetchlog.New(maxFetchersPerHost, maxFetchedOfOneHost)}
		}
		return &shared{fetches: fetchlog.New(maxFetchers, maxFetchedPolicies)}
	}).(*shared)
}

// fetchesOf returns who has fetched the robots.txt of a policy, in this version and
// those before it.
func fetchesOf(s *source.Snapshot) *fetchlog.Log { return sharedOf(s).fetches }

// edges are those of all handlers, so that the admin API can switch enforcement off.
var edges edgeSet

type edgeSet struct {
	mu  sync.Mutex
	all map[*edge]bool
}

func (s *edgeSet) add(e *edge) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[*edge]bool{}
	}
	s.all[e] = true
}

func (s *edgeSet) remove(e *edge) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, e)
	e.setOverride(policy.ModeUnset)
}

// override limits what all handlers enforce, until a new configuration is loaded.
// ModeUnset lifts the limit. It returns how many handlers there are.
func (s *edgeSet) override(m policy.Mode) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := range s.all {
		e.setOverride(m)
	}
	return len(s.all)
}

func (e *edge) setOverride(m policy.Mode) {
	if before := policy.Mode(e.override.Swap(int32(m))); before != policy.ModeUnset {
		e.metrics.override.WithLabelValues(before.String()).Dec()
	}
	if m != policy.ModeUnset {
		e.metrics.override.WithLabelValues(m.String()).Inc()
	}
}
