// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"bytes"
	"math/rand/v2"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// packLarge compresses a page with a large window, which is the default of many servers.
func packLarge(t testing.TB, coding string, page []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if coding == "br" {
		w := brotli.NewWriterOptions(&b, brotli.WriterOptions{Quality: 5, LGWin: 22})
		w.Write(page)
		w.Close()
		return b.Bytes()
	}
	w, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	for len(page) > 0 { // in pieces, so that the compressed body does not contain the length
		n := min(len(page), 10_000)
		w.Write(page[:n])
		page = page[n:]
	}
	w.Close()
	return b.Bytes()
}

// Many pages in br or zstd arrive slowly at the same time. Each of them uses at most 150 KB. When the memory for such
// pages is used up, further pages are sent unchanged.
func TestRecodingMemory(t *testing.T) {
	testkit.Nightly(t)
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	const connections = 300
	set := testSet(t, "robots=noindex")
	page := naturalPage(600<<10, "", 1)
	want, _, _ := rewriteHead(page, set, Merge, false, false, nil)
	for _, c := range testCodings[1:3] {
		t.Run(c.name, func(t *testing.T) {
			raw := packLarge(t, c.name, page)
			half := len(raw) / 2
			heap := func() uint64 {
				runtime.GC()
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return m.HeapAlloc
			}
			before := heap()
			type open struct {
				rw *ResponseWriter
				w  *recorder
			}
			var all []open
			for range connections {
				r := newRecorder()
				r.header.Set("Content-Type", "text/html")
				r.header.Set("Content-Encoding", c.name)
				r.header.Set("Etag", `"e"`)
				rw := Wrap(r, httptest.NewRequest("GET", "/", nil), Options{Set: set, ETagSuffix: testSuffix})
				for rest := raw[:half]; len(rest) > 0; rest = rest[min(len(rest), 4096):] {
					if _, err := rw.Write(rest[:min(len(rest), 4096)]); err != nil {
						t.Fatal(err)
					}
				}
				r.body.Grow(0)
				all = append(all, open{rw, r})
			}
			sent := 0
			for _, o := range all {
				sent += o.w.body.Cap()
			}
			each := (int(heap()) - int(before) - sent) / connections
			t.Logf("%d KB for each of %d connections", each>>10, connections)
			if each > 150_000 {
				t.Errorf("%d bytes for each connection", each)
			}
			changed := 0
			for _, o := range all {
				if _, err := o.rw.Write(raw[half:]); err != nil {
					t.Fatal(err)
				}
				if err := o.rw.Close(nil); err != nil {
					t.Fatal(err)
				}
				o.rw.Release()
				if bytes.Equal(o.w.body.Bytes(), raw) {
					if tag := o.w.header.Get("Etag"); tag != "" {
						t.Fatalf("a page that was sent unchanged for lack of memory has the tag %s", tag)
					}
					continue
				}
				changed++
				if text, err := c.unpack(o.w.body.Bytes()); err != nil || !bytes.Equal(text, want) {
					t.Fatalf("%v, %d bytes for %d", err, len(text), len(want))
				}
			}
			if changed == 0 || recoding.Load() != 0 {
				t.Errorf("%d pages changed, %d bytes still reserved", changed, recoding.Load())
			}
			t.Logf("%d of %d pages changed", changed, connections)
		})
	}
}

