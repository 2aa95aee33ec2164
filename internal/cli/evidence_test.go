// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/evidence"
)

func TestEvidence(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	l, err := evidence.Open(dir, evidence.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	l.Publish("robots", "r1", "example.com", "site-policy.yaml", "User-agent: *\nDisallow: /x\n")
	visit := activity.Visit{Time: now, Host: "example.com", Crawler: "GPTBot", Kind: "ai-training", Identity: activity.Claimed, Robots: "r1"}
	visit.RobotsTxt = true
	l.Record(visit)
	visit.RobotsTxt, visit.Violation, visit.Path, visit.Status = false, true, "/x/1", 403
	l.Record(visit)
	l.Record(visit)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	out, stderr, err := execute(evidenceCommand(), "", dir, "--crawler", "gptbot", "--text")
	const want = `The log covers 2026-11-20 12:00:00 to 2026-11-20 12:00:00. Times are UTC.

Published:
  robots.txt r1 of example.com, first read by a crawler at 2026-11-20 12:00:00, no other since (site-policy.yaml, sha256 3c70ee2c3f0b8da9bca9c7a8e7f97bcb1ae4c5bd2fbb5ec6ac0cdd56ff6f6dc1)
    | User-agent: *
    | Disallow: /x

Read by crawlers:
  GPTBot (claimed, not verified) read robots.txt r1 of example.com once, first at 2026-11-20 12:00:00, last at 2026-11-20 12:00:00

Fetched against it:
  GPTBot (claimed, not verified) on example.com, against robots.txt r1, read at 2026-11-20 12:00:00:
    2 times from 2026-11-20 12:00:00 to 2026-11-20 12:00:00; 0 answered, 2 refused
    2  /x/1
`
	if err != nil || stderr != "" || withoutHash(out) != withoutHash(want) {
		t.Errorf("%v %s\n%s", err, stderr, out)
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
		{"", "expected DIR"}, {t.TempDir(), "holds no evidence"}, {dir + " --since x", `invalid --since "x"`},
	} {
		if _, stderr, _ := execute(evidenceCommand(), "", strings.Fields(c.args)...); !strings.Contains(stderr, c.want) {
			t.Errorf("%q: %q", c.args, stderr)
		}
	}
}

// withoutHash is the text without what stands after sha256, and without spaces at the
// ends of lines.
func withoutHash(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "sha256 ")
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}
