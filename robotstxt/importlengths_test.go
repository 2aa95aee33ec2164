// SPDX-License-Identifier: Apache-2.0

package robotstxt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// A policy stores patterns in normal form, which can be longer or shorter than the text in the file. For example, the
// pattern `*/x` becomes `/*/x`. Although the lengths decide which rule wins, the policy and its robots.txt must give
// the same answers as the file.
func TestImportKeepsLengths(t *testing.T) {
	t.Parallel()
	names := newNames(t)
	for name, c := range map[string]struct {
		file  string
		paths []string
	}{
		"a star at the start": {
			"Allow: /api/cms/\nDisallow: */info/1$\nDisallow: /*?search=\nDisallow: /\n",
			[]string{"/api/cms/info/1", "/api/cms/x/info/1", "/api/cms/?search=/info/1", "/api/cms/a", "/x/info/1", "/"},
		},
		"a star at both ends": {
			"Allow: */wsapi/*\nAllow: /user\nDisallow: /*/result\nDisallow: *?*oid_*\nDisallow: /*root.betaUrl\n",
			[]string{"/wsapi/a/result", "/a/wsapi/result", "/wsapi/root.betaUrl", "/user/?oid_", "/wsapi/?oid_", "/user/result"},
		},
		"many stars": {
			"Allow: **a\nDisallow: /a/*b$\nDisallow: *b/a\nAllow: /ab\nAllow: /a**\n",
			[]string{"/axb/a", "/ab/a", "/xb/a", "/a/b", "/a/b/a", "/a/b/ab", "/b/a"},
		},
		"a mixed spelling": {
			"Disallow: /a/b\nDisallow: */b/\nDisallow: *?q=\nAllow: /**/b\nDisallow: /a%3Ab\n",
			[]string{"/a/b", "/x/b", "/b?q="},
		},
		"a pattern that ends with $": {
			"Disallow: *a$\nAllow: /a*\nAllow: /a/b\nAllow: */a*/\nDisallow: /a/*b$\n",
			[]string{"/a", "/axa", "/xa", "/a/b", "/x/a/", "/a/xb", "/x/a/a"},
		},
		"a spelling that is longer than the normal form": {
			"Disallow: /%7Ea\nAllow: *.pdf\nAllow: /*?\n",
			[]string{"/%7Ea", "/%7Ea?x", "/%7Ea.pdf", "/%7Ea?x.pdf", "/b?x"},
		},
		"a Disallow that never decides": {
			"Allow: /*\nDisallow: *a\nDisallow: /a$\nDisallow: /b/\n",
			[]string{"/a", "/ba", "/b/a", "/x"},
		},
		"an Allow where two lines meet": {
			"Allow: /%7Ea\nDisallow: /*?*\nDisallow: /%7Ea$\n",
			[]string{"/%7Ea", "/%7Ea?x", "/%7Eax", "/%7Eax?", "/b?x"},
		},
		"a Disallow where two lines meet": {
			"Allow: /*?$\nAllow: /%7Ea$\nDisallow: /%7Ea\n",
			[]string{"/%7Ea", "/%7Ea?", "/%7Eab", "/b?"},
		},
		"a pattern that also matches at the root": {
			"Allow: */b/\nDisallow: /a/b\nDisallow: *b/a\nDisallow: /b/\n",
			[]string{"/b/a", "/b/xb/a", "/xb/a", "/a/b/", "/b/", "/a/b/a", "/x/b/a"},
		},
	} {
		file := "User-agent: *\n" + c.file
		im, err := robotstxt.Import([]byte(file), names.Crawlers())
		if err != nil {
			t.Fatal(err)
		}
		loaded, ds := policyfile.Load("imported.yaml", policyfile.Print(im.Spec))
		if ds.HasErrors() {
			t.Fatal(ds)
		}
		rendered, _ := robotsserve.Render(loaded.Policy, "", robotsserve.Options{})
		written, served := crawlertest.ReadGoogle(file), crawlertest.ReadGoogle(string(rendered.Body))
		for _, path := range c.paths {
			want := written.Allowed("zetabot", path)
			d := loaded.Policy.Decide(policy.Query{Crawler: loaded.Policy.Crawler("zetabot"), Identity: policy.Verified, Path: path})
			if got := d.Verdict != policy.Disallowed; got != want {
				t.Errorf("%s: the policy says %t about %s\n%s", name, got, path, policyfile.Print(im.Spec))
			}
			if got := served.Allowed("zetabot", path); got != want {
				t.Errorf("%s: robots.txt says %t about %s\n%s", name, got, path, rendered.Body)
			}
		}
		// For a path that mixes encoded and plain octets, robots.txt may disallow more than the file, but not less.
		if mixed := "/a%3Abx?q=/b"; served.Allowed("zetabot", mixed) && !written.Allowed("zetabot", mixed) {
			t.Errorf("%s: robots.txt opens %s\n%s", name, mixed, rendered.Body)
		}
	}
}

// Besides many or long overlapping patterns, a group has the lines "Allow: *a" and "Disallow: /a$". In the policy, this
// Allow would win, because the normal form `/*a` is as long as `/a$`, which has no place for a "*". An import leaves
// out only this Allow. No pattern becomes too long for a policy file.
func TestImportLeavesOutOneAllow(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 300 {
		fmt.Fprintf(&many, "Disallow: *x%d*a\nAllow: *y%d*b\n", i, i)
	}
	long := strings.Repeat("b", 1500)
	for name, lines := range map[string]string{"many": many.String(), "long": "Disallow: *x" + long + "*\nAllow: *y" + long + "q\n"} {
		im, err := robotstxt.Import([]byte("User-agent: *\nAllow: *a\nDisallow: /a$\n"+lines), newNames(t).Crawlers())
		if err != nil {
			t.Fatal(err)
		}
		if _, ds := policyfile.Load("imported.yaml", policyfile.Print(im.Spec)); ds.HasErrors() {
			t.Errorf("%s: %v", name, ds)
		}
		if len(im.Notes) != 1 || im.Notes[0].Line != 2 || !strings.Contains(im.Notes[0].Message, `import and merge leave out "Allow: /*a"`) {
			t.Errorf("%s: %v", name, im.Notes)
		}
	}
}
