// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
)

//go:embed snapshot.txt
var snapshotText string

var snapshot = sync.OnceValue(func() map[string]*list { return readSnapshot(snapshotText) })

// ofCatalog holds the lists delivered with the catalog in use.
var ofCatalog crawlers.Derived[map[string]*list]

// delivered returns a list for a URL from the catalog in use or from the program itself, whichever list is newer. It
// returns nil if neither has the list.
func delivered(url string) *list {
	first := snapshot()[url]
	c, err := crawlers.Default()
	if err != nil || c.Addresses() == "" {
		return first
	}
	lists, _ := ofCatalog.Get(c, func() map[string]*list { return readSnapshot(c.Addresses()) })
	if l := lists[url]; l != nil && (first == nil || l.Date.After(first.Date)) {
		return l
	}
	return first
}

// Renew replaces each list if the catalog in use has a newer list for the same URL. If the newer list has lost more
// than half of the entries, it is not used while the older list can still verify clients.
func (l *Lists) Renew() {
	for _, s := range l.all() {
		before, now := s.current.Load(), delivered(s.url)
		if now == nil || !now.Date.After(before.Date) || now.shrankFrom(before) && before.isWithin(maxVerifyAge, l.options.Now()) {
			continue
		}
		if s.current.CompareAndSwap(before, now) {
			l.version.Add(1)
		}
	}
}

// SnapshotText returns the embedded lists in a text format that can be delivered with a catalog.
func SnapshotText() string { return snapshotText }

// FetchSnapshot fetches lists and returns them in the format of [SnapshotText]. If a fetch fails, or if a list has lost
// more than half of its entries, the text contains the embedded list instead, and err is the reason.
func FetchSnapshot(ctx context.Context, urls []string, options ListOptions) (text string, err error) {
	var b strings.Builder
	var errs []error
	header, _, _ := strings.Cut(snapshotText, "\ndate ")
	b.WriteString(header + "\n")
	l := NewLists(urls, options)
	for _, s := range l.all() {
		f, old := l.request(ctx, s, maxPrefixes), s.current.Load()
		if f.err == nil {
			f.err = s.guard(old, f.list, l.options.Now())
		}
		date, lines := old.Date, embeddedLines(s.url)
		if f.err == nil {
			date, lines = f.list.Date, ""
			for _, p := range f.prefixes {
				lines += p.String() + "\n"
			}
		} else {
			errs = append(errs, f.err)
		}
		if lines != "" {
			fmt.Fprintf(&b, "date %s\nlist %s\n%s", date.UTC().Format(time.DateOnly), s.url, lines)
		}
	}
	return b.String(), errors.Join(errs...)
}

// embeddedLines returns the prefixes of an embedded list as lines of text.
func embeddedLines(url string) string {
	_, lines, _ := strings.Cut(snapshotText, "\nlist "+url+"\n")
	lines, _, _ = strings.Cut(lines, "list ")
	lines, _, _ = strings.Cut(lines, "date ")
	return lines
}

// IsBuiltIn reports whether there is an embedded list for this URL.
func IsBuiltIn(url string) bool { return embeddedLines(url) != "" }

// SetSnapshotDate changes the date of the embedded lists. Tests call SetSnapshotDate so that they do not depend on the
// day of the build. It must be called before a list is used.
func SetSnapshotDate(date time.Time) {
	for _, l := range snapshot() {
		l.Date = date
	}
}

// SnapshotDate returns the day when the embedded lists were collected. If the lists were collected on different days,
// it returns the earliest day, because the list of that day expires first.
func SnapshotDate() time.Time { return oldest(snapshot()) }

func oldest(lists map[string]*list) (date time.Time) {
	for _, l := range lists {
		if date.IsZero() || l.Date.Before(date) {
			date = l.Date
		}
	}
	return date
}

// readSnapshot parses lines of `date D`, `list URL` and prefixes. It skips invalid lines. A test checks that the
// embedded text does not contain invalid lines.
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
		url, prefixes = "", nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if d, ok := strings.CutPrefix(line, "date "); ok {
			end() // finish the list before the date changes
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
