// SPDX-License-Identifier: Apache-2.0

package webbotauth

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// A nonce is accepted only once, until its signature has expired.
func TestNonces(t *testing.T) {
	n := nonces{max: maxNonces}
	at := time.Unix(now, 0)
	use := func(nonce string, after time.Duration) error {
		return n.use("signer", nonce, at.Add(after), at.Add(after), at.Add(after+time.Hour))
	}
	if err := use("a", 0); err != nil {
		t.Error(err)
	}
	if err := use("a", 59*time.Minute); !errors.Is(err, errReplayed) {
		t.Error(err)
	}
	if err := use("a", 61*time.Minute); err != nil {
		t.Error(err)
	}
	if err := n.use("other", "a", at, at, at.Add(time.Hour)); err != nil {
		t.Errorf("another signer: %v", err)
	}
}

// Even if there are very many unexpired nonces, new signatures of every signer are accepted, no nonce is accepted
// twice, and the memory is limited.
func TestNoncesWhenFull(t *testing.T) {
	forgot := map[string]int{}
	n := nonces{max: 100_000, forgot: func(signer string) { forgot[signer]++ }}
	at := time.Unix(now, 0)
	day := func(from time.Time) time.Time { return from.Add(24 * time.Hour) }
	if err := n.use("quiet", "q", at, at, day(at)); err != nil {
		t.Fatal(err)
	}
	for i := range 250_000 {
		created := at.Add(time.Duration(i) * time.Millisecond)
		if err := n.use("flooded", fmt.Sprint(i), created, created, day(created)); err != nil {
			t.Fatalf("signature %d: %v", i, err)
		}
	}
	if n.count > n.max || len(n.signers["flooded"].used)+1 != n.count {
		t.Errorf("%d nonces, %d of them from the signer with too many", n.count, len(n.signers["flooded"].used))
	}
	if len(forgot) != 1 || forgot["flooded"] == 0 {
		t.Errorf("reported as forgotten: %v", forgot)
	}
	later := at.Add(time.Hour)
	if err := n.use("flooded", "new", later, later, day(later)); err != nil {
		t.Errorf("a new signature: %v", err)
	}
	for i := 0; i < 250_000; i += 999 {
		created := at.Add(time.Duration(i) * time.Millisecond)
		if err := n.use("flooded", fmt.Sprint(i), later, created, day(created)); !errors.Is(err, errReplayed) && !errors.Is(err, errForgotten) {
			t.Fatalf("signature %d again: %v", i, err)
		}
	}
	if err := n.use("quiet", "q", later, at, day(at)); !errors.Is(err, errReplayed) {
		t.Errorf("a nonce of another signer was forgotten: %v", err)
	}
	if err := n.use("quiet", "older", later, at.Add(-time.Hour), day(at)); err != nil {
		t.Errorf("an older signature of another signer: %v", err)
	}
	n.sweep(at.AddDate(0, 0, 3))
	if n.count != 0 {
		t.Errorf("%d nonces after they expired", n.count)
	}
}

// If many concurrent requests have the same nonce, exactly one of them is accepted.
func TestReplayedAtOnce(t *testing.T) {
	v, r := fixed(now, signerKey), signed(nil)
	v.Check(t.Context(), signed(func(p *pieces) { p.more = "" }), "https://bot.example") // fetches the keys
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
		t.Errorf("accepted %d times", verified)
	}
}
