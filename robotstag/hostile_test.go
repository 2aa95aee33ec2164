// SPDX-License-Identifier: Apache-2.0

package robotstag

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// The time for reading a line is proportional to its length, whatever the upstream sends.
func TestLinesOfManyOddParts(t *testing.T) {
	v := oddPolicies(t)[1]
	var all []http.Header
	for _, form := range []string{"§(,", "§*;a#=1 b,", "x y;§a#;", "*;§a#=ü;", "*;§a#=1 noindex;", "*;§ noindex x#;", "§k#;noindex,(,", "*=(§a# ", "§noindex=", "§noindex:"} {
		start, part, _ := strings.Cut(form, "§")
		var b strings.Builder
		b.WriteString(start)
		for i := 0; b.Len() < readLimit-100; i++ {
			b.WriteString(strings.ReplaceAll(part, "#", fmt.Sprint(i)))
		}
		all = append(all, hostile([]string{b.String()}))
	}
	testkit.Within(t, testkit.BudgetMemory, time.Second, func() {
		for _, h := range all {
			Apply(h.Clone(), v, AllChannels)
		}
	})
}
