// SPDX-License-Identifier: Apache-2.0

package webbotauth

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// A nonce counts once until its signature expires, and its memory is bounded.
func TestNonces(t *testing.T) {
	var n nonces
	at := time.Unix(now, 0)
	if err := n.use("a", at, at.Add(time.Hour)); err != nil {
		t.Error(err)
	}
	if err := n.use("a", at.Add(59*time.Minute), at.Add(2*time.Hour)); !errors.Is(err, ErrReplayed) {
		t.Error(err)
	}
	if err := n.use("a", at.Add(61*time.Minute), at.Add(2*time.Hour)); err != nil {
		t.Error(err)
	}
	for i := range maxNonces + 10 {
		_ = n.use(fmt.Sprint(i), at.Add(61*time.Minute), at.Add(3*time.Hour))
	}
	if len(n.used) > maxNonces {
		t.Errorf("%d are kept", len(n.used))
	}
	if err := n.use("one more", at.Add(61*time.Minute), at.Add(3*time.Hour)); !errors.Is(err, errFull) {
		t.Errorf("when full: %v", err)
	}
	if err := n.use("5", at.Add(62*time.Minute), at.Add(3*time.Hour)); !errors.Is(err, ErrReplayed) {
		t.Errorf("when full, replayed: %v", err)
	}
	if err := n.use("one more", at.Add(3*time.Hour), at.Add(4*time.Hour)); err != nil {
		t.Errorf("when all have expired: %v", err)
	}
}

// Many at a time with one nonce: one of them is the first.
func TestReplayedAtOnce(t *testing.T) {
	v, r := fixed(now, signerKey), signed(nil)
	v.Check(t.Context(), signed(func(p *pieces) { p.more = "" }), "https://bot.example") // the keys are there
	results := make(chan Status, 20)
	for range cap(results) {
		go func() { results <- v.Check(t.Context(), r, "https://bot.example").Status }()
	}
	verified := 0
	for range cap(results) {
		if <-results == Verified {
			verified++
		}
	}
	if verified != 1 {
		t.Errorf("verified %d times", verified)
	}
}
