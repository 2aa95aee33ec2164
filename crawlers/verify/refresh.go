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
	"time"
)

const (
	// firstWait spares a server that is just starting.
	firstWait = 5 * time.Second
	// between spreads the fetches of many lists.
	between = 200 * time.Millisecond
	// retryWait is the time after a failure, doubled with each one up to the
	// interval. JAFAR forbids less.
	retryWait = time.Hour
	// maxWait caps a max-age of a response.
	maxWait = 7 * 24 * time.Hour
	// shrunkTimes is how often in a row a list must come that has less than half
	// of the known prefixes.
	shrunkTimes = 3
)

// defaultClient never follows a redirect to an unprotected address.
func defaultClient() *http.Client {
	return &http.Client{
		Timeout: 30 * time.Second,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > 3 || r.URL.Scheme != "https" {
				return fmt.Errorf("not following a redirect to %s", r.URL.Redacted())
			}
			return nil
		},
	}
}

// refresher is the state of the goroutine that fetches.
type refresher struct {
	lists  *Lists
	due    map[string]time.Time
	fails  map[string]int
	shrunk map[string]*shrunken
}

// shrunken is a suspiciously short list that has come before.
type shrunken struct {
	prefixes []netip.Prefix
	times    int
}

// refresh fetches each list when it is due, until the context ends.
func (l *Lists) refresh(ctx context.Context) {
	r := &refresher{lists: l, due: map[string]time.Time{}, fails: map[string]int{}, shrunk: map[string]*shrunken{}}
	for i, url := range l.urls {
		r.due[url] = l.options.Now().Add(firstWait + time.Duration(i)*between)
	}
	for len(l.urls) > 0 {
		url := slices.MinFunc(l.urls, func(a, b string) int { return r.due[a].Compare(r.due[b]) })
		timer := time.NewTimer(max(0, r.due[url].Sub(l.options.Now())))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		s, wait := r.fetch(ctx, (*l.current.Load())[url])
		if ctx.Err() != nil {
			return
		}
		l.replace(s)
		r.due[url] = l.options.Now().Add(wait)
		if l.options.Report != nil {
			status := s.ListStatus
			status.Fresh = s.isFresh(l.options.Now(), l.options.MaxAge)
			l.options.Report(status)
		}
	}
}

// fetch returns the list that follows old, and how long to wait for the next
// fetch. On any failure the list is the old one, with the error.
func (r *refresher) fetch(ctx context.Context, old *list) (*list, time.Duration) {
	interval := r.lists.options.Interval
	s, wait, err := r.request(ctx, old)
	if err != nil {
		failed := *old
		if failed.Err == nil {
			failed.Failing = r.lists.options.Now()
		}
		failed.Err = err
		retry := min(retryWait<<min(r.fails[old.URL], 8), interval)
		r.fails[old.URL]++
		return &failed, max(wait, retry)
	}
	delete(r.fails, old.URL)
	return s, max(wait, interval)
}

// request fetches a list. A panic over what a server sent is an error like others:
// in this goroutine it would end the program.
func (r *refresher) request(ctx context.Context, old *list) (s *list, wait time.Duration, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("fetching %s: panic: %v\n%s", old.URL, p, debug.Stack())
		}
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, old.URL, nil)
	if err != nil {
		return nil, 0, err
	}
	req.Header.Set("User-Agent", "caddy-robots-policy (address lists of crawlers)")
	if old.fetched && old.etag != "" {
		req.Header.Set("If-None-Match", old.etag)
	}
	if old.fetched && old.lastModified != "" {
		req.Header.Set("If-Modified-Since", old.lastModified)
	}
	resp, err := r.lists.options.Client.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	wait = maxAge(resp.Header)
	now := r.lists.options.Now()
	if resp.StatusCode == http.StatusNotModified && old.fetched {
		same := *old
		same.Date, same.Err, same.Failing = now, nil, time.Time{}
		return &same, wait, nil
	}
	if resp.StatusCode != http.StatusOK {
		return nil, wait, fmt.Errorf("fetching %s: status %d", old.URL, resp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxListBytes+1))
	if err != nil {
		return nil, wait, fmt.Errorf("fetching %s: %w", old.URL, err)
	}
	prefixes, created, err := parseList(data)
	if err != nil {
		return nil, wait, fmt.Errorf("%s %w", old.URL, err)
	}
	if err := r.guard(old, prefixes); err != nil {
		return nil, wait, fmt.Errorf("%s %w", old.URL, err)
	}
	s = newList(old.URL, prefixes, now)
	s.Created, s.fetched = created, true
	s.etag, s.lastModified = resp.Header.Get("Etag"), resp.Header.Get("Last-Modified")
	return s, wait, nil
}

// guard refuses a list that has less than half of the known prefixes, until the
// same one has come three times in a row: it may be a mistake, which would make
// impostors of real crawlers.
func (r *refresher) guard(old *list, prefixes []netip.Prefix) error {
	if 2*len(prefixes) >= old.Prefixes {
		delete(r.shrunk, old.URL)
		return nil
	}
	before := r.shrunk[old.URL]
	if before == nil || !slices.Equal(before.prefixes, prefixes) {
		before = &shrunken{prefixes: prefixes}
		r.shrunk[old.URL] = before
	}
	if before.times++; before.times < shrunkTimes {
		return fmt.Errorf("has shrunk from %d prefixes to %d: keeping the old one", old.Prefixes, len(prefixes))
	}
	delete(r.shrunk, old.URL)
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
