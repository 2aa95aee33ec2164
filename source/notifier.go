// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"runtime/debug"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// The events.
const (
	eventReloaded     = "robots_policy.reloaded"
	eventReloadFailed = "robots_policy.reload_failed"
)

// notifier logs what happens to a policy, emits events, and saves last good
// policies, on behalf of one configuration.
type notifier struct {
	ctx    caddy.Context
	logger *zap.Logger
	events *caddyevents.App

	alwaysRuns bool // set by tests
}

func newNotifier(ctx caddy.Context, logger *zap.Logger) (*notifier, error) {
	app, err := ctx.App("events")
	if err != nil {
		return nil, fmt.Errorf("getting the events app: %w", err)
	}
	return &notifier{ctx: ctx, logger: logger, events: app.(*caddyevents.App)}, nil
}

// running reports whether the configuration is the one that runs: it has started and
// was not replaced. All contexts of a configuration share one Done channel.
func (n *notifier) running() bool {
	active := caddy.ActiveContext()
	return n.alwaysRuns || active.Context != nil && active.Done() == n.ctx.Done()
}

// emit emits an event. The events app must not be used before it has started.
func (n *notifier) emit(name string, data map[string]any) {
	if n.events != nil && n.running() && n.events.ShouldEmit(name) {
		n.events.Emit(n.ctx, name, data)
	}
}

// maxLoggedChanges bounds the changes in one log line.
const maxLoggedChanges = 20

// applied reports a version that is served from now on.
func (n *notifier) applied(src source, o Outcome) {
	for _, d := range o.Now.Warnings {
		n.logger.Warn("policy file: "+d.Message, zap.String("place", position(d)), zap.String("code", d.Code))
	}
	fields := []zap.Field{
		zap.String("policy", src.name()), zap.String("sha256", o.Now.SHA256),
		zap.Int("rules", len(o.Now.Site.File.Spec.Rules)), zap.Int("warnings", len(o.Now.Warnings)),
	}
	if o.Before == nil {
		n.logger.Info("policy loaded", fields...)
		return
	}
	changes := o.Changes.Words()
	logged := changes
	if len(logged) > maxLoggedChanges {
		logged = append(logged[:maxLoggedChanges:maxLoggedChanges], fmt.Sprintf("and %d more", len(changes)-maxLoggedChanges))
	}
	n.logger.Info("policy reloaded", append(fields, zap.Strings("changes", logged), zap.Bool("robots_txt_changed", o.Changes.RobotsTxt))...)
	n.emit(eventReloaded, map[string]any{
		"policy": src.name(), "sha256": o.Now.SHA256, "previous_sha256": o.Before.SHA256, "warnings": len(o.Now.Warnings),
		"changes": changes, "robots_txt_changed": o.Changes.RobotsTxt,
	})
}

// rejected reports that the source has no version that can be served, and what is
// served instead.
func (n *notifier) rejected(src source, serving *Snapshot, err error) {
	n.logger.Error("policy not reloaded; the last good version stays", zap.String("policy", src.name()), zap.Error(err),
		zap.String("serving_sha256", serving.SHA256), zap.Time("serving_since", serving.Since))
	n.emit(eventReloadFailed, map[string]any{
		"policy": src.name(), "error": err.Error(), "serving_sha256": serving.SHA256, "serving_since": serving.Since,
	})
}

// recovered reports that the source has the served version again.
func (n *notifier) recovered(src source, s *Snapshot) {
	n.logger.Info("policy recovered: the source has the served version again", zap.String("policy", src.name()), zap.String("sha256", s.SHA256))
	n.emit(eventReloaded, map[string]any{
		"policy": src.name(), "sha256": s.SHA256, "previous_sha256": s.SHA256, "warnings": len(s.Warnings),
		"changes": []string{}, "robots_txt_changed": false,
	})
}

// recoverPanic, deferred, keeps a panic in a watcher from ending Caddy.
func (n *notifier) recoverPanic() {
	if p := recover(); p != nil {
		n.logger.Error("panic while reloading a policy", zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
	}
}

func position(d policyfile.Diagnostic) string {
	return fmt.Sprintf("%s:%d:%d", d.File, d.Pos.Line, d.Pos.Column)
}
