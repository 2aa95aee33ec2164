// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"slices"
	"strings"
	"testing"
)

// Most operators of AI crawlers do not publish anything that could verify their requests. The log of this test lists
// the rows of these crawlers with their sources. A source is the operator's page or, if that page could not be read,
// lists and reports of others.
func TestUnverifiable(t *testing.T) {
	t.Parallel()
	categories := []Category{CategoryAITraining, CategoryAIInput, CategoryAIAssistant, CategoryAIAgent}
	all, without := 0, 0
	for _, c := range defaultCatalog(t).All() {
		if c.RobotsOnly || !slices.Contains(categories, c.Category) {
			continue
		}
		if all++; !c.Verification.IsEmpty() {
			continue
		}
		without++
		looked := "looked at " + c.Docs + " (" + strings.Join(c.Sources, ", ") + ", " + c.AsOf + ")"
		if c.Docs == "" {
			looked = "no page of the operator; looked at " + strings.Join(c.Sources, ", ") + " on " + c.AsOf
		}
		t.Logf("%s (%s, %s): %s", c.Token, c.Operator, c.Category, looked)
		if slices.Contains(c.Sources, "operator") && c.Docs == "" {
			t.Errorf("%s: the source is a page of the operator, but the field docs is missing", c.Token)
		}
	}
	t.Logf("%d of %d AI crawlers have no verify", without, all)
}
