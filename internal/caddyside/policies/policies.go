// SPDX-License-Identifier: Apache-2.0

// Package policies opens policies for the configurations of Caddy.
package policies

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/optional"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/recorders"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/refcount"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// Pool holds the policies of all configurations. It is a global variable, because Caddy loads a new configuration while
// the previous one is still running, and offers no way to pass data from one to the other.
var Pool = new(source.Pool)

// announcing runs announce as long as at least one configuration exists.
var announcing refcount.Pool[chan struct{}]

// announceFor runs announce until the configuration is gone.
func announceFor(ctx caddy.Context) {
	end := announcing.Acquire("", func() chan struct{} {
		end := make(chan struct{})
		go announce(end)
		return end
	})
	context.AfterFunc(ctx, func() {
		if announcing.Release("") {
			close(end)
		}
	})
}

// announce tells the recorders once a second which versions came into force and which are no longer in force. So the
// recorders learn this even if there are no requests.
func announce(end <-chan struct{}) {
	given, generation := map[string]*activity.Publication{}, uint64(0)
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-end:
			return
		case <-ticker.C:
		}
		to := recorders.Running()
		if g := to.Generation(); g != generation {
			clear(given)
			generation = g
		}
		now := map[string]*activity.Publication{}
		for _, p := range Pool.InForce() {
			if now[p.Name] = p; given[p.Name] != p {
				to.Publish(p)
			}
		}
		for name, p := range given {
			if now[name] == nil {
				to.End(p)
			}
		}
		given = now
	}
}

// Open opens the policies of a handler. The name of a policy can contain global placeholders, such as {env.POLICY}, and
// Open replaces them. If Open returns an error, Caddy does not load the configuration. If a policy has an error when
// the server starts, the last good version of this policy is used, if one is saved.
func Open(ctx caddy.Context, o source.Options) (*source.Store, error) {
	app, err := ctx.App("events")
	if err != nil {
		return nil, fmt.Errorf("getting the events app: %w", err)
	}
	events := app.(*caddyevents.App)
	if err := recorders.Register(ctx, Pool); err != nil {
		return nil, err
	}
	// If a placeholder cannot be replaced here, its value depends on a request.
	o.Policy = caddy.NewReplacer().ReplaceKnown(o.Policy, "")
	if o.Default != "" && source.IsHostTemplate(o.Policy) {
		name, err := caddy.NewReplacer().ReplaceOrErr(o.Default, true, true)
		if err != nil {
			return nil, fmt.Errorf("invalid name of the default policy, %q: %w", o.Default, err)
		}
		o.Default = name
	}
	o.Storage = ctx.Storage()
	o.LastGood = filepath.Join(caddy.AppDataDir(), source.LastGood)
	// caddy validate must report that a policy is not valid, even if a last good version is saved. The command must not
	// save a last good version, because it is often run by a different user than the server, and the server could not
	// replace the file.
	o.ReadOnly = optional.Validating()
	o.Strict = o.ReadOnly || caddy.ActiveContext().Context != nil
	o.Guard = recorders.CheckReload
	o.Running = func() bool { return running(ctx) }
	o.Emit = func(event string, data map[string]any) {
		// The events app may be used only after it has started.
		if running(ctx) && events.ShouldEmit(event) {
			events.Emit(ctx, event, data)
		}
	}
	announceFor(ctx)
	return Pool.Open(ctx, o)
}

// running reports whether this configuration is running: it has started and was not replaced. All contexts of a
// configuration share one Done channel.
func running(ctx caddy.Context) bool {
	active := caddy.ActiveContext()
	return active.Context != nil && active.Done() == ctx.Done()
}
