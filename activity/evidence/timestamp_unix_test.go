// SPDX-License-Identifier: Apache-2.0

//go:build unix

package evidence

import (
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/claim"
)

// startAuthority starts a time-stamping authority that uses openssl ts and a certificate of a new CA.
func startAuthority(t *testing.T) (url string, roots *x509.CertPool) {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl, which the test uses as the authority, is not installed")
	}
	dir := t.TempDir()
	openssl := func(args ...string) error {
		cmd := exec.Command("openssl", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("openssl %s: %w\n%s", args[0], err, out)
		}
		return nil
	}
	if err := os.WriteFile(filepath.Join(dir, "tsa.cnf"), []byte(`[req]
distinguished_name = dn
[dn]
[ca]
basicConstraints = critical, CA:true
[tsa_cert]
extendedKeyUsage = critical, timeStamping
[tsa]
default_tsa = tsa1
[tsa1]
dir = .
serial = serial
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
ess_cert_id_alg = sha256
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 3650 -subj /CN=Test-CA -config tsa.cnf -extensions ca",
		"req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout tsa.key -out tsa.csr -subj /CN=Test-Authority -config tsa.cnf",
		"x509 -req -in tsa.csr -CA ca.pem -CAkey ca.key -set_serial 2 -days 3650 -extfile tsa.cnf -extensions tsa_cert -out tsa.pem",
	} {
		if err := openssl(strings.Fields(args)...); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query, _ := io.ReadAll(r.Body)
		err := os.WriteFile(filepath.Join(dir, "query"), query, 0o600)
		if err == nil {
			err = openssl(strings.Fields("ts -reply -config tsa.cnf -section tsa1 -queryfile query -signer tsa.pem -inkey tsa.key -out reply")...)
		}
		reply, _ := os.ReadFile(filepath.Join(dir, "reply"))
		if err != nil || r.Header.Get("Content-Type") != "application/timestamp-query" {
			t.Error(err)
			http.Error(w, "failed", http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(reply)
	}))
	t.Cleanup(server.Close)
	ca, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return server.URL, roots
}

// stampedLog writes a log with events of the present time, and with a time stamp.
func stampedLog(t *testing.T, url string) string {
	t.Helper()
	dir := t.TempDir()
	l, err := Open(dir, Options{Key: key(), Authority: url})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/private/a", "/private/b"} {
		record(l, activity.Request{Time: time.Now(), Host: "example.com", Crawler: "GPTBot", Identity: activity.Verified, Violation: true, Path: path, Status: 200})
	}
	l.tick()
	l.stampers.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Verify detects when someone who has the signing key changes or removes time-stamped events. It also detects when such
// a person adds a file for an earlier day, because this file cannot have a time stamp from that day.
func TestTimestamps(t *testing.T) {
	t.Parallel()
	url, roots := startAuthority(t)
	dir := stampedLog(t, url)
	c, err := Verify(dir, nil, roots)
	if err != nil || c.Whole().Outcome() != claim.Holds || len(c.Stamps) != 1 || c.Stamps[0].Seq != 3 || time.Since(c.Stamps[0].Time).Abs() > time.Hour || c.Stamps[0].Authority != "CN=Test-Authority" {
		t.Fatalf("%v %+v", err, c)
	}
	if c, err := Verify(dir, nil, x509.NewCertPool()); err != nil || c.Whole().Outcome() != claim.Fails || !strings.Contains(c.Problems[0], "the time stamp of event 3 is not valid") {
		t.Errorf("by another authority: %v %+v", err, c)
	}
	for name, change := range map[string]func(all []*Event) []*Event{
		"changed": func(all []*Event) []*Event { all[1].Path = "/other"; return all },
		"cut":     func(all []*Event) []*Event { return all[:1] },
	} {
		dir := stampedLog(t, url)
		forge(t, dir, key(), change)
		if c, err := Verify(dir, nil, roots); err != nil || c.Whole().Outcome() != claim.Fails || !strings.Contains(strings.Join(c.Problems, ""), "time-stamped") {
			t.Errorf("%s by someone who has the key: %v %+v", name, err, c)
		}
	}
	// A file for an earlier day is added today. It has no time stamp, or a time stamp of today.
	dir = stampedLog(t, url)
	yesterday := time.Now().UTC().AddDate(0, 0, -1)
	forge(t, dir, key(), func(all []*Event) []*Event {
		for _, e := range all {
			e.Time = e.Time.AddDate(0, 0, -1)
		}
		return all
	})
	removeFiles(t, dir, "*"+TimestampSuffix)
	name := filepath.Join(dir, fileName(time.Now().UTC().Format(time.DateOnly)))
	if err := os.Rename(name, filepath.Join(dir, fileName(yesterday.Format(time.DateOnly)))); err != nil {
		t.Fatal(err)
	}
	removeFiles(t, dir, "*"+SignatureSuffix)
	l, err := Open(dir, Options{Key: key(), Authority: url})
	if err != nil {
		t.Fatal(err)
	}
	l.tick()
	l.stampers.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if c, err := Verify(dir, nil, roots); err != nil || c.Whole().Outcome() != claim.CannotBeJudged || !strings.Contains(strings.Join(c.Gaps, ""), "of a past day, but it has no time stamp") {
		t.Errorf("a day's file added later: %v %+v", err, c)
	}
}

// If an authority does not answer, it is asked again later. The log records this only once.
func TestAuthorityThatFails(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	dir, now := t.TempDir(), start
	l, err := Open(dir, Options{Authority: server.URL, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		l.tick()
		l.stampers.Wait()
		l.mu.Lock()
		now = now.Add(10 * time.Minute)
		l.mu.Unlock()
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, _, types := count(t, dir)
	if types != "start, error timestamp, stop" || l.Troubles()[NotStamped].IsZero() {
		t.Error(types)
	}
}
