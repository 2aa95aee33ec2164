// SPDX-License-Identifier: Apache-2.0

package robotsserve_test

import (
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

func loadPolicy(t *testing.T, text string) *policyfile.File {
	t.Helper()
	f, ds := policyfile.Load("policy.yaml", []byte(text))
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	return f
}

// The text of a preamble is at the start of the file, unchanged, for the hosts that it applies to. Only the comment
// that ACAP 1.0 section 2.1.1 requires is before it.
func TestPreambleByHost(t *testing.T) {
	const rules = "version: 1\nrules:\n  - for: everyone\n    disallow: {crawl: /a/}\n"
	p := loadPolicy(t, rules+`publish:
  preamble:
    www.example.com: |
      § 44b UrhG: reserved.

        "as we wrote it" # to the letter
    "*.example.com": below
    a.example.com: as long as the wildcard
    "*": others
`).Policy
	for host, want := range map[string]string{
		"www.example.com":      "# § 44b UrhG: reserved.\n#\n#   \"as we wrote it\" # to the letter\n\nUser-agent: *\n",
		"WWW.Example.com:8443": "# § 44b UrhG: reserved.\n#\n#   \"as we wrote it\" # to the letter\n\nUser-agent: *\n",
		"a.b.example.com":      "# below\n\nUser-agent: *\n",
		"a.example.com":        "# as long as the wildcard\n\nUser-agent: *\n",
		"b.example.com":        "# below\n\nUser-agent: *\n",
		"example.com":          "# others\n\nUser-agent: *\n",
		"":                     "# others\n\nUser-agent: *\n",
	} {
		f, problems := robotsserve.Render(p, host, robotsserve.Options{})
		if !strings.HasPrefix(string(f.Body), want) || len(problems) > 0 {
			t.Errorf("%q: %v\n%s", host, problems, f.Body)
		}
		if served, _ := robotsserve.NewServer(p, robotsserve.ServeOptions{}).Text(host); served != string(f.Body) {
			t.Errorf("%q: served\n%s", host, served)
		}
	}
	full := loadPolicy(t, rules+"publish: {acap: full, preamble: mine}\n").Policy
	if f, _ := robotsserve.Render(full, "", robotsserve.Options{}); !strings.HasPrefix(string(f.Body), "##ACAP version=1.0\r\n# mine\r\n") {
		t.Errorf("%s", f.Body)
	}
}

// A site's text about rights is kept when its file is imported into a policy file, and when it is merged.
func TestAuthorsWordsStay(t *testing.T) {
	const theirs = "# Example Press Ltd.\n# We expressly reserve all rights under Article 4 of Directive (EU) 2019/790.\n\n" +
		"# the house\nUser-agent: *\nDisallow: /a/\n# Nutzungsvorbehalt nach § 44b UrhG\nDisallow: /b/\n"
	reserved := []string{"# Example Press Ltd.\n", "# We expressly reserve all rights under Article 4 of Directive (EU) 2019/790.\n", "# Nutzungsvorbehalt nach § 44b UrhG\n"}
	im, err := robotstxt.Import([]byte(theirs), nil)
	if err != nil {
		t.Fatal(err)
	}
	noted := false
	for _, n := range im.Notes {
		noted = noted || strings.Contains(n.Message, "tdmrep")
	}
	if !noted {
		t.Errorf("no note points to tdmrep: %+v", im.Notes)
	}
	imported := loadPolicy(t, string(policyfile.Print(im.Spec))).Policy
	published, _ := robotsserve.Render(imported, "", robotsserve.Options{})
	p := loadPolicy(t, "version: 1\nrules:\n  - for: everyone\n    disallow: {crawl: /c/}\npublish: {preamble: mine}\n").Policy
	merged, _, _ := robotsserve.Merge(p, "", robotstxt.Parse([]byte(theirs)), robotsserve.Options{})
	for name, body := range map[string]string{"imported": string(published.Body), "merged": string(merged.Body)} {
		for _, line := range reserved {
			if strings.Count(body, line) != 1 {
				t.Errorf("%s: %q is not in the file exactly once:\n%s", name, line, body)
			}
		}
	}
	if !strings.HasPrefix(string(merged.Body), "# mine\n# from the robots.txt of the site:\n# Example") {
		t.Errorf("%s", merged.Body)
	}
}
