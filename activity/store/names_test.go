// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// Hosts and names that a client invents do not each get their own row.
func TestMadeUpNames(t *testing.T) {
	if testing.Short() {
		t.Skip("SQLite in Go is slow with the race detector")
	}
	s := open(t, t.TempDir(), Options{RowsPerHour: 100, writeInterval: time.Hour, Now: func() time.Time { return start }})
	visits := 2 * maxNames
	if testkit.Long() {
		visits = 5 * maxNames
	}
	for i := range visits {
		s.take(activity.Request{
			Time: start, Host: fmt.Sprintf("%d.example.com", i), Crawler: fmt.Sprintf("Made%dbot", i), Category: activity.CategoryUnlisted,
			Path: "/robots.txt", RobotsTxt: true, Robots: fmt.Sprint(i),
		})
	}
	s.take(activity.Request{Time: start, Host: "new.example.com", Crawler: "GPTBot", Category: "ai-training", Path: "/a"})
	if n := len(s.waiting.rows); n > maxNames+3*100 {
		t.Errorf("%d rows", n)
	}
	var all, others, named int64
	for k, c := range s.waiting.rows {
		all += c.Requests
		if k.Host == other && k.Crawler == other {
			others += c.Requests
		}
		if k.Host == other && k.Crawler == "GPTBot" {
			named += c.Requests
		}
	}
	if all != int64(visits)+1 || others != int64(visits)-maxNames || named != 1 {
		t.Errorf("%d requests, %d of them by others, %d by GPTBot", all, others, named)
	}
	s.take(activity.Request{Time: start.Add(time.Hour), Host: "new.example.com", Crawler: "GPTBot", Path: "/a"})
	if len(s.names.seen) != 1 {
		t.Errorf("%d names in the next hour", len(s.names.seen))
	}
	closeStore(t, s)
}

// Even if very many texts are published, they do not fill the database: no totals are deleted to make room for them.
func TestPublishedTextsAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("SQLite in Go is slow with the race detector")
	}
	ctx, now := t.Context(), start
	s := open(t, t.TempDir(), Options{MaxBytes: 1 << 20, Now: func() time.Time { return now }})
	s.Record(activity.Request{Time: now, Host: "www.example.com", Crawler: "GPTBot", Path: "/a"})
	text := strings.Repeat("User-agent: *\nDisallow: /a/\n", 200)
	for i := range 600 {
		d := site.Document{Version: "v", Host: fmt.Sprintf("%d.example.com", i), Text: text}
		if err := s.Serve(ctx, published("p", "1"), d, now.Add(time.Duration(i)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	closeStore(t, s)
	s = open(t, s.dir, Options{MaxBytes: 1 << 20, Now: func() time.Time { return now }})
	if err := s.retain(ctx, now, false); err != nil {
		t.Fatal(err)
	}
	if size, err := sizeOf(ctx, s.db); err != nil || size > 1<<20 {
		t.Errorf("%d bytes, %v", size, err)
	}
	if rows := totals(t, s.dir, Query{From: start.Add(-24 * time.Hour), To: start.Add(24 * time.Hour)}); len(rows) != 1 || rows[0].Requests != 1 {
		t.Errorf("%+v", rows)
	}
	r, err := OpenReader(ctx, s.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	left, err := r.Documents(ctx)
	if err != nil || len(left) != (1<<20)/16/len(text) || left[0].Host != "599.example.com" {
		t.Errorf("%d texts are left, %v", len(left), err)
	}
	closeStore(t, s)
}
