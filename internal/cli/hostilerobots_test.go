// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// If a robots.txt is too large to convert, or has odd lines, the commands report this. They must not fail because of a
// different problem.
func TestOddRobotsTxt(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	large := "User-agent: *\n"
	for i := range 12_600 {
		large += "Disallow: /" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + "/" + strings.Repeat("y", i%11) + "\n"
	}
	sitemap := write("sitemap.txt", "User-agent: *\nDisallow: /a/\nSitemap: /s.xml\nSitemap: ///evil.example/s.xml\nSitemap:\n")
	silent := write("silent.yaml", "version: 1\n")
	for name, c := range map[string]struct {
		args     []string
		has, not string
	}{
		"too large":                {[]string{"check", write("large.txt", strings.Repeat("User-agent: a"+"\n", 50)+large)}, "the file has too many lines", "converted policy"},
		"a sitemap with //":        {[]string{"check", sitemap}, "the sitemap \"///evil.example/s.xml\" is not a URL", `the sitemap ""`},
		"render without a host":    {[]string{"render", "--merge", sitemap, silent}, "the sitemap /s.xml is left out, because its host is not known. To include it, write", "write ///evil"},
		"several names in a line":  {[]string{"check", write("names.txt", "User-agent: Googlebot, Bingbot\nDisallow: /a/\n")}, `warning: crawlers read only the name "Googlebot" in this line, so the group is not for Bingbot`, "2 warnings"},
		"a no-break space":         {[]string{"check", write("space.txt", "User-agent: *\nDisallow: /\nAllow\u00a0/private/\n")}, "1 Allow or Disallow line for *", "Allow: /private/"},
		"preferences of all paths": {[]string{"render", "--merge", write("top.txt", "Content-Usage: train-ai=n\nUser-agent: *\nContent-Usage: /x/ train-ai=y\n"), silent}, "Content-Usage: train-ai=n\n", "no errors"},
	} {
		all := Commands()
		cmd := all[slices.IndexFunc(all, func(cmd *cobra.Command) bool { return cmd.Name() == c.args[0] })]
		out, stderr, err := execute(cmd, "", c.args[1:]...)
		if both := out + stderr; !strings.Contains(both, c.has) || strings.Contains(both, c.not) {
			t.Errorf("%s: %v\n%s", name, err, both)
		}
	}
}
