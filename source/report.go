// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

func (o *Options) emit(event string, data map[string]any) {
	if o.Emit != nil {
		o.Emit(event, data)
	}
}

// report writes what has happened to the log, and emits events.
func (o *Options) report(src *source, out Outcome) {
	policy := zap.String("policy", src.name)
	switch now := out.Now; out.news {
	case loaded:
		o.reportLoaded(policy, out)
	case rejected:
		if now == nil { // none was ever accepted
			o.Logger.Error("policy not loaded; robots_policy does nothing until there is one without errors", policy, zap.Error(out.Err))
			o.emit("robots_policy.reload_failed", map[string]any{"policy": src.name, "error": out.Err.Error()})
			return
		}
		o.Logger.Error("policy not reloaded; the last good version stays", policy, zap.Error(out.Err),
			zap.String("serving_sha256", now.SHA256), zap.Time("serving_since", now.Since))
		o.emit("robots_policy.reload_failed", map[string]any{
			"policy": src.name, "error": out.Err.Error(), "serving_sha256": now.SHA256, "serving_since": now.Since,
		})
	case recovered:
		o.Logger.Info("policy recovered: the source has the served version again", policy, zap.String("sha256", now.SHA256))
		o.emitReloaded(policy.String, now, now, []string{}, false)
	case nothing:
	}
}

func (o *Options) emitReloaded(policy string, now, before *Snapshot, changes []string, robotsTxt bool) {
	o.emit("robots_policy.reloaded", map[string]any{
		"policy": policy, "sha256": now.SHA256, "previous_sha256": before.SHA256, "warnings": len(now.Warnings),
		"changes": changes, "robots_txt_changed": robotsTxt,
	})
}

const maxLoggedChanges = 20

func (o *Options) reportLoaded(policy zap.Field, out Outcome) {
	for _, d := range out.Now.Warnings {
		o.Logger.Warn("policy file: "+d.Message, zap.String("place", position(d)), zap.String("code", d.Code))
	}
	log := o.Logger.With(policy, zap.String("sha256", out.Now.SHA256),
		zap.Int("rules", len(out.Now.Site.File.Spec.Rules)), zap.Int("warnings", len(out.Now.Warnings)))
	if out.Before == nil {
		log.Info("policy loaded")
		return
	}
	changes := out.Changes.Words()
	logged := changes
	if len(logged) > maxLoggedChanges {
		logged = append(logged[:maxLoggedChanges:maxLoggedChanges], fmt.Sprintf("and %d more", len(changes)-maxLoggedChanges))
	}
	log.Info("policy reloaded", zap.Strings("changes", logged), zap.Bool("robots_txt_changed", out.Changes.RobotsTxt))
	o.emitReloaded(policy.String, out.Now, out.Before, changes, out.Changes.RobotsTxt)
}

func position(d policyfile.Diagnostic) string {
	return fmt.Sprintf("%s:%d:%d", d.File, d.Pos.Line, d.Pos.Column)
}

// recoverPanic, deferred, keeps a panic in a watcher from ending the program.
func (o *Options) recoverPanic() {
	if p := recover(); p != nil {
		o.Logger.Error("panic while reloading a policy", zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
	}
}

const guardTimeout = time.Minute

// allows asks the guard whether a new version may be served.
func (o *Options) allows(src *source, before, after *Snapshot) error {
	if o.Guard == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), guardTimeout)
	defer cancel()
	return o.Guard(ctx, src.name, before.Site, after.Site)
}
