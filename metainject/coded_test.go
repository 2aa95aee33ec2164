// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"bytes"
	"compress/flate"
	stdgzip "compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// testCodings holds functions that compress and decompress pages. If possible, they use other libraries than the
// package itself.
var testCodings = []struct {
	name   string
	pack   func(b []byte, level int, flushAt int) []byte
	unpack func(b []byte) ([]byte, error)
}{
	{"gzip", packWith(func(w io.Writer, level int) flushWriter {
		z, _ := stdgzip.NewWriterLevel(w, level%11-1)
		return z
	}), func(b []byte) ([]byte, error) {
		r, err := stdgzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(r)
	}},
	{"zstd", packWith(func(w io.Writer, level int) flushWriter {
		zstdLevels[level%2].Reset(w)
		return zstdLevels[level%2]
	}), func(b []byte) ([]byte, error) {
		r, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return io.ReadAll(r)
	}},
	{"br", packWith(func(w io.Writer, level int) flushWriter {
		return brotli.NewWriterLevel(w, []int{2, 0, 1, 2, 0, 1, 2, 5, 2}[level%9])
	}), func(b []byte) ([]byte, error) {
		return io.ReadAll(brotli.NewReader(bytes.NewReader(b)))
	}},
	{"deflate", packWith(func(w io.Writer, level int) flushWriter {
		z, _ := zlib.NewWriterLevel(w, level%11-1)
		return z
	}), func(b []byte) ([]byte, error) {
		r, err := zlib.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(r)
	}},
	{"deflate", packWith(func(w io.Writer, level int) flushWriter {
		z, _ := flate.NewWriter(w, level%11-1)
		return z
	}), func(b []byte) ([]byte, error) { return io.ReadAll(flate.NewReader(bytes.NewReader(b))) }},
}

// zstdLevels holds the zstd encoders for the tests. They are made only once, because making an encoder takes longer
// than using it.
var zstdLevels = func() (w [2]*zstd.Encoder) {
	for i, level := range []zstd.EncoderLevel{zstd.SpeedFastest, zstd.SpeedBetterCompression} {
		var err error
		if w[i], err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(level), zstd.WithWindowSize(1<<17)); err != nil {
			panic(err)
		}
	}
	return
}()

type flushWriter interface {
	io.WriteCloser
	Flush() error
}

func packWith(open func(w io.Writer, level int) flushWriter) func([]byte, int, int) []byte {
	return func(b []byte, level, flushAt int) []byte {
		var out bytes.Buffer
		w := open(&out, level)
		flushAt = min(flushAt, len(b))
		w.Write(b[:flushAt])
		if flushAt > 0 {
			w.Flush()
		}
		w.Write(b[flushAt:])
		w.Close()
		return out.Bytes()
	}
}

// naturalPage returns a page of about size bytes with extra in its head. Like real pages, it can be compressed to about
// a quarter.
func naturalPage(size int, extra string, seed uint64) []byte {
	rnd := rand.New(rand.NewPCG(seed, 11))
	words := make([]string, 700)
	for i := range words {
		w := make([]byte, 2+rnd.IntN(9))
		for j := range w {
			w[j] = "etaoinshrdlucmfwypvbgkjqxz"[min(rnd.IntN(26), rnd.IntN(26))]
		}
		words[i] = string(w)
	}
	page := benchPage(3<<10, extra)
	var b bytes.Buffer
	b.Write(page[:bytes.Index(page, []byte("<body"))])
	b.WriteString("<body class=\"home\">\n")
	for b.Len() < size-60 {
		fmt.Fprintf(&b, "<p id=\"p%d\" class=\"%s\">", rnd.IntN(9999), words[rnd.IntN(40)])
		for range 4 + rnd.IntN(20) {
			b.WriteString(words[min(rnd.IntN(700), rnd.IntN(700))])
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "<a href=\"/%s/%s-%d\">%s</a></p>\n", words[rnd.IntN(30)], words[rnd.IntN(700)], rnd.IntN(999), words[rnd.IntN(700)])
	}
	b.WriteString("</body>\n</html>\n")
	return b.Bytes()
}

