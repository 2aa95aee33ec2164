// SPDX-License-Identifier: Apache-2.0

package recorders

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/activity/evidence"
	"github.com/robotspolicy/caddy-robots-policy/claim"
)

// lookEvery is the time between two verifications of the log in the background. The interval is long, because a
// verification reads the whole log.
const lookEvery = time.Hour

// Look is the result of verifying an evidence log.
type Look struct {
	At    time.Time // zero if the log has not been verified yet
	Check *evidence.Check
	Err   error       // why the log could not be read
	End   claim.Claim // claim about missing lines at the end; not set without Evidence.Copy
}

// Whole returns the claim that the log is complete and signed.
func (l Look) Whole() claim.Claim {
	if l.Check == nil {
		return new(evidence.Check).Unread()
	}
	return l.Check.Whole()
}

// Ending returns the claim that no line is missing at the end of the log.
func (l Look) Ending() claim.Claim {
	if l.End.Made() {
		return l.End
	}
	c, _ := new(evidence.Check).Reaches("", nil) // with these arguments, Reaches does not read a log
	return c
}

// looks holds the last Look for each directory.
var looks sync.Map

// LastLook returns the result of the last verification of the log.
func (e *Evidence) LastLook() Look {
	last, _ := looks.Load(e.name)
	look, _ := last.(Look)
	return look
}

// watch verifies the log at intervals until stop is closed.
func (e *Evidence) watch(stop <-chan struct{}) {
	wait := time.Duration(0)
	if last := e.LastLook(); !last.At.IsZero() { // the last verification belongs to an earlier configuration
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
	if e.copyKey != "" && found.Err == nil {
		found.End = e.compareCopy(found.Check)
	}
	looks.Store(e.name, found)
	return found
}

// copyTimeout limits the time for reading and writing the copy in the storage.
const copyTimeout = 10 * time.Second

// compareCopy compares the log with Caddy's storage, which contains a copy of a line that was the last line of the log
// earlier. c is the result of verifying the log. Unless there is a problem, compareCopy replaces the copy by the
// present last line. end is the claim that no line is missing at the end of the log.
func (e *Evidence) compareCopy(c *evidence.Check) (end claim.Claim) {
	ctx, cancel := context.WithTimeout(context.Background(), copyTimeout)
	defer cancel()
	end, err := e.readCopy(ctx, c)
	if err == nil && end.Outcome() != claim.Fails && len(c.Problems) == 0 {
		var b []byte
		if b, err = json.Marshal(c.End()); err == nil {
			err = e.storage.Store(ctx, e.copyKey, b)
		}
	}
	if err != nil {
		caddy.Log().Named("robots_policy.evidence").Error("the last line of the evidence log cannot be compared with its copy in Caddy's storage, or cannot be copied there", zap.String("copy", e.Copy), zap.Error(err))
	}
	if end.Outcome() == claim.Fails {
		caddy.Log().Named("robots_policy.evidence").Error("the evidence log does not contain the line that was last copied to Caddy's storage", zap.String("copy", e.Copy), zap.String("problem", end.Text()))
	}
	return end
}

func (e *Evidence) readCopy(ctx context.Context, c *evidence.Check) (claim.Claim, error) {
	b, err := e.storage.Load(ctx, e.copyKey)
	if errors.Is(err, fs.ErrNotExist) {
		return c.Reaches(e.name, nil)
	}
	var m evidence.Mark
	if err == nil {
		m, err = evidence.ParseMark(e.Copy, b)
	}
	if err != nil {
		unknown, err2 := c.Reaches(e.name, nil)
		return unknown, errors.Join(err, err2)
	}
	return c.Reaches(e.name, &m)
}
