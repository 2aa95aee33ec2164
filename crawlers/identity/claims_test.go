// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/claim"
)

// The claim that the lists are current holds only if lists are in use and none of them is old.
func TestListsCurrent(t *testing.T) {
	t.Parallel()
	day := time.Now()
	good, never := ListStatus{AsOf: day, Fresh: true, Refreshed: true}, ListStatus{Refreshed: true}
	builtIn, aged := ListStatus{AsOf: day, Embedded: true}, ListStatus{AsOf: day, Embedded: true, Old: "it verifies no one"}
	failing := ListStatus{AsOf: day, Refreshed: true, Fresh: true, Error: "no answer"}
	for _, c := range []struct {
		name   string
		status Status
		want   claim.Outcome
		says   string
	}{
		{"none", Status{}, claim.CannotBeJudged, "It cannot be judged whether the lists of addresses and keys are out of date"},
		{"none was needed yet", Status{Lists: []ListStatus{never}}, claim.CannotBeJudged, "It cannot be judged whether the lists of addresses and keys are out of date"},
		{"good", Status{Lists: []ListStatus{good, builtIn, never}, Directories: []DirectoryStatus{{Fetched: day}}}, claim.Holds, "None of 3 lists of addresses and keys is out of date"},
		{"an old one", Status{Lists: []ListStatus{good, aged}}, claim.Fails, "1 of 2 lists of addresses and keys is out of date"},
		{"one that fails", Status{Lists: []ListStatus{failing}, Directories: []DirectoryStatus{{Error: "gone"}}}, claim.Fails, "2 of 2 lists of addresses and keys are out of date"},
	} {
		if got := c.status.ListsCurrent(); got.Outcome() != c.want || got.Text() != c.says {
			t.Errorf("%s: %v: %s", c.name, got.Outcome(), got.Text())
		}
	}
}
