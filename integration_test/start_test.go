// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/certmagic"

	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// faultyStorage is Caddy's file storage. Depending on Fault, it fails in different ways when the policy is read.
type faultyStorage struct {
	Root  string `json:"root"`
	Fault string `json:"fault"`
}

func init() { caddy.RegisterModule(new(faultyStorage)) }

// faultNow holds a fault that replaces the configured Fault of all storages in this process. nil means the configured
// fault.
var faultNow atomic.Pointer[string]

func (*faultyStorage) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.storage.test_faulty", New: func() caddy.Module { return new(faultyStorage) }}
}

func (f *faultyStorage) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if !d.AllArgs(&f.Root, &f.Fault) {
		return d.ArgErr()
	}
	return nil
}

func (f *faultyStorage) CertMagicStorage() (certmagic.Storage, error) {
	return &faultyFiles{&certmagic.FileStorage{Path: f.Root}, f.Fault}, nil
}

type faultyFiles struct {
	*certmagic.FileStorage
	fault string
}

func (f *faultyFiles) Load(ctx context.Context, key string) ([]byte, error) {
	fault := f.fault
	if now := faultNow.Load(); now != nil {
		fault = *now
	}
	switch {
	case !strings.HasPrefix(key, "site/"):
	case fault == "unreadable":
		return nil, &fs.PathError{Op: "open", Path: f.Filename(key), Err: fs.ErrPermission}
	case fault == "hanging":
		select {}
	case fault == "empty":
		return []byte{}, nil
	case fault == "damaged":
		return []byte("version: 1\nrul\x00"), nil
	}
	return f.FileStorage.Load(ctx, key)
}

// TestStarts starts Caddy when the policy in the storage cannot be read, with and without a last good policy. Caddy
// starts in all cases. Without a last good policy, requests for robots.txt get status 503, pages are served, and no
// crawler is blocked. Caddy raises an alert until the storage works. There is one exception: if no last good policy is
// saved, and the storage does not contain the policy's key, Caddy assumes that no policy was published yet. It then
// does not raise an alert.
func TestStarts(t *testing.T) {
	const policy = "version: 1\nenforcement: {mode: block}\nrules:\n  - for: GPTBot\n    disallow: {crawl: /a/}\n"
	for _, c := range []struct {
		fault    string
		lastGood bool
		robots   int
		problem  string // the problem in the log and in the alert, or "" if there is none
		invalid  string // the error of caddy validate, or "" if there is none
	}{
		{"none", false, 200, "", ""},
		{"missing", false, 299, "", "no policy is published at"},
		{"missing", true, 200, "no policy is published at", "no policy is published at"},
		{"absent", false, 299, "", "no policy is published at"},
		{"absent", true, 200, "no policy is published at", "no policy is published at"},
		{"unreadable", false, 503, "permission denied", "permission denied"},
		{"unreadable", true, 200, "permission denied", "permission denied"},
		{"empty", false, 503, "the file is empty", "the file is empty"},
		{"empty", true, 200, "the file is empty", "the file is empty"},
		{"damaged", false, 503, "error:", "error:"},
		{"damaged", true, 200, "error:", "error:"},
		{"hanging", false, 503, "reading takes too long", "reading takes too long"},
		{"hanging", true, 200, "reading takes too long", "reading takes too long"},
	} {
		name := c.fault
		if c.lastGood {
			name += ", last good"
		}
		t.Run(name, func(t *testing.T) {
			if c.fault == "hanging" && !testkit.Thorough() {
				t.Skip("waits for ten seconds: set ROBOTSPOLICY_SLOW")
			}
			faultNow.Store(nil)
			dir := busyDir(t)
			t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "data"))
			s := &reloading{server: newServer(t, dir, policy, nil), admin: freeAddr(t)}
			configure := func(fault string) string {
				s.global = "admin " + s.admin + "\nstorage test_faulty DIR/storage " + fault + "\nlog {\noutput file DIR/log {\nroll_disabled\n}\nformat json\n}"
				return s.caddyfile("robots_policy storage:site/policy.yaml {\nreload 100ms\n}\nrespond hello")
			}
			if c.lastGood {
				s.file("storage/site/policy.yaml", policy)
				s.load(configure("none"))
				if s.get("/a/", "User-Agent", gptBot).StatusCode != 403 {
					t.Fatal("the policy is not served")
				}
				if err := caddy.Stop(); err != nil {
					t.Fatal(err)
				}
			}
			switch c.fault {
			case "missing":
				_ = os.RemoveAll(filepath.Join(dir, "storage"))
			case "absent":
				_ = os.Remove(filepath.Join(dir, "storage", "site", "policy.yaml"))
			default:
				s.file("storage/site/policy.yaml", policy)
			}
			// A hanging storage delays the command and the server for the same time, so the test starts both at once.
			validated := caddyStarts(t, "validate", "--adapter", "caddyfile", "--config", s.written(configure(c.fault)))
			s.run(configure(c.fault))

			robots := s.get("/robots.txt")
			passes := robots.StatusCode == 200 && robots.body == "hello" // robots_policy passed the request to the next handler
			switch {
			case c.robots == 299 && !passes, c.robots == 200 && (passes || !strings.Contains(robots.body, "GPTBot")):
				t.Errorf("robots.txt: %d %s", robots.StatusCode, robots.body)
			case c.robots == 503 && (robots.StatusCode != 503 || robots.Header.Get("Retry-After") != "60"):
				t.Errorf("robots.txt: %d %v", robots.StatusCode, robots.Header)
			}
			blocked := s.get("/a/", "User-Agent", gptBot)
			if want := map[bool]int{true: 403, false: 200}[c.robots == 200]; blocked.StatusCode != want {
				t.Errorf("a crawler gets %d, want %d", blocked.StatusCode, want)
			}
			if c.robots != 200 && (blocked.body != "hello" || blocked.Header.Get("Content-Usage") != "") {
				t.Errorf("a page is changed: %v %s", blocked.Header, blocked.body)
			}
			s.alerts(c.robots, c.problem)

			out, code := validated()
			if (code == 0) != (c.invalid == "") || !strings.Contains(out, c.invalid) && !strings.Contains(strings.ReplaceAll(out, `\n`, "\n"), c.invalid) {
				t.Errorf("validate exits with %d: %s", code, out)
			}
			none := "none"
			if faultNow.Store(&none); c.fault == "hanging" {
				return // a hanging storage never works again in this test
			}
			s.file("storage/site/policy.yaml", policy)
			eventually(t, "the policy is served when the storage works", func() bool {
				return s.get("/a/", "User-Agent", gptBot).StatusCode == 403 && strings.Contains(s.get("/robots.txt").body, "GPTBot")
			})
			eventually(t, "nothing is wrong any more", func() bool { return s.policies().Policies[0].Error == "" })
		})
	}
	faultNow.Store(nil)
}

