// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zapcore"
)

// While Caddy replaces a configuration with one that has another storage, two documents have the same name. The metrics
// must have only one series for this name, with the values of the document in the running configuration. The test also
// uses a file name that is not valid UTF-8.
func TestMetricsOfOneName(t *testing.T) {
	for _, name := range []string{"storage:site.yaml", "/srv/\xff.yaml"} {
		pool := new(Pool)
		for _, key := range []string{"old", "new"} {
			src := &fakeSource{text: fakePolicy + "# " + key + "\n"}
			d := pool.documents.Acquire(key, func() *Document { return newDocument(name) })
			r := newTestUser(t, testOptions(zapcore.NewNopCore()), src.source())
			r.Running = func() bool { return key == "new" }
			if err := d.open(context.Background(), r); err != nil {
				t.Fatal(err)
			}
			d.join(r)
		}
		reg := prometheus.NewPedanticRegistry()
		if err := reg.Register(pool); err != nil {
			t.Fatal(err)
		}
		families, err := reg.Gather()
		if err != nil {
			t.Errorf("%q: %v", name, err)
		}
		seen := 0
		for _, f := range families {
			if f.GetName() == "caddy_robots_policy_info" {
				for _, m := range f.GetMetric() {
					seen++
					if text := m.String(); !strings.Contains(text, sumOf([]byte(fakePolicy+"# new\n"))) {
						t.Errorf("%q: %s", name, text)
					}
				}
			}
		}
		if seen != 1 {
			t.Errorf("%q: %d series", name, seen)
		}
	}
}
