// SPDX-License-Identifier: Apache-2.0

package verify

import (
	_ "embed"
	"net/netip"
	"strings"
	"sync"
	"time"
)

//go:embed snapshot.txt
var snapshotText string

// snapshot returns the embedded lists, by URL.
var snapshot = sync.OnceValue(func() map[string]*list { return readSnapshot(snapshotText) })

// SetSnapshotDate makes the embedded lists those of another day: tests do not depend on when
// this version was built. It must be called before any list is used.
func SetSnapshotDate(date time.Time) {
	for _, l := range snapshot() {
		l.Date = date
	}
}

// SnapshotDate returns the day on which the embedded lists were taken, the newest if they
// differ.
func SnapshotDate() (date time.Time) {
	for _, l := range snapshot() {
		if l.Date.After(date) {
			date = l.Date
		}
	}
	return date
}

// readSnapshot reads lines of `date D`, `list URL` and prefixes. Invalid lines are
// skipped; a test checks that there are none.
func readSnapshot(text string) map[string]*list {
	lists := map[string]*list{}
	var date time.Time
	var url string
	var prefixes []netip.Prefix
	end := func() {
		if url != "" && len(prefixes) > 0 {
			s := newList(url, prefixes, date)
			s.Snapshot = true
			lists[url] = s
		}
		prefixes = nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if d, ok := strings.CutPrefix(line, "date "); ok {
			date, _ = time.Parse(time.DateOnly, d)
		} else if u, ok := strings.CutPrefix(line, "list "); ok {
			end()
			url = u
		} else {
			prefixes = append(prefixes, usable([]string{line})...)
		}
	}
	end()
	return lists
}
