// SPDX-License-Identifier: Apache-2.0

package refcount

import "testing"

func TestPool(t *testing.T) {
	var p Pool[*int]
	made := 0
	create := func() *int { made++; return new(int) }
	first, second := p.Acquire("a", create), p.Acquire("a", create)
	if first != second || made != 1 || len(p.All()) != 1 {
		t.Errorf("%d values, made %d times", len(p.All()), made)
	}
	if p.Release("a") {
		t.Error("one of two users was the last")
	}
	if !p.Release("a") || len(p.All()) != 0 {
		t.Errorf("%d values are left", len(p.All()))
	}
	if third := p.Acquire("a", create); third == first || made != 2 {
		t.Error("a value that was released is used again")
	}
}