func TestCodedConformance(t *testing.T) {
	testkit.SkipRace(t)
	set := testSet(t, "robots=noindex", "googlebot=nosnippet")
	pages := map[string][]byte{
		"plain": naturalPage(50<<10, "", 1), "merge": naturalPage(50<<10, benchMeta, 2), "big": naturalPage(1<<20, "", 3),
		"small": []byte("<!DOCTYPE html><title>a</title>b"), "says": naturalPage(9000, set.HTML(), 4),
		"head only": []byte("<!DOCTYPE html><title>a</title>"),
	}
	if !testkit.Long() {
		delete(pages, "big")
	}
	for _, c := range testCodings {
		for name, page := range pages {
			raw := c.pack(page, 7, 0)
			want, es, _ := rewriteHead(page, set, Merge, false, false, nil)
			for _, w := range writings {
				t.Run(c.name+"/"+name+"/"+w.name, func(t *testing.T) {
					s := serve(t, Options{Set: set, ETagSuffix: testSuffix}, func(rw http.ResponseWriter, r *http.Request) {
						h := rw.Header()
						h.Set("Content-Type", "text/html")
						h.Set("Content-Encoding", c.name)
						h.Set("Etag", `"e"`)
						h.Set("Vary", "Accept-Encoding")
						h.Set("Content-Length", fmt.Sprint(len(raw)))
						w.write(rw, raw)
					})
					res, got := do(t, "GET", s.URL, "Accept-Encoding", c.name)
					text, err := c.unpack(got)
					if err != nil || !bytes.Equal(text, want) {
						t.Fatalf("%v, %d bytes for %d, text %d for %d", err, len(got), len(raw), len(text), len(want))
					}
					if (len(es) == 0) != bytes.Equal(got, raw) {
						t.Errorf("changed %v, bytes equal %v", len(es) > 0, bytes.Equal(got, raw))
					}
					if tag := res.Header.Get("Etag"); tag != marked(set, `"e"`) {
						t.Errorf("ETag %s", tag)
					}
					if res.Header.Get("Content-Encoding") != c.name || res.Header.Get("Vary") != "Accept-Encoding" {
						t.Errorf("%v", res.Header)
					}
					if len(es) == 0 && res.ContentLength != int64(len(raw)) {
						t.Errorf("Content-Length %d", res.ContentLength)
					}
					if res, _ := do(t, "HEAD", s.URL); res.Header.Get("Content-Length") != "" || res.Header.Get("Etag") != "" {
						t.Errorf("HEAD: %v", res.Header)
					}
				})
			}
		}
	}
}

// A body that is not in the coding of its Content-Encoding is sent unchanged.
func TestNotWhatItSays(t *testing.T) {
	set := testSet(t, "robots=noindex")
	page := naturalPage(9000, "", 5)
	for _, c := range testCodings {
		raw := c.pack(page, 6, 0)
		bad := bytes.Clone(raw)
		bad[len(bad)/20] ^= 0x55
		for name, body := range map[string][]byte{"plain text": page, "cut off": raw[:60], "one byte": raw[:1], "no body": nil, "wrong early": bad} {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				r := newRecorder()
				r.header.Set("Content-Type", "text/html")
				r.header.Set("Content-Encoding", c.name)
				r.header.Set("Etag", `"e"`)
				rw := wrapped(t, r, Options{Set: set})
				rw.WriteHeader(200)
				for i := range body {
					if _, err := rw.Write(body[i : i+1]); err != nil {
						return // the damage is found when a part of the body has already been changed
					}
				}
				err := rw.Close(nil)
				if !bytes.Equal(r.body.Bytes(), body) && err == nil {
					in, serr := c.unpack(body) // raw deflate has no checksum
					if text, uerr := c.unpack(r.body.Bytes()); uerr == nil && (serr != nil || !bytes.Equal(text, boundedRewrite(in, set, DefaultMaxHead, false))) {
						t.Errorf("a damaged body became valid: %.300q", text)
					}
				}
				if name != "wrong early" && (err != nil || !bytes.Equal(r.body.Bytes(), body) || r.header.Get("Etag") != `"e"`) {
					t.Errorf("%v, %d bytes for %d", err, r.body.Len(), len(body))
				}
			})
		}
	}
}

