// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"net/http"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// logRefusal writes a line about a refusal, or about what would be one.
func (h *Handler) logRefusal(r *http.Request, v *visit) {
	message := "crawler would be refused"
	if v.action == policy.ModeBlock {
		message = "crawler refused"
	}
	c := h.logger.Check(zapcore.InfoLevel, message)
	if c == nil {
		return
	}
	key := sampleKey{crawler: v.id, rule: v.rule, action: v.action, impostor: v.impostor}
	told, skipped := h.samples.take(key, v.query.Now)
	if !told {
		return
	}
	reason, place := "disallowed", v.site.File.Name
	if v.impostor {
		reason = "impostor"
	} else {
		place = v.site.Place(v.statement.Pos)
	}
	c.Write(append(v.logFields(r),
		zap.String("reason", reason), zap.String("rule", v.ruleName()), zap.String("policy", place), zap.Int("not_logged", skipped))...)
}

// logFields say who asked for what.
func (v *visit) logFields(r *http.Request) []zap.Field {
	client, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	return append(make([]zap.Field, 0, 12),
		zap.String("crawler", v.crawler.Token), zap.String("kind", v.crawler.Kind), zap.String("operator", v.crawler.Operator),
		zap.String("verified", v.identity.String()), zap.String("client_ip", client),
		zap.String("host", v.query.Host), zap.String("uri", v.query.Path))
}

// tell makes what was found out about a request known to other directives and to
// access logs. A nil visit is one of no crawler.
func (v *visit) tell(r *http.Request) {
	ctx := r.Context()
	repl, ok := ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if v == nil {
		if ok {
			repl.Map(nobody)
		}
		return
	}
	if ok {
		repl.Map(v.placeholders)
	}
	if v.server != nil && v.server.Logs == nil {
		return // a server without access logs
	}
	if extra, ok := ctx.Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields); ok {
		extra.Set(zap.Object("robots_policy", v.finding))
	}
}

// The sampling of log lines: of each kind of line the first few in a minute, and
// then one in many.
const (
	sampleWindow  = time.Minute
	sampleFirst   = 10
	sampleThen    = 100
	maxSampleKeys = 1000
)

// sampleKey is a kind of line.
type sampleKey struct {
	crawler   policy.CrawlerID
	rule      *policy.Rule
	action    policy.Mode
	impostor  bool
	violation bool
}

// sampler chooses which lines are logged. Its memory is bounded: past
// maxSampleKeys kinds in a minute, the rest count as one.
type sampler struct {
	mu     sync.Mutex
	since  time.Time
	counts map[sampleKey]*sampleCount
}

type sampleCount struct{ seen, skipped int }

// take reports whether to log a line, and how many of its kind were not logged
// since the last one.
func (s *sampler) take(key sampleKey, now time.Time) (ok bool, skipped int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil || now.Sub(s.since) >= sampleWindow || now.Before(s.since) {
		s.since = now
		fresh := map[sampleKey]*sampleCount{}
		for k, c := range s.counts {
			if c.skipped > 0 { // to be told with the next line of the kind
				fresh[k] = &sampleCount{skipped: c.skipped}
			}
		}
		if len(fresh) >= maxSampleKeys {
			clear(fresh)
		}
		s.counts = fresh
	}
	c := s.counts[key]
	if c == nil {
		if len(s.counts) >= maxSampleKeys {
			key = sampleKey{}
			c = s.counts[key]
		}
		if c == nil {
			c = new(sampleCount)
			s.counts[key] = c
		}
	}
	c.seen++
	if c.seen > sampleFirst && (c.seen-sampleFirst)%sampleThen != 0 {
		c.skipped++
		return false, 0
	}
	skipped, c.skipped = c.skipped, 0
	return true, skipped
}
