// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/netip"
	"runtime/debug"
	"time"

	"github.com/gaissmai/bart"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/outbound"
)

const (
	// firstWait delays the first fetches, so that they do not slow down the start of the server.
	firstWait = time.Second
	// between is the time between the first fetches of different lists.
	between = 200 * time.Millisecond
	// interval is the time between two fetches of a list.
	interval = 24 * time.Hour
	// retryWait is the time before the next fetch after a failure. The wait doubles after each further failure, up to
	// interval. JAFAR (draft-illyes-aipref-jafar-00) does not allow a shorter wait.
	retryWait = time.Hour
	// fetchTimeout limits the time of one fetch. Lists are fetched concurrently, so a slow server does not delay other
	// lists.
	fetchTimeout = 30 * time.Second
	// maxWait limits the wait that a response's max-age can request.
	maxWait = 7 * 24 * time.Hour
	// confirmFor is the minimum time that a server must return a much shorter list before that list is used.
	confirmFor = 24 * time.Hour
	// maxFetches limits the number of concurrent fetches, and therefore the memory for oversized lists.
	maxFetches = 8
)

// fetched is the result of a fetch, which is a list or an error.
type fetched struct {
	source   *source
	list     *list
	prefixes []netip.Prefix // prefixes of the list; nil if the list was not modified
	wait     time.Duration  // how long the server wants the next fetch to wait, or zero
	err      error
}

// watch starts to fetch a list periodically in the background, for the first time after wait. Fetching ends when the
// lists are stopped or the source is released. The caller must hold l.mu.
func (l *Lists) watch(s *source, wait time.Duration) {
	var ctx context.Context
	ctx, s.stop = context.WithCancel(l.ctx)
	l.watching.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
			if l.fetching.Acquire(ctx, 1) != nil {
				return
			}
			f := l.request(ctx, s, l.limitOf(s))
			l.fetching.Release(1)
			if ctx.Err() != nil {
				return
			}
			wait = l.take(f)
		}
	})
}

func (l *Lists) limitOf(s *source) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return s.maxPrefixes
}

// take stores the result of a fetch, and returns the time until the next fetch. After a failure it keeps the old list
// and records the error.
func (l *Lists) take(f fetched) (wait time.Duration) {
	s := f.source
	old := s.current.Load()
	now := l.options.Now()
	wait = interval
	doubt := ""
	switch {
	case f.err != nil:
	case f.prefixes == nil:
		s.shrunk = nil // the old list is served again
	default:
		if f.err = s.guard(old, f.list, now); f.err != nil {
			doubt = "the latest version of the list has lost more than half of its entries"
		}
	}
	if f.err != nil {
		failed := *old
		if failed.Err == nil {
			failed.Failing = now
		}
		failed.Err = f.err
		if doubt != "" {
			failed.Incomplete = doubt
		}
		f.list = &failed
		wait = min(retryWait<<min(s.fails, 8), wait)
		s.fails++
	} else {
		s.fails = 0
	}
	l.set(s, f.list)
	if l.options.Report != nil {
		status := f.list.ListStatus
		status.Fresh = f.list.isFresh(now)
		l.reports.Lock()
		defer l.reports.Unlock()
		l.options.Report(status)
	}
	return max(f.wait, wait)
}

// request fetches a list. A list with more than limit prefixes is an error. A panic caused by a response becomes an
// error, because in this goroutine a panic would end the program.
func (l *Lists) request(ctx context.Context, s *source, limit int) (f fetched) {
	f.source = s
	old := s.current.Load()
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			f.err = fmt.Errorf("fetching %s: panic: %v\n%s", s.url, p, debug.Stack())
		}
	}()
	header := map[string]string{"User-Agent": "caddy-robots-policy (address lists of crawlers)"}
	if old.fetched && old.etag != "" {
		header["If-None-Match"] = old.etag
	}
	if old.fetched && old.lastModified != "" {
		header["If-Modified-Since"] = old.lastModified
	}
	resp, err := outbound.Get(ctx, l.options.Client, s.url, header, maxListBytes+1)
	if err != nil {
		f.err = err
		return f
	}
	f.wait, _ = outbound.MaxAge(resp.Header)
	f.wait = min(f.wait, maxWait)
	if resp.StatusCode == http.StatusNotModified && old.fetched {
		same := *old
		same.Date, same.Err, same.Failing = l.options.Now(), nil, time.Time{}
		same.Incomplete = same.problem
		f.list = &same
		return f
	}
	f.read(resp, limit, l.options.Now())
	return f
}

func (f *fetched) read(resp outbound.Response, limit int, now time.Time) {
	url := f.source.url
	if resp.StatusCode != http.StatusOK {
		f.err = fmt.Errorf("fetching %s: status %d", url, resp.StatusCode)
		return
	}
	parsed, err := parseList(resp.Data)
	if err == nil && len(parsed.prefixes) > limit {
		err = fmt.Errorf("the list has %d prefixes; the limit is %d", len(parsed.prefixes), limit)
	}
	if err != nil {
		f.err = fmt.Errorf("%s %w", url, err)
		return
	}
	f.prefixes, f.list = parsed.prefixes, newList(url, parsed.prefixes, now)
	f.list.Created, f.list.fetched = parsed.created, true
	f.list.problem, f.list.Incomplete = parsed.problem, parsed.problem
	f.list.etag, f.list.lastModified = resp.Header.Get("Etag"), resp.Header.Get("Last-Modified")
}

// shrunken holds a list that has lost many entries. Such a list is used only after the server has returned it for the
// time confirmFor.
type shrunken struct {
	list  *list
	since time.Time
}

// guard returns an error if a new list has lost more than half of its entries. The loss may be a mistake, and with the
// shorter list, real crawlers would be treated as impostors. When the server has returned such a list for the time
// confirmFor, guard returns nil. During this time, the new list may change, but must not shrink further.
func (s *source) guard(old, new *list, now time.Time) error {
	if !new.shrankFrom(old) {
		s.shrunk = nil
		return nil
	}
	if s.shrunk == nil || new.shrankFrom(s.shrunk.list) {
		s.shrunk = &shrunken{since: now}
	}
	s.shrunk.list = new
	if now.Sub(s.shrunk.since) >= confirmFor {
		s.shrunk = nil
		return nil
	}
	return fmt.Errorf("%s has shrunk from %d prefixes to %d; using the old list until the operator has published the shorter one for a day", s.url, old.Prefixes, new.Prefixes)
}

// shrankFrom reports whether the list has lost more than half of the old list, for IPv4 or for IPv6. This is true if
// the list has less than half as many prefixes as the old list, and covers less than half of the prefixes of the old
// list. So a list with fewer but wider prefixes has not shrunk.
func (c *list) shrankFrom(old *list) bool {
	return c.lost(old.prefixes.All4(), old.prefixes.Size4(), c.prefixes.Size4()) || c.lost(old.prefixes.All6(), old.prefixes.Size6(), c.prefixes.Size6())
}

func (c *list) lost(old iter.Seq[netip.Prefix], had, has int) bool {
	covered := 0
	for p := range old {
		if c.prefixes.LookupPrefix(p) {
			covered++
		}
	}
	return 2*has < had && 2*covered < had
}

func newList(url string, prefixes []netip.Prefix, date time.Time) *list {
	c := &list{ListStatus: ListStatus{URL: url, Date: date, Prefixes: len(prefixes)}, prefixes: new(bart.Lite)}
	for _, p := range prefixes {
		c.prefixes.Insert(p)
	}
	return c
}
