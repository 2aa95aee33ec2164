// SPDX-License-Identifier: Apache-2.0

package source

import "testing"

// If the source could not be read before, the first policy has no previous version to compare with.
func TestReportOfTheFirstVersion(t *testing.T) {
	got := Outcome{Now: &Snapshot{SHA256: "1f"}}.Report("storage:a.yaml")
	if got.Result != "applied" || got.SHA256 != "1f" || len(got.Changes) > 0 || got.Details != nil {
		t.Errorf("%+v", got)
	}
}
