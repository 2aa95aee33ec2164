// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

var streamSites = map[string]string{
	"plain.test":  "robots_policy POLICY\nreverse_proxy UPSTREAM {\ntransport http {\nkeepalive off\n}\n}",
	"encode.test": "encode gzip {\nmatch {\nheader Content-Type *\n}\n}\nrobots_policy POLICY\nreverse_proxy UPSTREAM {\ntransport http {\nkeepalive off\n}\n}",
}

// Event streams, and pages that arrive in parts, are not delayed: the client receives each part before the upstream
// writes the next one.
func TestStreamsPassAtOnce(t *testing.T) { bothDoors(t, testStreamsPassAtOnce) }

func testStreamsPassAtOnce(t *testing.T, d door) {
	goOn := make(chan struct{})
	s := d.startSites(t, conformancePolicy, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.Header.Get("Type"))
		if v := r.Header.Get("Incremental"); v != "" {
			w.Header().Set("Incremental", v)
		}
		for part := range strings.SplitSeq(r.Header.Get("Parts"), "|") {
			_, _ = io.WriteString(w, strings.ReplaceAll(part, "/n", "\n"))
			_ = http.NewResponseController(w).Flush()
			select {
			case <-goOn:
			case <-r.Context().Done():
				return
			}
		}
	}), streamSites)
	elements := draftElements
	for host := range streamSites {
		if s.lacks(host) {
			continue
		}
		for _, c := range []struct{ name, kind, incremental, parts, want string }{
			{"events", "text/event-stream", "", "data: 1/n/n|data: 2/n/n", "data: 1\n\n|data: 2\n\n"},
			{"lines", "application/x-ndjson", "", "{}|{}|{}", "{}|{}|{}"},
			{"incremental page", "text/html", "?1", "<html><head>|<title>x", "<html><head>|<title>x"},
			{"page", "text/html", "", "<html><head></head><body>1|2|3</body>|</html>", "<html><head>" + elements + "</head><body>1|2|3</body>|</html>"},
			{"page up to its head's end", "text/html", "", "<html><head></head>|<body>1", "<html><head>" + elements + "</head>|<body>1"},
		} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.addr+"/drafts/x", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = host
			r.Header = http.Header{"Type": {c.kind}, "Parts": {c.parts}, "Accept-Encoding": {"identity"}}
			if c.incremental != "" {
				r.Header["Incremental"] = []string{c.incremental}
			}
			doors.asked(s)
			resp, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if wrong := judge("/drafts/x", fields{}, fieldsOf(resp.Header)); len(wrong) > 0 {
				t.Errorf("%s, %s: %v", host, c.name, wrong)
			}
			for part := range strings.SplitSeq(c.want, "|") {
				b := make([]byte, len(part)) // if the part does not arrive, the client's timeout ends the wait
				if _, err := io.ReadFull(resp.Body, b); err != nil || string(b) != part {
					t.Fatalf("%s, %s: %q, want %q: %v", host, c.name, b, part, err)
				}
				goOn <- struct{}{}
			}
			if rest, err := io.ReadAll(resp.Body); len(rest) > 0 || err != nil {
				t.Errorf("%s, %s: %q follows: %v", host, c.name, rest, err)
			}
			_ = resp.Body.Close()
		}
	}
}

// bigPage writes a page of some 10 MB that does not compress well.
func bigPage(w io.Writer, head string) error {
	b := bufio.NewWriterSize(w, 32<<10)
	_, _ = b.WriteString("<!DOCTYPE html><html><head>" + head + "<title>x</title></head><body>")
	state := uint64(1)
	for range 10 << 20 / 64 {
		line := [64]byte{63: '\n'}
		for i := range 63 {
			state = state*6364136223846793005 + 1442695040888963407
			line[i] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ -"[state>>58]
		}
		if _, err := b.Write(line[:]); err != nil {
			return err
		}
	}
	return b.Flush()
}

// A long page in each coding needs only a limited amount of memory, and no byte of it is lost.
func TestLongPage(t *testing.T) { bothDoors(t, testLongPage) }

func testLongPage(t *testing.T, d door) {
	testkit.Nightly(t)
	if testing.Short() {
		t.Skip("passes 10 MB several times")
	}
	s := d.startSites(t, conformancePolicy, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.Header.Get("Type"))
		coding := r.Header.Get("Coding")
		if coding == "" {
			_ = bigPage(w, "")
			return
		}
		w.Header().Set("Content-Encoding", coding)
		packer := packing(coding, w)
		if bigPage(packer, "") == nil {
			_ = packer.Close()
		}
	}), streamSites)
	elements := draftElements
	patient := *client
	patient.Timeout = 3 * time.Minute // the race detector makes compressing slow
	plain, changed := fnv.New64a(), fnv.New64a()
	_, _ = bigPage(plain, ""), bigPage(changed, elements)
	for _, c := range []struct{ host, kind, coding, accept string }{
		{"plain.test", "text/html", "", "identity"},
		{"plain.test", "application/byte-stream", "", "identity"},
		{"plain.test", "text/html", "gzip", "gzip"},
		{"plain.test", "text/html", "zstd", "zstd"},
		{"plain.test", "text/html", "br", "br"},
		{"encode.test", "text/html", "", "gzip"},
	} {
		if s.lacks(c.host) {
			continue
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.addr+"/drafts/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host, r.Header = c.host, http.Header{"Type": {c.kind}, "Coding": {c.coding}, "Accept-Encoding": {c.accept}}
		before := liveHeap()
		doors.asked(s)
		resp, err := patient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		sum, most := fnv.New64a(), uint64(0)
		body := unpacking(t, resp.Header.Get("Content-Encoding"), resp.Body)
		for {
			n, err := io.CopyN(sum, body, 2<<20)
			most = max(most, liveHeap())
			if n < 2<<20 || err != nil {
				if err != nil && !errors.Is(err, io.EOF) {
					t.Errorf("%+v: %v", c, err)
				}
				break
			}
		}
		_ = resp.Body.Close()
		want := changed.Sum64()
		if c.kind != "text/html" || c.coding == "zstd" || c.coding == "br" { // too long to be decompressed
			want = plain.Sum64()
		}
		if sum.Sum64() != want {
			t.Errorf("%+v: the page differs from the sent page", c)
		}
		// With a content coding, memory may grow more, because each compressor and decompressor has a window of up to 8
		// MiB.
		if grown := int64(most) - int64(before); grown > 40<<20 && c.coding != "" || grown > 6<<20 && c.coding == "" && c.host == "plain.test" {
			t.Errorf("%+v: memory grew by %d KiB", c, grown>>10)
		}
	}
}

