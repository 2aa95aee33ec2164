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

// When a date in a policy passes, the policy's tests run again, although the policy does not change and no request
// arrives. They do not run before the date. After the last date, no timer is left.
func TestDatesAreAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in a synctest bubble, where it is January 2000
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

// When a date passes, the server compiles the version again. If this fails, the server does not try it again until the
// next date. While no configuration is running, it cannot compile, and the timer must pause before each new attempt.
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
		o.pool.dates.mu.Lock()          // the timer takes this lock before it reads the text
		d.Current().Text = "version: 2" // makes compiling fail, like a newer catalog could
		o.pool.dates.mu.Unlock()
		pass(7 * 24 * time.Hour)
		if n := logs.Len(); n != 1 {
			t.Errorf("%d errors, want one", n)
		}
		if next := o.pool.dates.next; !next.IsZero() {
			t.Errorf("the timer waits for %v", next)
		}
		d.leave(u)
		o.pool.documents.Release("fake")
	})
}
