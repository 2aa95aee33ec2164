// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// discard is a ResponseWriter that does almost no work, so that benchmarks measure only the handler.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }

// BenchmarkPages measures the time that the handler adds to a page.
func BenchmarkPages(b *testing.B) {
	head := "<!DOCTYPE html><html><head><meta charset=\"utf-8\"><title>t</title>" + strings.Repeat("<link rel=\"stylesheet\" href=\"/a.css\">\n", 70) + "</head><body>"
	page := []byte(head + strings.Repeat("<p>text</p>\n", (50<<10-len(head))/12))
	const browser = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"
	h := newHandler(b, "version: 1\nrules:\n  - for: everyone\n    disallow:\n      index: /news/\n      train-ai: /\n  - for: category:ai-training\n    disallow:\n      crawl: /\n")
	for name, c := range map[string]struct {
		contentType string
		body        []byte
	}{"json": {"application/json", page[:1024]}, "page": {"text/html; charset=utf-8", page}} {
		length := []string{strconv.Itoa(len(c.body))}
		answer := nextFunc(func(w http.ResponseWriter, r *http.Request) error {
			header := w.Header()
			clear(header)
			header["Content-Type"], header["Content-Length"], header["Etag"] = []string{c.contentType}, length, []string{`"abc"`}
			w.WriteHeader(http.StatusOK)
			for body := c.body; len(body) > 0; body = body[min(len(body), 32<<10):] {
				if _, err := w.Write(body[:min(len(body), 32<<10)]); err != nil {
					return err
				}
			}
			return nil
		})
		for _, with := range []bool{false, true} {
			b.Run(name+"/policy="+strconv.FormatBool(with), func(b *testing.B) {
				w := &discard{http.Header{}}
				r := newRequest(browser)
				r.Header.Set("Accept", "text/html,*/*")
				r.Header.Set("Accept-Encoding", "gzip, deflate, br, zstd")
				b.ReportAllocs()
				for b.Loop() {
					var err error
					if with {
						err = h.Serve(w, r, answer)
					} else {
						err = answer(w, r)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
