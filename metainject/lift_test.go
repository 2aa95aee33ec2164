// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// A set removes only the restrictions in its lift, from the elements for every audience.
func TestLiftedElements(t *testing.T) {
	t.Parallel()
	index := robotsrule.LiftIndex
	tokens := map[string]struct{}{"googlebot": {}}
	for _, tt := range []struct {
		head, ours string
		lift       robotsrule.Lift
		want       string // meta tags in the head
	}{
		{`<META NAME=ROBOTS CONTENT=NOINDEX>`, "", index, ``},
		{`<meta name="robots" content="none">`, "", index, `<meta name="robots" content="nofollow">`},
		{`<meta name="robots" content="noindex, nosnippet">`, "", index, `<meta name="robots" content="nosnippet">`},
		{`<meta name="robots" content="noindex, max-snippet:20">`, "", index | robotsrule.LiftSnippet, ``},
		{`<meta name="googlebot" content="noindex,nofollow">`, "", index, `<meta name="googlebot" content="nofollow">`},
		{`<meta name="robots" content="noindex"><meta name="googlebot" content="noindex">`, "", index, ``},
		{`<meta name="robots" content="noindex">`, "noindex", index, `<meta name="robots" content="noindex">`},
		{`<meta name="robots" content="noindex">`, "nofollow", index, `<meta name="robots" content="nofollow">`},
		{`<meta name="robots" content="no-snippet;noindex">`, "", index, ``},
		{`<meta name="robots" content="nofollow">`, "", index, `<meta name="robots" content="nofollow">`},
		{`<meta name="robots" content="noindex">`, "", 0, `<meta name="robots" content="noindex">`},
		{`<meta name="description" content="noindex">`, "", index, `<meta name="description" content="noindex">`},
		{``, "", index, ``},
	} {
		var elements []Element
		if tt.ours != "" {
			elements = []Element{{Name: Everyone, Rules: robotsrule.Parse(tt.ours)}}
		}
		set := NewSet(elements, tokens, tt.lift)
		page := func(head string) string {
			return "<!doctype html><html><head><title>t</title>" + head + "</head><body>b</body></html>"
		}
		out, _, _ := rewriteHead([]byte(page(tt.head)), set, Merge, false, false, nil)
		if got := strings.ReplaceAll(string(out), ", ", ","); got != strings.ReplaceAll(page(tt.want), ", ", ",") {
			t.Errorf("%s with %q, lifting %d: %s, want %s", tt.head, tt.ours, tt.lift, out, tt.want)
		}
	}
	if a, b := NewSet(nil, nil, index), NewSet(nil, nil, 0); a.IsEmpty() || !b.IsEmpty() || a.mark == b.mark {
		t.Errorf("a set that lifts: empty %v, mark %q and %q", a.IsEmpty(), a.mark, b.mark)
	}
	const xml = `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body/></html>`
	if out, _, _ := rewriteHead([]byte(xml), NewSet(nil, nil, index), Merge, true, false, nil); string(out) != xml {
		t.Errorf("a page without a head becomes %s", out)
	}
}
