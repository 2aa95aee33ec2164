// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"fmt"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// pages requests pages, one a second from a time on, and returns after how many the
// client is found to crawl; 0 for not at all.
func (w *Readers) pages(address, agent string, n int, at time.Time) int {
	for i := range n {
		if w.Counts(address, agent, true, at.Add(time.Duration(i)*time.Second)) {
			return i + 1
		}
	}
	return 0
}

func TestReaderOfRobotsThatReadsManyPages(t *testing.T) {
	t.Parallel()
	var w Readers
	if n := w.pages("192.0.2.1", "Chrome", 100, noon); n != 0 {
		t.Errorf("without robots.txt: found after %d pages", n)
	}
	w.ReadsRobots("192.0.2.1", "Chrome", noon)
	if n := w.pages("192.0.2.1", "Firefox", 100, noon); n != 0 {
		t.Errorf("another browser at the address: found after %d pages", n)
	}
	if n := w.pages("192.0.2.2", "Chrome", 100, noon); n != 0 {
		t.Errorf("another address: found after %d pages", n)
	}
	for range 1000 {
		if w.Counts("192.0.2.1", "Chrome", false, noon) {
			t.Fatal("what pages need is counted as pages")
		}
	}
	if n := w.pages("192.0.2.1", "Chrome", 100, noon); n != manyPages+1 {
		t.Errorf("found after %d pages, want %d", n, manyPages+1)
	}
	// It stays found while it goes on, and an hour of silence ends that.
	at := noon.Add(time.Minute)
	for range 5 {
		at = at.Add(50 * time.Minute)
		if !w.Crawls("192.0.2.1", "Chrome", at) {
			t.Fatalf("not found at %s", at.Format(time.TimeOnly))
		}
	}
	if at = at.Add(61 * time.Minute); w.Crawls("192.0.2.1", "Chrome", at) {
		t.Error("found after an hour of silence")
	}
}

func TestNetworkOfIPv6(t *testing.T) {
	t.Parallel()
	var w Readers
	w.ReadsRobots("2001:db8:1:2::1", "Chrome", noon)
	if n := w.pages("2001:db8:1:2:ffff::9", "Chrome", 100, noon); n != manyPages+1 {
		t.Errorf("another address of the network: found after %d pages", n)
	}
	w.ReadsRobots("not an address", "Chrome", noon)
	if w.Counts("not an address", "Chrome", true, noon) {
		t.Error("what is no address is found")
	}
}

func TestReadersAreForgotten(t *testing.T) {
	t.Parallel()
	var w Readers
	w.ReadsRobots("192.0.2.1", "Chrome", noon)
	if n := w.pages("192.0.2.1", "Chrome", 100, noon.Add(period)); n != 0 {
		t.Errorf("found after %d pages, an hour after robots.txt", n)
	}
	w.ReadsRobots("192.0.2.2", "Chrome", noon.Add(period))
	w.Crawls("192.0.2.3", "Chrome", noon.Add(2*period))
	if !w.Any() {
		t.Error("the reader of an hour ago is forgotten")
	}
	w.Crawls("192.0.2.3", "Chrome", noon.Add(3*period))
	if w.Any() {
		t.Error("readers that did not come again are remembered")
	}
	for i := range 5 * maxReaders {
		w.ReadsRobots("192.0.2.1", fmt.Sprint("agent ", i), noon)
		if n := len(w.recent) + len(w.earlier); n > maxReaders {
			t.Fatalf("%d readers are remembered", n)
		}
	}
}

func TestIsPage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path, dest string
		want       bool
	}{
		{"/", "", true}, {"/a/b", "", true}, {"/a.html?x=1.png", "", true}, {"/A.HTML", "", true}, {"/index.php", "", true},
		{"/a.png", "", false}, {"/a.css?v=3", "", false}, {"/a.js", "", false},
		{"/a", "image", false}, {"/a", "document", true}, {"/a.pdf", "document", true},
	} {
		if got := IsPage(c.path, c.dest); got != c.want {
			t.Errorf("%s %q: %v", c.path, c.dest, got)
		}
	}
}
