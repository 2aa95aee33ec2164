// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"errors"
	"testing"
	"time"
)

// A source's state is told when it changes, and the resolver's once a minute at most.
func TestResolverState(t *testing.T) {
	var s verificationState
	broken := errors.New("no answer")
	at := time.Unix(1_800_000_000, 0)
	for i, c := range []struct {
		after       time.Duration
		err         error
		fails, tell bool
	}{
		{0, nil, false, false},
		{0, broken, false, false}, {0, broken, false, false}, {0, broken, false, false}, {0, broken, false, false},
		{0, broken, true, true},
		{0, broken, true, false},
		{time.Second, nil, false, false}, // not yet: it was told just now
		{time.Second, nil, false, false},
		{dnsTellGap, nil, false, true},
		{time.Second, nil, false, false},
		{2 * dnsTellGap, broken, false, false},
	} {
		at = at.Add(c.after)
		if fails, tell := s.resolver(c.err, at); fails != c.fails || tell != c.tell {
			t.Errorf("%d: fails %v, tell %v", i, fails, tell)
		}
	}
	if d := s.resolverState(); d.lookups != 12 || d.failures != 7 || d.err == nil || !d.since.Equal(at) {
		t.Errorf("%+v", d)
	}
}

func TestSourceState(t *testing.T) {
	var s verificationState
	for i, c := range []struct {
		url         string
		fails, want bool
	}{
		{"a", false, false}, {"a", true, true}, {"a", true, false}, {"b", true, true}, {"a", false, true}, {"a", false, false}, {"b", true, false},
	} {
		if got := s.changed(c.url, c.fails); got != c.want {
			t.Errorf("%d: %v", i, got)
		}
	}
}
