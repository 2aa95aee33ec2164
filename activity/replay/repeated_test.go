// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/claim"
)

// If requests are in two logs, or in a log and the database, they are counted twice. The report says this, and does not
// conclude from such counts that a limit is exceeded.
func TestRepeatedRequests(t *testing.T) {
	t.Parallel()
	dir, begins := t.TempDir(), time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	write := func(name string, first, last int) string {
		var b bytes.Buffer
		for i := first; i < last; i++ {
			at := begins.Add(time.Duration(i) * 3 * time.Second).Format("02/Jan/2006:15:04:05 -0700")
			fmt.Fprintf(&b, "66.249.66.1 - - [%s] \"GET /%d HTTP/1.1\" 200 1 \"-\" \"Googlebot/2.1\"\n", at, i/2)
			fmt.Fprintf(&b, "10.0.0.1 - - [%s] \"GET /health HTTP/1.1\" 200 1 \"-\" \"Mozilla/5.0\"\n", at)
		}
		name = filepath.Join(dir, name)
		if strings.HasSuffix(name, ".gz") {
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			_, _ = z.Write(b.Bytes())
			_ = z.Close()
			b = packed
		}
		if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	one, next := write("one.log", 0, 900), write("next.log", 900, 1800)
	health := filepath.Join(dir, "health.log") // the log of another server that answers the same health checks
	text, err := os.ReadFile(one)
	if err == nil {
		err = os.WriteFile(health, bytes.ReplaceAll(text, []byte("66.249.66.1"), []byte("66.249.66.2")), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	twiceAll := Options{
		Old: load(t, "old.yaml", "version: 1\nrules:\n  - for: everyone\n    allow: {crawl: /}\n"), New: load(t, "new.yaml", "version: 1\nrules:\n  - for: Googlebot\n    disallow: {crawl: /1$}\n"),
		Files: []string{one, write("again.log", 0, 900)},
	}
	r, err := Run(t.Context(), twiceAll)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct { // 2 requests, each twice
		limit    int64
		accepted []string
		want     claim.Outcome
		says     string
	}{
		{0, nil, claim.Fails, "the numbers are too high: "},
		{1, nil, claim.Fails, "the numbers are too high: "},
		{2, nil, claim.CannotBeJudged, "give each log only once"},
		{3, nil, claim.CannotBeJudged, "give each log only once"},
		{3, []string{gapRepeated}, claim.Fails, "the numbers are too high: "},
		{4, nil, claim.Holds, "the numbers are too high: "},
	} {
		got := r.Keeps(c.limit, c.accepted)
		if got.Outcome() != c.want || !strings.Contains(strings.Join(got.Lines(), "\n"), c.says) {
			t.Errorf("%d may be lost, accepted %q: %v %q %q", c.limit, c.accepted, got.Outcome(), got.Text(), got.Lines())
		}
	}
	stored := func(at time.Time) Stored {
		return func(_ context.Context, _, _ time.Time, each func(activity.Totals) error) (claim.Coverage, error) {
			return claim.Coverage{}, each(activity.Totals{Start: at, Host: "h", Crawler: "Googlebot", Identity: activity.Verified, Path: "/1", Requests: 3})
		}
	}
	const twice = " have requests in common, which are counted twice"
	for _, c := range []struct {
		name   string
		files  []string
		stored Stored
		want   string
	}{
		{"two days", []string{one, next}, nil, ""},
		{"two servers", []string{one, health}, nil, ""},
		{"a copy", []string{one, next, write("copy.log", 0, 900)}, nil, "one.log and copy.log" + twice},
		{"a packed copy", []string{one, write("packed.gz", 0, 900)}, nil, "one.log and packed.gz" + twice},
		{"a longer copy", []string{one, write("grown.log", 0, 1000)}, nil, "one.log and grown.log" + twice},
		{"its end is the next one's beginning", []string{one, write("tail.log", 800, 1500)}, nil, "one.log and tail.log" + twice},
		{"one request", []string{write("a.log", 0, 1), write("b.log", 0, 1)}, nil, "a.log and b.log" + twice},
		{"a database of another time", []string{one}, stored(begins.Add(48 * time.Hour)), ""},
		{"a database of the same time", []string{one}, stored(begins), "the logs and D cover the same period, so some requests may be counted twice"},
	} {
		r, err := Run(t.Context(), Options{New: load(t, "new.yaml", newPolicy), Files: c.files, Stored: c.stored, StoreName: "D", Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, g := range r.Coverage.Gaps {
			got = append(got, strings.ReplaceAll(g.What, dir+string(filepath.Separator), ""))
		}
		if c.want == "" && len(got) > 0 || c.want != "" && !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
