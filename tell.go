// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"fmt"
	"runtime/debug"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// The names of the events.
const (
	eventReloaded     = "robots_policy.reloaded"
	eventReloadFailed = "robots_policy.reload_failed"
)

// teller tells people and other modules what becomes of a policy, by means of
// the configuration that it belongs to.
type teller struct {
	ctx    caddy.Context
	logger *zap.Logger
	events *caddyevents.App

	always bool // of tests: the configuration is one that runs
}

func newTeller(ctx caddy.Context, logger *zap.Logger) (*teller, error) {
	app, err := ctx.App("events")
	if err != nil {
		return nil, fmt.Errorf("getting the events app: %w", err)
	}
	return &teller{ctx: ctx, logger: logger, events: app.(*caddyevents.App)}, nil
}

// running reports whether the configuration is the one that runs: it has started
// and was not replaced. All contexts of a configuration end as one.
func (t *teller) running() bool {
	active := caddy.ActiveContext()
	return t.always || active.Context != nil && active.Done() == t.ctx.Done()
}

// emit emits an event. The events app must not be asked before it has started.
func (t *teller) emit(name string, data map[string]any) {
	if t.events != nil && t.running() && t.events.ShouldEmit(name) {
		t.events.Emit(t.ctx, name, data)
	}
}

// maxTellChanges bounds the changes that a log line tells one by one.
const maxTellChanges = 20

// loaded tells of a policy that is served from now on.
func (t *teller) loaded(src source, o outcome) {
	for _, d := range o.now.warnings {
		t.logger.Warn("policy file: "+d.Message, zap.String("place", place(d)), zap.String("code", d.Code))
	}
	fields := []zap.Field{
		zap.String("policy", src.name()), zap.String("sha256", o.now.sum),
		zap.Int("rules", len(o.now.site.File.Spec.Rules)), zap.Int("warnings", len(o.now.warnings)),
	}
	if o.before == nil {
		t.logger.Info("policy loaded", fields...)
		return
	}
	words := o.changes.Words()
	told := words
	if len(told) > maxTellChanges {
		told = append(told[:maxTellChanges:maxTellChanges], fmt.Sprintf("and %d more", len(words)-maxTellChanges))
	}
	t.logger.Info("policy reloaded", append(fields, zap.Strings("changes", told), zap.Bool("robots_txt_changed", o.changes.RobotsTxt))...)
	t.emit(eventReloaded, map[string]any{
		"policy": src.name(), "sha256": o.now.sum, "previous_sha256": o.before.sum, "warnings": len(o.now.warnings),
		"changes": words, "robots_txt_changed": o.changes.RobotsTxt,
	})
}

// failed tells that the source holds no policy that can be served, and what is
// served instead.
func (t *teller) failed(src source, serving *live, err error) {
	t.logger.Error("policy not reloaded; the last good one stays", zap.String("policy", src.name()), zap.Error(err),
		zap.String("serving_sha256", serving.sum), zap.Time("serving_since", serving.since))
	t.emit(eventReloadFailed, map[string]any{
		"policy": src.name(), "error": err.Error(), "serving_sha256": serving.sum, "serving_since": serving.since,
	})
}

// mended tells that the source holds again what is served.
func (t *teller) mended(src source, l *live) {
	t.logger.Info("policy mended: it is again the one that is served", zap.String("policy", src.name()), zap.String("sha256", l.sum))
	t.emit(eventReloaded, map[string]any{
		"policy": src.name(), "sha256": l.sum, "previous_sha256": l.sum, "warnings": len(l.warnings),
		"changes": []string{}, "robots_txt_changed": false,
	})
}

// recover keeps a panic of following a source from ending Caddy.
func (t *teller) recover() {
	if p := recover(); p != nil {
		t.logger.Error("panic while reloading a policy", zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
	}
}

func place(d policyfile.Diagnostic) string {
	return fmt.Sprintf("%s:%d:%d", d.File, d.Pos.Line, d.Pos.Column)
}
