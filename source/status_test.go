// SPDX-License-Identifier: Apache-2.0

package source

import "testing"

// The first version of a policy is loaded, so there is no previous version. The report must not contain a comparison.
func TestReportOfTheFirstVersion(t *testing.T) {
	got := Outcome{Now: &Snapshot{SHA256: "1f"}}.Report("storage:a.yaml")
	if got.Result != "applied" || got.SHA256 != "1f" || len(got.Changes) > 0 || got.Details != nil {
		t.Errorf("%+v", got)
	}
}
