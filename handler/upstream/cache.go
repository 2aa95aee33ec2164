// SPDX-License-Identifier: Apache-2.0

// Package upstream fetches and caches the robots.txt and the rights documents of the sites behind a handler, so that
// they can be merged with the policy's files. It requests these files from the next handlers.
package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/logsample"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

const (
	fetchTimeout = 5 * time.Second
	freshFor     = time.Minute      // a fetched file is used for this time before it is fetched again
	retryAfter   = 10 * time.Second // time until the next fetch after a failure
	// the last file stays in use for this time while the upstream answers with web pages instead of a file
	keepForPage = 24 * time.Hour
)

// UnknownMaxAge limits how long clients may cache a robots.txt served while the upstream's robots.txt was unknown. It
// is short, because this robots.txt may allow more than the merged robots.txt that the handler serves once the
// upstream's file is known.
const UnknownMaxAge = time.Minute

// Limits of the cache. They are needed because clients can invent hosts. New entries go into the map recent. When
// recent reaches a limit on hosts or bytes, it replaces the map earlier, and a new map recent is begun.
const (
	maxHosts   = 128
	maxBytes   = 1 << 20
	maxFetches = 16 // fetches at the same time
)

// Kind describes a file that upstream sites have. The file is parsed into a T.
type Kind[T any] struct {
	Name   string
	Path   string
	Accept string // media type to request
	// returns why a body is not this file but a different document, or nil
	Reject  func(contentType string, body []byte) error
	Cut     func([]byte) []byte // returns the usable part of a file that is too large, or nil if there is none
	Parse   func([]byte) *T
	Partial func(*T) bool // reports whether the file was so large that only a part was read; nil means never
}

// RobotsTxt is the Kind of robots.txt.
var RobotsTxt = Kind[robotstxt.File]{
	Name: "robots.txt", Path: "/robots.txt", Accept: "text/plain", Reject: notRobots,
	Cut: wholeLines, Parse: robotstxt.Parse, Partial: func(f *robotstxt.File) bool { return f.TooLong },
}

// Cache caches the file of each upstream site. It is safe for concurrent use.
type Cache[T any] struct {
	kind     Kind[T]
	server   Server
	logger   *zap.Logger
	slots    *semaphore.Weighted // at most maxFetches fetches run at the same time
	wrong    logsample.Once      // limits how often the same note about the file is logged
	failures logsample.Sampler[struct{}]

	mu      sync.Mutex
	recent  map[string]*entry[T] // keys are results of siteKey
	earlier map[string]*entry[T] // previous generation; dropped when recent is full
	bytes   int                  // size of all files in recent, including previous files
	last    *file[T]             // the last fetched file; sites with the same content share it
}

// entry is the state of one site. Cache.mu protects its fields.
type entry[T any] struct {
	file    *file[T] // nil if the site has no such file, or if nothing is known yet
	before  *file[T] // previous file, until the site is asked again; nil if there is none
	known   bool     // whether the site has ever answered
	until   time.Time
	good    time.Time     // when file was last fetched
	done    chan struct{} // closed when the fetch in progress ends; nil if there is none
	started time.Time     // start of the fetch in progress
	failure string        // the last failure since a fetch succeeded, "" if there is none
}

// file is a fetched file.
type file[T any] struct {
	data   []byte
	parsed *T
}

// New returns an empty cache.
func New[T any](kind Kind[T], server Server, logger *zap.Logger) *Cache[T] {
	return &Cache[T]{kind: kind, server: server, logger: logger, slots: semaphore.NewWeighted(maxFetches)}
}

