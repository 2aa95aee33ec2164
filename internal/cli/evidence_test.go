// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/evidence"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

func TestEvidence(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	l, err := evidence.Open(dir, evidence.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	p := &activity.Publication{
		Number: "3.1", Name: "site-policy.yaml", Time: now, SHA256: "87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7", Text: "a\n",
		Program: "the program v1", Catalog: "2026-11-01", By: "bob\x1b", Note: "<i>out\n</i>",
		Documents: []site.Document{{Name: site.RobotsTxt, Version: "r1", Text: "User-agent: *\nDisallow: /x\n# <script>\n"}},
	}
	p.Identify()
	l.Sign("draft", "ann", "<b>less</b>", "site-policy.yaml", p.SHA256)
	l.Sign("version", "bob, ann", "", "site-policy.yaml", p.SHA256)
	l.Publish(p)
	visit := activity.Request{Time: now, Host: "example.com", Crawler: "GPTBot", Category: "ai-training", Identity: activity.Unverified, Robots: "r1", Publication: p.ID[:12]}
	visit.RobotsTxt = true
	l.Record(visit)
	visit.RobotsTxt, visit.Violation, visit.Path, visit.Status = false, true, "/x/1", 403
	l.Record(visit)
	l.Record(visit)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	out, stderr, err := execute(evidenceCommand(), "", dir, "--crawler", "gptbot")
	const want = `The log covers 2026-11-20 12:00:00 to 2026-11-20 12:00:00. Times are UTC.
The log has 3 events, and does not report that any events were left out.

Published:
  v3.1 of site-policy.yaml, in force from 2026-11-20 12:00:00 to the end of the log, published by bob  (“<i>out </i>”)
    version PUBLICATION
    policy sha256 87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7; the program v1; catalog of 2026-11-01
    robots.txt r1 of all hosts that no rule names

Changes by people:
  2026-11-20 12:00:00: draft of site-policy.yaml by ann (“<b>less</b>”), sha256 87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7
  2026-11-20 12:00:00: version of site-policy.yaml by bob, ann, sha256 87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7

Read by crawlers:
  GPTBot (unverified) read robots.txt r1 of example.com once, first at 2026-11-20 12:00:00, last at 2026-11-20 12:00:00, while v3.1 was in force

Violations:
  GPTBot (unverified) on example.com, against robots.txt r1, read at 2026-11-20 12:00:00:
    2 times from 2026-11-20 12:00:00 to 2026-11-20 12:00:00; 0 answered, 2 blocked
    2 times against line 2: Disallow: /x
    2  /x/1
`
	if err != nil || stderr != "" || withoutSpaces(strings.Replace(out, p.ID, "PUBLICATION", 1)) != withoutSpaces(want) {
		t.Errorf("%v %s\n%s", err, stderr, out)
	}
	page := filepath.Join(t.TempDir(), "report.html")
	if _, stderr, err := execute(evidenceCommand(), "", dir, "--crawler", "GPTBot", "--html", page); err != nil {
		t.Error(err, stderr)
	}
	html, err := os.ReadFile(page)
	for _, want := range []string{
		"<h1>What crawlers were asked, and what they did</h1>", "<strong>GPTBot</strong> (not verified) read robots.txt of example.com on 20 Nov 2026, 12:00:00.",
		"Line 2 of this file says <code>Disallow: /x</code>", "the crawler asked <strong>2 times</strong> for pages that this file disallows for it (answered with the content: 0, blocked: 2).",
		"The log is intact up to line 8, but not signed.", "The log has 3 events, and does not report that any events were left out", "The record has no time stamps of an independent authority", `<h3 id="robots.txt-r1">`,
		"&lt;script&gt;", "published by bob  (“&lt;i&gt;out &lt;/i&gt;”)", "while v3.1 was in force",
	} {
		if !strings.Contains(string(html), want) {
			t.Errorf("the report has no %q: %v\n%s", want, err, html)
		}
	}
	if strings.Contains(string(html), "<script") || strings.Contains(string(html), "http") && strings.Contains(string(html), "src=") {
		t.Error("the report has a script, or loads something")
	}
	out, _, err = execute(evidenceCommand(), "", dir, "--json")
	var a evidence.Answer
	if err != nil || json.Unmarshal([]byte(out), &a) != nil || len(a.Violations) != 1 || a.Violations[0].Count != 2 {
		t.Errorf("%v\n%s", err, out)
	}
	if out, _, err := execute(evidenceCommand(), "", dir, "--crawler", "CCBot"); err != nil || !strings.Contains(out, "Read by crawlers: nothing in the log") {
		t.Errorf("%v\n%s", err, out)
	}
	name := filepath.Join(dir, "evidence-2026-11-20.jsonl")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(strings.Replace(string(b), "/x/1", "/y/1", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _, err := execute(evidenceCommand(), "", dir); err == nil || !strings.HasPrefix(out, "NOT WHOLE: evidence-2026-11-20.jsonl: event") {
		t.Errorf("%v\n%s", err, out)
	}
	for _, c := range []struct{ args, want string }{
		{dir + " --key " + name, "has no PEM block"},
		{"", "expected DIR"},
		{t.TempDir(), "has no evidence log"},
		{dir + " --since x", `invalid --since "x"`},
	} {
		if _, stderr, _ := execute(evidenceCommand(), "", strings.Fields(c.args)...); !strings.Contains(stderr, c.want) {
			t.Errorf("%q: %q", c.args, stderr)
		}
	}
}

// The command evidence combines the logs of several servers, and sorts their events by time. If a crawler read
// robots.txt from one server and then requested a disallowed page from a second server, this is a violation. A damaged
// log is reported by name.
func TestEvidenceOfSeveralServers(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	parent := t.TempDir()
	dirs := []string{filepath.Join(parent, "web-1"), filepath.Join(parent, "web-2")}
	p := &activity.Publication{
		Number: "3", Name: "site-policy.yaml", Time: start, SHA256: "87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7", Text: "a\n", Program: "p", Catalog: "2026-11-01",
		Documents: []site.Document{{Name: site.RobotsTxt, Version: "r1", Text: "User-agent: *\nDisallow: /x\n"}},
	}
	p.Identify()
	for i, dir := range dirs {
		now := start.Add(time.Duration(i) * time.Hour)
		l, err := evidence.Open(dir, evidence.Options{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		here := *p
		here.Time = now
		l.Sign("draft", fmt.Sprint("editor ", i), "", "site-policy.yaml", p.SHA256)
		l.Publish(&here)
		l.Record(activity.Request{
			Time: now, Host: "example.com", Crawler: "GPTBot", Category: "ai-training", Identity: activity.Unverified, Robots: "r1", Publication: p.ID[:12],
			RobotsTxt: i == 0, Violation: i == 1, Path: "/x/1", Status: 200,
		})
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	out, stderr, err := execute(evidenceCommand(), "", dirs[1], dirs[0])
	for _, want := range []string{
		"The log covers 2026-11-20 12:00:00 to 2026-11-20 13:00:00", "while v3 was in force, says " + dirs[0], "by editor 0, sha256 " + p.SHA256 + ", says " + dirs[0], "by editor 1, sha256 " + p.SHA256 + ", says " + dirs[1],
		"on example.com, against robots.txt r1, read at 2026-11-20 12:00:00:", "1 answered, 0 blocked, says " + dirs[1],
	} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("no %q: %v %s\n%s", want, err, stderr, out)
		}
	}
	if strings.Index(out, "says "+dirs[0]) > strings.Index(out, "says "+dirs[1]) {
		t.Errorf("not in the order of time:\n%s", out)
	}
	page := filepath.Join(parent, "report.html")
	if _, stderr, err := execute(evidenceCommand(), "", dirs[0], dirs[1], "--html", page); err != nil {
		t.Error(err, stderr)
	}
	if out, _, _ = execute(verifyEvidenceCommand(), "", dirs[0], dirs[1]); strings.Count(out, "The log is intact up to line 5, but not signed.") != 2 || !strings.Contains(out, dirs[1]+":") {
		t.Error(out)
	}
	files, err := filepath.Glob(filepath.Join(dirs[1], "evidence-*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], []byte(strings.Replace(string(text), "/x/1", "/x/2", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _, err = execute(evidenceCommand(), "", dirs[0], dirs[1]); err == nil || !strings.Contains(out, "NOT WHOLE: "+dirs[1]+": ") || strings.Contains(out, "NOT WHOLE: "+dirs[0]) {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestVerifyEvidence(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := filepath.Join(t.TempDir(), "key.pem")
	private := ed25519.NewKeyFromSeed(make([]byte, 32))
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	write := func(o evidence.Options, visits int) {
		o.Now = func() time.Time { return now }
		l, err := evidence.Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		for range visits {
			l.Record(activity.Request{Time: now, Crawler: "GPTBot", Identity: activity.Unverified, Violation: true})
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	check := func(code, want string, args ...string) {
		t.Helper()
		out, problem, err := execute(verifyEvidenceCommand(), "", append([]string{dir}, args...)...)
		if fmt.Sprint(err) != code || !strings.Contains(out, want) {
			t.Errorf("%v\n%s%s", err, out, problem)
		}
	}
	write(evidence.Options{}, 1)
	check("exiting with status 3", "The log is intact up to line 3, but not signed.\n  the log is not signed, so anyone with write access to the files could have written it")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	write(evidence.Options{Key: private}, 1)
	check("<nil>", "The log is intact, and signed up to line 3 of 3; its last line was written at 2026-11-20T12:00:00Z.\nLines after line 3 may be missing.\n")
	check("<nil>", "Signed by the key SHA256:E545QOZLVJFyIIjZoNdBYo/IJuCUddNBp4Cs3jxLgHA.\nOnly the owner of that key can have changed any of the lines up to line 3.\n", "--key", key)
	// Someone replaces the log by an older copy of it. This copy is complete and signed. But a file elsewhere, with a
	// newer signature of the replaced log, shows that lines are missing at the end.
	older := t.TempDir()
	if err := os.CopyFS(older, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	write(evidence.Options{Key: private}, 2)
	elsewhere := filepath.Join(t.TempDir(), "last.sig")
	signature, err := os.ReadFile(filepath.Join(dir, "evidence-2026-11-20.jsonl.sig"))
	if err := errors.Join(err, os.WriteFile(elsewhere, signature, 0o600)); err != nil {
		t.Fatal(err)
	}
	check("<nil>", "The copy shows that the log was not cut off before line 7", "--key", key, "--last", elsewhere)
	storage := filepath.Join(t.TempDir(), "storage")
	config := filepath.Join(t.TempDir(), "caddy.json")
	mark := []byte(`{"seq":7,"hash":"` + lastHash(t, dir) + `"}`)
	if err := errors.Join(os.MkdirAll(storage+"/evidence", 0o700), os.WriteFile(storage+"/evidence/web-1", mark, 0o600), os.WriteFile(config, []byte(`{"storage":{"module":"file_system","root":"`+storage+`"}}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	check("<nil>", "The copy shows that the log was not cut off before line 7", "--key", key, "--last", "storage:evidence/web-1", "--config", config)
	check("exiting with status 2", "", "--last", "storage:evidence/web-2", "--config", config)
	newer := dir
	dir = older
	check("<nil>", "The log is intact, and signed up to line 3 of 3; its last line was written at 2026-11-20T12:00:00Z.\nLines after line 3 may be missing.\n", "--key", key)
	check(errReported.Error(), "The log ends with line 3, and the copy names line 7: lines were removed, or an older log was put back.", "--key", key, "--last", elsewhere)
	check(errReported.Error(), "The log ends with line 3, and the copy names line 7", "--key", key, "--last", "storage:evidence/web-1", "--config", config)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	write(evidence.Options{Key: private}, 5)
	check(errReported.Error(), "Line 7 differs from the line in the copy: the log was rewritten.", "--last", elsewhere)
	check("exiting with status 2", "", "--last", key)
	dir = newer
	write(evidence.Options{Key: private}, 6000)
	check("exiting with status 3", "were left out", "--key", key)
	if err := os.Remove(filepath.Join(dir, "evidence-2026-11-20.jsonl.sig")); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "evidence-2026-11-20.jsonl"), 100); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "evidence-2026-11-20.jsonl"), []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	check(errReported.Error(), "The log was changed or damaged")
}

// withoutSpaces returns the text without spaces at the ends of lines.
func withoutSpaces(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}

// lastHash returns the hash of the last line of a log.
func lastHash(t *testing.T, dir string) string {
	t.Helper()
	c, err := evidence.Verify(dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.Hash
}
