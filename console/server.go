// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"compress/gzip"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/policies"
)

//go:embed templates/*.html static/console.css static/console.js
var files embed.FS

// server serves the pages. At a local address of the machine that runs Caddy, the pages are about all hosts. On a site,
// they are about the hosts of that site.
type server struct {
	local  bool     // true at an address of this machine
	hosts  []string // the hosts to show on a site; if empty, the host of the request
	all    bool     // true if a site shows all hosts
	logger *zap.Logger
}

// rendering limits how many pages are computed at the same time, so that the console does not slow down the site.
var rendering = semaphore.NewWeighted(2)

const (
	pageTimeout = 15 * time.Second
	pageWait    = 10 * time.Second // how long a request waits until the server can compute its page
)

// contentPolicy is the Content-Security-Policy of all pages. It allows only resources of the console itself.
const contentPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("X-Robots-Tag", "noindex")
	h.Set("Cache-Control", "no-store")
}

// screen is a function that computes a page. The page has the name of a template and the data for the template.
type screen func(*view) (*page, error)

// screens maps the last segment of a URL path to the function that computes the page.
var screens = map[string]screen{
	"":          overview,
	"who-may":   whoMay,
	"who-came":  whoCame,
	"crawler":   crawlerPage,
	"ask":       ask,
	"change":    change,
	"published": published,
	"health":    health,
}

// downloads maps the last segment of a URL path to a function that sends a file instead of a page.
var downloads = map[string]func(http.ResponseWriter, *view) error{
	"who-came.csv": whoCameCSV,
	"version":      versionText,
	"draft":        draftFile,
	"diagnostics":  diagnosticsJSON,
	"news":         newsJSON,
}

// takesForms lists the pages and files that accept forms.
var takesForms = []string{"change", "draft", "diagnostics"}

// crossOrigin detects forms that come from pages of other sites.
var crossOrigin = http.NewCrossOriginProtection()

// ServeHTTP serves the page that the last segment of the path names.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	if crossOrigin.Check(r) != nil {
		http.Error(w, "This form was sent from a page of another site. Open the console, and make the change there.", http.StatusForbidden)
		return
	}
	if s.who(r, currentOptions()).role == stranger {
		http.Error(w, "You do not have a role for these pages. The roles are set in the Caddyfile, in the block of the option console.", http.StatusForbidden)
		return
	}
	_, name := path.Split(r.URL.Path)
	switch {
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
	case r.Method == http.MethodPost && slices.Contains(takesForms, name):
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	default:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "This page is read-only.", http.StatusMethodNotAllowed)
		return
	}
	switch _, isScreen := screens[name]; {
	case name == "console.css", name == "console.js":
		serveStatic(w, r, name)
	case isScreen && (name != "" || strings.HasSuffix(r.URL.Path, "/")):
		s.page(w, r, name)
	case name == "evidence.zip":
		s.evidenceFile(w, r)
	case downloads[name] != nil:
		s.limited(w, r, downloads[name])
	case name == "favicon.ico":
		w.WriteHeader(http.StatusNoContent)
	case !s.local:
		// The path of the console lacks the slash at its end. The links on the pages are relative to the path with the
		// slash, so the response redirects to this path.
		w.Header().Set("Location", "./"+url.PathEscape(name)+"/")
		w.WriteHeader(http.StatusFound)
	default:
		http.Error(w, "There is no such page. Start at Overview.", http.StatusNotFound)
	}
}

func serveStatic(w http.ResponseWriter, r *http.Request, name string) {
	w.Header().Set("Cache-Control", "max-age=300")
	w.Header().Add("Vary", "Accept-Encoding")
	w.Header().Set("Content-Type", map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}[path.Ext(name)])
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		text, _ := files.ReadFile("static/" + name) // the file is embedded, so reading it does not fail
		z := gzip.NewWriter(w)
		_, err := z.Write(text)
		_ = errors.Join(err, z.Close()) // an error means that the client has disconnected
		return
	}
	http.ServeFileFS(w, r, files, "static/"+name)
}

// statusError is an error with the HTTP status of the response.
type statusError struct {
	status int
	error
}

func (e statusError) Unwrap() error { return e.error }

func failed(status int, format string, args ...any) error {
	return statusError{status, fmt.Errorf(format, args...)}
}