// Get returns the file of the site that a request is for, or nil if the site has no such file. If the cached file is
// older than a minute, Get fetches it again through next. known is false if the site has not answered yet, for example
// because it fails. If several requests arrive at the same time, one fetches the file. The others get the last known
// file or, if there is none, wait for the fetch. If fetching fails, the last known file stays in use. before is the
// site's previous file, or nil.
func (c *Cache[T]) Get(r *http.Request, next Next) (parsed, before *T, known bool) {
	key, ok := c.siteKey(r)
	if !ok {
		return nil, nil, true // no site can have such a host
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.find(key)
	switch {
	case now.Before(e.until) || !c.canFetch(r):
	case e.done != nil:
		if !e.known {
			done, wait := e.done, e.started.Add(fetchTimeout).Sub(now)
			c.mu.Unlock()
			waitFor(r.Context(), done, wait)
			c.mu.Lock()
		}
	case c.slots.TryAcquire(1):
		e.done, e.started = make(chan struct{}), now
		c.mu.Unlock()
		data, err := c.fetch(r, next)
		c.slots.Release(1)
		c.mu.Lock()
		c.store(key, e, data, err, r.Host)
	}
	return e.file.content(), e.before.content(), e.known
}

// Last returns the last fetched file of a host, on any port, or nil if the host has no such file. known reports whether
// the host has answered. If a proxy serves several sites under one host, Last returns the file fetched last. For the
// host "", it returns the file of all hosts that have answered, if these files are equal.
func (c *Cache[T]) Last(host string) (last *T, known bool) {
	host = policy.NormalizeHost(host)
	c.mu.Lock()
	defer c.mu.Unlock()
	if host == "" {
		return c.common()
	}
	var newest time.Time
	for _, generation := range []map[string]*entry[T]{c.earlier, c.recent} {
		for key, e := range generation {
			_, site, _ := strings.Cut(key, " ")
			rest, ok := strings.CutPrefix(site, host)
			if ok && strings.Trim(rest[:min(1, len(rest))], ": ") == "" && e.known && e.started.After(newest) {
				last, newest = e.file.content(), e.started
			}
		}
	}
	return last, !newest.IsZero()
}

// common returns the file of all sites that have answered, if these files are equal. known is false if the files
// differ, or if no site has answered. The caller must hold mu.
func (c *Cache[T]) common() (last *T, known bool) {
	var data []byte
	for _, generation := range []map[string]*entry[T]{c.earlier, c.recent} {
		for _, e := range generation {
			switch {
			case !e.known:
			case !known:
				last, known = e.file.content(), true
				if e.file != nil {
					data = e.file.data
				}
			case (e.file == nil) != (last == nil), e.file != nil && !bytes.Equal(e.file.data, data):
				return nil, false
			}
		}
	}
	return last, known
}

// fetch fetches the file of a site. It continues if the client disconnects, because other requests wait for the file,
// too.
func (c *Cache[T]) fetch(r *http.Request, next Next) ([]byte, error) {
	// After fetchTimeout, the request is canceled. The context has no deadline, because Caddy's passive health checks
	// regard a missed deadline as a failure of the upstream, but not a canceled request. With a deadline, a slow file
	// could take the whole upstream out of service.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	defer time.AfterFunc(fetchTimeout, cancel).Stop()
	return c.request(ctx, r, next)
}

// store ends a fetch and stores its result. The caller must hold c.mu, which is released while the file is parsed.
func (c *Cache[T]) store(key string, e *entry[T], data []byte, err error, host string) {
	var found *file[T]
	if err == nil {
		found, err = c.parse(e.file, data)
	}
	if err == nil && e.file != nil && found != e.file && c.kind.Partial != nil && c.kind.Partial(found.parsed) {
		err = errPartial
	}
	close(e.done)
	e.done = nil
	e.until = time.Now().Add(freshFor)
	if err == nil {
		e.good = time.Now()
	}
	if err != nil && (!errors.Is(err, errNone) || e.keeps(err)) {
		e.until = time.Now().Add(retryAfter)
		c.logFailure(e, err, host)
		return
	}
	switch {
	case err != nil && e.file != nil:
		c.logger.Info("the upstream no longer has a file", zap.String("file", c.kind.Name), zap.String("host", host), zap.Error(err))
	case err != nil && (errors.Is(err, errDenied) || isOther(err)):
		c.logFailure(e, err, host)
	default:
		e.failure = ""
	}
	old := e.size()
	if e.before = nil; found != e.file {
		e.before = e.file
	}
	e.file, e.known = found, true
	if c.recent[key] == e {
		c.bytes += e.size() - old
	}
}

// logFailure logs the first failure of a site after a success, and each failure whose cause differs from the site's
// previous failure. Clients can invent hosts, so the number of all log lines is limited, too.
func (c *Cache[T]) logFailure(e *entry[T], err error, host string) {
	before := e.failure
	if e.failure = err.Error(); e.failure == before {
		return
	}
	if ok, _ := c.failures.Sample(struct{}{}, time.Now()); ok {
		c.logger.Warn("fetching a file of the upstream failed", zap.String("file", c.kind.Name), zap.String("host", host), zap.Bool("using_last_good", e.file != nil), zap.Error(err))
	}
}

// keeps reports whether the last file stays in use. err is the error of the new fetch, which can say that the site no
// longer has such a file.
func (e *entry[T]) keeps(err error) bool {
	return e.file != nil && (errors.Is(err, errDenied) || isOther(err) && time.Since(e.good) < keepForPage)
}

// parse returns the parsed file. If data is the same as in before or c.last, parse returns that file instead of parsing
// data again.
func (c *Cache[T]) parse(before *file[T], data []byte) (*file[T], error) {
	for _, f := range []*file[T]{before, c.last} {
		if f != nil && bytes.Equal(f.data, data) {
			return f, nil
		}
	}
	parsed, err := c.parseUnlocked(data)
	if err != nil {
		return nil, err
	}
	c.last = &file[T]{data, parsed}
	return c.last, nil
}

// parseUnlocked parses data while c.mu is unlocked. It converts a panic to an error, because other requests wait for
// the fetch to end.
func (c *Cache[T]) parseUnlocked(data []byte) (parsed *T, err error) {
	c.mu.Unlock()
	defer c.mu.Lock()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("parsing the file: panic: %v", p)
		}
	}()
	return c.kind.Parse(data), nil
}

func (f *file[T]) content() *T {
	if f == nil {
		return nil
	}
	return f.parsed
}

func (f *file[T]) size() int {
	if f == nil {
		return 0
	}
	return len(f.data)
}

func (e *entry[T]) size() int { return e.file.size() + e.before.size() }

// find returns the entry of a site. If the entry is only in the map earlier, find also adds it to the map recent. If
// neither map contains it, find adds a new entry to recent.
func (c *Cache[T]) find(key string) *entry[T] {
	e := c.recent[key]
	if e != nil {
		return e
	}
	if e = c.earlier[key]; e == nil {
		e = &entry[T]{}
	}
	if c.recent == nil || len(c.recent) >= maxHosts || c.bytes >= maxBytes {
		c.earlier, c.recent, c.bytes = c.recent, map[string]*entry[T]{}, 0
	}
	c.recent[key] = e
	c.bytes += e.size()
	return e
}

func waitFor(ctx context.Context, done <-chan struct{}, limit time.Duration) {
	if limit <= 0 {
		return
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
	case <-ctx.Done():
	case <-timer.C:
	}
}