// Bytes after a compressed page are sent after it, or cause an error. They are never lost without an error.
func TestBehindTheEnd(t *testing.T) {
	set := testSet(t, "robots=noindex")
	page := naturalPage(300<<10, "", 5)
	for _, c := range testCodings {
		raw := append(c.pack(page, 6, 0), "behind"...)
		for _, n := range []int{1, 1000, len(raw)} {
			r := newRecorder()
			r.header.Set("Content-Type", "text/html")
			r.header.Set("Content-Encoding", c.name)
			rw := wrapped(t, r, Options{Set: set})
			var err error
			for rest := raw; len(rest) > 0 && err == nil; rest = rest[min(n, len(rest)):] {
				_, err = rw.Write(rest[:min(n, len(rest))])
			}
			if err == nil {
				err = rw.Close(nil)
			}
			if err == nil && !bytes.HasSuffix(r.body.Bytes(), []byte("behind")) {
				t.Errorf("%s by %d: bytes got lost", c.name, n)
			}
		}
	}
}

// When the upstream flushes, the client receives everything that the upstream has written so far.
func TestCodedStreaming(t *testing.T) {
	set := testSet(t, "robots=noindex")
	for _, c := range testCodings {
		head, rest := "<!DOCTYPE html><head><title>a</title></head>", "<body>"+strings.Repeat("more text ", 50)
		raw := c.pack([]byte(head+rest), 6, len(head))
		first := len(c.pack([]byte(head), 6, len(head))) // includes an end mark, which raw does not have after the head
		r := newRecorder()
		r.header.Set("Content-Type", "text/html")
		r.header.Set("Content-Encoding", c.name)
		rw := wrapped(t, r, Options{Set: set})
		n := 0
		for ; n < first && !rw.Committed(); n++ {
			rw.Write(raw[n : n+1])
			rw.Flush()
		}
		if whole := c.name == "zstd" || c.name == "br"; whole == rw.Committed() || whole != (r.flushes == 0) {
			t.Errorf("%s: after %d of %d bytes, nothing was sent, or a part of a page that must be held completely", c.name, n, len(raw))
		}
		rw.Write(raw[n:])
		rw.Close(nil)
		text, err := c.unpack(r.body.Bytes())
		if want := "<!DOCTYPE html><head>" + set.HTML() + "<title>a</title></head>" + rest; string(text) != want {
			t.Errorf("%s: %v %q", c.name, err, text)
		}
	}
}

func TestCodedHandlerError(t *testing.T) {
	for _, c := range testCodings {
		raw := c.pack(naturalPage(600<<10, "", 6), 6, 0)
		r := newRecorder()
		r.header.Set("Content-Type", "text/html")
		r.header.Set("Content-Encoding", c.name)
		rw := wrapped(t, r, Options{Set: testSet(t, "robots=noindex")})
		rw.Write(raw[:len(raw)/2])
		if whole := c.name == "zstd" || c.name == "br"; whole == rw.Committed() {
			t.Fatalf("%s: committed %v in half of the page", c.name, rw.Committed())
		}
		rw.Close(errors.New("upstream gone"))
		if _, err := c.unpack(r.body.Bytes()); err == nil && rw.Committed() {
			t.Errorf("%s: an incomplete page looks complete", c.name)
		}
	}
}

var fuzzText = naturalPage(90<<10, "", 9)

