// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

var soak = flag.Duration("soak", 2*time.Second, "how long TestSoak takes")

const (
	soakReloads = 200 // number of reloads in a minute
	soakClients = 8
)

// soakPolicy returns a policy whose number is visible in every channel. Policies with odd numbers block GPTBot.
func soakPolicy(n int) string {
	text := fmt.Sprintf(`version: 1
rules:
  - for: everyone
    disallow:
      crawl: /v%[1]d-a
      train-ai: /v%[1]d-b
    allow:
      present-snippet:
        - {paths: /, max-length: %[1]d-chars}
  - for: Bingbot
    disallow:
      crawl: /v%[1]d-c
`, n)
	if n%2 == 1 {
		text += "  - for: GPTBot\n    disallow:\n      crawl: /\n    enforce: block\n"
	}
	return text
}

var (
	soakNumber = regexp.MustCompile(`(?:/v|max-snippet[=:])([0-9]+)`)
	soakMeta   = regexp.MustCompile(`<meta name="robots" content="[^"]*max-snippet:[0-9]+`)
)

// soakClient is a client that requests the same path again and again, and checks each response.
type soakClient struct {
	path, agent string
	gzip        bool
	check       func(r response, numbers map[string]bool) string // returns the problem, or ""
	asked       int
}

// TestSoak changes the policy many times a minute, and half of the new policies are invalid. At the same time, clients
// request the outputs of every channel, and all recorders record these requests. If the test takes more than a minute,
// it also damages the activity database and fills the disk of the evidence log. No request may fail, every answer must
// come from a single policy, and the resources in use must not grow.
func TestSoak(t *testing.T) {
	if testing.Short() && !flagGiven("soak") {
		t.Skip("takes a while")
	}
	if !flagGiven("soak") {
		testkit.Slow(t)
	}
	disk, console := t.TempDir(), freeAddr(t)
	long := *soak > time.Minute
	if long {
		mountSmallDisk(t, disk)
	}
	s := startReloading(t, recordEverything(disk, console), soakPolicy(1000), htmlUpstream(page(`<meta name="robots" content="nofollow">`)),
		"encode gzip\nrobots_policy POLICY {\nreload 50ms\n}\nreverse_proxy UPSTREAM")
	clients := soakers()
	var done atomic.Bool
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() {
			for !done.Load() && !t.Failed() {
				c.ask(t, s)
				time.Sleep(15 * time.Millisecond) // other programs use the machine, too
			}
		})
	}
	wg.Go(func() {
		for !done.Load() && !t.Failed() {
			s.readPages(t, console)
			time.Sleep(time.Second)
		}
	})
	warm := *soak / 5
	written := s.edit(t, 0, warm)
	before := usage(t)
	if long {
		s.damageStore(t)
		full := fillDisk(t, disk)
		written = s.edit(t, written, *soak/5)
		s.wantFailing(t, "activity", "evidence")
		_ = os.Remove(full)
	}
	written = s.edit(t, written, *soak*3/5)
	after := usage(t)
	done.Store(true)
	wg.Wait()
	if long {
		s.wantWorking(t, "activity", "evidence")
	}
	total := 0
	for _, c := range clients {
		total += c.asked
	}
	p := s.policies().Policies[0]
	t.Logf("%s: %d edits, %d applied, %d rejected; %d requests; before %v, after %v", *soak, written, p.Reloads.Applied, p.Reloads.Rejected, total, before, after)
	if after.goroutines > before.goroutines+20 || after.descriptors > before.descriptors+20 || after.heap > before.heap+before.heap/2+16<<20 {
		t.Errorf("the resources in use have grown: before %v, after %v", before, after)
	}
	if p.Reloads.Applied < written*4/10 || p.Reloads.Rejected < written*4/10 {
		t.Errorf("of %d edits %+v", written, p.Reloads)
	}
}

