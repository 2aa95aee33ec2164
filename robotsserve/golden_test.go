// SPDX-License-Identifier: Apache-2.0

package robotsserve_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

var update = flag.Bool("update", false, "write the golden files")

// TestGolden renders the policies of testdata and the project's examples for
// each host that they name.
func TestGolden(t *testing.T) {
	var files []string
	for _, pattern := range []string{"testdata/*.yaml", "../examples/*.yaml", "../examples/policies/*.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	for _, name := range files {
		base := strings.TrimSuffix(filepath.Base(name), ".yaml")
		if strings.HasPrefix(base, "broken") {
			continue
		}
		t.Run(base, func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			file, diagnostics := policyfile.Load(base+".yaml", data)
			if diagnostics.HasErrors() {
				t.Fatal(diagnostics)
			}
			for _, h := range robotsserve.Hosts(file.Policy) {
				host := strings.ReplaceAll(string(h), "*", "any")
				if host == "" {
					host = "www.example.com"
				}
				f, problems := robotsserve.Render(file.Policy, host, robotsserve.Options{})
				got := bytes.ReplaceAll(f.Body, []byte("\r\n"), []byte("\n"))
				for _, p := range problems {
					got = fmt.Appendf(got, "-- %v at line %d: %s [%s]\n", p.Severity, p.Pos.Line, p.Message, p.Code)
					if p.Severity == policy.Error && !strings.HasPrefix(base, "error-") {
						t.Errorf("%+v", p)
					}
				}
				golden := filepath.Join("testdata", "golden", base+"."+host+".txt")
				if *update {
					if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(golden, got, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%s (-update writes it)\ngot\n%s\nwant\n%s", golden, got, want)
				}
			}
		})
	}
}
