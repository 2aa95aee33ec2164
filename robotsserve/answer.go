// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"net/http"
	"time"
)

// fields are the values of an answer's header, in one allocation. No two answers
// share them, because handlers around the Server may change values in place, as
// Caddy's header directive does when it replaces text.
type fields struct {
	header http.Header
	values [8]string
	n      int
}

func (f *fields) set(name, value string) {
	f.values[f.n] = value
	f.header[name] = f.values[f.n : f.n+1 : f.n+1]
	f.n++
}

// answer writes a file to a client that accepts it, in either coding.
func answer(w http.ResponseWriter, r *http.Request, c *contents, cacheControl string) {
	f := fields{header: w.Header()}
	body, coded := &c.identity, false
	if len(c.gzip.parts) > 0 && acceptsGzip(r.Header) {
		body, coded = &c.gzip, true
	}
	f.set("Cache-Control", cacheControl)
	f.set("Etag", body.etag)
	if v := f.header["Vary"]; len(v) > 0 {
		f.header["Vary"] = append(v, "Accept-Encoding")
	} else {
		f.set("Vary", "Accept-Encoding")
	}
	if v := r.Header["If-None-Match"]; len(v) == 1 && v[0] == body.etag && len(r.Header["If-Match"]) == 0 {
		w.WriteHeader(http.StatusNotModified) // as ServeContent would find out, too
		return
	}
	if coded {
		f.set("Content-Encoding", "gzip")
	}
	f.set("Content-Type", "text/plain; charset=utf-8")
	f.set("X-Content-Type-Options", "nosniff")
	f.set("Content-Length", body.length) // ServeContent leaves it out for encoded content
	if selective(r.Header) {
		http.ServeContent(unmet{w}, r, "", time.Time{}, body.reader())
		return
	}
	// What ServeContent would do, without its copying.
	f.set("Accept-Ranges", "bytes")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	for _, p := range body.parts {
		if _, err := w.Write(p); err != nil {
			return // the client is gone
		}
	}
}

// unmet takes back what is said of the file where a condition is not met, for
// http.ServeContent leaves it there: with a Content-Length and no body the client
// would wait for more.
type unmet struct{ http.ResponseWriter }

func (u unmet) WriteHeader(status int) {
	switch status {
	case http.StatusPreconditionFailed:
		for _, name := range []string{"Content-Encoding", "Content-Type", "Content-Length", "Cache-Control"} {
			delete(u.Header(), name)
		}
	case http.StatusNotModified:
		delete(u.Header(), "X-Content-Type-Options") // nor has the usual 304 of answer one
	}
	u.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (u unmet) Unwrap() http.ResponseWriter { return u.ResponseWriter }

// selective reports whether a request may be answered otherwise than with the
// whole file (RFC 9110 sections 13 and 14). A file without a date has no
// conditions by date.
func selective(h http.Header) bool {
	return len(h["Range"]) > 0 || len(h["If-None-Match"]) > 0 || len(h["If-Match"]) > 0
}
