// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/evidence"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/recorders"
)

// The Health page reports a changed line, an invalid signature and a deleted day, and the time of the verification.
func TestHealthVerifiesTheEvidence(t *testing.T) {
	dir := t.TempDir()
	key := filepath.Join(dir, "key.pem")
	log := filepath.Join(dir, "evidence")
	writeKey(t, key)
	private, err := evidence.ReadKey(key)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC().AddDate(0, 0, -4)
	for range 4 {
		l, err := evidence.Open(log, evidence.Options{Key: private, Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		l.Record(activity.Request{Time: now, Crawler: "GPTBot", Identity: activity.Unverified, Violation: true, Path: "/secret"})
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		now = now.AddDate(0, 0, 1)
	}
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte("{\nadmin off\npersist_config off\nstorage file_system "+dir+"/storage\nrobots_policy {\nevidence "+log+" {\nkey "+key+"\ncopy storage:evidence/web-1\n}\n}\n}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load(config, true); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = caddy.Stop() }()
	for range 100 {
		if !recorders.RunningEvidence().LastLook().At.IsZero() {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	s := &server{local: true, logger: caddy.Log()}
	page := func() string {
		recorders.RunningEvidence().LookNow()
		return get(t, s, "health").Body.String()
	}
	before := recorders.RunningEvidence().LookNow().Check.Seq
	// pageOf replaces the log by the log in dir, and returns the Health page.
	pageOf := func(dir string) string {
		aside := t.TempDir()
		for _, step := range [][2]string{{log, aside}, {dir, log}} {
			if err := errors.Join(os.RemoveAll(step[1]), os.CopyFS(step[1], os.DirFS(step[0]))); err != nil {
				t.Fatal(err)
			}
		}
		defer func() {
			if err := errors.Join(os.RemoveAll(log), os.CopyFS(log, os.DirFS(aside))); err != nil {
				t.Fatal(err)
			}
		}()
		return page()
	}
	if body := page(); strings.Contains(body, "changed or damaged") || !strings.Contains(body, "The log is intact, and signed up to line ") || !strings.Contains(body, "Checked ") {
		t.Fatalf("a whole log: %s", body)
	}
	older := t.TempDir()
	if err := os.CopyFS(older, os.DirFS(log)); err != nil {
		t.Fatal(err)
	}
	recorders.Running().Record(activity.Request{Time: time.Now(), Crawler: "GPTBot", Identity: activity.Unverified, Violation: true, Path: "/later"})
	for range 100 {
		if recorders.RunningEvidence().LookNow(); recorders.RunningEvidence().LastLook().Check.Seq > before {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if body := page(); !strings.Contains(body, "The copy shows that the log was not cut off before line ") {
		t.Errorf("a log that reaches its copy: %s", body)
	}
	for range 2 { // twice, because the first verification of the older log must not overwrite the copy
		if body := pageOf(older); !strings.Contains(body, "Lines are missing at the end of the evidence log") || !strings.Contains(body, "notice alert") {
			t.Errorf("an older log: %s", body)
		}
	}
	days, err := filepath.Glob(filepath.Join(log, "evidence-*.jsonl"))
	if err != nil || len(days) != 5 {
		t.Fatal(days, err)
	}
	for what, damage := range map[string]func() error{
		"a changed line": func() error {
			b, err := os.ReadFile(days[1])
			if err != nil {
				return err
			}
			return os.WriteFile(days[1], bytes.Replace(b, []byte("/secret"), []byte("/public"), 1), 0o600)
		},
		"a garbage signature": func() error { return os.WriteFile(days[2]+evidence.SignatureSuffix, []byte("garbage"), 0o600) },
		"a deleted day":       func() error { return os.Remove(days[2]) },
		"the first day":       func() error { return os.Remove(days[0]) },
	} {
		saved := t.TempDir()
		if err := os.CopyFS(saved, os.DirFS(log)); err != nil {
			t.Fatal(err)
		}
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if body := page(); strings.Count(body, "The log was changed or damaged") < 2 || !strings.Contains(body, "notice alert") || strings.Contains(body, "is whole") {
			t.Errorf("%s: %s", what, body)
		}
		for _, day := range days {
			for _, name := range []string{day, day + evidence.SignatureSuffix} {
				if b, err := os.ReadFile(filepath.Join(saved, filepath.Base(name))); err == nil {
					if err := os.WriteFile(name, b, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	if body := page(); strings.Contains(body, "changed or damaged") {
		t.Errorf("after it was put back: %s", body)
	}
}

// writeKey writes an Ed25519 key to a file. It is always the same key.
func writeKey(t *testing.T, name string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(ed25519.NewKeyFromSeed(make([]byte, 32)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