// written writes a configuration to a file, and returns the file's name. It removes the part that sends the log to a
// file, so the log goes to the standard error.
func (s *reloading) written(config string) string {
	s.t.Helper()
	head, rest, _ := strings.Cut(config, "log {\noutput file ")
	_, tail, _ := strings.Cut(rest, "format json\n}")
	s.write("validate.caddyfile", head+tail)
	return filepath.Join(s.dir, "validate.caddyfile")
}

// alerts checks that the admin API, the metrics and the log show the problem, which is the reason why there is no
// policy, or why the newest policy is not served. robots is the expected status of the response for robots.txt.
func (s *reloading) alerts(robots int, problem string) {
	s.t.Helper()
	var status struct {
		Policies []struct{ Error string }
		Without  []struct{ State, Error string }
	}
	s.ask("GET", "/robots_policy/", &status)
	metrics := s.ask("GET", "/metrics", nil).body
	const failing = `caddy_robots_policy_last_reload_successful{policy="storage:site/policy.yaml"} 0`
	message, shown := "", ""
	switch {
	case robots == 299:
		if len(status.Without) != 1 || status.Without[0].State != "waiting" || len(s.log("robots_policy does nothing yet")) != 1 {
			s.t.Errorf("%+v", status)
		}
	case robots == 503 && len(status.Without) == 1 && status.Without[0].State == "unavailable":
		message, shown = "policy not loaded; until it is loaded, requests for robots.txt get status 503", status.Without[0].Error
	case robots == 200 && len(status.Policies) == 1:
		message, shown = "policy not reloaded; the last good version stays in force", status.Policies[0].Error
	default:
		s.t.Errorf("%+v", status)
	}
	if !strings.Contains(shown, problem) || (problem == "") != (shown == "") {
		s.t.Errorf("shown: %q, want %q", shown, problem)
	}
	if problem != "" && (len(s.log(message)) != 1 || !strings.Contains(metrics, failing)) {
		s.t.Errorf("%d lines of the log, metrics: %v", len(s.log(message)), strings.Contains(metrics, failing))
	}
}

