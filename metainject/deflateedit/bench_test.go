// SPDX-License-Identifier: Apache-2.0

package deflateedit

import (
	"bytes"
	stdgzip "compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
)

// benchPages returns the pages to measure, keyed by name. They are generated. If the environment variable PAGES names a
// folder, benchPages adds the HTML files in it.
func benchPages(b *testing.B) map[string][]byte {
	b.Helper()
	pages := map[string][]byte{"generated-50KB": texts[0], "generated-1MB": pageLike(1<<20, 3)}
	files, _ := filepath.Glob(filepath.Join(os.Getenv("PAGES"), "*.html"))
	for _, f := range files {
		page, err := os.ReadFile(f)
		if err != nil {
			b.Fatal(err)
		}
		pages[strings.TrimSuffix(filepath.Base(f), ".html")] = page
	}
	return pages
}

// BenchmarkEdit measures inserting an element into gzipped pages. It compares this with the alternative: unpacking the
// pages, and packing them again at level 1.
func BenchmarkEdit(b *testing.B) {
	element := []byte(`<meta name="robots" content="noindex, nosnippet">`)
	for name, page := range benchPages(b) {
		at := bytes.Index(bytes.ToLower(page), []byte("<head"))
		head := bytes.Index(bytes.ToLower(page), []byte("</head>"))
		if at < 0 || head < 0 {
			continue
		}
		at += bytes.IndexByte(page[at:], '>') + 1
		edits := []Edit{{at, at, element}}
		for _, level := range []int{1, 6, 9} {
			var packed bytes.Buffer
			w, _ := stdgzip.NewWriterLevel(&packed, level)
			w.Write(page)
			w.Close()
			stream := packed.Bytes()
			run := "/level-" + strconv.Itoa(level)
			b.Run(name+run+"/edit", func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(page)))
				z := new(Editor)
				var text []byte
				for b.Loop() {
					z.Reset(true)
					text = text[:0]
					for n, status := 0, NeedInput; status == NeedInput; {
						n = min(n+4<<10, len(stream))
						for status = More; status == More && len(text) < head; {
							text, status = z.Peek(stream[:n], text, 2<<10)
						}
					}
					if err := z.Start(io.Discard, stream, text, edits); err != nil {
						b.Fatal(err)
					}
					if err := z.Close(); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(name+run+"/repack", func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(page)))
				w, _ := gzip.NewWriterLevel(io.Discard, 1)
				r, buf := new(gzip.Reader), make([]byte, 32<<10)
				for b.Loop() {
					r.Reset(bytes.NewReader(stream))
					w.Reset(io.Discard)
					io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, buf)
					w.Close()
				}
			})
		}
	}
}
