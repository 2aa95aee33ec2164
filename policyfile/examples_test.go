// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"path/filepath"
	"testing"
)

// TestExamples checks that the example policies load without a warning.
func TestExamples(t *testing.T) {
	paths := append(filesOf(t, "../examples/policies/*.yaml"), "../examples/site-policy.yaml")
	if len(paths) < 7 {
		t.Errorf("only %d examples", len(paths))
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f, ds := loadFile(t, path)
			if len(ds) > 0 {
				t.Errorf("\n%s", ds.Text())
			}
			if f != nil {
				checkPrinted(t, f)
			}
		})
	}
}
