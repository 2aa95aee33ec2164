// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/time/rate"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// A small policy file uses little memory, and a host that a client invented uses almost none. The test uses 500 files
// or, with ROBOTSPOLICY_LONG, 10,000 files. maxTotal, the limit of the total memory, is meant for 10,000 files.
func TestMemoryOfHosts(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	const misses = 5000
	const maxPerFile, maxPerMiss, maxTotal = 20 << 10, 300, 250 << 20
	files := 500
	if testkit.Long() {
		files = 10_000
	}
	dir := t.TempDir()
	for i := range files {
		writePolicy(t, filepath.Join(dir, fmt.Sprintf("h%d.example.yaml", i)), hostPolicyText+fmt.Sprintf("# %d\n", i))
	}
	h := newTestSet(t, dir+"/{host}.yaml")
	h.lookups.SetLimit(rate.Inf)
	get := func(host string, want bool) {
		t.Helper()
		if s, err := h.Get(context.Background(), host); (s != nil) != want || err != nil {
			t.Fatalf("%s: %v %v", host, s, err)
		}
	}
	heap := func() int64 {
		runtime.GC()
		runtime.GC() // a second collection frees the objects that the first one finalized
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	get("h0.example", true) // the memory that all policies share
	before := heap()
	for i := 1; i < files; i++ {
		get(fmt.Sprintf("h%d.example", i), true)
	}
	loaded := heap()
	for i := range misses {
		get(fmt.Sprintf("made-up-%d.example", i), false)
	}
	after := heap()
	perFile, perMiss := (loaded-before)/int64(files-1), (after-loaded)/misses
	t.Logf("%d files: %d bytes each, %d MiB together with all that they share; %d bytes for each host without a file",
		files, perFile, after>>20, perMiss)
	if perFile > maxPerFile || perMiss > maxPerMiss || after > maxTotal {
		t.Errorf("want at most %d, %d and %d MiB", maxPerFile, maxPerMiss, maxTotal>>20)
	}
	runtime.KeepAlive(h)
}
