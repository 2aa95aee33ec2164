// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/site"
)

func TestSearchGuard(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	load := func(text string) *site.Site {
		s, ds := site.Load("new.yaml", []byte("version: 1\nenforcement: {mode: block}\nrules:\n"+text))
		if s == nil {
			t.Fatal(ds.Text())
		}
		return s
	}
	const googlebot = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
	log := func(name string, age time.Duration, address string) string {
		name = filepath.Join(dir, name)
		line := fmt.Sprintf("%s - - [%s] \"GET /news/a HTTP/1.1\" 200 2326 \"-\" %q\n", address, time.Now().Add(-age).Format("02/Jan/2006:15:04:05 -0700"), googlebot)
		if err := os.WriteFile(name, []byte(strings.Repeat(line, 3)), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	verified, claimed := log("verified.log", time.Hour, "66.249.66.1"), log("claimed.log", time.Hour, "203.0.113.9")
	old := log("old.log", 8*24*time.Hour, "66.249.66.1")
	const out = "  - for: Googlebot\n    disallow: {crawl: [/news/]}\n"
	for _, c := range []struct {
		name, traffic string
		most          int64
		old, new      string
		want          string
	}{
		{"no guard", "", 0, "", out, ""},
		{"refused", verified, 0, "", out, `not published: it would refuse 3 requests of verified search crawlers`},
		{"refused, with the rule", verified, 2, "", out, `(3 Googlebot, line 4 (Googlebot)), and at most 2 may be lost; if it is meant to, write "intended: [refuses-search]" into the rule`},
		{"as many as may be lost", verified, 3, "", out, ""},
		{"refused before too", verified, 0, out, out, ""},
		{"intended", verified, 0, "", out + "    intended: true\n", ""},
		{"this guard intended", verified, 0, "", out + "    intended: [refuses-search]\n", ""},
		{"another guard intended", verified, 0, "", out + "    intended: [site-not-indexed]\n", "not published"},
		{"not verified", claimed, 0, "", out, ""},
		{"too long ago", old, 0, "", out, "found no request of the last seven days"},
		{"no such file", filepath.Join(dir, "none"), 0, "", out, "--if-replay: "},
		{"a directory without a build that reads it", dir, 0, "", out, "this build of Caddy cannot read an activity store"},
		{"negative", verified, -1, "", out, "invalid --max-search-loss -1: must be 0 or more"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var before *site.Site
			if c.old != "" {
				before = load(c.old)
			}
			g := searchGuard{c.traffic, c.most}
			err := g.check(t.Context(), before, load(c.new), "storage:site.yaml")
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
