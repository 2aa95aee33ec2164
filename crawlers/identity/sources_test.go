// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// observed returns a logger and the warnings that it records.
func observed() (func() *zap.Logger, *observer.ObservedLogs) {
	core, logs := observer.New(zapcore.WarnLevel)
	return func() *zap.Logger { return zap.New(core) }, logs
}

// When the resolver begins to fail or works again, this is logged, but at most once a minute.
func TestRecordLookup(t *testing.T) {
	var s sources
	broken := errors.New("no answer")
	at := time.Unix(1_800_000_000, 0)
	for i, c := range []struct {
		after        time.Duration
		err          error
		failing, log bool
	}{
		{0, nil, false, false},
		{0, broken, false, false},
		{0, broken, false, false},
		{0, broken, false, false},
		{0, broken, false, false},
		{0, broken, true, true},
		{0, broken, true, false},
		{time.Second, nil, false, false}, // too soon after the last line
		{time.Second, nil, false, false},
		{dnsLogInterval, nil, false, true},
		{time.Second, nil, false, false},
		{2 * dnsLogInterval, broken, false, false},
	} {
		at = at.Add(c.after)
		if failing, log := s.recordLookup(c.err, at); failing != c.failing || log != c.log {
			t.Errorf("%d: failing %v, log %v", i, failing, log)
		}
	}
	if d := s.dnsState(); d.lookups != 12 || d.failures != 7 || d.err == nil || !d.since.Equal(at) {
		t.Errorf("%+v", d)
	}
}

func TestSetFailing(t *testing.T) {
	var s sources
	for i, c := range []struct {
		url           string
		failing, want bool
	}{
		{"a", false, false}, {"a", true, true}, {"a", true, false}, {"b", true, true}, {"a", false, true}, {"a", false, false}, {"b", true, false},
	} {
		if got := s.setFailing(c.url, c.failing); got != c.want {
			t.Errorf("%d: %v", i, got)
		}
	}
}

// If nonces are forgotten, this is logged at most once an hour.
func TestForgottenNoncesAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, logs := observed()
		s := sources{logger: logger}
		for range 3 {
			s.noncesForgotten("https://signer.example/keys")
		}
		if n := logs.FilterMessageSnippet("with nonces").FilterField(zap.String("directory", "https://signer.example/keys")).Len(); n != 1 {
			t.Errorf("%d lines", n)
		}
		time.Sleep(boundLogInterval)
		s.noncesForgotten("https://signer.example/keys")
		if n := logs.Len(); n != 2 {
			t.Errorf("%d lines an hour later", n)
		}
	})
}
