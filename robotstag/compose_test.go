// SPDX-License-Identifier: Apache-2.0

package robotstag

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// A rule for a category can name more than a hundred crawlers. Some clients give up at a hundred header lines, so the
// members share lines. Each crawler must still find its own rules.
func TestManyCrawlersInFewLines(t *testing.T) {
	t.Parallel()
	members := []Member{{Everyone, robotsrule.Parse("nosnippet")}, {"googlebot", robotsrule.Parse("noindex")}}
	for i := range 120 {
		members = append(members, Member{fmt.Sprintf("bot%d", i), robotsrule.Parse("nofollow")})
	}
	v, problems := Build(members, Usage{}, time.Time{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	h := http.Header{}
	Apply(h, v, XRobotsTag)
	lines := h.Values(XRobotsTagField)
	if len(lines) != 3 || lines[0] != "nosnippet" || lines[1] != "googlebot: noindex" || !strings.HasPrefix(lines[2], "bot0: nofollow, bot1: nofollow, ") {
		t.Errorf("%d lines: %.200q", len(lines), lines)
	}
	read, _ := readXRobotsTag(lines)
	for _, m := range members {
		if read[m.Token] != m.Rules {
			t.Errorf("%s reads %v", m.Token, read[m.Token])
		}
	}
}
