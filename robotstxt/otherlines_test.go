// SPDX-License-Identifier: Apache-2.0

package robotstxt_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// Lines of others for the whole file are kept by import and merge, and lines of a group by merge.
func TestOtherLinesAreKept(t *testing.T) {
	const file = "Clean-param: top\nUser-agent: *\nDisallow: /a/\nRequest-rate: 1/5\nclean-param: ref&sid /articles/ # sessions\nHost: www.example.com\n\n" +
		"User-agent: Bingbot\nDisallow: /b/\nClean-param: ref&sid /articles/\nVisit-time: 0400-0845\n"
	want := []string{"Clean-param: top", "Clean-param: ref&sid /articles/", "Host: www.example.com"}
	im, err := robotstxt.Import([]byte(file), robotstxt.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(im.Spec.Publish.Lines, want) {
		t.Errorf("imported %q, want %q", im.Spec.Publish.Lines, want)
	}
	p, err := policy.Compile(im.Spec)
	if err != nil {
		t.Fatal(err)
	}
	rendered, _ := robotsserve.Render(p, "", robotsserve.Options{})
	if end := "\n\n" + strings.Join(want, "\n") + "\n"; !strings.HasSuffix(string(rendered.Body), end) {
		t.Errorf("rendered\n%s", rendered.Body)
	}
	nothing, err := policy.Compile(&policy.Spec{Publish: policy.Publish{Lines: []string{"Clean-param: ours", want[1]}}})
	if err != nil {
		t.Fatal(err)
	}
	merged, _, notes := robotsserve.Merge(nothing, "", robotstxt.Parse([]byte(file)), robotsserve.Options{})
	if end := "\n\nClean-param: ours\n" + want[1] + "\n# from the robots.txt of the site\n" + want[0] + "\n" + want[2] + "\n"; !strings.HasSuffix(string(merged.Body), end) {
		t.Errorf("merged\n%s", merged.Body)
	}
	for _, lines := range []string{"Disallow: /a/\nRequest-rate: 1/5\n", "Disallow: /b/\nVisit-time: 0400-0845\n"} {
		if !strings.Contains(string(merged.Body), lines) {
			t.Errorf("no %q in\n%s", lines, merged.Body)
		}
	}
	if len(notes) > 0 {
		t.Errorf("%+v", notes)
	}
	if f := robotstxt.Parse([]byte("Host: x\n")); f.Empty() {
		t.Error("a file with such a line alone is not merged")
	}
}

// A Structured Field may start with "*": that is the name of an application, and a path only where something follows it.
func TestApplicationsThatStartWithAnAsterisk(t *testing.T) {
	f := robotstxt.Parse([]byte("User-agent: *\nApp-Directives: *app;x=?0\nApp-Directives: *.pdf other;y\n")).Agent(policy.Crawler{Token: "SomeBot"})
	for path, want := range map[string]string{"/a": "*app;x=?0", "/a.pdf": "other;y"} {
		if got := f.AppDirectives(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	im, err := robotstxt.Import([]byte("User-agent: *\nApp-Directives: *app;x=?0\n"), robotstxt.ImportOptions{})
	if err != nil || len(im.Spec.Rules) != 1 || len(im.Spec.Rules[0].AppDirectives) != 1 || im.Spec.Rules[0].AppDirectives[0].App != "*app" {
		t.Errorf("%v %+v", err, im)
	}
}
