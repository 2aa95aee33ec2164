// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"
	"golang.org/x/time/rate"
)

const hostPolicyText = `version: 1
rules:
  - for: everyone
    disallow:
      crawl: /admin/
      train-ai: /
  - name: no AI training
    for: category:ai-training
    disallow:
      crawl: /
    enforce: block
`

// newTestSet returns the Hosts for a template, such as /policies/{host}.yaml, with a store whose configuration runs.
func newTestSet(t testing.TB, name string) *Hosts {
	t.Helper()
	template, err := parseHostTemplate(name)
	if err != nil {
		t.Fatal(err)
	}
	s := newHosts(template)
	s.all = []*user{{Options: testOptions(zapcore.NewNopCore()), watch: true, interval: time.Second}}
	return s
}

func writePolicy(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// sweepAll sweeps several times, and waits for slow files. On a busy machine, files may take longer than a sweep.
func (h *Hosts) sweepAll(t *testing.T) {
	t.Helper()
	for range 3 {
		h.sweep(t.Context(), false)
		if err := h.reads.Acquire(t.Context(), maxReads); err != nil {
			t.Fatal(err)
		}
		h.reads.Release(maxReads)
	}
}

// No file outside the directory is read for any Host header, even if another user puts symbolic links into the
// directory.
func TestHostFilesStayInTheirDirectory(t *testing.T) {
	dir := t.TempDir()
	writePolicy(t, filepath.Join(dir, "secret.yaml"), hostPolicyText)
	in := filepath.Join(dir, "policies")
	writePolicy(t, filepath.Join(in, "good.example.yaml"), hostPolicyText)
	for _, link := range [][2]string{
		{filepath.Join(dir, "secret.yaml"), "absolute.example.yaml"}, {"../secret.yaml", "relative.example.yaml"}, {"good.example.yaml", "inside.example.yaml"},
	} {
		if err := os.Symlink(link[0], filepath.Join(in, link[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(in, "directory.example.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := newTestSet(t, in+"/{host}.yaml")
	rules := func(host string) int {
		l, err := s.Get(context.Background(), host)
		if err != nil {
			t.Fatal(host, err)
		}
		if l == nil {
			return 0
		}
		return len(l.Site.File.Spec.Rules)
	}
	for host, want := range map[string]int{
		"good.example": 2, "GOOD.example.:80": 2, "inside.example": 2,
		// If a host's file exists but cannot be read, the whole host is disallowed instead of allowed.
		"absolute.example": 1, "relative.example": 1, "directory.example": 1,
		"../secret": 0, "..%2fsecret": 0, "nobody.example": 0, "": 0,
	} {
		if got := rules(host); got != want {
			t.Errorf("%q: %d rules, want %d", host, got, want)
		}
	}
	l, err := s.Get(context.Background(), "absolute.example")
	if err != nil || l.Site.File.Spec.Rules[0].Name != "the policy file of this host has an error" {
		t.Error(err)
	}
}

// Changed files are loaded. If a file cannot be read, it is not treated like a missing file.
func TestHostsFollow(t *testing.T) {
	dir := t.TempDir()
	s := newTestSet(t, dir+"/{host}.yaml")
	path := filepath.Join(dir, "a.example.yaml")
	rules := func() int {
		l, err := s.Get(context.Background(), "a.example")
		if err != nil {
			t.Fatal(err)
		}
		if l == nil {
			return 0
		}
		return len(l.Site.File.Spec.Rules)
	}
	sweep := func() { s.sweepAll(t) }
	step := func(what string, want int) {
		t.Helper()
		if got := rules(); got != want {
			t.Fatalf("%s: %d rules, want %d", what, got, want)
		}
	}
	step("no file", 0)
	writePolicy(t, path, hostPolicyText)
	step("the miss is remembered", 0)
	sweep() // this sweep finds the file, because the host was requested before
	step("a file", 2)
	writePolicy(t, path, strings.Replace(hostPolicyText, "disallow", "dissallow", 1))
	sweep()
	step("a broken edit", 2)
	if st := s.Status(); st.Broken != 1 || st.Reloads.Rejected != 1 {
		t.Errorf("%+v", st)
	}
	writePolicy(t, path, hostPolicyText[:strings.Index(hostPolicyText, "  - name")])
	sweep()
	step("another", 1)
	if st := s.Status(); st.Broken != 0 || st.Reloads.Applied != 1 {
		t.Errorf("%+v", st)
	}
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	sweep()
	step("the directory is away", 1)
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	sweep()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	sweep()
	step("the file is gone", 0)
}

// Many simultaneous requests for the same host read its file only once.
func TestHostsLoadOnce(t *testing.T) {
	dir := t.TempDir()
	writePolicy(t, filepath.Join(dir, "a.example.yaml"), hostPolicyText)
	s := newTestSet(t, dir+"/{host}.yaml")
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := map[*Snapshot]bool{}
	for range 50 {
		wg.Go(func() {
			l, err := s.Get(context.Background(), "a.example")
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			got[l] = true
			mu.Unlock()
		})
	}
	wg.Wait()
	if len(got) != 1 {
		t.Errorf("%d policies", len(got))
	}
}

// If a Kubernetes volume with a file for each host is updated, the new files are loaded.
func TestHostsOfAConfigMap(t *testing.T) {
	dir := t.TempDir()
	put := func(version, text string) {
		t.Helper()
		writePolicy(t, filepath.Join(dir, version, "a.example.yaml"), text)
		if err := os.Symlink(version, filepath.Join(dir, "..data_tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	put("..1", hostPolicyText)
	if err := os.Symlink("..data/a.example.yaml", filepath.Join(dir, "a.example.yaml")); err != nil {
		t.Fatal(err)
	}
	s := newTestSet(t, dir+"/{host}.yaml")
	for i, want := range []string{hostPolicyText, hostPolicyText + "# 2\n", hostPolicyText + "# 3\n"} {
		if i > 0 {
			put(fmt.Sprintf("..%d", i+1), want)
			s.sweepAll(t)
		}
		if l, err := s.Get(context.Background(), "a.example"); err != nil || l == nil || l.SHA256 != sumOf([]byte(want)) {
			t.Fatal(i, l, err)
		}
	}
}

// BenchmarkHosts measures the first request for a host and the later ones.
func BenchmarkHosts(b *testing.B) {
	dir := b.TempDir()
	const n = 10_000
	for i := range n {
		writePolicy(b, filepath.Join(dir, fmt.Sprintf("h%d.example.yaml", i)), hostPolicyText+fmt.Sprintf("# %d\n", i))
	}
	s := newTestSet(b, dir+"/{host}.yaml")
	s.lookups.SetLimit(rate.Inf)
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		i := 0
		for b.Loop() {
			if l, err := s.Get(context.Background(), fmt.Sprintf("h%d.example", i%n)); l == nil || err != nil {
				b.Fatal(l, err)
			}
			i++
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if held := len(s.files); held > 0 {
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(held), "B/host")
		}
	})
	b.Run("warm", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if l, err := s.Get(context.Background(), "h0.example:8080"); l == nil || err != nil {
				b.Fatal(l, err)
			}
		}
	})
	b.Run("sweep", func(b *testing.B) {
		for b.Loop() {
			s.sweep(context.Background(), false)
		}
		b.ReportMetric(float64(len(s.files)), "hosts")
	})
}

// A file is looked up twice, one lookup after the other. The second lookup returns the result of the first one, even if
// the file was written in between.
func TestLookupsOneAfterTheOther(t *testing.T) {
	dir := t.TempDir()
	h := newTestSet(t, dir+"/{host}.yaml")
	writePolicy(t, filepath.Join(dir, "a.example.yaml"), hostPolicyText)
	for _, name := range []string{"a.example.yaml", "none.example.yaml"} {
		first, err := h.load(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		writePolicy(t, filepath.Join(dir, name), hostPolicyText+"# 2\n")
		second, err := h.load(t.Context(), name)
		if err != nil || second != first || len(h.files) != 1 {
			t.Errorf("%s: %v and %v, %v", name, first, second, err)
		}
	}
	if len(h.misses) != 1 {
		t.Errorf("%d misses", len(h.misses))
	}
}

// If reading a host's file panics, the waiting requests get an error. The next request reads the file again.
func TestLookupThatPanics(t *testing.T) {
	dir := t.TempDir()
	writePolicy(t, filepath.Join(dir, "a.example.yaml"), hostPolicyText)
	h := newTestSet(t, dir+"/{host}.yaml")
	reads := h.reads
	h.reads = nil
	if s, err := h.Get(t.Context(), "a.example"); s != nil || err == nil {
		t.Errorf("%v, %v", s, err)
	}
	h.reads = reads
	if s, err := h.Get(t.Context(), "a.example"); s == nil || err != nil {
		t.Errorf("%v, %v", s, err)
	}
}

// countedError is an error that counts how often its text is formatted.
type countedError struct{ formatted int }

func (e *countedError) Error() string {
	e.formatted++
	return "broken"
}

// The methods Status and evict examine which files have an error. They hold a lock, so they must not format the errors,
// because requests would have to wait until thousands of errors are formatted.
func TestBrokenFilesAreCounted(t *testing.T) {
	h := newTestSet(t, t.TempDir()+"/{host}.yaml")
	var err countedError
	for i := range few {
		d := newHostDocument(h, fmt.Sprintf("h%d.yaml", i))
		d.setError(&err, false)
		h.add(d.Name, d)
	}
	good := newHostDocument(h, "good.yaml")
	h.add(good.Name, good)
	if s := h.Status(); s.Broken != few || s.Loaded != few+1 {
		t.Errorf("%+v", s)
	}
	h.mu.Lock()
	h.evict()
	h.mu.Unlock()
	if err.formatted > 0 {
		t.Errorf("formatted %d times", err.formatted)
	}
}
