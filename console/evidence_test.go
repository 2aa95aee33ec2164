// SPDX-License-Identifier: Apache-2.0

package console

import (
	"archive/zip"
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/evidence"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/recorders"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// unzipped extracts a download into a directory, and returns the directory and the names of the files.
func unzipped(t *testing.T, body []byte) (dir string, names []string) {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		t.Fatal(err, string(body[:min(len(body), 300)]))
	}
	dir = t.TempDir()
	for _, f := range z.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(f.Name)
		names = append(names, name)
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(names)
	return dir, names
}

// Users can download the whole log while the server writes to it, and can then verify the downloaded log. They can also
// verify an excerpt of the log, which does not contain anything about other hosts.
func TestEvidenceDownload(t *testing.T) {
	dir := t.TempDir()
	key := filepath.Join(t.TempDir(), "key.pem")
	writeKey(t, key)
	private, err := evidence.ReadKey(key)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC().AddDate(0, 0, -1)
	open := func() *evidence.Log {
		l, err := evidence.Open(dir, evidence.Options{Key: private, Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{"a.example", "b.example"} {
			l.Serve(&activity.Publication{ID: strings.Repeat("1", 64), Name: "site.yaml"}, site.Document{Name: site.RobotsTxt, Host: host, Version: host, Text: "User-agent: *\n"})
			for _, crawler := range []string{"GPTBot", "CCBot"} {
				l.Record(activity.Request{Time: now, Crawler: crawler, Host: host, Path: "/x", Violation: true})
			}
		}
		l.Sign(actPublish, "ann", "a note", "site.yaml", "2")
		return l
	}
	if err := open().Close(); err != nil {
		t.Fatal(err)
	}
	now = now.AddDate(0, 0, 1)
	l := open()
	t.Cleanup(func() { _ = l.Close() })
	for range 100 {
		if c, err := evidence.Verify(dir, nil, nil); err == nil && c.SignedTo >= 15 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	f, err := os.OpenFile(filepath.Join(dir, "evidence-"+now.Format(time.DateOnly)+".jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.WriteString(`{"seq":999,"half of a line that is being wri`)
	_ = f.Close()
	t.Cleanup(recorders.Running().Add("evidence", &recorders.Evidence{Directory: dir, Key: key}))
	download := func(s *server) (string, []string) {
		w := get(t, s, "evidence.zip?name=GPTBot")
		if w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return unzipped(t, w.Body.Bytes())
	}
	whole, names := download(&server{local: true, logger: caddy.Log()})
	public, err := evidence.ReadPublicKey(filepath.Join(whole, "evidence.pub"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := evidence.Verify(whole, public, nil)
	if err != nil || !c.Whole().Holds() || len(names) != 7 {
		t.Errorf("%v: %q, %+v", err, names, c)
	}
	report, err := os.ReadFile(filepath.Join(whole, "report.html"))
	if readme, err2 := os.ReadFile(filepath.Join(whole, "README.txt")); err != nil || err2 != nil || !strings.Contains(string(report), "GPTBot on b.example") || !strings.Contains(string(readme), "SHA256:") {
		t.Errorf("%v %v: %s %s", err, err2, readme, report)
	}
	part, names := download(&server{hosts: []string{"a.example"}, logger: caddy.Log()})
	for _, name := range names {
		if b, err := os.ReadFile(filepath.Join(part, name)); err != nil || bytes.Contains(b, []byte("b.example")) || bytes.Contains(b, []byte("CCBot")) || bytes.Contains(b, []byte("a note")) {
			t.Errorf("%s of a site: %v %s", name, err, b)
		}
	}
	verify := func() claim.Claim {
		c, ok, err := evidence.VerifyExcerpt(part, public)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		return c
	}
	if c := verify(); !c.Holds() || !strings.HasPrefix(c.Text(), "This is an excerpt with 3 of the 15 ") || !slices.Contains(names, "report-a.example.html") {
		t.Errorf("%v: %s %s", names, c.Text(), c.Outcome())
	}
	excerpt := filepath.Join(part, evidence.ExcerptName)
	text, err := os.ReadFile(excerpt)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(excerpt, bytes.Replace(text, []byte("/x"), []byte("/y"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if c := verify(); c.Outcome() != claim.Fails {
		t.Errorf("a changed line: %s", c.Text())
	}
	if err := os.Remove(excerpt + evidence.SignatureSuffix); err != nil {
		t.Fatal(err)
	}
	if c := verify(); c.Outcome() == claim.Holds {
		t.Errorf("without its signature: %s", c.Text())
	}
	for _, s := range []*server{{local: true, logger: caddy.Log()}} {
		if w := get(t, s, "evidence.zip"); w.Code != http.StatusBadRequest {
			t.Errorf("without a crawler: %d", w.Code)
		}
	}
}
