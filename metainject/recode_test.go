// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"bytes"
	"net/http/httptest"
	"runtime"
	"testing"
)

// A handler may write from other goroutines than the one that was called, one
// after the other, and from threads that are locked, as those that call C do.
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

// What goes wrong in a library goes wrong where the response is served, which can
// be recovered from, and leaves no goroutine behind.
func TestUnpackerPanics(t *testing.T) {
	before := runtime.NumGoroutine()
	c := new(recoder)
	for range 2 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("it did not panic")
				}
			}()
			c.start(identity, nil) // which none of the unpackers is for
			c.unpack()
		}()
		c.release()
	}
	c.start(brotliCoding, nil)
	c.push([]byte{0x1b}, false)
	c.unpack()
	c.release()
	c.release()
	for i := 0; runtime.NumGoroutine() > before; i++ {
		if i == 1e6 {
			t.Fatalf("%d goroutines, there were %d", runtime.NumGoroutine(), before)
		}
		runtime.Gosched()
	}
}
