// SPDX-License-Identifier: Apache-2.0

package storecmd

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
)

func TestForget(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := store.Open(t.Context(), dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range [][2]string{{"GPTBot", "a.example"}, {"GPTBot", "b.example"}, {"CCBot", "a.example"}} {
		s.Record(activity.Request{Time: time.Now(), Crawler: v[0], Host: v[1], Path: "/"})
	}
	forget := func(args ...string) string {
		cmd := forgetCommand()
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(args)
		_ = cmd.Execute()
		return out.String()
	}
	if out := forget(dir, "--crawler", "GPTBot"); !strings.Contains(out, "; stop Caddy first") {
		t.Errorf("while the activity database is in use: %s", out)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	left := func() (all []string) {
		r, err := store.OpenReader(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		rows, err := r.Totals(t.Context(), store.Query{From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour), By: []store.Dimension{store.ByCrawler, store.ByHost}})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			all = append(all, r.Values[store.ByCrawler]+" "+r.Values[store.ByHost])
		}
		return all
	}
	if out := forget(dir, "--crawler", "GPTBot", "--host", "b.example"); out != "deleted\n" {
		t.Error(out)
	}
	if got := strings.Join(left(), ", "); got != "CCBot a.example, GPTBot a.example" {
		t.Error(got)
	}
	if out := forget(dir, "--host", "a.example"); out != "deleted\n" || len(left()) != 0 {
		t.Error(out, left())
	}
	for _, c := range []struct{ args, want string }{
		{dir, "add --crawler, --host, or both"},
		{t.TempDir() + " --host x", "is not an activity database"},
		{"--host x", "expected DIR"},
	} {
		if out := forget(strings.Fields(c.args)...); !strings.Contains(out, c.want) {
			t.Errorf("%q: %q", c.args, out)
		}
	}
}
