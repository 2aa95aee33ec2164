// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/robotspolicy/caddy-robots-policy/bench/internal/workload"
)

func init() {
	caddy.RegisterModule(new(least))
	httpcaddyfile.RegisterHandlerDirective("least", func(httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		return new(least), nil
	})
	httpcaddyfile.RegisterDirectiveOrder("least", httpcaddyfile.Before, "header")
}

// least is a handler that answers the requests of this benchmark as robots_policy does, with the least possible work.
// For other requests, its answers would be wrong: it makes no decisions, looks for the name of a single crawler, and
// treats every page like the pages of the benchmark. Its cost is the lowest possible cost of such a handler in Caddy.
type least struct {
	robots, packed []byte
}

const (
	leastTag     = `"least"`
	leastElement = `<meta name="robots" content="noarchive">`
)

var refusalValues = []string{"no-store", "noindex", "*;noindex"}

var leastHead = []byte("<head>")

// CaddyModule implements caddy.Module.
func (*least) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.least", New: func() caddy.Module { return new(least) }}
}

// Provision implements caddy.Provisioner.
func (l *least) Provision(caddy.Context) error {
	l.robots = []byte(workload.Config{}.Robots())
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(l.robots); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	l.packed = b.Bytes()
	return nil
}

// ServeHTTP implements caddyhttp.MiddlewareHandler.
func (l *least) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if r.URL.Path == "/robots.txt" {
		return l.serveRobots(w, r)
	}
	if strings.Contains(r.UserAgent(), "GPTBot/") {
		h := w.Header()
		h["Cache-Control"], h["X-Robots-Tag"], h["Robots-Tag"] = refusalValues[:1:1], refusalValues[1:2:2], refusalValues[2:]
		w.WriteHeader(http.StatusForbidden)
		return nil
	}
	lw := leastWriters.Get().(*leastWriter)
	lw.ResponseWriter = w
	err := next.ServeHTTP(lw, r)
	*lw = leastWriter{}
	leastWriters.Put(lw)
	return err
}

func (l *least) serveRobots(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	h["Etag"], h["Cache-Control"], h["Vary"] = []string{leastTag}, []string{"max-age=3600"}, []string{"Accept-Encoding"}
	if r.Header.Get("If-None-Match") == leastTag {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	body := l.robots
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		body = l.packed
		h["Content-Encoding"] = []string{"gzip"}
	}
	h["Content-Type"], h["X-Content-Type-Options"] = []string{"text/plain; charset=utf-8"}, []string{"nosniff"}
	h["Accept-Ranges"] = []string{"bytes"}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	_, err := w.Write(body)
	return err
}

var leastWriters = sync.Pool{New: func() any { return new(leastWriter) }}

// leastWriter sets the headers, and inserts the meta tag into the first written part of a page.
type leastWriter struct {
	http.ResponseWriter
	page bool
}

var leastValues = []string{"noarchive", "*;noarchive", "train-ai=n"}

// WriteHeader implements http.ResponseWriter.
func (w *leastWriter) WriteHeader(status int) {
	h := w.Header()
	h["X-Robots-Tag"], h["Robots-Tag"], h["Content-Usage"] = leastValues[:1:1], leastValues[1:2:2], leastValues[2:]
	if t := h["Content-Type"]; status == http.StatusOK && len(t) == 1 && strings.HasPrefix(t[0], "text/html") && len(h["Content-Encoding"]) == 0 {
		w.page = true
		if n := h["Content-Length"]; len(n) == 1 {
			if size, err := strconv.Atoi(n[0]); err == nil {
				h["Content-Length"] = []string{strconv.Itoa(size + len(leastElement))}
			}
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *leastWriter) Write(b []byte) (int, error) {
	if !w.page {
		return w.ResponseWriter.Write(b)
	}
	w.page = false
	at := bytes.Index(b, leastHead) + len(leastHead)
	n, err := w.ResponseWriter.Write(b[:at])
	if err != nil {
		return n, err
	}
	if _, err := w.ResponseWriter.Write([]byte(leastElement)); err != nil {
		return n, err
	}
	more, err := w.ResponseWriter.Write(b[at:])
	return n + more, err
}

// Unwrap returns the underlying writer, for http.ResponseController.
func (w *leastWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