// liveHeap returns the memory in use. It measures several times and returns the smallest value, because other
// goroutines allocate memory between the garbage collection and the measurement.
func liveHeap() uint64 {
	least := uint64(math.MaxUint64)
	for range 3 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		least = min(least, m.HeapAlloc)
	}
	return least
}

// A client that reads slowly gets the complete page. A client that disconnects leaves no goroutine.
func TestSlowAndAbortingClients(t *testing.T) { bothDoors(t, testSlowAndAbortingClients) }

func testSlowAndAbortingClients(t *testing.T, d door) {
	if testing.Short() {
		t.Skip("waits for connections to end")
	}
	s := d.startSites(t, conformancePolicy, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.Header.Get("Hang") != "" {
			_, _ = io.WriteString(w, r.Header.Get("Hang"))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		_ = bigPage(w, "")
	}), streamSites)
	s.get("/open/x", "Host", "plain.test", "Connection", "close") // starts the goroutines that remain after a request
	before := settled(0)
	var wg sync.WaitGroup
	for host := range streamSites {
		if s.lacks(host) {
			continue
		}
		for i := range 20 {
			hang := []string{"", "<", "<html><head>", "<html><head></head><body>", "x"}[i%5]
			wg.Go(func() { s.abort(t, host, hang) })
		}
	}
	wg.Wait()
	if after := settled(before); after > before {
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines before, %d after\n%s", before, after, buf[:runtime.Stack(buf, true)])
	}

	conn, in := s.dial("GET /drafts/x HTTP/1.1\r\nHost: plain.test\r\nConnection: close\r\n\r\n")
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, got := fnv.New64a(), fnv.New64a()
	_ = bigPage(want, draftElements)
	for err == nil {
		_, err = io.CopyN(got, resp.Body, 1<<20)
		time.Sleep(5 * time.Millisecond)
	}
	if !errors.Is(err, io.EOF) || got.Sum64() != want.Sum64() {
		t.Errorf("a slow client got something else: %v", err)
	}
	_ = conn.Close()
}

// abort begins to read a page, and then disconnects. If hang is not "", it is sent to the upstream in the field Hang,
// and the upstream stops in the middle of the page.
func (s *server) abort(t *testing.T, host, hang string) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+"/drafts/x", nil)
	if err != nil {
		t.Error(err)
		return
	}
	r.Host, r.Header = host, http.Header{"Accept-Encoding": {"gzip"}}
	if hang != "" {
		r.Header["Hang"] = []string{hang}
		time.AfterFunc(100*time.Millisecond, cancel) // while the upstream hangs, Do may wait for the header
	}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}
	resp, err := c.Do(r)
	if err != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 1000)
	cancel()
	_ = resp.Body.Close()
}

// settled waits until at most wanted goroutines are running, but not longer than one second, and returns their number.
// If wanted is 0, it always waits for one second, so that the goroutines of closed connections can end.
func settled(wanted int) int {
	client.CloseIdleConnections()
	for range 40 {
		time.Sleep(25 * time.Millisecond)
		if n := runtime.NumGoroutine(); n <= wanted {
			return n
		}
	}
	return runtime.NumGoroutine()
}

// Entity tags may be in several header lines.
func TestEntityTagLines(t *testing.T) { bothDoors(t, testEntityTagLines) }

func testEntityTagLines(t *testing.T, d door) {
	s := d.start(t, conformancePolicy, http.HandlerFunc(pageUpstream), "robots_policy POLICY\nreverse_proxy UPSTREAM")
	etag := s.get("/drafts/x", "Etag", `"v1"`).Header.Get("Etag")
	for want, lines := range map[int][]string{304: {`"a"`, etag}, 200: {`"a"`, strings.Replace(etag, "-rp", "-rq", 1)}} {
		r := s.get("/drafts/x", "Etag", `"v1"`, "If-None-Match", lines[0], "If-None-Match", lines[1])
		if r.StatusCode != want || r.Header.Get("Etag") != etag {
			t.Errorf("%q: %s %s, want %s", lines, r.Status, r.Header.Get("Etag"), fmt.Sprint(want, etag))
		}
	}
}
