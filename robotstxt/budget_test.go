// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

func repeat(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// Hundreds of groups share hundreds of lines with many preferences. Each group also has another line. No group
// copies the shared lines.
func TestPreferencesBudget(t *testing.T) {
	text := "Content-Usage: zz=n,a=n\n" + repeat(500, "User-agent: a%dx\n") +
		repeat(500, "Content-Signal: /%d u0=n,u1=n,u2=n,u3=n,u4=n,u5=n,u6=n,u7=n,u8=n,u9=n,v0=n,v1=n,v2=n,v3=n\n") +
		repeat(5000, "User-agent: a%dx\nContent-Usage: /%[1]d b=n\nDisallow: /%[1]d\n")
	testkit.Within(t, testkit.BudgetMemory/2, testkit.BudgetCPU, func() {
		if _, err := Import([]byte(text), nil); !errors.Is(err, ErrTooLarge) {
			t.Error(err)
		}
	})
}

// Importing ACAP records takes little memory and time, whatever other groups and lines the file has.
func TestRecordsBudget(t *testing.T) {
	for name, c := range map[string]struct {
		text     string
		tooLarge bool
	}{
		"permissions times rules":        {repeat(100, "acap-allow-crawl:/q/%d\n") + "user-agent:*\n" + repeat(2200, "disallow:/%d\nallow:/%[1]d/\n"), false},
		"prohibitions times groups":      {repeat(190, "acap-disallow-crawl:/%d\n") + repeat(2500, "user-agent:a%d\nallow:/%[1]d\n"), true},
		"prohibitions of all other":      {repeat(190, "acap-disallow-other:/%d\n") + repeat(2500, "user-agent:a%d\nallow:/%[1]d\n"), true},
		"groups without Allow lines":     {repeat(65, "acap-disallow-crawl:/%d\n") + repeat(200, "user-agent:a%d\ndisallow:/%[1]d\n"), false},
		"prohibitions times permissions": {repeat(195, "acap-disallow-index:/%d\n") + repeat(95, "acap-crawler:ax%d\nacap-usage-purpose:p\nacap-allow-index:/\n"), false},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Budget(t, func() {
				if _, err := Import([]byte("##ACAP version=1.0\nacap-crawler:*\n"+c.text), nil); errors.Is(err, ErrTooLarge) != c.tooLarge {
					t.Error(err)
				}
			})
		})
	}
}
