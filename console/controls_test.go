// SPDX-License-Identifier: Apache-2.0

package console

import (
	"slices"
	"strings"
	"testing"
)

// Some operators of crawlers offer their own controls against AI training, such as a setting in Search Console. The
// command `check` lists these controls for all hosts of a policy. The pages of the console list only the controls for
// the host of the page.
func TestOperatorsControls(t *testing.T) {
	s := startCaddy(t, `version: 1
rules:
  - for: everyone
    hosts: www.example.com
    disallow: {train-ai: /, ai-use: /}
  - for: everyone
    hosts: news.example.com
    disallow: {train-ai: /secret/}
`)
	const (
		bySearchConsole = "https://support.google.com/webmasters/answer/16908024"
		byBing          = "controls: {Bingbot: noarchive}"
		token           = "Google-Extended in robots.txt"
	)
	all := []string{bySearchConsole, byBing, token, "noarchive to Amazonbot", "/secret/"}
	for path, want := range map[string][]string{
		"crawler?name=Googlebot&host=www.example.com":               {bySearchConsole, token},
		"crawler?name=Bingbot&host=www.example.com":                 {byBing},
		"crawler?name=GPTBot&host=www.example.com":                  {},
		"crawler?name=Bingbot&host=news.example.com":                {byBing},
		"who-may?host=www.example.com":                              {bySearchConsole, byBing, token, "noarchive to Amazonbot"},
		"ask?agent=Googlebot&url=https://www.example.com/a":         {bySearchConsole, token},
		"ask?agent=Amazonbot&url=https://news.example.com/a":        {},
		"ask?agent=Amazonbot&url=https://news.example.com/secret/1": {"noarchive to Amazonbot", "/secret/"},
	} {
		text := get(t, s, path).Body.String()
		if i := strings.Index(text, "Operators’ own controls"); i >= 0 {
			text, _, _ = strings.Cut(text[i:], "</section>")
		} else {
			text = ""
		}
		for _, part := range all {
			if wanted := slices.Contains(want, part); strings.Contains(text, part) != wanted {
				t.Errorf("%s: has %q: %v, want %v", path, part, !wanted, wanted)
			}
		}
	}
}
