// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/claim"
)

// forge rewrites the files of a log. It passes the events of the last file to the function change, and replaces them by
// the returned events. It computes all hashes again so that they match. If by is not nil, the files are signed with
// this key.
func forge(t *testing.T, dir string, by ed25519.PrivateKey, change func(events []*Event) []*Event) {
	t.Helper()
	all, err := days(dir)
	if err != nil {
		t.Fatal(err)
	}
	seq, prev := uint64(0), ""
	for i, day := range all {
		name := filepath.Join(dir, fileName(day))
		var events []*Event
		if _, err := eachLine(name, func(_ int, line []byte) error {
			var e Event
			events = append(events, &e)
			return json.Unmarshal(line, &e)
		}); err != nil {
			t.Fatal(err)
		}
		if i == len(all)-1 {
			events = change(events)
		}
		var b []byte
		for _, e := range events {
			seq++
			e.Seq, e.Prev = seq, prev
			line, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			prev = hashOf(line)
			b = append(append(b, line...), '\n')
		}
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if by != nil {
			l := Log{dir: dir, day: day, seq: seq, prev: prev, options: Options{Key: by}}
			if err := l.sign(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func removeFiles(t *testing.T, dir, pattern string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) == 0 {
		t.Fatal(pattern, err)
	}
	for _, name := range found {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

// A log is forged in many ways. Verify detects forgeries made without the key. It does not detect forgeries made with
// the key, and the claim says that it cannot rule them out.
func TestForged(t *testing.T) {
	t.Parallel()
	other := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{9}, 32))
	public, _ := key().Public().(ed25519.PublicKey)
	same := func(all []*Event) []*Event { return all }
	changed := func(all []*Event) []*Event {
		all[1].Path = "/other"
		return all
	}
	cut := func(all []*Event) []*Event { return all[:1] }
	last := "evidence-2026-11-21.jsonl"
	for _, c := range []struct {
		name           string
		forge          func(t *testing.T, dir string)
		without, byKey claim.Outcome // outcomes without --key and with --key
	}{
		{"as it was written", func(*testing.T, string) {}, claim.Holds, claim.Holds},
		{"a byte of today changed", func(t *testing.T, dir string) {
			b, _ := os.ReadFile(filepath.Join(dir, last))
			if err := os.WriteFile(filepath.Join(dir, last), bytes.Replace(b, []byte("/private/"), []byte("/Private/"), 1), 0o600); err != nil {
				t.Fatal(err)
			}
		}, claim.Fails, claim.Fails},
		{"a line of today changed, chain recomputed", func(t *testing.T, dir string) { forge(t, dir, nil, changed) }, claim.Fails, claim.Fails},
		{"a line of today changed, chain and the signed hash recomputed", func(t *testing.T, dir string) {
			forge(t, dir, nil, changed)
			b, err := os.ReadFile(filepath.Join(dir, last+SignatureSuffix))
			var s Signature
			if err = errors.Join(err, json.Unmarshal(b, &s)); err != nil {
				t.Fatal(err)
			}
			log, err := os.ReadFile(filepath.Join(dir, last))
			lines := bytes.Split(bytes.TrimSpace(log), []byte("\n"))
			s.Hash = hashOf(lines[len(lines)-1])
			b, err2 := json.Marshal(&s)
			if err = errors.Join(err, err2, os.WriteFile(filepath.Join(dir, last+SignatureSuffix), b, 0o600)); err != nil {
				t.Fatal(err)
			}
		}, claim.Fails, claim.Fails},
		{"today's last lines cut", func(t *testing.T, dir string) { forge(t, dir, nil, cut) }, claim.Fails, claim.Fails},
		{"a line put in, chain recomputed", func(t *testing.T, dir string) {
			forge(t, dir, nil, func(all []*Event) []*Event { return append([]*Event{all[0], all[1]}, all[1:]...) })
		}, claim.Fails, claim.Fails},
		{"today's signature removed, a line changed", func(t *testing.T, dir string) {
			removeFiles(t, dir, last+SignatureSuffix)
			forge(t, dir, nil, changed)
		}, claim.CannotBeJudged, claim.CannotBeJudged},
		{"all signatures removed, a line changed", func(t *testing.T, dir string) {
			removeFiles(t, dir, "*"+SignatureSuffix)
			forge(t, dir, nil, changed)
		}, claim.CannotBeJudged, claim.Fails},
		{"signed again with another key", func(t *testing.T, dir string) { forge(t, dir, other, changed) }, claim.Holds, claim.Fails},
		{"today signed with another key", func(t *testing.T, dir string) {
			signed, _ := os.ReadFile(filepath.Join(dir, "evidence-2026-11-20.jsonl"+SignatureSuffix))
			forge(t, dir, other, changed)
			if err := os.WriteFile(filepath.Join(dir, "evidence-2026-11-20.jsonl"+SignatureSuffix), signed, 0o600); err != nil {
				t.Fatal(err)
			}
		}, claim.Holds, claim.Fails},
		{"the first day removed", func(t *testing.T, dir string) { removeFiles(t, dir, "evidence-2026-11-20*") }, claim.Fails, claim.Fails},
		{"the last day removed with its signature", func(t *testing.T, dir string) { removeFiles(t, dir, "evidence-2026-11-21*") }, claim.Holds, claim.Holds},
		{"by one who has the key", func(t *testing.T, dir string) { forge(t, dir, key(), changed) }, claim.Holds, claim.Holds},
		{"cut by one who has the key", func(t *testing.T, dir string) { forge(t, dir, key(), cut) }, claim.Holds, claim.Holds},
		{"nothing changed, chain recomputed", func(t *testing.T, dir string) { forge(t, dir, nil, same) }, claim.Holds, claim.Holds},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := writeLog(t, Options{Key: key()})
			c.forge(t, dir)
			for public, want := range map[string]claim.Outcome{"": c.without, string(public): c.byKey} {
				check, err := Verify(dir, ed25519.PublicKey([]byte(public)), nil)
				if err != nil || check.Whole().Outcome() != want {
					t.Errorf("with key %v: %v %v, want %s; %+v", public != "", check.Whole().Outcome(), err, want, check)
				}
				if len(check.Keys) == 1 && want == claim.Holds && public == "" && len(Fingerprint(check.Keys[0])) != len("SHA256:")+43 {
					t.Error(check.Keys)
				}
			}
		})
	}
}

// The log was forged while the server was stopped. After the start, the server signs the log again, but records that
// lines of the earlier run were not signed.
func TestForgedWhileStopped(t *testing.T) {
	t.Parallel()
	for name, now := range map[string]time.Time{"the same day": start.Add(25 * time.Hour), "a later day": start.Add(72 * time.Hour)} {
		for how, forged := range map[string]func(dir string){
			"signature removed": func(dir string) {
				removeFiles(t, dir, "*"+SignatureSuffix)
				forge(t, dir, nil, func(all []*Event) []*Event { return all[:1] })
			},
			"signed by another": func(dir string) {
				forge(t, dir, ed25519.NewKeyFromSeed(bytes.Repeat([]byte{9}, 32)), func(all []*Event) []*Event { return all })
			},
		} {
			dir := writeLog(t, Options{Key: key()})
			forged(dir)
			l, err := Open(dir, Options{Key: key(), Now: func() time.Time { return now }})
			if err != nil {
				t.Fatal(err)
			}
			record(l, activity.Request{Time: now, Crawler: "CCBot", RobotsTxt: true})
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			public, _ := key().Public().(ed25519.PublicKey)
			c, err := Verify(dir, public, nil)
			if err != nil || c.Whole().Holds() || l.Troubles()[NotSigned].IsZero() {
				t.Errorf("%s, %s: %s %v %+v", name, how, c.Whole().Outcome(), err, c)
			}
		}
	}
}
