// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/bench/internal/workload"
)

// client sends requests to handlers, and receives their answers.
type client struct {
	s        *workload.Scenario
	ctx      context.Context
	requests []*http.Request
	next     int

	sent, got    http.Header
	status, size int // status and body size of the last answer
}

func newClient(s *workload.Scenario) *client {
	c := &client{s: s, sent: http.Header{}, got: http.Header{}}
	c.ctx = context.WithValue(context.Background(), http.ServerContextKey, &http.Server{})
	c.ctx = context.WithValue(c.ctx, http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80})
	c.prepare("")
	return c
}

func (c *client) prepare(etag string) {
	c.requests = nil
	for i := range 499 {
		r := c.s.Request(i, etag)
		r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.1", 1, 1
		r.RemoteAddr, r.Body = "127.0.0.1:4711", http.NoBody
		c.requests = append(c.requests, r)
	}
}

// learn sends a request. If the scenario revalidates, all later requests contain the entity tag of the answer.
func (c *client) learn(h handler) {
	c.ask(h)
	if c.s.Revalidate {
		c.prepare(c.got.Get("Etag"))
	}
}

// ask calls the handler h with a copy of the next request. The copy has its own URL and header fields, as in a server
// of net/http, because handlers may change them.
func (c *client) ask(h handler) {
	like := c.requests[c.next%len(c.requests)]
	c.next++
	clear(c.got)
	clear(c.sent)
	for name, values := range like.Header {
		c.sent[name] = values
	}
	c.status, c.size = 0, 0
	r := *like
	r.URL, r.Header = &url.URL{Path: like.RequestURI}, c.sent
	h.ServeHTTP(c, r.WithContext(c.ctx))
}

func (c *client) batch(h handler, n int) sample {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := cpuNow()
	for range n {
		c.ask(h)
	}
	took := cpuNow() - began
	runtime.ReadMemStats(&after)
	f := float64(n)
	return sample{float64(took.Nanoseconds()) / f, float64(after.Mallocs-before.Mallocs) / f, float64(after.TotalAlloc-before.TotalAlloc) / f}
}

// The following methods make client an http.ResponseWriter without a connection.

func (c *client) Header() http.Header { return c.got }

func (c *client) WriteHeader(status int) {
	if c.status == 0 {
		c.status = status
	}
}

func (c *client) Write(b []byte) (int, error) {
	c.WriteHeader(http.StatusOK)
	c.size += len(b)
	return len(b), nil
}

func (c *client) FlushError() error                { return nil }
func (c *client) Flush()                           {}
func (c *client) SetReadDeadline(time.Time) error  { return nil }
func (c *client) SetWriteDeadline(time.Time) error { return nil }
