// SPDX-License-Identifier: Apache-2.0

package catalogstore

import (
	"fmt"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

// maxShrink is the percentage of crawlers that an update may remove from the catalog.
const maxShrink = 5

// CheckDate returns an error if the date of a catalog is in the future. A server installs only a newer catalog, so
// released catalogs could not replace a catalog with such a date.
func CheckDate(c *crawlers.Catalog, now time.Time) error {
	if c.AsOf() <= latestDate(now) {
		return nil
	}
	return fmt.Errorf("the date of the catalog (as-of: %s) is after today (%s); write the day on which the catalog was made", c.AsOf(), now.UTC().Format(time.DateOnly))
}

// latestDate returns today's date in the time zone in which the day begins first.
func latestDate(now time.Time) string { return now.UTC().AddDate(0, 0, 1).Format(time.DateOnly) }

// Guard returns the reasons why a new catalog (after) should not replace the catalog in use (before). The new catalog
// can be older. It can also lack search engines or many other crawlers, so that policies with categories would apply to
// fewer crawlers. If the date of the catalog in use is in the future, the new catalog is never treated as older.
func Guard(before, after *crawlers.Catalog, now time.Time) (problems []error) {
	if after.AsOf() < before.AsOf() && CheckDate(before, now) == nil {
		problems = append(problems, fmt.Errorf("the catalog (as-of: %s) is older than the catalog in use (%s); get a newer one", after.AsOf(), before.AsOf()))
	}
	var lost []string
	for _, c := range before.OfCategory(crawlers.CategorySearch) {
		if now, ok := after.Lookup(c.Token); !ok || now.Category != crawlers.CategorySearch || now.IsAI() && !c.IsAI() {
			lost = append(lost, c.Token)
		}
	}
	if len(lost) > 0 {
		problems = append(problems, fmt.Errorf("the new catalog lacks these search crawlers, or has them in another category: %s; add them again, with category: search", english.Some(lost, 6)))
	}
	if _, gone := Changes(before, after); len(gone)*100 > before.Len()*maxShrink {
		problems = append(problems, fmt.Errorf("the catalog lacks %d of the %d crawlers of the catalog in use; a catalog must be complete: start from the output of `caddy robots-policy crawlers export`", len(gone), before.Len()))
	}
	return problems
}

// Changes returns the crawlers that are only in the new catalog, and the crawlers that are only in the old catalog.
func Changes(before, after *crawlers.Catalog) (added, removed []string) {
	lacking := func(c, other *crawlers.Catalog) (tokens []string) {
		for _, cr := range c.All() {
			if _, ok := other.Lookup(cr.Token); !ok {
				tokens = append(tokens, cr.Token)
			}
		}
		return tokens
	}
	return lacking(after, before), lacking(before, after)
}

// maxAge is the age above which Aged returns a warning about a catalog.
const maxAge = 90 * 24 * time.Hour

// Aged returns a warning about an old catalog, or "".
func Aged(c *crawlers.Catalog, now time.Time) string {
	date, err := time.Parse(time.DateOnly, c.AsOf())
	if err != nil || now.Sub(date) <= maxAge {
		return ""
	}
	return fmt.Sprintf("the catalog of crawlers was made on %s, more than 90 days ago, and lacks newer crawlers. To update it, run `caddy robots-policy crawlers update %s`, or install a newer program", c.AsOf(), Released)
}
