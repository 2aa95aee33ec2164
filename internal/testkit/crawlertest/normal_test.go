// SPDX-License-Identifier: Apache-2.0

package crawlertest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

func TestServedPaths(t *testing.T) {
	for _, c := range []struct {
		sent string
		want []string
	}{
		{"/a/b?c=//", []string{"/a/b?c=//"}},
		{"//admin/", []string{"//admin/", "/admin/", "/"}},
		{"////x/a#/b", []string{"////x/a%23/b", "/x/a%23/b", "//x/a%23/b", "/a%23/b", "////x/a", "/x/a", "//x/a", "/a"}},
		{"/x/../%61dmin", []string{"/x/../admin", "/admin"}},
		{"/admin%2f", []string{"/admin%2F", "/admin/"}},
		{"/x/..;/a", []string{"/x/..;/a", "/x/../a", "/a"}},
		{"/caf\u00e9*$", []string{"/caf%C3%A9%2A%24"}},
		{"/a/..", []string{"/a/..", "/"}},
		{"/%", []string{"/%25"}},
	} {
		if got := ServedPaths(c.sent); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.sent, got, c.want)
		}
	}
}

// TestServedPathsAreTheReadings compares pathpattern.Readings with ServedPaths for random targets. Both return the
// paths that servers may serve for a target, but ServedPaths shares no code with pathpattern.
func TestServedPathsAreTheReadings(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	parts := []string{"/", "/", "a", "..", ".", ";", "%2f", "%2F", "%5c", `\`, "%3B", "@", "%40", "%2e", "*", "%", "%25", "?", "%3f", "b=", "\u00e9", "#", ":"}
	most, cut, rounds := 0, 0, 20_000
	if testing.Short() {
		rounds /= 10
	}
	for range rounds {
		sent := "/"
		for range r.IntN(12) {
			sent += parts[r.IntN(len(parts))]
		}
		got, complete := pathpattern.Readings(nil, sent)
		want := ServedPaths(sent)
		if !complete && len(got) < 64 || !slices.Equal(got, want) {
			t.Fatalf("%q is read as %q, want %q", sent, got, want)
		}
		most = max(most, len(got))
		if !complete {
			cut++
		}
	}
	if most < 30 {
		t.Errorf("at most %d readings", most)
	}
	if cut > rounds/100 {
		t.Errorf("%d of %d targets have more readings than the limit", cut, rounds)
	}
	t.Logf("at most %d readings, %d of %d targets have more", most, cut, rounds)
}
