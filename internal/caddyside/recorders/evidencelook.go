// SPDX-License-Identifier: Apache-2.0

package recorders

import (
	"crypto/ed25519"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/activity/evidence"
	"github.com/robotspolicy/caddy-robots-policy/claim"
)

// lookEvery is the time between background checks, each of which reads the whole log.
const lookEvery = time.Hour

// Look is the result of verifying an evidence log.
type Look struct {
	At    time.Time // zero if the log has not been verified yet
	Check *evidence.Check
	Err   error // why the log could not be read
}

// Whole is the claim that the log is whole and signed.
func (l Look) Whole() claim.Claim {
	if l.Check == nil {
		return new(evidence.Check).Unread()
	}
	return l.Check.Whole()
}

// looks holds the last result for each directory.
var looks = struct {
	sync.Mutex
	by map[string]Look
}{by: map[string]Look{}}

// LastLook returns the result of the last verification of the log.
func (e *Evidence) LastLook() Look {
	looks.Lock()
	defer looks.Unlock()
	return looks.by[e.name]
}

// watch verifies the log at intervals until stop is closed.
func (e *Evidence) watch(stop <-chan struct{}) {
	wait := time.Duration(0)
	if last := e.LastLook(); !last.At.IsZero() { // by an earlier configuration
		wait = max(0, lookEvery-time.Since(last.At))
	}
	for {
		select {
		case <-stop:
			return
		case <-time.After(wait):
		}
		wait = lookEvery
		if _, open := e.log.Get(); open {
			e.LookNow()
		} else {
			wait = time.Second
		}
	}
}

// LookNow verifies the log and returns the result.
func (e *Evidence) LookNow() Look {
	found := Look{At: time.Now()}
	var public ed25519.PublicKey
	if key, err := e.readKey(); err == nil && key != nil {
		public, _ = key.Public().(ed25519.PublicKey)
	}
	found.Check, found.Err = evidence.Verify(e.name, public, nil)
	if found.Err == nil && len(found.Check.Problems) > 0 {
		caddy.Log().Named("robots_policy.evidence").Error("the evidence log was changed or damaged", zap.Strings("problems", found.Check.Problems))
	}
	looks.Lock()
	defer looks.Unlock()
	looks.by[e.name] = found
	return found
}
