// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bytes"
	"compress/zlib"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// pageUpstream answers with a page that header fields of the request describe. Status, Coding and Chunks (whole, bytes
// or slow) describe the response, and Head contains the text inside the page's head. With Chunks: bytes, the first part
// of the page is written byte by byte. All other fields are copied to the response.
func pageUpstream(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Vary", "Cookie")
	for _, name := range []string{"Content-Type", "Etag", "Last-Modified", "Cache-Control", "Content-Digest", "Accept-Ranges"} {
		if v := r.Header.Get(name); v != "" {
			h.Set(name, v)
		}
	}
	text := page(r.Header.Get("Head"))
	status, _ := strconv.Atoi(r.Header.Get("Status"))
	status = max(status, 200)
	if tag := h.Get("Etag"); tag != "" && status == 200 && matches(r.Header.Values("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := encoded(r.Header.Get("Coding"), text)
	if c := r.Header.Get("Coding"); c != "" {
		h.Set("Content-Encoding", c)
	}
	switch status {
	case 206:
		h.Set("Content-Range", "bytes 0-4/"+strconv.Itoa(len(body)))
		body = body[:5]
	case 204, 304:
		body = nil
	}
	step, sent := len(body), 0
	if r.Header.Get("Chunks") == "whole" && body != nil {
		h.Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(status)
	switch r.Header.Get("Chunks") {
	case "bytes":
		step = 1
	case "slow":
		step = 100
	}
	for len(body) > 0 && r.Method != http.MethodHead {
		n := min(step, len(body))
		if step == 1 && sent > 300 {
			n = len(body)
		}
		sent += n
		_, _ = w.Write(body[:n])
		if body = body[n:]; step < len(body)+n {
			_ = http.NewResponseController(w).Flush()
		}
		if step == 100 {
			time.Sleep(time.Millisecond)
		}
	}
}

// matches reports whether the lines of an If-None-Match field contain the entity tag, or are "*". It ignores whether
// the tags are weak (RFC 9110 section 13.1.2).
func matches(asked []string, tag string) bool {
	for _, line := range asked {
		for a := range strings.SplitSeq(line, ",") {
			if a = strings.TrimSpace(a); a == "*" || strings.TrimPrefix(a, "W/") == strings.TrimPrefix(tag, "W/") {
				return true
			}
		}
	}
	return false
}

// encoded returns the text in a content coding. An unknown coding leaves the text as it is.
func encoded(coding, text string) []byte {
	var b bytes.Buffer
	w := packing(coding, &b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.Bytes()
}

// packing returns a writer for a content coding, and unpacking a reader. An unknown coding leaves the text as it is.
func packing(coding string, w io.Writer) io.WriteCloser {
	switch coding {
	case "gzip":
		return gzip.NewWriter(w)
	case "deflate":
		return zlib.NewWriter(w)
	case "br":
		return brotli.NewWriterLevel(w, 1)
	case "zstd":
		z, err := zstd.NewWriter(w)
		if err != nil {
			panic(err)
		}
		return z
	}
	return struct {
		io.Writer
		io.Closer
	}{w, io.NopCloser(nil)}
}

func unpacking(t *testing.T, coding string, r io.Reader) io.Reader {
	t.Helper()
	var err error
	switch coding {
	case "gzip":
		r, err = gzip.NewReader(r)
	case "deflate":
		r, err = zlib.NewReader(r)
	case "br":
		r = brotli.NewReader(r)
	case "zstd":
		var d *zstd.Decoder
		if d, err = zstd.NewReader(r); err == nil {
			t.Cleanup(d.Close)
			r = d
		}
	}
	if err != nil {
		t.Fatalf("%s: %v", coding, err)
	}
	return r
}

// decoded returns the text of a body that encoded has made.
func decoded(t *testing.T, coding, body string) string {
	t.Helper()
	text, err := io.ReadAll(unpacking(t, coding, strings.NewReader(body)))
	if err != nil {
		t.Fatalf("%s: %v", coding, err)
	}
	return string(text)
}
