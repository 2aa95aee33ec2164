// SPDX-License-Identifier: Apache-2.0

package store

import (
	"strconv"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/activity"
)

// BenchmarkAddVisit measures the time to add a request to the sums. 10,000 requests a second may use a hundredth of a
// core, so each may take 1,000 ns. The requests of each second belong to 2,000 different rows.
func BenchmarkAddVisit(b *testing.B) {
	paths := make([]string, 2000)
	for i := range paths {
		paths[i] = "/articles/2026/a-story-about-" + strconv.Itoa(i) + ".html"
	}
	s, n := newSums(50_000), 0
	b.ReportAllocs()
	for b.Loop() {
		s.addVisit(requestFor(paths[n%len(paths)]))
		if n++; n%10_000 == 0 { // the requests of one second
			s = newSums(50_000)
		}
	}
}

// BenchmarkMerge measures writing 1, 100 and 2,000 rows to the database.
func BenchmarkMerge(b *testing.B) {
	for _, rows := range []int{1, 100, 2000} {
		b.Run(strconv.Itoa(rows), func(b *testing.B) {
			s, err := Open(b.Context(), b.TempDir(), Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			add := newSums(50_000)
			for i := range rows {
				add.addVisit(requestFor("/articles/2026/a-story-about-" + strconv.Itoa(i) + ".html"))
			}
			for b.Loop() {
				if err := s.merge(b.Context(), add); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func requestFor(path string) *activity.Request {
	return &activity.Request{
		Time: start, Host: "www.example.com", Crawler: "GPTBot", Category: "ai-training", Identity: activity.Unverified, Decision: activity.Allowed,
		Rule: "open", Policy: "0123456789ab", Path: path, Bytes: 1000,
	}
}
