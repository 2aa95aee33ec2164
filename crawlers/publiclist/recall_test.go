// SPDX-License-Identifier: Apache-2.0

package publiclist

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
)

// TestRecall prints the share of the User-Agents of three public collections that the catalog recognizes, by category.
// It also prints the number of browsers and apps that the catalog wrongly recognizes as crawlers. The environment
// variable ROBOTSPOLICY_DATA names the folder with the collections and with the file ua/browsers.txt, which has headers
// of browsers. ROBOTSPOLICY_BROWSERS names further files with such headers; see headersIn. The collections are
// github.com/monperrus/crawler-user-agents, github.com/arcjet/well-known-bots and
// github.com/ai-robots-txt/ai.robots.txt.
func TestRecall(t *testing.T) {
	dir := os.Getenv("ROBOTSPOLICY_DATA")
	if dir == "" {
		t.Skip("needs the public collections in the folder that ROBOTSPOLICY_DATA names")
	}
	c, err := crawlers.Default()
	if err != nil {
		t.Fatal(err)
	}
	r := crawlers.NewRecognizer(c.Patterns())
	var reports []Report
	for _, name := range []string{
		"crawler-user-agents/crawler-user-agents.json", "arcjet-well-known-bots/well-known-bots.json", "ai.robots.txt/robots.json",
	} {
		list, err := Parse(readFile(t, filepath.Join(dir, "catalogues", filepath.FromSlash(name))))
		if err != nil {
			t.Fatal(err)
		}
		report := list.Compare(c, r)
		reports = append(reports, report)
		for kind, least := range map[string]float64{KindAI: 94.5, "search": 95, "archive": 90, "seo": 73} {
			if got := report.Kinds[kind]; got.Percent() < least {
				t.Errorf("%s: %s: %d of %d User-Agents are recognized, %.1f%%; want at least %.0f%%", list.Format, kind, got.Recognized, got.Total, got.Percent(), least)
			}
		}
	}
	var table strings.Builder
	if err := WriteTable(&table, reports); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table.String())
	checkBrowsers(t, c, r, append(browserFiles(t), filepath.Join(dir, "ua", "browsers.txt")))
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
