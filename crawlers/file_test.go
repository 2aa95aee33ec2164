// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"reflect"
	"strings"
	"testing"
)

func TestExportedCatalogIsTheEmbeddedOne(t *testing.T) {
	data, err := Export("date 2026-11-01\nlist https://a.example/x\n1.2.3.0/24\n")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse("crawlers.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	if got.AsOf() != want.AsOf() || got.Len() != want.Len() {
		t.Fatalf("%s with %d, want %s with %d", got.AsOf(), got.Len(), want.AsOf(), want.Len())
	}
	if text := "date 2026-11-01\nlist https://a.example/x\n1.2.3.0/24\n"; got.Addresses() != text {
		t.Errorf("addresses %q", got.Addresses())
	}
	for i := range want.Len() {
		if !reflect.DeepEqual(got.At(i), want.At(i)) {
			t.Errorf("%+v\n%+v", got.At(i), want.At(i))
		}
	}
}

const wholeFile = `version: 1
as-of: 2026-12-01
crawlers:
  NewBot:
    {operator: New, category: search, honors: yes, source: operator, examples: [NewBot/1.0]}
  OtherBot:
    {operator: Other, category: seo, honors: yes, source: operator, examples: [OtherBot/1.0]}
`

func TestParseNamesFileLineAndFix(t *testing.T) {
	if c, err := Parse("f.yaml", []byte(wholeFile)); err != nil || c.AsOf() != "2026-12-01" || c.Len() != 2 {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, old, repl, want string }{
		{"version missing", "version: 1\n", "", "f.yaml:1: version is missing; write version: 1"},
		{"newer version", "version: 1", "version: 2", `f.yaml:1: version "2" of the catalog format is not supported`},
		{"date missing", "as-of: 2026-12-01", "as-of: soon", `f.yaml:1: as-of is "soon"; above the crawlers, write the date of the catalog`},
		{"unknown key", "category: seo", "sort: seo", `f.yaml:7: unknown key "sort"`},
		{"same token", "OtherBot:", "newbot:", "f.yaml:6: NewBot and newbot are the same token"},
		{"a browser's name", "examples: [OtherBot/1.0]", "user-agents: [Chrome], examples: [Chrome/1.0]", `f.yaml:6: OtherBot: "Chrome" is in the User-Agent of browsers`},
		{"example of another", "[OtherBot/1.0]", "[OtherBots/1.0]", `f.yaml:6: OtherBot is not recognized in its example "OtherBots/1.0"`},
		{"follows an unknown crawler", "category: seo,", "category: seo, follows: NoBot,", "f.yaml:6: OtherBot: the key \"follows\" names NoBot, which is not in the catalog"},
		{"no crawlers", wholeFile[strings.Index(wholeFile, "crawlers:"):], "", "f.yaml:1: the list of crawlers is missing"},
	} {
		if strings.Count(wholeFile, tt.old) != 1 {
			t.Fatalf("%s: %q is not in the file exactly once", tt.name, tt.old)
		}
		_, err := Parse("f.yaml", []byte(strings.Replace(wholeFile, tt.old, tt.repl, 1)))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestInstall(t *testing.T) {
	c, err := Parse("f.yaml", []byte(wholeFile))
	if err != nil {
		t.Fatal(err)
	}
	var derived Derived[int]
	lengthOf := func(c *Catalog) (int, bool) { return derived.Get(c, c.Len) }
	embedded, _ := Embedded()
	if n, ok := lengthOf(embedded); !ok || n != embedded.Len() {
		t.Errorf("%d %v", n, ok)
	}
	Install(c)
	t.Cleanup(func() { Install(nil) })
	if got, _ := Default(); got != c {
		t.Error("the installed catalog is not in use")
	}
	if n, ok := lengthOf(c); !ok || n != 2 {
		t.Errorf("%d %v", n, ok)
	}
	if _, ok := lengthOf(embedded); ok {
		t.Error("Get used a catalog that is not in use")
	}
	Install(nil)
	if got, _ := Default(); got != embedded {
		t.Error("the embedded catalog is not in use again")
	}
}
