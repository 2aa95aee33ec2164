// SPDX-License-Identifier: Apache-2.0

package headscan

import (
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

type names struct{}

func (names) Known(name []byte) string      { return string(name) }
func (names) Speaks(_, content string) bool { return content != "" }

// A page may arrive in many small parts. The scanner does not read a long attribute again for each of them, even if its
// value contains the end of a tag.
func TestLongAttributesInSmallParts(t *testing.T) {
	for _, value := range []string{strings.Repeat(">", 16<<20), strings.Repeat("a>'", 5<<20)} {
		page := []byte(`<!DOCTYPE html><head><link title="` + value + `"><meta name=robots content=none></head>`)
		testkit.Budget(t, func() {
			var s Scanner
			s.Reset(names{}, false)
			for n := 64; n < len(page) && !s.Scan(page[:n], false); n += 64 {
				continue
			}
			if !s.Scan(page, true) || s.HeadAt < 0 || len(s.Metas()) != 1 {
				t.Errorf("the head is not found: %+v", s.Metas())
			}
		})
	}
}