func soakers() (clients []*soakClient) {
	for i := range soakClients {
		switch i % 4 {
		case 0:
			clients = append(clients, &soakClient{path: "/robots.txt", agent: gptBot, check: func(r response, _ map[string]bool) string {
				if r.StatusCode != 200 {
					return r.Status
				}
				return ""
			}})
		case 1, 2:
			clients = append(clients, &soakClient{path: "/page", agent: "Bingbot", gzip: i%4 == 2, check: func(r response, _ map[string]bool) string {
				if r.StatusCode != 200 || len(r.Header.Values("X-Robots-Tag")) != 1 || !soakMeta.MatchString(r.body) {
					return "a page without its restrictions"
				}
				return ""
			}})
		case 3:
			clients = append(clients, &soakClient{path: "/page", agent: gptBot, check: func(r response, numbers map[string]bool) string {
				for n := range numbers {
					if odd := (n[len(n)-1]-'0')%2 == 1; odd && r.StatusCode == 200 {
						return "a page of a policy that blocks it"
					}
				}
				if r.StatusCode != 200 && r.StatusCode != 403 {
					return r.Status
				}
				return ""
			}})
		}
	}
	return clients
}

func (c *soakClient) ask(t *testing.T, s *reloading) {
	r, err := http.NewRequest(http.MethodGet, "http://"+s.addr+c.path, nil)
	if err != nil {
		t.Error(err)
		return
	}
	r.Header.Set("User-Agent", c.agent)
	if c.gzip {
		r.Header.Set("Accept-Encoding", "gzip")
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	var in io.Reader = resp.Body
	if resp.Header.Get("Content-Encoding") == "gzip" {
		if in, err = gzip.NewReader(in); err != nil {
			t.Error(err)
			return
		}
	}
	body, err := io.ReadAll(in)
	if err != nil {
		t.Error(err)
		return
	}
	c.asked++
	whole := fmt.Sprint(resp.Header["X-Robots-Tag"], resp.Header["Robots-Tag"]) + string(body)
	numbers := map[string]bool{}
	for _, m := range soakNumber.FindAllStringSubmatch(whole, -1) {
		numbers[m[1]] = true
	}
	wrong := c.check(response{resp, string(body)}, numbers)
	if len(numbers) > 1 {
		wrong = "a mix of policies"
	}
	if len(numbers) == 0 && resp.StatusCode == 200 {
		wrong = "of no policy"
	}
	if wrong != "" {
		t.Errorf("%s as %q: %s: %s", c.path, c.agent, wrong, whole)
	}
}

// edit writes a new version of the policy many times a minute, for the duration d. Every second version is invalid.
// written is the number of versions that earlier calls have written. The result is the number including the versions of
// this call.
func (s *reloading) edit(t *testing.T, written int, d time.Duration) int {
	tick := time.NewTicker(time.Minute / soakReloads)
	defer tick.Stop()
	for end := time.Now().Add(d); time.Now().Before(end) && !t.Failed(); written++ {
		<-tick.C
		text := soakPolicy(1001 + written/2)
		switch {
		case written%4 == 1:
			text += "rulez: 1\n"
		case written%4 == 3:
			text = text[:len(text)/2] + "\x00"
		}
		s.write("policy.new", text)
		if err := os.Rename(s.dir+"/policy.new", s.dir+"/policy.yaml"); err != nil {
			t.Error(err)
		}
		// The test changes the file so often that it is never stable for long enough to be loaded by the watcher. So
		// the test also requests a reload after each change.
		s.ask(http.MethodPost, "/robots_policy/reload", nil)
	}
	return written
}

// resources holds measurements of the process that would grow if something leaked.
type resources struct {
	goroutines, descriptors int
	heap                    uint64
}

func (r resources) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, %.1f MiB of heap", r.goroutines, r.descriptors, float64(r.heap)/(1<<20))
}

func usage(t *testing.T) resources {
	t.Helper()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fds, _ := os.ReadDir("/proc/self/fd") // only Linux has this directory
	return resources{runtime.NumGoroutine(), len(fds), m.HeapAlloc}
}

func flagGiven(name string) (given bool) {
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	return given
}
