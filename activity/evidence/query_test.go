// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"fmt"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
)

// history writes a log with two policies, two robots.txt files, two crawlers and a restart.
func history(t *testing.T) string {
	t.Helper()
	dir, now := t.TempDir(), start
	open := func() *Log {
		l, err := Open(dir, Options{Now: func() time.Time { return now }, Report: func(_ string, err error) { t.Error(err) }})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := open()
	visit := func(crawler string, id activity.Identity, v activity.Request) {
		v.Time, v.Host, v.Crawler, v.Identity = now, "example.com", crawler, id
		record(l, v)
	}
	publish(l, publication("one", "r1"))
	visit("GPTBot", activity.Verified, activity.Request{RobotsTxt: true, Robots: "r1"})
	now = now.Add(time.Hour)
	visit("GPTBot", activity.Verified, activity.Request{Path: "/a", Violation: true, Robots: "r1", Status: 200})
	visit("GPTBot", activity.Verified, activity.Request{Path: "/a", Violation: true, Robots: "r1", Status: 403})
	visit("GPTBot", activity.Unverified, activity.Request{Path: "/b", Violation: true, Robots: "r1", Status: 404})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	now = now.Add(24 * time.Hour)
	l = open()
	publish(l, publication("one", "r1")) // the policy is published again after every start
	now = now.Add(time.Hour)
	publish(l, publication("two", "r2"))
	visit("CCBot", activity.Unverified, activity.Request{RobotsTxt: true, Robots: "r2"})
	visit("CCBot", activity.Unverified, activity.Request{RobotsTxt: true, Robots: "r2"})
	visit("CCBot", activity.Unverified, activity.Request{Path: "/c", Violation: true, Robots: "r0", Status: 200})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAsk(t *testing.T) {
	t.Parallel()
	dir := history(t)
	at := func(a time.Time) string {
		if a.IsZero() {
			return "-"
		}
		return a.Sub(start).String()
	}
	for _, c := range []struct {
		name string
		q    Question
		want string
	}{
		{"everything", Question{}, "one r1 0s 26h0m0s [1h0m0s 25h0m0s], two r2 26h0m0s -, " +
			"GPTBot verified read r1 1x at 0s, CCBot unverified read r2 2x at 26h0m0s, " +
			"GPTBot unverified against r1 read - at 1h0m0s: 0+1 [{/b 1}], GPTBot verified against r1 read 0s at 1h0m0s: 1+1 [{/a 2}], CCBot unverified against r0 read - at 26h0m0s: 1+0 [{/c 1}], "},
		{"a crawler", Question{Crawler: "ccbot"}, "one r1 0s 26h0m0s [1h0m0s 25h0m0s], two r2 26h0m0s -, " +
			"CCBot unverified read r2 2x at 26h0m0s, CCBot unverified against r0 read - at 26h0m0s: 1+0 [{/c 1}], "},
		{"what was in force before", Question{Since: start.Add(30 * time.Minute), Until: start.Add(20 * time.Hour)}, "one r1 0s 26h0m0s [1h0m0s 25h0m0s], " +
			"GPTBot unverified against r1 read - at 1h0m0s: 0+1 [{/b 1}], GPTBot verified against r1 read 0s at 1h0m0s: 1+1 [{/a 2}], "},
		{"another host", Question{Host: "example.org"}, "one r1 0s 26h0m0s [1h0m0s 25h0m0s], two r2 26h0m0s -, "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, err := Ask(dir, c.q)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, p := range a.Published {
				got += fmt.Sprintf("%s %s %s %s", p.Text, p.Documents[0].Version, at(p.From), at(p.Until))
				for _, pause := range p.Pauses {
					got += fmt.Sprintf(" [%s %s]", at(pause.From), at(pause.Until))
				}
				got += ", "
				if p.SHA256 != hashOf([]byte(p.Text)) || p.Text == "" {
					t.Errorf("%+v", p)
				}
			}
			for _, r := range a.Reads {
				got += fmt.Sprintf("%s %s read %s %dx at %s, ", r.Crawler, r.Identity, r.Robots, r.Count, at(r.First))
			}
			for _, v := range a.Violations {
				got += fmt.Sprintf("%s %s against %s read %s at %s: %d+%d %v, ", v.Crawler, v.Identity, v.Robots, at(v.Read), at(v.First), v.Served, v.Blocked, v.Paths)
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
