// SPDX-License-Identifier: Apache-2.0

package robotstag

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// Apply removes exactly the restrictions that the policy lifts from the fields of a response, for all audiences.
func TestLiftedFields(t *testing.T) {
	t.Parallel()
	both := robotsrule.LiftIndex | robotsrule.LiftSnippet
	for _, tt := range []struct {
		site, ours string
		lift       robotsrule.Lift
		want       string // the expected lines of X-Robots-Tag, joined by |
	}{
		{"noindex", "", robotsrule.LiftIndex, ""},
		{"NOINDEX", "", robotsrule.LiftIndex, ""},
		{"none", "", robotsrule.LiftIndex, "nofollow"},
		{"noindex nofollow", "", robotsrule.LiftIndex, "nofollow"},
		{"noindex;nofollow", "", robotsrule.LiftIndex, "nofollow"},
		{"noindex;noarchive,nosnippet", "", robotsrule.LiftIndex, "nosnippet, noarchive"},
		{"none;max-snippet:20", "", robotsrule.LiftIndex, "nofollow, max-snippet:20"},
		{"noindex, nosnippet", "", robotsrule.LiftIndex, "nosnippet"},
		{"noindex, nosnippet", "", robotsrule.LiftSnippet, "noindex"},
		{"noindex, max-snippet:20", "", both, ""},
		{"max-snippet:0, noarchive", "", robotsrule.LiftSnippet, "noarchive"},
		{"unavailable_after: 25 Jun 2010 15:00:00 PST", "", robotsrule.LiftIndex, ""},
		{"googlebot: noindex, nofollow", "", robotsrule.LiftIndex, "googlebot: nofollow"},
		{"noindex|googlebot: noindex", "", robotsrule.LiftIndex, ""},
		{"noindex", "nofollow", robotsrule.LiftIndex, "nofollow"},
		{"noindex", "noindex", robotsrule.LiftIndex, "noindex"},
		{"max-snippet:20", "max-snippet:50", robotsrule.LiftSnippet, "max-snippet:50"},
		{"nofollow", "", robotsrule.LiftIndex, "nofollow"},
		{"noindex", "", 0, "noindex"},
		{"noindex", "nofollow", 0, "noindex, nofollow"},
		{"", "", robotsrule.LiftIndex, ""},
	} {
		h := http.Header{}
		if tt.site != "" {
			h[XRobotsTagField] = strings.Split(tt.site, "|")
		}
		var members []Member
		if tt.ours != "" {
			members = []Member{{Everyone, robotsrule.Parse(tt.ours)}}
		}
		v, problems := Build(members, Usage{}, time.Time{})
		v.Lift = tt.lift
		problems = append(problems, Apply(h, v, AllChannels)...)
		want := tt.want
		for range 2 {
			if got := strings.Join(h[XRobotsTagField], "|"); got != want || len(problems) > 0 {
				t.Errorf("%q with %q, lifting %d: %q %v, want %q", tt.site, tt.ours, tt.lift, got, problems, want)
			}
			if _, ok := h[XRobotsTagField]; ok && want == "" {
				t.Errorf("%q: an empty field stays", tt.site)
			}
			problems = append(problems, Apply(h, v, AllChannels)...)
		}
		if tag := strings.Join(h[RobotsTagField], ""); tt.lift != 0 && strings.Contains(tag, "noindex") && !strings.Contains(tt.ours, "noindex") && tt.lift&robotsrule.LiftIndex != 0 {
			t.Errorf("%q: Robots-Tag repeats what is lifted: %q", tt.site, tag)
		}
	}
}
