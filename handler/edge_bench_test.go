// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func BenchmarkEdge(b *testing.B) {
	passing := nextFunc(func(http.ResponseWriter, *http.Request) error { return nil })
	for name, agent := range map[string]string{
		"blocked": "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)",
		"allowed": "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
		"browser": "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
	} {
		b.Run(name, func(b *testing.B) {
			h, w := newHandler(b, closedToGPTBot), httptest.NewRecorder()
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				r := newRequest(agent)
				b.StartTimer()
				if err := h.Serve(w, r, passing); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// headersPolicy sets every kind of header on all pages.
const headersPolicy = "version: 1\nrules:\n  - for: everyone\n    disallow:\n      preserve: /\n      train-ai: /\n"

// BenchmarkHeaders measures a browser's request for a file that is not a page. The response gets the policy's headers.
func BenchmarkHeaders(b *testing.B) {
	h := newHandler(b, headersPolicy)
	w := &headWriter{http.Header{}}
	answer := nextFunc(func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusOK)
		return nil
	})
	r := newRequest(benchBrowser)
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		if err := h.Serve(w, r, answer); err != nil {
			b.Fatal(err)
		}
	}
}

const benchBrowser = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"

type headWriter struct{ header http.Header }

func (w *headWriter) Header() http.Header         { return w.header }
func (w *headWriter) WriteHeader(int)             {}
func (w *headWriter) Write(b []byte) (int, error) { return len(b), nil }
