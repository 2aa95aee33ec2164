// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

var together = flag.Duration("together", 3*time.Second, "how long TestTogether takes")

// TestTogether does at the same time everything that people and programs do with a server, so that the race detector
// can find races. It loads configurations. It edits policies and publishes them in two ways. Half of the policies are
// invalid. It uses the admin API and the console, stores requests, and merges robots.txt with a changing file of an
// upstream.
func TestTogether(t *testing.T) {
	testkit.Slow(t)
	if testing.Short() && !flagGiven("together") {
		t.Skip("takes a while")
	}
	var version atomic.Int64
	console := freeAddr(t)
	s := newTogether(t, console, &version)
	var wg sync.WaitGroup
	var stop atomic.Bool
	counts := map[string]*atomic.Int64{}
	for name, step := range map[string]func() bool{
		"loads": func() bool { time.Sleep(time.Second); return s.reconfigureAgain(&version) }, "publications": func() bool { return s.publishOne(&version) },
		"publications in the console": func() bool { return s.publishInConsole(console, &version) },
		"edits": func() bool {
			n := version.Add(1)
			text := soakPolicy(int(n))
			if n%4 == 1 {
				text = text[:len(text)-80]
			}
			s.write("policy.yaml", text)
			return true
		},
		"reloads": func() bool { return s.try(http.MethodPost, s.admin, "/robots_policy/reload") },
		"switches": func() bool {
			return s.try(http.MethodPost, s.admin, "/robots_policy/enforce?mode="+[]string{"log", "off", "block"}[version.Load()%3])
		},
		"scrapes": func() bool {
			return s.try(http.MethodGet, s.admin, "/metrics") && s.try(http.MethodGet, s.admin, "/robots_policy/")
		},
		"pages of the console": func() bool {
			return s.try(http.MethodGet, console, "/"+[]string{"", "who-came", "who-may", "ask?agent=GPTBot&url=/x", "published", "health", "crawler?name=GPTBot"}[version.Add(1)%7])
		},
		"robots.txt": func() bool {
			return s.try(http.MethodGet, s.addr, "/stored/robots.txt") && s.try(http.MethodGet, s.addr, "/robots.txt")
		},
		"visits": func() bool {
			return s.try(http.MethodGet, s.addr, fmt.Sprintf("/stored/%d", version.Load()%100)) && s.try(http.MethodGet, s.addr, "/page")
		},
	} {
		n := new(atomic.Int64)
		counts[name] = n
		wg.Go(func() {
			for !stop.Load() && !t.Failed() {
				if step() {
					n.Add(1)
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	time.Sleep(*together)
	for end := time.Now().Add(time.Minute); time.Now().Before(end) && !t.Failed(); time.Sleep(100 * time.Millisecond) { // a busy machine needs more time
		if !slices.ContainsFunc(slices.Collect(maps.Values(counts)), func(n *atomic.Int64) bool { return n.Load() == 0 }) {
			break
		}
	}
	stop.Store(true)
	wg.Wait()
	for name, n := range counts {
		t.Logf("%d %s", n.Load(), name)
		if n.Load() == 0 {
			t.Errorf("no %s", name)
		}
	}
}

type togetherServer struct {
	*reloading
	storage certmagic.FileStorage
	client  http.Client
}

const togetherKey = "robots/site.yaml"

func newTogether(t *testing.T, console string, version *atomic.Int64) *togetherServer {
	t.Helper()
	disk := busyDir(t)
	s := &togetherServer{client: http.Client{Timeout: 20 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	upstream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch n := version.Load(); {
		case !strings.HasSuffix(r.URL.Path, "/robots.txt"):
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, page(""))
		case n%5 == 0:
			w.WriteHeader(http.StatusBadGateway)
		default:
			fmt.Fprintf(w, "User-agent: *\nDisallow: /up%d/\nContent-Signal: ai-train=no\n", n)
		}
	})
	s.reloading = startReloading(t, recordEverything(disk, console), soakPolicy(1), upstream, "respond hello")
	s.storage.Path = filepath.Join(s.dir, "storage")
	if err := os.MkdirAll(filepath.Join(s.storage.Path, "robots"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.publishOne(version)
	if !s.reconfigureAgain(version) {
		t.Fatal("the configuration does not load")
	}
	return s
}

// reconfigureAgain loads a configuration with two sites. Some of these configurations differ from the previous one.
func (s *togetherServer) reconfigureAgain(version *atomic.Int64) bool {
	mode := []string{"merge", "replace"}[version.Load()%2]
	err := load(s.caddyfile(`
	handle_path /stored/* {
		robots_policy storage:` + togetherKey + ` {
			reload 100ms
			robots_txt ` + mode + `
		}
		reverse_proxy UPSTREAM
	}
	robots_policy POLICY {
		reload 50ms
		robots_txt merge
		verify lists dns
	}
	reverse_proxy UPSTREAM`))
	return err == nil // the policy file may be invalid at this moment
}

// togetherPolicy returns a policy that differs from the previous one. Some of these policies are invalid.
func togetherPolicy(n int64) string {
	text := soakPolicy(int(n))
	if n%4 == 0 {
		text += "rulez: 1\n"
	}
	return text
}

// publishOne publishes a policy without using the console.
func (s *togetherServer) publishOne(version *atomic.Int64) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	time.Sleep(time.Second)
	replaces := ""
	if before, err := s.storage.Load(ctx, togetherKey); err == nil {
		replaces = fmt.Sprintf("%x", sha256.Sum256(before))
	}
	err := source.PublishTo(ctx, &s.storage, togetherKey, source.Change{Replaces: replaces, Text: togetherPolicy(version.Add(1))})
	if err != nil && !errors.Is(err, source.ErrOvertaken) {
		s.t.Error(err)
	}
	return err == nil
}

var formField = regexp.MustCompile(`name="(token|base|to)" value="([^"]*)"`)

// publishInConsole checks and publishes a draft on the pages of the console.
func (s *togetherServer) publishInConsole(console string, version *atomic.Int64) bool {
	origin := "http://" + strings.Replace(console, "127.0.0.1", "localhost", 1)
	form := url.Values{"text": {fmt.Sprintf("version: 1\nrules:\n  - for: GPTBot\n    disallow: {crawl: /v%d/}\n", version.Add(1))}}
	for _, do := range []string{"check", "publish"} {
		form.Set("do", do)
		r, err := http.NewRequest(http.MethodPost, origin+"/change?policy=storage:"+togetherKey, strings.NewReader(form.Encode()))
		if err != nil {
			s.t.Error(err)
			return false
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", origin)
		resp, err := s.client.Do(r)
		if err != nil {
			return false // the connection failed while a configuration was loaded
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return false
		}
		if do == "publish" {
			return resp.StatusCode == http.StatusSeeOther
		}
		for _, m := range formField.FindAllStringSubmatch(string(body), -1) {
			form.Set(m[1], m[2])
		}
	}
	return false
}

// try sends a request. The connection may fail while a configuration is loaded, but the server must never answer with
// status 500.
func (s *togetherServer) try(method, addr, path string) bool {
	addr = strings.Replace(addr, "127.0.0.1", "localhost", 1)
	r, err := http.NewRequest(method, "http://"+addr+path, http.NoBody)
	if err != nil {
		s.t.Error(err)
		return false
	}
	r.Header.Set("User-Agent", gptBot)
	resp, err := s.client.Do(r)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	if resp.StatusCode == http.StatusInternalServerError {
		s.t.Errorf("%s %s: %s", method, path, resp.Status)
	}
	return err == nil && resp.StatusCode < 500
}
