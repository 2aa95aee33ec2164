// SPDX-License-Identifier: Apache-2.0

package policyinput

import (
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
)

// A group of a robots.txt may have any name, even one that means something else in a policy file or in YAML. Its policy
// disallows the same paths for the crawler with this name, and for no other crawler.
func TestImportKeepsEveryName(t *testing.T) {
	t.Parallel()
	names := []string{
		"everyone", "everyone-else", "Everyone", "everyone2", "all", "any", "bots", "others", "unlisted", "default",
		"crawler", "signed", "none", "null", "true", "no", "on", "y", "1", "1e3", "0x1F", "-", "_", "x-", "X", "Google", "Mozilla", "Chrome",
		"purpose", "purpose-ai", "may", "not", "verified",
	}
	for _, kind := range crawlers.Categories() {
		names = append(names, string(kind), string(kind)+"2")
	}
	catalog, _ := crawlers.Default()
	for _, operator := range catalog.Operators() {
		names = append(names, operator)
	}
	for _, name := range names {
		data := []byte("User-agent: *\nDisallow: /all/\n\nUser-agent: " + name + "\nDisallow: /own/\n")
		c, err := Convert(name, data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if q := c.Judge(name, data); q.Differ > 0 || !q.Complete {
			t.Errorf("%s: %s\n%s", name, q.Sentence(), c.Text)
		}
	}
}
