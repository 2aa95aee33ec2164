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
