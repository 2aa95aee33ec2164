// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"os"
	"regexp"
	"testing"
)

// TestDocumented checks that docs/reference/audit.md lists the code and the severity of each finding that an audit can
// report.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/reference/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]Severity{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| (error|warning|hint) \\|").FindAllStringSubmatch(string(text), -1) {
		documented[m[1]] = Severity(m[2])
	}
	for code, s := range severityOf {
		if documented[code] != s {
			t.Errorf("docs/reference/audit.md has %q for %s, want %q", documented[code], code, s)
		}
		delete(documented, code)
	}
	for code := range documented {
		t.Errorf("docs/reference/audit.md has the code %s, which does not exist", code)
	}
}
