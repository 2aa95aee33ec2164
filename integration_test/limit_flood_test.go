// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

const perMinutePolicy = `version: 1
rules:
  - for: [GPTBot, ClaudeBot]
    limit: 60/m
  - for: CCBot
    limit: 90/m
`

// flood sends n requests of a crawler for the same page, over several connections at once, and counts the responses by
// status. The requests are numbered from first on, and each number results in a different client address.
func (s *server) flood(agent string, first, n int) (codes map[int]int) {
	s.t.Helper()
	const connections = 4
	var mu sync.Mutex
	var all sync.WaitGroup
	codes = map[int]int{}
	for c := range connections {
		all.Go(func() {
			from, to := first+c*n/connections, first+(c+1)*n/connections
			got, err := s.floodFrom(agent, from, to)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				s.t.Error(err)
			}
			for code, n := range got {
				codes[code] += n
			}
		})
	}
	all.Wait()
	return codes
}

// floodFrom sends requests over one connection without waiting for the responses.
func (s *server) floodFrom(agent string, from, to int) (codes map[int]int, err error) {
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Minute))
	go func() {
		w := bufio.NewWriter(conn)
		for i := from; i < to; i++ {
			fmt.Fprintf(w, "GET /x HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\nX-Forwarded-For: 20.%d.%d.%d\r\n\r\n", s.addr, agent, i>>16, i>>8&255, i&255)
		}
		_ = w.Flush() // if writing fails, a response will be missing
	}()
	codes = map[int]int{}
	r := bufio.NewReader(conn)
	for range to - from {
		response, err := http.ReadResponse(r, nil)
		if err != nil {
			return codes, err
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			return codes, err
		}
		_ = response.Body.Close()
		codes[response.StatusCode]++
	}
	return codes, nil
}

// The limit is 60 requests a minute. A crawler sends 1,000 requests, each from a different address. The server answers
// 60 of them at once, and then one each second. The others get 429. Other crawlers and browsers are not affected.
func TestThousandRequests(t *testing.T) {
	s := startLogged(t, perMinutePolicy, htmlUpstream(page("")), "robots_policy POLICY\nreverse_proxy UPSTREAM")
	before := time.Now()
	codes := s.flood(gptBot, 0, 1000)
	passed := time.Since(before)
	if more := codes[200] - 60; more < 0 || more > int(passed.Seconds()) || codes[200]+codes[429] != 1000 {
		t.Errorf("%v within %s, want 60 answers, one more for each second, and 429", codes, passed)
	}
	t.Logf("GPTBot, 1,000 requests within %s: %d answers, %d times 429", passed.Round(time.Millisecond), codes[200], codes[429])
	for agent, want := range map[string]int{"ClaudeBot/1.0": 60, "CCBot/2.0": 90, "Googlebot/2.1": 100, chromeAgent: 100} {
		if codes := s.flood(agent, 2000, want); codes[200] != want {
			t.Errorf("%s: %v, want %d answers", agent, codes, want)
		}
	}
}

// A crawler with 20,000 addresses (100,000 with ROBOTSPOLICY_LONG) does not need more memory than a crawler with a few
// addresses.
func TestLimitedFromManyAddresses(t *testing.T) {
	if testing.Short() {
		t.Skip("20,000 requests")
	}
	addresses, maxGrowth := testkit.Rounds(5_000, 20_000), int64(1<<20)
	if testkit.Long() {
		addresses, maxGrowth = 5*addresses, 4<<20
	}
	s := startLogged(t, perMinutePolicy, htmlUpstream(page("")), "robots_policy POLICY\nreverse_proxy UPSTREAM")
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	s.flood(gptBot, 0, 5000)
	before, started := heap(), time.Now()
	codes := s.flood(gptBot, 5000, addresses)
	if grown := heap() - before; grown > maxGrowth {
		t.Errorf("the heap has grown by %d KB", grown>>10)
	} else {
		t.Logf("%d addresses within %s: %v, the heap has grown by %d KB, to %d KB", addresses, time.Since(started).Round(time.Millisecond), codes, grown>>10, (before+grown)>>10)
	}
	if most := int(time.Since(started).Seconds()) + 1; codes[200] > most || codes[200]+codes[429] != addresses {
		t.Errorf("%v, want at most %d answers", codes, most)
	}
}
