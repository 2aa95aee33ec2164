// SPDX-License-Identifier: Apache-2.0

package accesslog

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// Whatever a client sends, it cannot hide its requests from a replay.
func TestNoLineIsHidden(t *testing.T) {
	t.Parallel()
	parser := func(format string) Parser {
		p, err := ParseFormat(format)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	const w3c = "#Fields: date time c-ip cs-uri-stem cs(User-Agent) sc-status\n"
	for _, c := range []struct {
		name, log, agent string
		parser           Parser
	}{
		{"a host that looks like a comment", `#x 192.0.2.7 [22/Nov/2026:09:34:56 +0000] "GET / HTTP/1.1" "CCBot"`, "CCBot", parser(`$http_host $remote_addr [$time_local] "$request" "$http_user_agent"`)},
		{"a quote in a W3C value", w3c + `2026-11-22 09:34:56 192.0.2.7 / "CCBot"x 200`, `"CCBot"x`, nil},
		{"a quoted W3C value", w3c + `2026-11-22 09:34:56 192.0.2.7 / "CCBot 2" 200`, "CCBot 2", nil},
	} {
		var agent string
		res, err := Reading{Parser: c.parser, Workers: 1, Stdin: strings.NewReader(c.log)}.Read(t.Context(), []string{Stdin}, func(_ int, r *Record) { agent = string(r.UserAgent) })
		if err != nil || agent != c.agent || res.Lines != 1 || len(res.Gaps) > 0 {
			t.Errorf("%s: %v, User-Agent %q, want %q; %+v", c.name, err, agent, c.agent, res)
		}
	}
}

// A number of seconds, milliseconds, microseconds or nanoseconds is parsed as the correct time.
func TestUnixTime(t *testing.T) {
	t.Parallel()
	want := time.Date(2026, 11, 26, 15, 9, 14, 80_000_000, time.UTC)
	for _, number := range []string{"1795705754.08", "1795705754080", "1795705754080000", "1795705754080000000", "1.79570575408e9"} {
		if got := parseTime(number); got.Sub(want).Abs() > time.Microsecond {
			t.Errorf("%s: %s", number, got.UTC())
		}
	}
}

// A line that is longer than a chunk is counted as one bad line, even at the end of a log.
func TestLongLastLine(t *testing.T) {
	t.Parallel()
	log := (&truth{at: time.Unix(1795340096, 0), ip: "192.0.2.7", uri: "/", agent: "CCBot"}).combined() + "\n" + strings.Repeat("x", 5*chunkSize/2)
	if _, res, err := readAll(t, Reading{}, []byte(log)); err != nil || res.Bad != 1 || res.Lines != 2 {
		t.Errorf("%v, %+v", err, res)
	}
}

// If a compressed file is cut off within its gzip header, Read reports a gap and not an error. It does the same for a
// file that is cut off after the header.
func TestCutHeader(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if _, res, err := readAll(t, Reading{}, b.Bytes()[:5]); err != nil || len(res.Gaps) != 1 {
		t.Errorf("%v, %+v", err, res)
	}
}

// Reading a log of a few megabytes never takes long, whatever it contains.
func TestHostileLogs(t *testing.T) {
	testkit.SkipRace(t)
	repeat := func(head, part, tail string) string {
		return head + strings.Repeat(part, (chunkSize-len(head)-len(tail)-1)/len(part)) + tail + "\n"
	}
	for name, log := range map[string]string{
		"many User-Agents":         repeat(`{"ts":1,"request":{"uri":"/","headers":{"User-Agent":["a"`, `,"a"`, `]}}}`),
		"many hosts in #Fields":    repeat("#Fields: date time cs-uri-stem", " cs(host)", ""),
		"many fields, short lines": repeat("#Fields: date time cs-uri-stem", " x", "") + strings.Repeat("a\n", chunkSize/4),
		"many #Fields":             repeat("", "#Fields: x\n", ""),
		"many quotes":              repeat(`{"ts":1,"request":{"uri":"`, `\"`, `"}}`),
		"many brackets":            repeat(`{"a":`, `[`, ``),
		"many prefixes":            repeat("", "2026/11/26 15:00:00 ", `{"request":{"uri":"/"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Budget(t, func() {
				_, _ = Reading{Workers: 1, Stdin: strings.NewReader(log)}.Read(t.Context(), []string{Stdin}, func(int, *Record) {})
			})
		})
	}
}
