// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// firstWait spares a server that is just starting.
	firstWait = 5 * time.Second
	// between spreads the first fetches of many lists.
	between = 200 * time.Millisecond
	// retryWait is the time after a failure, doubled with each one up to the
	// interval. JAFAR forbids less.
	retryWait = time.Hour
	// maxWait caps a max-age of a response.
	maxWait = 7 * 24 * time.Hour
	// shrunkTimes is how often in a row a list must come that has less than half
	// of the known prefixes.
	shrunkTimes = 3
	// maxFetches bounds the fetches at the same time, and with them the memory that
	// lists take which are too large.
	maxFetches = 8
)

// defaultClient never follows a redirect to an unprotected address.
func defaultClient() *http.Client {
	return &http.Client{
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > 3 || r.URL.Scheme != "https" {
				return fmt.Errorf("not following a redirect to %s", r.URL.Redacted())
			}
			return nil
		},
	}
}

// refresher is the state of the goroutine that says which list is fetched when, and
// takes up what comes. Each fetch runs in a goroutine of its own.
type refresher struct {
	lists   *Lists
	sources []*source
	results chan fetched // has room for all fetches, so that none waits to be heard
	running int
}

// source is where a list comes from.
type source struct {
	url    string
	due    time.Time
	busy   bool // a fetch is under way
	fails  int  // in a row
	shrunk *shrunken
}

// shrunken is a suspiciously short list that has come before.
type shrunken struct {
	prefixes []netip.Prefix
	times    int
}

// fetched is what a fetch brought: a list, or an error.
type fetched struct {
	source   *source
	list     *list
	prefixes []netip.Prefix // of the list; nil where it is the one before
	wait     time.Duration  // that the server asks for, or zero
	err      error
}

// refresh fetches each list when it is due, until the context ends and all fetches
// are over. A list waits for others only while maxFetches are under way.
func (l *Lists) refresh(ctx context.Context) {
	r := &refresher{lists: l, results: make(chan fetched, maxFetches)}
	for i, url := range l.urls {
		r.sources = append(r.sources, &source{url: url, due: l.options.Now().Add(firstWait + time.Duration(i)*between)})
	}
	var fetches sync.WaitGroup
	defer fetches.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for len(r.sources) > 0 {
		var due <-chan time.Time
		next := r.next()
		if next != nil {
			timer.Reset(max(0, next.due.Sub(l.options.Now())))
			due = timer.C
		}
		select {
		case <-ctx.Done():
			return
		case <-due:
			next.busy = true
			r.running++
			old := (*l.current.Load())[next.url]
			fetches.Go(func() { r.results <- l.request(ctx, next, old) })
		case f := <-r.results:
			if ctx.Err() != nil {
				return
			}
			r.take(f)
		}
	}
}

// next returns the source that is due first, or nil when nothing can be fetched
// before a fetch that is under way is over.
func (r *refresher) next() *source {
	if r.running == maxFetches {
		return nil
	}
	var next *source
	for _, s := range r.sources {
		if !s.busy && (next == nil || s.due.Before(next.due)) {
			next = s
		}
	}
	return next
}

// take publishes what a fetch brought, and says when the next one is due. On any
// failure the list is the old one, with the error.
func (r *refresher) take(f fetched) {
	l, s := r.lists, f.source
	s.busy = false
	r.running--
	old := (*l.current.Load())[s.url]
	if f.err == nil && f.prefixes != nil {
		f.err = s.guard(old, f.prefixes)
	}
	now, least := l.options.Now(), l.options.Interval
	if f.err != nil {
		failed := *old
		if failed.Err == nil {
			failed.Failing = now
		}
		failed.Err = f.err
		f.list = &failed
		least = min(retryWait<<min(s.fails, 8), least)
		s.fails++
	} else {
		s.fails = 0
	}
	s.due = now.Add(max(f.wait, least))
	l.replace(f.list)
	if l.options.Report != nil {
		status := f.list.ListStatus
		status.Fresh = f.list.isFresh(now, l.options.MaxAge)
		l.options.Report(status)
	}
}

// request fetches a list within the time that there is for one. A panic over what a
// server sent is an error like others: in this goroutine it would end the program.
func (l *Lists) request(ctx context.Context, s *source, old *list) (f fetched) {
	f.source = s
	ctx, cancel := context.WithTimeout(ctx, l.options.Timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			f.err = fmt.Errorf("fetching %s: panic: %v\n%s", s.url, p, debug.Stack())
		}
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		f.err = err
		return f
	}
	req.Header.Set("User-Agent", "caddy-robots-policy (address lists of crawlers)")
	if old.fetched && old.etag != "" {
		req.Header.Set("If-None-Match", old.etag)
	}
	if old.fetched && old.lastModified != "" {
		req.Header.Set("If-Modified-Since", old.lastModified)
	}
	resp, err := l.options.Client.Do(req)
	if err != nil {
		f.err = err
		return f
	}
	defer resp.Body.Close()
	f.wait = maxAge(resp.Header)
	if resp.StatusCode == http.StatusNotModified && old.fetched {
		same := *old
		same.Date, same.Err, same.Failing = l.options.Now(), nil, time.Time{}
		f.list = &same
		return f
	}
	f.read(resp, l.options.Now())
	return f
}

// read reads a response with a list in it.
func (f *fetched) read(resp *http.Response, now time.Time) {
	url := f.source.url
	if resp.StatusCode != http.StatusOK {
		f.err = fmt.Errorf("fetching %s: status %d", url, resp.StatusCode)
		return
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxListBytes+1))
	if err != nil {
		f.err = fmt.Errorf("fetching %s: %w", url, err)
		return
	}
	prefixes, created, err := parseList(data)
	if err != nil {
		f.err = fmt.Errorf("%s %w", url, err)
		return
	}
	f.prefixes, f.list = prefixes, newList(url, prefixes, now)
	f.list.Created, f.list.fetched = created, true
	f.list.etag, f.list.lastModified = resp.Header.Get("Etag"), resp.Header.Get("Last-Modified")
}

// guard refuses a list that has less than half of the known prefixes, until the
// same one has come three times in a row: it may be a mistake, which would make
// impostors of real crawlers.
func (s *source) guard(old *list, prefixes []netip.Prefix) error {
	if 2*len(prefixes) >= old.Prefixes {
		s.shrunk = nil
		return nil
	}
	if s.shrunk == nil || !slices.Equal(s.shrunk.prefixes, prefixes) {
		s.shrunk = &shrunken{prefixes: prefixes}
	}
	if s.shrunk.times++; s.shrunk.times < shrunkTimes {
		return fmt.Errorf("%s has shrunk from %d prefixes to %d: keeping the old one", s.url, old.Prefixes, len(prefixes))
	}
	s.shrunk = nil
	return nil
}

func newList(url string, prefixes []netip.Prefix, date time.Time) *list {
	return &list{
		ListStatus: ListStatus{URL: url, Date: date, Prefixes: len(prefixes)},
		ranges:     newRanges(prefixes),
	}
}

// maxAge returns how long a response may be used (RFC 9111 §5.2.2.1), or zero.
func maxAge(h http.Header) time.Duration {
	for _, line := range h.Values("Cache-Control") {
		for directive := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
			if !strings.EqualFold(name, "max-age") {
				continue
			}
			n, err := strconv.ParseInt(strings.Trim(value, `"`), 10, 64)
			if errors.Is(err, strconv.ErrRange) || n > int64(maxWait/time.Second) {
				return maxWait
			}
			return time.Duration(max(n, 0)) * time.Second
		}
	}
	return 0
}