// FuzzCoded compresses a page in any coding, cuts it into pieces, and may damage it. The unpacked output must equal the
// changed page. If a page needs no change, or is damaged before its head ends, it must be sent unchanged. A damaged
// page must never become valid.
func FuzzCoded(f *testing.F) {
	testkit.SkipRace(f)
	for i := range pieces {
		f.Add([]byte{18, 28, byte(i), byte(i * 7)}, uint64(i), false)
		f.Add([]byte{18, 28, byte(i), byte(i * 7)}, uint64(i), true)
	}
	f.Fuzz(checkCoded)
}

func TestRandomCodings(t *testing.T) {
	rnd, n := random(t)
	for range n / 60 {
		choice := make([]byte, rnd.IntN(16))
		for j := range choice {
			choice[j] = byte(rnd.IntN(len(pieces)))
		}
		checkCoded(t, choice, rnd.Uint64(), rnd.IntN(3) == 0)
	}
}

func checkCoded(t *testing.T, choice []byte, seed uint64, broken bool) {
	if len(choice) > 60 {
		return
	}
	rnd := rand.New(rand.NewPCG(seed, 5))
	c := testCodings[rnd.IntN(len(testCodings))]
	page := fromPieces(choice)
	switch rnd.IntN(4) {
	case 0:
		page = append(page, fuzzText[:rnd.IntN(len(fuzzText))]...)
	case 1:
		page = append(page, bytes.Repeat(page, rnd.IntN(40))...)
	}
	raw := c.pack(page, rnd.IntN(100), rnd.IntN(2)*rnd.IntN(len(page)+1))
	sent := bytes.Clone(raw)
	if broken && len(sent) > 0 {
		if rnd.IntN(2) == 0 {
			sent = sent[:rnd.IntN(len(sent))]
		} else {
			sent[rnd.IntN(len(sent))] ^= byte(1 << rnd.IntN(8))
		}
	}
	set := testSet(t, testSets[seed%4]...)
	bound := DefaultMaxHead
	want := boundedRewrite(page, set, bound, false)
	r := newRecorder()
	r.header.Set("Content-Type", "text/html")
	r.header.Set("Content-Encoding", c.name)
	rw := Wrap(r, httptest.NewRequest("GET", "/", nil), Options{Set: set, MaxHead: bound, Fragments: true})
	defer rw.Release()
	var err error
	size := 1 + rnd.IntN(5000)
	for rest := sent; len(rest) > 0 && err == nil; {
		n := min(1+rnd.IntN(size), len(rest))
		b := bytes.Clone(rest[:n])
		_, err = rw.Write(b)
		clear(b)
		rest = rest[n:]
		if rw.page != nil && !rw.page.coding.whole() && (len(rw.page.held) > bound || len(rw.page.raw) > bound) {
			t.Fatalf("%d and %d bytes held", len(rw.page.held), len(rw.page.raw))
		}
	}
	if err == nil {
		err = rw.Close(nil)
	}
	got := r.body.Bytes()
	if bytes.Equal(sent, raw) {
		text, uerr := c.unpack(got)
		if err != nil || uerr != nil || !bytes.Equal(text, want) {
			t.Fatalf("%s: %v, %v, page of %d bytes %.300q ... %.200q\ngot  %.300q\nwant %.300q", c.name, err, uerr, len(page), page, page[max(0, len(page)-200):], text, want)
		}
		if bytes.Equal(want, page) && !bytes.Equal(got, raw) {
			t.Fatalf("%s: was compressed again without need", c.name)
		}
		return
	}
	if !bytes.Equal(got, sent) && err == nil {
		// If unpacking the damaged input fails, unpacking the output must fail, too. If the input can be unpacked
		// despite the damage, unpacking the output must give the changed text of the input.
		text, uerr := c.unpack(got)
		in, serr := c.unpack(sent)
		if serr != nil && serr.Error() == "brotli: excessive input" {
			return // a few bytes after the end are not always detected
		}
		if uerr == nil && (serr != nil || !bytes.Equal(text, boundedRewrite(in, set, bound, false))) {
			t.Fatalf("%s: a damaged page (%v) became valid: %.300q", c.name, serr, text)
		}
	}
}
