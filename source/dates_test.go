// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// When a date in a policy passes, its tests run again although it is not edited and no request comes. They do not
// run before, and nothing is left waiting after the last date.
func TestDatesAreAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where it is January 2000
		const text = `version: 1
rules:
  - for: everyone
    allow:
      index:
        - {paths: /events/, time-limit: until-2000-01-02}
        - {paths: /fairs/, time-limit: until-2000-01-04}
expect:
  - everyone may index /events/
`
		core, logs := observer.New(zapcore.WarnLevel)
		o := testOptions(core)
		src := (&fakeSource{text: text}).source()
		pool := o.pool
		d := pool.documents.Acquire("fake", func() *Document { return newDocument("fake") })
		u := newTestUser(t, o, src)
		if err := d.open(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		d.join(u)
		first := d.Current()
		fails := func() bool {
			return strings.Contains(d.Status().Warnings.Error(), "["+"expectation-no-longer-holds"+"]")
		}
		pass(47 * time.Hour)
		if d.Current() != first || fails() {
			t.Fatal("before the first date")
		}
		pass(2 * time.Hour)
		second := d.Current()
		d.mu.Lock()
		used := u.snapshot
		d.mu.Unlock()
		if second == first || !fails() || used != second || second.Memory != first.Memory {
			t.Errorf("after the first date: %+v", d.Status())
		}
		if logs.FilterMessageSnippet("policy file: ").Len() != 1 {
			t.Errorf("%v", logs.All())
		}
		pass(48 * time.Hour)
		if third := d.Current(); third == second || !third.until.IsZero() || pool.dates.next != (time.Time{}) {
			t.Errorf("after the last date: %+v", d.Status())
		}
		d.leave(u)
		pool.documents.Release("fake")
	})
}

// A version that cannot be compiled after a date is tried once, and a date is not looked at all the time while no
// configuration runs.
func TestDatesThatCannotBeAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const text = "version: 1\nrules:\n  - {for: everyone, allow: {index: [{paths: /events/, time-limit: until-2000-01-02}]}}\n"
		core, logs := observer.New(zapcore.ErrorLevel)
		o := testOptions(core)
		d := o.pool.documents.Acquire("fake", func() *Document { return newDocument("fake") })
		u := newTestUser(t, o, (&fakeSource{text: text}).source())
		if err := d.open(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		d.join(u)
		o.pool.dates.mu.Lock()          // which the timer takes before it reads the text
		d.Current().Text = "version: 2" // as if a newer catalog did not allow it
		o.pool.dates.mu.Unlock()
		pass(7 * 24 * time.Hour)
		if n := logs.Len(); n != 1 {
			t.Errorf("%d errors, want one", n)
		}
		if next := o.pool.dates.next; !next.IsZero() {
			t.Errorf("waits for %v", next)
		}
		d.leave(u)
		o.pool.documents.Release("fake")
	})
}