// Many heads arrive slowly at the same time. Together, they use no more memory than headsBudget. When the budget is
// used up, the part of a page that has arrived is changed and sent at once, and the rest is sent unchanged. The
// response has no entity tag, because the tag would identify the completely changed page.
func TestHeadsMemory(t *testing.T) {
	testkit.Nightly(t)
	set := testSet(t, "robots=noindex")
	rnd := rand.New(rand.NewPCG(1, 2))
	script := make([]byte, 150<<10)
	for i := range script {
		script[i] = byte('a' + rnd.IntN(26)) // hardly compresses
	}
	page := []byte("<!doctype html><html><head><script>" + string(script) + "</script></head><body></body></html>")
	for _, coding := range []string{"", "gzip"} {
		raw := page
		if coding != "" {
			raw = testCodings[0].pack(page, 6, 0)
		}
		first := raw[:60<<10]
		heap := func() int64 {
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before := heap()
		var held []*ResponseWriter
		passed := 0
		for range 2000 {
			r := newRecorder()
			r.header.Set("Content-Type", "text/html")
			r.header.Set("Etag", `"e"`)
			if coding != "" {
				r.header.Set("Content-Encoding", coding)
			}
			rw := Wrap(r, httptest.NewRequest("GET", "/", nil), Options{Set: set, ETagSuffix: testSuffix})
			for rest := first; len(rest) > 0; rest = rest[min(len(rest), 16<<10):] {
				if _, err := rw.Write(rest[:min(len(rest), 16<<10)]); err != nil {
					t.Fatal(err)
				}
			}
			if r.body.Len() == 0 {
				held = append(held, rw)
				continue
			}
			passed++
			if _, err := rw.Write(raw[len(first):]); err != nil {
				t.Fatal(err)
			}
			if err := rw.Close(nil); err != nil {
				t.Fatal(err)
			}
			text, tag := r.body.Bytes(), r.header.Get("Etag")
			if coding != "" {
				var err error
				if text, err = testCodings[0].unpack(text); err != nil {
					t.Fatal(err)
				}
			}
			if rw.Release(); tag != "" || !bytes.Contains(text, []byte(`<meta name="robots" content="noindex">`)) || !bytes.HasSuffix(text, page[len(page)-100:]) {
				t.Fatalf("%s: a page that is not held has the tag %q and begins with %.100s", coding, tag, text)
			}
		}
		used := heap() - before
		t.Logf("%q: %d pages held with %d MiB, %d passed on", coding, len(held), used>>20, passed)
		if len(held) == 0 || passed == 0 || used > 2*headsBudget {
			t.Errorf("%q: the budget is exceeded", coding)
		}
		for _, rw := range held {
			rw.Release()
		}
		if heads.Load() != 0 {
			t.Errorf("%d bytes are still reserved", heads.Load())
		}
	}
}

// Bytes after the end of a compressed page are sent after the changed page. In zstd and br, a page with such bytes is
// sent unchanged.
func TestTrailingBytes(t *testing.T) {
	set := testSet(t, "robots=noindex")
	for _, size := range []int{2000, 200 << 10} {
		if !testkit.Long() && size > 2000 {
			continue
		}
		page := naturalPage(size, "", 5)
		want, _, _ := rewriteHead(page, set, Merge, false, false, nil)
		for _, c := range testCodings {
			for _, trailing := range []string{"\n", "\n\n", "\x00", "<!-- served in 0.1 s -->\n", strings.Repeat("x", 1000)} {
				raw := c.pack(page, 7, 0)
				all := append(raw[:len(raw):len(raw)], trailing...)
				for _, n := range []int{1, 7, 1000, len(raw), len(all)} {
					r := sendPacked(t, c.name, "text/html", all, n)
					got, ok := bytes.CutSuffix(r.body.Bytes(), []byte(trailing))
					if c.name == "zstd" || c.name == "br" {
						if !bytes.Equal(r.body.Bytes(), all) {
							t.Fatalf("%s, %d bytes by %d, trailing %.20q: %d bytes of %d", c.name, size, n, trailing, r.body.Len(), len(all))
						}
						continue
					}
					text, err := c.unpack(got)
					if !ok || err != nil || !bytes.Equal(text, want) {
						t.Fatalf("%s, %d bytes by %d, trailing %.20q: %v, %v, %d bytes of %d", c.name, size, n, trailing, ok, err, len(text), len(want))
					}
				}
			}
		}
	}
}

// A few bytes that unpack to a very long text cause only limited work, and are sent unchanged.
func TestWorkOfABomb(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	page := append([]byte("<!DOCTYPE html><head></head>"), bytes.Repeat([]byte(" "), 64<<20)...)
	for _, c := range testCodings[1:3] {
		raw := packLarge(t, c.name, page)
		r := newRecorder()
		r.header.Set("Content-Type", "text/html")
		r.header.Set("Content-Encoding", c.name)
		rw := Wrap(r, httptest.NewRequest("GET", "/", nil), Options{Set: testSet(t, "robots=noindex")})
		if _, err := rw.Write(raw); err != nil {
			t.Fatal(err)
		}
		if err := rw.Close(nil); err != nil {
			t.Fatal(err)
		}
		if rw.Release(); !bytes.Equal(r.body.Bytes(), raw) {
			t.Errorf("%s: %d bytes that unpack to %d were changed", c.name, len(raw), len(page))
		}
	}
}

// blockedWriter is a client that does not read anything until the test closes the channel.
type blockedWriter struct {
	*recorder
	until   <-chan struct{}
	blocked *sync.WaitGroup
	once    sync.Once
}

func (w *blockedWriter) Write(b []byte) (int, error) {
	w.once.Do(w.blocked.Done)
	<-w.until
	return w.recorder.Write(b)
}

// Hundreds of small compressed pages arrive at the same time, and unpack to very long texts. Together, they use no more
// memory than recodingBudget. This includes the memory for unpacking, and the results that slow clients have not read
// yet.
func TestSmallBombs(t *testing.T) {
	testkit.Slow(t)
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	requests := 100
	if testkit.Long() {
		requests = 300
	}
	set := testSet(t, "robots=noindex")
	blanks := func(n int) []byte {
		return append([]byte("<!DOCTYPE html><head></head>"), bytes.Repeat([]byte(" "), n)...)
	}
	brotliOf := func(page []byte, bits int) []byte {
		var b bytes.Buffer
		w := brotli.NewWriterOptions(&b, brotli.WriterOptions{Quality: 5, LGWin: bits})
		w.Write(page)
		w.Close()
		return b.Bytes()
	}
	for _, tt := range []struct {
		name, coding string
		raw          []byte
		changed      bool
	}{
		{"32 MB in br", "br", brotliOf(blanks(32<<20), 24), false},
		{"1 MB in br", "br", brotliOf(blanks(1000<<10), 24), true},
		{"32 MB in zstd", "zstd", packLarge(t, "zstd", blanks(32<<20)), false},
		{"1 MB in zstd", "zstd", packLarge(t, "zstd", blanks(1000<<10)), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			heap := func() int64 {
				runtime.GC()
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return int64(m.HeapAlloc)
			}
			defer debug.SetGCPercent(debug.SetGCPercent(20))
			before := heap()
			until, stop := make(chan struct{}), make(chan struct{})
			var blocked, sampled, done sync.WaitGroup
			blocked.Add(requests)
			most, reserved := int64(0), int64(0)
			sampled.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						var m runtime.MemStats
						runtime.ReadMemStats(&m)
						most, reserved = max(most, int64(m.HeapAlloc)), max(reserved, recoding.Load())
						time.Sleep(time.Millisecond)
					}
				}
			})
			recorders := make([]*recorder, requests)
			for i := range recorders {
				r := newRecorder()
				r.header.Set("Content-Type", "text/html")
				r.header.Set("Content-Encoding", tt.coding)
				recorders[i] = r
				done.Go(func() {
					rw := Wrap(&blockedWriter{recorder: r, until: until, blocked: &blocked}, httptest.NewRequest("GET", "/", nil), Options{Set: set})
					defer rw.Release()
					if _, err := rw.Write(tt.raw); err != nil {
						t.Error(err)
					}
					if err := rw.Close(nil); err != nil {
						t.Error(err)
					}
				})
			}
			blocked.Wait()
			close(stop)
			sampled.Wait()
			held := heap() - before
			close(until)
			done.Wait()
			changed := 0
			for _, r := range recorders {
				if !bytes.Equal(r.body.Bytes(), tt.raw) {
					changed++
				}
			}
			t.Logf("%d bytes; at most %d MiB, %d MiB reserved; %d MiB held for slow clients; %d of %d changed", len(tt.raw), (most-before)>>20, reserved>>20, held>>20, changed, requests)
			// The heap in use may exceed the budget, because it includes uncollected garbage.
			if reserved > recodingBudget || held > recodingBudget || most-before > 2*recodingBudget {
				t.Errorf("the budget of %d MiB is exceeded", recodingBudget>>20)
			}
			if (changed > 0) != tt.changed || recoding.Load() != 0 {
				t.Errorf("%d of %d pages changed, %d bytes still reserved", changed, requests, recoding.Load())
			}
		})
	}
}
