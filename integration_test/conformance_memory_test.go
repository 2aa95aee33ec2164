// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// pageOfSize writes a page of n bytes. The request's field Begin selects its beginning.
func pageOfSize(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html")
	n, _ := strconv.Atoi(r.Header.Get("Size"))
	_, _ = io.WriteString(w, r.Header.Get("Begin"))
	line := []byte(strings.Repeat("much to say and more ", 1560)) // some 32 KB
	for ; n > 0; n -= len(line) {
		if _, err := w.Write(line); err != nil {
			return
		}
	}
}

// pageBeginnings are beginnings of pages. Some heads end, and others never end.
var pageBeginnings = []string{"<!DOCTYPE html><html><head></head><body>", "<!DOCTYPE html><html><head><title>", "<!DOCTYPE html><!--"}

// With robots_policy, clients that stop reading a response use at most a limited amount of additional memory.
func TestMemoryOfSlowClients(t *testing.T) { bothDoors(t, testMemoryOfSlowClients) }

func testMemoryOfSlowClients(t *testing.T, d door) {
	testkit.Slow(t)
	if testing.Short() {
		t.Skip("opens many connections")
	}
	clients := 24
	if testkit.Long() {
		clients = 64
	}
	s := d.startSites(t, conformancePolicy, http.HandlerFunc(pageOfSize), map[string]string{
		"bare.test": "reverse_proxy UPSTREAM", "ours.test": "robots_policy POLICY\nreverse_proxy UPSTREAM",
	})
	s.get("/open/x", "Host", "bare.test")
	beginnings := pageBeginnings
	if !testkit.Long() {
		beginnings = beginnings[1:2]
	}
	for _, begin := range beginnings {
		held := map[string]int64{}
		for _, host := range []string{"bare.test", "ours.test", "bare.test", "ours.test"} { // the first round fills the pools of reusable buffers
			held[host] = s.stalled(clients, host, begin)
		}
		t.Logf("%s: %d KiB for each client, %d KiB without the directive", begin, held["ours.test"]/int64(clients)>>10, held["bare.test"]/int64(clients)>>10)
		// The handler keeps the head of a page in memory, at most 64 KiB for each client. The limit here is higher,
		// because the buffers grow in steps and can become larger than the head.
		if more := (held["ours.test"] - held["bare.test"]) / int64(clients); more > 160<<10 {
			t.Errorf("%s: %d KiB more for each client", begin, more>>10)
		}
	}
}

// stalled returns the memory in use while n clients have begun to read a page of 10 MB and
// wait.
func (s *server) stalled(n int, host, begin string) int64 {
	s.t.Helper()
	before := liveHeap()
	ctx, cancel := context.WithCancel(s.t.Context())
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}
	var wg sync.WaitGroup
	for range n {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+"/drafts/x", nil)
		if err != nil {
			s.t.Fatal(err)
		}
		r.Host, r.Header = host, http.Header{"Begin": {begin}, "Size": {strconv.Itoa(10 << 20)}, "Accept-Encoding": {"identity"}}
		wg.Go(func() {
			resp, err := c.Do(r)
			if err != nil {
				s.t.Errorf("%s: %v", host, err)
				return
			}
			s.t.Cleanup(func() { _ = resp.Body.Close() })
			_, _ = io.CopyN(io.Discard, resp.Body, 1000)
		})
	}
	wg.Wait()
	used := int64(liveHeap()) - int64(before)
	cancel()
	for range 100 { // wait until the connections are closed
		if int64(liveHeap())-int64(before) < used/4 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return used
}

// With robots_policy, a page of 100 MB needs as little memory as without it, even if the page's head never ends.
func TestMemoryOfHugePages(t *testing.T) { bothDoors(t, testMemoryOfHugePages) }

func testMemoryOfHugePages(t *testing.T, d door) {
	testkit.Nightly(t)
	if testing.Short() {
		t.Skip("passes 100 MB several times")
	}
	const size = 100 << 20
	s := d.startSites(t, conformancePolicy, http.HandlerFunc(pageOfSize), map[string]string{"ours.test": "robots_policy POLICY\nreverse_proxy UPSTREAM"})
	for _, begin := range pageBeginnings[:2] {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.addr+"/drafts/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host, r.Header = "ours.test", http.Header{"Begin": {begin}, "Size": {strconv.Itoa(size)}, "Accept-Encoding": {"identity"}}
		patient := *client
		patient.Timeout = 3 * time.Minute
		before, most, got := liveHeap(), uint64(0), int64(0)
		doors.asked(s)
		resp, err := patient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		for {
			n, err := io.CopyN(io.Discard, resp.Body, 10<<20)
			got += n
			most = max(most, liveHeap())
			if err != nil {
				break
			}
		}
		_ = resp.Body.Close()
		if grown := int64(most) - int64(before); got < size+int64(len(begin)+len(draftElements)) || grown > 6<<20 {
			t.Errorf("%s: %d bytes came, memory grew by %d KiB", begin, got, grown>>10)
		}
	}
}
