// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// MaxHead may be less than the number of bytes that net/http needs to detect the type.
func TestSniffBeyondBound(t *testing.T) {
	text := "<!DOCTYPE html><html><head>" + strings.Repeat("<link rel=x>", 60)
	r := newRecorder()
	rw := wrapped(t, r, Options{Set: testSet(t, "robots=noindex"), MaxHead: 100})
	for _, part := range []string{text[:200], text[200:]} {
		if n, err := rw.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := rw.Close(nil); err != nil {
		t.Fatal(err)
	}
	if got, want := r.body.String(), strings.Replace(text, "<head>", `<head><meta name="robots" content="noindex">`, 1); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A handler writes the start of a page, and then fails. The media type of this discarded text does not remain in the
// header, where it would describe the error response.
func TestSniffBeforeError(t *testing.T) {
	r := newRecorder()
	rw := wrapped(t, r, Options{Set: testSet(t, "robots=noindex")})
	if _, err := rw.WriteString("<!DOCTYPE html><html><head>" + strings.Repeat("<link rel=x>", 60)); err != nil {
		t.Fatal(err)
	}
	if err := rw.Close(errors.New("x")); err != nil || rw.Committed() || len(r.header) > 0 {
		t.Errorf("%v, %v, header %v", err, rw.Committed(), r.header)
	}
}

// lateWriter sends its header only with the first bytes of the body, like Caddy's "encode".
type lateWriter struct {
	http.ResponseWriter
	status int
}

func (w *lateWriter) WriteHeader(status int) { w.status = status }
func (w *lateWriter) Write(b []byte) (int, error) {
	if w.status != 0 {
		w.ResponseWriter.WriteHeader(w.status)
		w.status = 0
	}
	return w.ResponseWriter.Write(b)
}

// Trailers are sent as trailers, even if the page is held until its end, or the underlying writer sends the header
// later.
func TestTrailersOfHeldPage(t *testing.T) {
	for _, late := range []bool{false, true} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if late {
				w = &lateWriter{ResponseWriter: w}
			}
			rw := Wrap(w, r, Options{Set: testSet(t, "robots=noindex")})
			defer rw.Release()
			rw.Header().Set("Content-Type", "text/html")
			rw.Header().Set("Trailer", "X-Sum")
			_, _ = rw.WriteString("<html><head><title>x</title>")
			rw.Header().Set("X-Sum", "1")
			rw.Header().Set(http.TrailerPrefix+"X-More", "2")
			if err := rw.Close(nil); err != nil {
				t.Error(err)
			}
		}))
		res, body := do(t, "GET", s.URL)
		s.Close()
		if !strings.Contains(string(body), "noindex") || res.Header.Get("X-Sum") != "" ||
			res.Trailer.Get("X-Sum") != "1" || res.Trailer.Get("X-More") != "2" {
			t.Errorf("late %v: header %v, trailer %v", late, res.Header, res.Trailer)
		}
	}
}
