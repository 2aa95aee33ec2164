// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"net/http"
	"testing"
	"time"
)

func TestMaxAge(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"":                               -1,
		"public":                         -1,
		"max-age=60":                     time.Minute,
		"Public, MAX-AGE=\"60\"":         time.Minute,
		"max-age=soon":                   -1,
		"max-age=-5":                     -1,
		"max-age=99999999999999999999":   (1<<31 - 1) * time.Second,
		"no-cache, max-age=60":           0,
		"max-age=60, must-revalidate":    time.Minute,
		"s-maxage=5, max-age=60,no-sto=": time.Minute,
		"no-store":                       0,
	} {
		age, ok := MaxAge(http.Header{"Cache-Control": {header}})
		if !ok {
			age = -1
		}
		if age != want {
			t.Errorf("%q: %s, want %s", header, age, want)
		}
	}
}
