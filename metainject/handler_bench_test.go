// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/klauspost/compress/gzip"
)

// sink is an underlying writer that does almost no work.
type sink struct {
	h http.Header
	n int
}

func (s *sink) Header() http.Header         { return s.h }
func (s *sink) WriteHeader(int)             {}
func (s *sink) Write(b []byte) (int, error) { s.n += len(b); return len(b), nil }

// benchHandler answers like a proxied upstream. Like Caddy's transport, it first writes a piece of 4 KiB, and then
// pieces of at most 32 KiB. It sets the Content-Length unless chunked is true.
func benchHandler(w http.ResponseWriter, body []byte, coding string, chunked bool) {
	h := w.Header()
	clear(h)
	h["Content-Type"] = []string{"text/html; charset=utf-8"}
	h["Etag"] = []string{`"abcdef"`}
	if coding != "" {
		h["Content-Encoding"] = []string{coding}
	}
	if !chunked {
		h["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	w.WriteHeader(200)
	for n := 4 << 10; len(body) > 0; n = 32 << 10 {
		k, _ := w.Write(body[:min(n, len(body))])
		body = body[k:]
	}
}

// BenchmarkHandler compares three handlers: without Wrap, with only the HeaderHook, and with changed pages.
func BenchmarkHandler(b *testing.B) {
	set := testSet(b, "robots=noindex, nosnippet")
	hook := new(hookCount)
	request := httptest.NewRequest("GET", "/", nil)
	for _, page := range []struct {
		name    string
		body    []byte
		chunked bool
	}{
		{"50KB", benchPage(50<<10, ""), false},
		{"50KB-merge", benchPage(50<<10, benchMeta), false},
		{"50KB-says", benchPage(50<<10, set.HTML()), false},
		{"10MB", benchPage(10<<20, ""), true},
	} {
		for _, mode := range []string{"bare", "hook", "element"} {
			b.Run(page.name+"/"+mode, func(b *testing.B) {
				b.ReportAllocs()
				s := &sink{h: http.Header{}}
				o := Options{ETagSuffix: testSuffix, Header: hook}
				if mode == "element" {
					o.Set = set
				}
				for b.Loop() {
					if mode == "bare" {
						benchHandler(s, page.body, "", page.chunked)
						continue
					}
					rw := Wrap(s, request, o)
					benchHandler(rw, page.body, "", page.chunked)
					rw.Close(nil)
					rw.Release()
				}
			})
		}
	}
}

// BenchmarkCodings measures a page in each coding, unchanged and changed. The metric out/in is the size of the sent
// page in relation to the size of the handler's page. The last rows measure the alternative for gzip: unpacking the
// page and packing it again. One page repeats itself and can be compressed to 6 %. Two pages of random words can be
// compressed to 31 %.
func BenchmarkCodings(b *testing.B) {
	set := testSet(b, "robots=noindex, nosnippet")
	request := httptest.NewRequest("GET", "/", nil)
	names := map[int]string{0: "50KB-alike", 50 << 10: "50KB", 1 << 20: "1MB"}
	for _, size := range []int{0, 50 << 10, 1 << 20} {
		pageOf := func(extra string) []byte {
			if size == 0 {
				return benchPage(50<<10, extra)
			}
			return naturalPage(size, extra, 1)
		}
		for _, extra := range []string{"", benchMeta} {
			page := pageOf(extra)
			kind := "insert"
			if extra != "" {
				kind = "merge"
			}
			for _, c := range testCodings[:4] {
				raw := c.pack(page, 7, 0)
				for _, pass := range []bool{true, false} {
					if pass && extra != "" {
						continue
					}
					name := kind
					if pass {
						name = "pass"
					}
					b.Run(fmt.Sprintf("%s/%s/%s", c.name, names[size], name), func(b *testing.B) {
						b.ReportAllocs()
						s := &sink{h: http.Header{}}
						for b.Loop() {
							s.n = 0
							o := Options{Set: set, ETagSuffix: testSuffix}
							if pass {
								o.Set = nil
							}
							rw := Wrap(s, request, o)
							benchHandler(rw, raw, c.name, false)
							if err := rw.Close(nil); err != nil {
								b.Fatal(err)
							}
							rw.Release()
						}
						b.ReportMetric(float64(s.n)/float64(len(raw)), "out/in")
					})
				}
			}
		}
		page := pageOf("")
		raw := testCodings[0].pack(page, 7, 0)
		for _, level := range []int{1, 3, 5} {
			b.Run(fmt.Sprintf("gzip/%s/unpack-and-pack-level-%d", names[size], level), func(b *testing.B) {
				b.ReportAllocs()
				w, err := gzip.NewWriterLevel(io.Discard, level)
				if err != nil {
					b.Fatal(err)
				}
				s, r := new(sink), new(gzip.Reader)
				for b.Loop() {
					s.n = 0
					r.Reset(bytes.NewReader(raw))
					w.Reset(s)
					io.Copy(w, r)
					w.Close()
				}
				b.ReportMetric(float64(s.n)/float64(len(raw)), "out/in")
			})
		}
	}
}