// While Caddy runs, a new configuration is loaded whose policy is in the storage. If this policy cannot be read, and no
// last good policy is saved, Caddy rejects the configuration.
func TestReloadReportsTheStorage(t *testing.T) {
	s := startReloading(t, "", disallowing("/a"), nil, "robots_policy POLICY\nrespond hello")
	s.global = strings.Replace(s.global, "file_system DIR/storage", "test_faulty DIR/storage unreadable", 1)
	err := s.reconfigure("robots_policy storage:site/policy.yaml\nrespond hello")
	if err == nil || !strings.Contains(err.Error(), "reading the policy:") || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("%v", err)
	}
	if !s.disallows("/a") {
		t.Error("the previous configuration no longer runs")
	}
}

// If max_search_loss has rejected a policy text, Caddy does not serve this text after a restart either, with and
// without automatic reloads. It serves the last good policy until the recorders have started, and as long as they
// reject the text. If no last good policy is saved, Caddy loads the text.
func TestRestartAsksTheSearchLossLimit(t *testing.T) {
	const global = "robots_policy {\nactivity DIR/activity {\nmax_search_loss 0\n}\n}"
	for _, from := range []string{"storage", "file"} {
		for _, reload := range []string{"100ms", "off"} {
			t.Run(from+", reload "+reload, func(t *testing.T) {
				if reload == "off" && testing.Short() {
					t.Skip("starts Caddy once more")
				}
				s := startStored(t, global, openPolicy)
				name, body, write := storedPolicy, "robots_policy "+storedPolicy, func(text string) { s.file("storage/site/policy.yaml", text) }
				if from == "file" {
					name, body, write = filepath.Join(s.dir, "policy.yaml"), "robots_policy POLICY", func(text string) { s.write("policy.yaml", text) }
				}
				body += " {\nreload " + reload + "\n}\nrespond hello"
				if err := s.reconfigure(body); err != nil {
					t.Fatal(err)
				}
				status := func() int {
					return s.get("/news/", "User-Agent", googlebotName, "X-Forwarded-For", "66.249.66.1").StatusCode
				}
				if got := status(); got != 200 {
					t.Fatalf("the page is not allowed: %d", got)
				}
				s.hasVisits()
				if from == "file" {
					write(closedPolicy)
				} else if err := source.PublishTo(t.Context(), &certmagic.FileStorage{Path: filepath.Join(s.dir, "storage")}, "site/policy.yaml",
					source.Change{Replaces: source.SumOf(openPolicy), Text: closedPolicy}); err != nil {
					t.Fatal(err)
				}
				s.ask("POST", "/robots_policy/reload", nil)
				restart := func() {
					if err := caddy.Stop(); err != nil {
						t.Fatal(err)
					}
					if err := s.reconfigure(body); err != nil {
						t.Fatal(err)
					}
				}
				for range 2 {
					restart()
					if got := status(); got != 200 {
						t.Errorf("the rejected text is served after a restart: %d", got)
					}
					eventually(t, "an alert says why the text is not served", func() bool {
						all := s.policies().Policies
						return len(all) == 1 && all[0].Policy == name && strings.Contains(all[0].Error, "Search engines lose")
					})
					if got := status(); got != 200 {
						t.Errorf("the rejected text is served in the end: %d", got)
					}
				}

				if from == "storage" {
					if out, code := s.publishes("storage", "--undo"); code != 0 {
						t.Errorf("undo exits with %d: %s", code, out)
					}
				} else {
					write(openPolicy)
					s.ask("POST", "/robots_policy/reload", nil)
				}
				if p := s.policies().Policies[0]; p.Error != "" || status() != 200 {
					t.Errorf("after the undo: %+v", p)
				}
				// When the server starts, it loads a new text in two cases: search engines do not lose anything because
				// of the new text, or the server did not have a policy before.
				write(openPolicy + "  - for: GPTBot\n    disallow: {crawl: /shop/}\n")
				restart()
				eventually(t, "the new text is served", func() bool { return s.disallows("/shop/") })
				if err := os.RemoveAll(filepath.Join(s.dir, "data")); err != nil {
					t.Fatal(err)
				}
				write(closedPolicy)
				restart()
				if got := status(); got != 403 {
					t.Errorf("a first policy is not loaded: %d", got)
				}
			})
		}
	}
}

// hasVisits waits until the activity database contains requests of a crawler.
func (s *reloading) hasVisits() {
	s.t.Helper()
	eventually(s.t, "the requests are stored", func() bool {
		r, err := store.OpenReader(s.t.Context(), filepath.Join(s.dir, "activity"))
		if err != nil {
			s.t.Fatal(err)
		}
		defer r.Close()
		crawlers, err := r.Crawlers(s.t.Context())
		return err == nil && len(crawlers) > 0
	})
}
