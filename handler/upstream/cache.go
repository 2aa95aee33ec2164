// SPDX-License-Identifier: Apache-2.0

// Package upstream fetches and caches the robots.txt and the rights documents of the sites behind a handler, so that they
// can be merged with the policy's. They are fetched through the handlers that follow.
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

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

const (
	fetchTimeout = 5 * time.Second
	freshFor     = time.Minute      // a response is used without asking again
	retryAfter   = 10 * time.Second // after a failure
	keepForPage  = 24 * time.Hour   // the last file stays in use while the upstream answers with pages
)

// UnknownMaxAge is the time for which clients may cache a robots.txt that was served while the
// upstream's was not known: it may allow more than the two merged would.
const UnknownMaxAge = time.Minute

// Bounds on the cache, because a client can make up hosts. The cache has two generations, each with these bounds.
const (
	maxHosts   = 128
	maxBytes   = 1 << 20
	maxFetches = 16 // at a time
)

// Kind is a file that upstream sites have, which is parsed into a T.
type Kind[T any] struct {
	Name     string
	Path     string
	Accept   string // media type
	IsLikely func(contentType string, body []byte) bool
	Cut      func([]byte) []byte // returns the part of a too large file that is used, or nil if there is none
	Parse    func([]byte) *T
	Partial  func(*T) bool // it is so large that only a part was read; nil for never
}

// RobotsTxt is the kind of robots.txt.
var RobotsTxt = Kind[robotstxt.File]{
	Name: "robots.txt", Path: "/robots.txt", Accept: "text/plain", IsLikely: looksLikeRobots,
	Cut: wholeLines, Parse: robotstxt.Parse, Partial: func(f *robotstxt.File) bool { return f.TooLong },
}

// Cache holds a file of each upstream site. It is safe for concurrent use.
type Cache[T any] struct {
	kind    Kind[T]
	server  Server
	logger  *zap.Logger
	logOnce func(key string) bool
	slots   *semaphore.Weighted // of maxFetches

	mu      sync.Mutex
	recent  map[string]*entry[T] // by siteKey
	earlier map[string]*entry[T] // the generation before, dropped when recent is full
	bytes   int                  // of the files in recent, with those before
	last    *file[T]             // shared by sites that answer the same
}

// entry is the state of one site. Cache.mu guards its fields.
type entry[T any] struct {
	file    *file[T] // nil if the site has none or nothing is known
	before  *file[T] // the previous one, until the site is asked again, or nil
	known   bool     // the site has answered once
	until   time.Time
	good    time.Time     // when file was fetched last
	done    chan struct{} // closed when the fetch in progress ends; nil if there is none
	started time.Time     // of that fetch
}

// file is a file as it was fetched.
type file[T any] struct {
	data   []byte
	parsed *T
}

// New returns an empty cache. logOnce reports whether a message with this key should
// be logged; it keeps an upstream that is down from filling the log.
func New[T any](kind Kind[T], server Server, logger *zap.Logger, logOnce func(key string) bool) *Cache[T] {
	return &Cache[T]{kind: kind, server: server, logger: logger, logOnce: logOnce, slots: semaphore.NewWeighted(maxFetches)}
}

// Get returns the file of the site that a request for it is for, or nil if the site has none. It is fetched through
// next when it is older than a minute. known is false if the site has not answered yet, for example because it fails.
// One request fetches while the others get the last known file, or wait for the fetch if there is none. While
// fetching fails, the last known file stays in use. before is the file that the site had before this one, or nil.
func (c *Cache[T]) Get(r *http.Request, next Next) (parsed, before *T, known bool) {
	key, ok := c.siteKey(r)
	if !ok {
		return nil, nil, true // no site has such a host
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

// Last returns the last fetched file of a host, on any port, or nil if the host has none. It also reports whether the
// host has answered. If a proxy names several sites for one host, Last returns the file that was fetched last. The host
// "" stands for all hosts that have answered, if their files are the same.
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

// common returns the file that all sites have which answered, and whether there is one answer. It is called with mu held.
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

// fetch fetches the file of a site. It continues when the client disconnects, since
// other requests wait for the result too.
func (c *Cache[T]) fetch(r *http.Request, next Next) ([]byte, error) {
	// A deadline would count as a failure of the whole upstream in Caddy's passive health checks and take the site
	// down over a slow file. A canceled request does not.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	defer time.AfterFunc(fetchTimeout, cancel).Stop()
	return c.request(ctx, r, next)
}

// store ends a fetch and keeps its result. c.mu is held, but not while the file is parsed.
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
		if c.logOnce("upstream " + err.Error()) {
			c.logger.Warn("fetching a file of the upstream failed", zap.String("file", c.kind.Name), zap.String("host", host), zap.Bool("using_last_good", e.file != nil), zap.Error(err))
		}
		return
	}
	if err != nil && e.file != nil {
		c.logger.Info("the upstream no longer has a file", zap.String("file", c.kind.Name), zap.String("host", host), zap.Error(err))
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

// keeps reports whether the file stays in use although the site says that it has none.
func (e *entry[T]) keeps(err error) bool {
	return e.file != nil && (errors.Is(err, errDenied) || errors.Is(err, errPage) && time.Since(e.good) < keepForPage)
}

// parse returns the parsed file, which is before or c.last if the bytes are the same.
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

// parseUnlocked unlocks c.mu while it parses. A panic is an error of this file alone:
// other requests wait for the fetch to end.
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

// find returns the entry of a site and moves it to the recent generation.
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
