// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// refusalTag is what a refusal itself is marked with.
var refusalTag, _ = robotstag.Build(
	[]robotstag.Member{{Token: robotstag.Everyone, Rules: robotsrule.Of("noindex")}}, robotstag.Usage{}, time.Time{})

var errRefused = errors.New("the site's policy does not allow this crawler here")

// enforce does about a refused request what the policy asks for, as far as this
// server goes along. The error, if any, is the answer.
func (h *Handler) enforce(w http.ResponseWriter, s *site.Site, host, path string, v site.Verdict) error {
	mode := min(v.Mode, h.most)
	if mode < policy.ModeLog {
		return nil
	}
	message := "crawler would be refused"
	if mode == policy.ModeBlock {
		message = "crawler refused"
	}
	if c := h.logger.Check(zapcore.InfoLevel, message); c != nil {
		info := s.Policy.CrawlerInfo(v.Crawler)
		c.Write(zap.String("crawler", info.Token), zap.String("kind", info.Kind), zap.String("operator", info.Operator),
			zap.String("host", host), zap.String("uri", path), zap.String("rule", s.RuleName(v.Decision.Rule)),
			zap.String("policy", s.Place(v.Decision.Statement.Pos)))
	}
	if mode != policy.ModeBlock {
		return nil
	}
	e := s.File.Spec.Enforcement
	if e.Close {
		panic(http.ErrAbortHandler)
	}
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	if e.RetryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int((e.RetryAfter+time.Second-1)/time.Second)))
	}
	robotstag.Apply(header, refusalTag, robotstag.Options{Channels: h.channels &^ robotstag.ContentUsage})
	status := e.Status
	if status == 0 {
		status = http.StatusForbidden
	}
	reason := errRefused
	if e.Message != "" {
		reason = errors.New(e.Message)
	}
	return caddyhttp.Error(status, reason)
}

const placeholderPrefix = "http.robots_policy."

// placeholders makes what was found out about a request known to other
// directives and to logs.
func placeholders(r *http.Request, s *site.Site, v site.Verdict) {
	repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if !ok {
		return
	}
	if v.Crawler == 0 {
		repl.Map(nobody)
		return
	}
	repl.Map(func(key string) (any, bool) {
		name, ok := strings.CutPrefix(key, placeholderPrefix)
		if !ok {
			return nil, false
		}
		info := s.Policy.CrawlerInfo(v.Crawler)
		switch name {
		case "crawler":
			return info.Token, true
		case "operator":
			return info.Operator, true
		case "kind":
			return info.Kind, true
		case "decision":
			return v.Decision.Verdict.String(), true
		case "rule":
			return s.RuleName(v.Decision.Rule), true
		}
		return nil, false
	})
}

// nobody answers for requests of no crawler that the policy knows: every
// placeholder is empty. It is the same for all of them, so that they cost
// nothing.
func nobody(key string) (any, bool) {
	switch key {
	case "http.robots_policy.crawler", "http.robots_policy.operator", "http.robots_policy.kind",
		"http.robots_policy.decision", "http.robots_policy.rule":
		return "", true
	}
	return nil, false
}
