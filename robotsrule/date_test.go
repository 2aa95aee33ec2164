// SPDX-License-Identifier: Apache-2.0

package robotsrule

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// TestDateForms writes times with time.Format in every form, and parses them.
func TestDateForms(t *testing.T) {
	dates := []string{
		"2006-01-02", "2 Jan 2006", "02 Jan 2006", "2-Jan-2006", "2-Jan-06", "2 Jan 06", "2 January 2006", "Monday, 2-Jan-06", "Mon, 2 Jan 2006", "Jan 2 2006", "January 2, 2006",
	}
	clocks := []string{"", " 15:04:05", " 15:04", "T15:04:05", " 15:04:05.000"}
	formats := []string{time.RFC3339, time.RFC1123, time.RFC1123Z, time.RFC850, time.RFC822, time.RFC822Z, time.ANSIC, time.UnixDate, time.RubyDate, "20060102", "20060102T150405", "20060102T1504Z0700", "20060102T150405Z"}
	for _, d := range dates {
		for _, c := range clocks {
			if strings.HasPrefix(c, "T") && strings.Contains(d, " 2006") && !strings.HasPrefix(d, "2") {
				continue
			}
			formats = append(formats, d+c)
			if c != "" {
				formats = append(formats, d+c+" GMT", d+c+"Z07:00", d+c+" -0700", d+c+" -07", d+c+"-07:00")
			}
		}
	}
	zones := []*time.Location{time.UTC, time.FixedZone("EST", -5*3600), time.FixedZone("CEST", 2*3600), time.FixedZone("PST", -8*3600)}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 4))
	for range testkit.Rounds(20, 200) {
		at := time.Unix(r.Int64N(1<<31), 0).In(zones[r.IntN(len(zones))])
		for _, f := range formats {
			if strings.HasSuffix(f, "Z") || strings.HasSuffix(f, "GMT") || strings.HasSuffix(f, "-07") && at.Location() != time.UTC {
				at = at.UTC()
			}
			text := at.Format(f)
			// If the text has no zone, both parsers use UTC. For the comparison with time.Parse, the names of zones are
			// replaced with numeric offsets, because time.Parse does not know the offsets of all names.
			want, err := time.Parse(strings.ReplaceAll(f, "MST", "-0700"), at.Format(strings.ReplaceAll(f, "MST", "-0700")))
			if err != nil {
				t.Fatalf("%q does not read its own %q: %v", f, text, err)
			}
			d, ok := parseDate(text)
			if !ok || d.unix != max(want.Unix(), 0) {
				t.Fatalf("%q (%s) is read as %v, %v, want %v", text, f, time.Unix(d.unix, 0).UTC(), ok, want.UTC())
			}
		}
	}
}

func TestDateRefusals(t *testing.T) {
	for _, text := range []string{
		"", "1", "Friday", "2026", "2026-13-01", "2026-00-10", "2026-02-30", "2026-12-00", "31 Foo 2026", "31 Dec", "31 Dec 2026 24:00:00", "31 Dec 2026 10:60:00",
		"31 Dec 2026 10:00:61", "31 Dec 2026 10", "31 Dec 2026 10:00 XYZ", "31 Dec 2026 10:00 AM", "2026-12-31Z", "2026-12-31T", "2026-12-31T10:00+2", "2026-12-31T10:00+24:00",
		"2026-12-31T10:00Zjunk", "31/12/2026", "1798761599", "31 Dec 2026 10:00:00 GMT noindex", "Dec 31 23:59:59", "31 Dec-2026", "31-Dec 2026", "2026-12-31T10:00:00+",
		strings.Repeat(" ", 100) + "x" + strings.Repeat("1", 64),
	} {
		if d, ok := parseDate(text); ok {
			t.Errorf("%q is read as %v", text, time.Unix(d.unix, 0).UTC())
		}
	}
	for text, want := range map[string]string{
		"1960-01-01T00:00:00Z":            "1970-01-01T00:00:00Z",
		"9999-12-31T23:59:59-12:00":       "9999-12-31T23:59:59Z",
		"Someday, 31 Dec 2026":            "",
		"sunday 31 december 2026 10:00 z": "2026-12-31T10:00:00Z",
	} {
		d, ok := parseDate(text)
		if got := time.Unix(d.unix, 0).UTC().Format(time.RFC3339); ok != (want != "") || ok && got != want {
			t.Errorf("%q is read as %s, %v, want %q", text, got, ok, want)
		}
	}
}
