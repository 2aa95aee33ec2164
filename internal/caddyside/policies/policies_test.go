// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
)

// The goroutine that announces publications ends with the last configuration, and starts again with the next one.
func TestAnnouncerEnds(t *testing.T) {
	for range 2 {
		ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
		next, cancelNext := caddy.NewContext(caddy.Context{Context: context.Background()})
		announceFor(ctx)
		announceFor(next)
		end := announcing.Acquire("", nil)
		announcing.Release("")
		cancel()
		select {
		case <-end:
			t.Error("the goroutine ends while a configuration exists")
		default:
		}
		cancelNext()
		select {
		case <-end:
		case <-time.After(10 * time.Second):
			t.Error("the goroutine does not end")
		}
	}
}
