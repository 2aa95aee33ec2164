// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/fleet"
)

// A server is silent if its last report is much older than the newest report of all servers. The clock of this machine
// does not matter.
func TestSilentServers(t *testing.T) {
	t.Parallel()
	for _, now := range []time.Time{time.Now(), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)} {
		node := func(name, sum string, ago time.Duration) fleet.Node {
			return fleet.Node{Name: name, Policies: map[string]string{"p": sum}, Wrote: now.Add(-ago)}
		}
		loaded, missing, silent := byAnswer([]fleet.Node{
			node("a", "new", 0), node("b", "old", time.Minute), node("c", "old", time.Hour), {Name: "d", Wrote: now}, node("e", "new", time.Hour),
		}, "p", "new")
		if !slices.Equal(loaded, []string{"a", "e"}) || !slices.Equal(missing, []string{"b"}) || !slices.Equal(silent, []string{"c"}) {
			t.Errorf("loaded %v, missing %v, silent %v", loaded, missing, silent)
		}
	}
}

// The command publish prints "published" only if servers have confirmed the version. If one server has not loaded the
// version, or no server answers, the command prints this instead.
func TestConfirmation(t *testing.T) {
	t.Parallel()
	rejected := errors.New("the server did not load the version")
	for _, c := range []struct {
		name    string
		subject publishedSubject
		want    claim.Outcome
		says    string
	}{
		{"the server has loaded it", publishedSubject{}, claim.Holds, "published as "},
		{"another one has not", publishedSubject{Missing: []string{"web-2"}}, claim.CannotBeJudged, "not every server has confirmed the version"},
		{"no answer", publishedSubject{Here: errNoAnswer}, claim.CannotBeJudged, "no server has confirmed the version: no server could be asked"},
		{"no answer here, but another one", publishedSubject{Here: errNoAnswer, Loaded: []string{"web-2"}}, claim.Holds, "published as "},
		{"rejected", publishedSubject{Here: rejected, Loaded: []string{"web-2"}}, claim.CannotBeJudged, "did not load the version"},
	} {
		if got := c.subject.judge(); got.Outcome() != c.want || !strings.Contains(got.Text(), c.says) {
			t.Errorf("%s: %v: %s", c.name, got.Outcome(), got.Text())
		}
	}
}
