// SPDX-License-Identifier: Apache-2.0

package recorders

import (
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/activity"
)

// A client can send any bytes for a host. Counters panic on labels that are not UTF-8.
func TestHostLabels(t *testing.T) {
	m := &Metrics{Hosts: true}
	for _, host := range []string{"a\xff.example", strings.Repeat("a", 10_000)} {
		m.Record(activity.Visit{Crawler: "GPTBot", Host: host})
	}
	if n := hostLabels.Len(); n != 1 {
		t.Errorf("%d labels, want none for a host that is too long", n)
	}
}
