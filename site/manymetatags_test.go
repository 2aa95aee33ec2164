// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/site"
)

// A rule for a category adds a meta tag for each crawler to a page, so there is a warning. The fix in the warning
// removes the warning.
func TestWarnsOfManyElements(t *testing.T) {
	t.Parallel()
	const policy = `version: 1
rules:
  - for: category:search
    robots-tag:
      - {paths: /news/, rules: "max-image-preview:large"}
`
	_, ds := site.Load("policy.yaml", []byte(policy))
	text := ds.Text()
	if !strings.Contains(text, "policy.yaml:5:32: warning: with this entry, Caddy adds 6 meta tags to pages such as /news/, and rules for 1") || strings.Count(text, "warning: ") != 1 {
		t.Errorf("says:\n%s", text)
	}
	for _, audience := range []string{"everyone", "[Googlebot, Bingbot]"} {
		s, ds := site.Load("policy.yaml", []byte(strings.Replace(policy, "category:search", audience, 1)))
		if s == nil || len(ds) > 0 {
			t.Errorf("for %s it says:\n%s", audience, ds.Text())
		}
	}
}