// limited responds with the output of f. Only a limited number of pages may be computed at the same time, so limited
// may have to wait before it calls f. It also gives f a deadline. A slow client does not use up the limit, because
// limited reads the form before the wait, and sends the response after f has returned.
func (s *server) limited(w http.ResponseWriter, r *http.Request, f func(http.ResponseWriter, *view) error) {
	if r.Method == http.MethodPost {
		if err := r.ParseMultipartForm(maxForm); err != nil && !errors.Is(err, http.ErrNotMultipart) {
			s.fail(w, r, failed(http.StatusBadRequest, "the form could not be read: %w", err))
			return
		}
	}
	out := &buffered{ResponseWriter: w}
	switch err := s.compute(out, r, f); {
	case errors.Is(err, errBusy):
		w.Header().Set("Retry-After", "5")
		http.Error(w, "Too many pages are being computed at once. Reload in a few seconds.", http.StatusServiceUnavailable)
	case err != nil:
		s.fail(w, r, err)
	default:
		if !s.local && !s.all && strings.HasPrefix(out.Header().Get("Content-Type"), "text/html") {
			out.body = *bytes.NewBuffer(withoutDirectories(out.body.Bytes()))
		}
		out.send()
	}
}

// withoutDirectories removes the paths of policy folders on this machine from a text, because people who use the
// console on a site must not see these paths.
func withoutDirectories(text []byte) []byte {
	for _, p := range policies.Pool.Documents() {
		text = withoutDirectory(text, p.Name)
	}
	for _, h := range policies.Pool.AllHosts() {
		text = withoutDirectory(text, h.Name())
	}
	return text
}

func withoutDirectory(text []byte, name string) []byte {
	dir := filepath.Dir(name) + string(filepath.Separator)
	if !filepath.IsAbs(name) || len(dir) < 3 {
		return text
	}
	return bytes.ReplaceAll(text, []byte(template.HTMLEscapeString(dir)), nil)
}

// buffered stores a response until it is complete, so that a slow client does not delay other clients.
type buffered struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (b *buffered) WriteHeader(status int) { b.status = status }

func (b *buffered) Write(p []byte) (int, error) { return b.body.Write(p) }

// send sends the response.
func (b *buffered) send() {
	b.Header().Set("Content-Length", strconv.Itoa(b.body.Len()))
	if b.status != 0 {
		b.ResponseWriter.WriteHeader(b.status)
	}
	_, _ = b.ResponseWriter.Write(b.body.Bytes()) // an error means that the client has disconnected
}

var errBusy = errors.New("too many pages are being computed at once")

func (s *server) compute(w http.ResponseWriter, r *http.Request, f func(http.ResponseWriter, *view) error) error {
	wait, stop := context.WithTimeout(r.Context(), pageWait)
	defer stop()
	if rendering.Acquire(wait, 1) != nil {
		return errBusy
	}
	defer rendering.Release(1)
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	v, err := s.view(r.WithContext(ctx))
	if err != nil {
		return err
	}
	return f(w, v)
}

func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusInternalServerError
	if e, ok := errors.AsType[statusError](err); ok {
		status = e.status
	} else if r.Context().Err() == nil {
		s.logger.Error("showing a page of the console failed", zap.String("page", r.URL.Path), zap.Error(err))
		doubtStore()
	}
	if errors.Is(err, context.DeadlineExceeded) && status == http.StatusInternalServerError {
		status, err = http.StatusServiceUnavailable, errors.New("computing the page takes too long; choose a shorter period or a single host, or leave “Path begins with” empty")
	}
	w.Header().Del("Content-Disposition") // this header is only for a download, and the response is an error
	text := []byte(err.Error())
	if !s.local && !s.all {
		text = withoutDirectories(text)
	}
	http.Error(w, string(text), status)
}

func (s *server) page(w http.ResponseWriter, r *http.Request, name string) {
	s.limited(w, r, func(w http.ResponseWriter, v *view) error {
		v.screen = name
		v.findNoticesBeside()
		if v.may == nil {
			v.askEarly(v.busiest()) // the list of hosts in the page needs the answer
		}
		p, err := screens[name](v)
		if err != nil {
			return err
		}
		return p.write(w, v)
	})
}

// templates returns the parsed templates of the pages, each with the layout. The first call parses them.
var templates = sync.OnceValue(func() map[string]*template.Template {
	layout := template.Must(template.New("layout.html").Funcs(functions).ParseFS(files, "templates/layout.html", "templates/parts.html"))
	all := map[string]*template.Template{}
	for _, name := range []string{"overview", "whomay", "whocame", "crawler", "ask", "change", "published", "health"} {
		all[name] = template.Must(template.Must(layout.Clone()).ParseFS(files, "templates/"+name+".html"))
	}
	return all
})
