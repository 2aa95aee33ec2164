// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"bytes"
	"io"
	"math/bits"
	"math/rand/v2"
	"net/http/httptest"
	"runtime"
	"slices"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// A handler may write from several goroutines, one after the other. Some of them may be locked to a thread, for example
// because they call C.
func TestWritesFromLockedThreads(t *testing.T) {
	page, set := naturalPage(300_000, "", 1), testSet(t, "robots=noindex")
	want := boundedRewrite(page, set, DefaultMaxHead, false)
	for _, c := range testCodings {
		raw := c.pack(page, 1, 0)
		r := newRecorder()
		r.header.Set("Content-Type", "text/html")
		r.header.Set("Content-Encoding", c.name)
		rw := Wrap(r, httptest.NewRequest("GET", "/", nil), Options{Set: set})
		for i := range 4 {
			done := make(chan error)
			go func() {
				if i != 2 {
					runtime.LockOSThread()
					defer runtime.UnlockOSThread()
				}
				_, err := rw.Write(raw[len(raw)*i/4 : len(raw)*(i+1)/4])
				done <- err
			}()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		if err := rw.Close(nil); err != nil {
			t.Error(err)
		}
		rw.Release()
		if got, err := c.unpack(r.body.Bytes()); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v, %d bytes, want %d", c.name, err, len(got), len(want))
		}
	}
}

// For some values of the first byte of br data, the highest bit does not belong to the window size. Changing this bit
// must not change the window size that narrowed finds.
func TestWindowsOfBrotli(t *testing.T) {
	for first := range 256 {
		b := []byte{byte(first), 0, 0}
		_, _, window := narrowed(brotliCoding, b, 30)
		_, _, other := narrowed(brotliCoding, []byte{byte(first ^ 0x80), 0, 0}, 30)
		if first>>1&7 == 0 && window != other {
			t.Errorf("%#x declares a window of %d bytes, and %#x of %d", first, window, first^0x80, other)
		}
	}
}

// When the package makes the window of compressed data smaller, it keeps the window large enough for the text, even if
// the end of the text repeats its start. A later zstd frame cannot use a larger window than the reserved memory allows.
func TestNarrowedWindows(t *testing.T) {
	testkit.SkipRace(t)
	set := testSet(t, "robots=noindex")
	rnd := rand.New(rand.NewPCG(3, 4))
	noise := make([]byte, 2000)
	for i := range noise {
		noise[i] = byte('a' + rnd.IntN(26))
	}
	page := slices.Concat([]byte("<!DOCTYPE html><head></head>"), noise, bytes.Repeat([]byte(" "), 1_500_000), noise)
	want := boundedRewrite(page, set, DefaultMaxHead, false)
	pack := map[string]func(io.Writer) io.WriteCloser{
		"br": func(w io.Writer) io.WriteCloser {
			return brotli.NewWriterOptions(w, brotli.WriterOptions{Quality: 9, LGWin: 24})
		},
		"zstd": func(w io.Writer) io.WriteCloser {
			z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(8<<20))
			if err != nil {
				t.Fatal(err)
			}
			return z
		},
	}
	for _, c := range testCodings[1:3] {
		var raw bytes.Buffer
		w := pack[c.name](&raw)
		for part := range slices.Chunk(page, 10_000) {
			w.Write(part)
		}
		w.Close()
		asked := raw.Bytes()[0]
		if c.name == "zstd" {
			asked = raw.Bytes()[windowByte]
		}
		limit := bombBase + bombRatio*raw.Len()
		_, narrow, window := narrowed(codings[c.name], raw.Bytes(), bits.Len(uint(limit+16)))
		if raw.Len() > 3500 || asked == narrow || window < len(page) {
			t.Errorf("%s: %d bytes ask for a window that need not be changed to %d bytes", c.name, raw.Len(), window)
		}
		r := sendWith(t, Options{Set: set}, c.name, "text/html", raw.Bytes(), 1000)
		if got, err := c.unpack(r.body.Bytes()); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v, %d bytes of %d", c.name, err, len(got), len(want))
		}
		if c.name == "zstd" {
			two := append(zstdSmall(t, page[:100]), raw.Bytes()...)
			if r := sendWith(t, Options{Set: set}, c.name, "text/html", two, 1000); !bytes.Equal(r.body.Bytes(), two) {
				t.Error("a later frame used a larger window than the first")
			}
		}
	}
}

func zstdSmall(t *testing.T, text []byte) []byte {
	w, err := zstd.NewWriter(nil, zstd.WithWindowSize(64<<10))
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(text, nil)
}
