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

// Import and Merge keep the lines that apply to the whole file, such as Clean-param. Merge also keeps lines of groups,
// such as Request-rate.
func TestOtherLinesAreKept(t *testing.T) {
	const file = "Clean-param: top\nUser-agent: *\nDisallow: /a/\nRequest-rate: 1/5\nclean-param: ref&sid /articles/ # sessions\nHost: www.example.com\n\n" +
		"User-agent: Bingbot\nDisallow: /b/\nClean-param: ref&sid /articles/\nVisit-time: 0400-0845\n"
	want := []string{"Clean-param: top", "Clean-param: ref&sid /articles/", "Host: www.example.com"}
	im, err := robotstxt.Import([]byte(file), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(im.Spec.Publish.Lines, want) {
		t.Errorf("imported %q, want %q", im.Spec.Publish.Lines, want)
	}
	p := policy.Compile(im.Spec)
	rendered, _ := robotsserve.Render(p, "", robotsserve.Options{})
	if end := "\n\n" + strings.Join(want, "\n") + "\n"; !strings.HasSuffix(string(rendered.Body), end) {
		t.Errorf("rendered\n%s", rendered.Body)
	}
	nothing := policy.Compile(&policy.Spec{Publish: policy.Publish{Lines: []string{"Clean-param: ours", want[1]}}})
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

// A text that starts with "*" after App-Directives may be the name of an application, because a Structured Field can
// start with "*". It is a path only if a space and a value follow it.
func TestApplicationsThatStartWithAnAsterisk(t *testing.T) {
	f := robotstxt.Parse([]byte("User-agent: *\nApp-Directives: *app;x=?0\nApp-Directives: *.pdf other;y\n")).Agent(policy.Crawler{Token: "SomeBot"})
	for path, want := range map[string]string{"/a": "*app;x=?0", "/a.pdf": "other;y"} {
		if got := f.Said(path).Directives; got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	im, err := robotstxt.Import([]byte("User-agent: *\nApp-Directives: *app;x=?0\n"), nil)
	if err != nil || len(im.Spec.Rules) != 1 || len(im.Spec.Rules[0].AppDirectives) != 1 || im.Spec.Rules[0].AppDirectives[0].App != "*app" {
		t.Errorf("%v %+v", err, im)
	}
}

// Each known kind of line is in the result of an import and of a merge, or a note names the line.
func TestEveryLineIsKeptOrTold(t *testing.T) {
	const kept, told = "kept", "told"
	for _, c := range []struct{ line, imported, merged string }{
		{"Allow: /z/a/", kept, kept},
		{"Crawl-delay: 7", kept, kept},
		{"Request-rate: 1/5", told, kept},
		{"Visit-time: 0400-0845", told, kept},
		{"Sitemap: https://www.example.com/sitemap.xml", kept, kept},
		{"Sitemap: /sitemap.xml", kept, kept},
		{"Sitemap: sitemap.xml", told, told},
		{"Host: www.example.com", kept, kept},
		{"Clean-param: ref /articles/", kept, kept},
		{"Content-Signal: ai-train=no", kept, kept},
		{"Content-Signal: ai-train=maybe", told, kept},
		{"Content-Usage: train-ai=n", kept, kept},
		{"Content-Usage: /a/ train-ai=n", kept, kept},
		{"App-Directives: play;offline=?0", kept, kept},
		{"License: https://www.example.com/license.xml", kept, told},
		{"Noindex: /a/", told, told},
		{"Nofollow: /a/", told, told},
		{"Noarchive: /a/", told, told},
		{"Cache-delay: 5", told, told},
		{"Indexpage: /x.html", told, told},
		{"Robot-version: 2.0", told, told},
		{"Comment: for robots", told, told},
		{"DisallowAITraining: /", told, told}, // Google's parser reads this as a Disallow line
		{"AI-Policy: no", told, told},
		{"TDM-Reservation: 1", told, told},
		{"ACAP-disallow-crawl: /a/", told, told}, // this line is not in a record
		{"Disallow: no-slash", told, told},
		{"Disallow: /two /paths", told, told},
		{"Disallow: https://www.example.com/a/", told, told},
		{"Disallows", told, told},
		{"Crawl-delay: soon", told, told},
		{"Something else entirely: 1", told, told},
	} {
		data := []byte("User-agent: *\nDisallow: /z/\n" + c.line + "\n")
		im, err := robotstxt.Import(data, nil)
		if err != nil {
			t.Fatal(err)
		}
		merged, _, notes := robotsserve.Merge(compile(t, &policy.Spec{}), "www.example.com", robotstxt.Parse(data), robotsserve.Options{Scheme: "https"})
		for way, had := range map[string]struct {
			body  []byte
			notes []robotstxt.Note
			want  string
		}{
			"import": {render(t, compile(t, im.Spec), "www.example.com").Body, im.Notes, c.imported},
			"merge":  {merged.Body, notes, c.merged},
		} {
			names := slices.ContainsFunc(had.notes, func(n robotstxt.Note) bool { return n.Line == 3 || strings.Contains(n.Message, "ACAP") })
			is := slices.Contains(strings.Split(string(had.body), "\n"), c.line) ||
				slices.Contains(strings.Split(string(had.body), "\n"), strings.Replace(c.line, ": /sitemap", ": https://www.example.com/sitemap", 1))
			if !is && !names || is != (had.want == kept) {
				t.Errorf("%s of %q: kept %t, told %t, want %s\n%s%+v", way, c.line, is, names, had.want, had.body, had.notes)
			}
		}
	}
}

// Import and merge treat the address of a sitemap in the same way.
func TestAddressesOfSitemaps(t *testing.T) {
	for line, want := range map[string]struct{ rendered, note string }{
		"Sitemap: https://www.example.com/s.xml":    {"https://www.example.com/s.xml", ""},
		"Sitemap: http://cdn.example/s.xml":         {"http://cdn.example/s.xml", ""},
		"Sitemap: /s.xml?a=b":                       {"https://www.example.com/s.xml?a=b", "is not a full URL"},
		"Sitemap: s.xml":                            {"https://www.example.com/s.xml", "is not a full URL"},
		"Sitemap: ../s.xml":                         {"https://www.example.com/s.xml", "is not a full URL"},
		"Sitemap: //cdn.example/s.xml":              {"https://cdn.example/s.xml", "is not a full URL"},
		"Sitemap https://www.example.com/s.xml":     {"https://www.example.com/s.xml", `is read as "sitemap: https://www.example.com/s.xml"`},
		"Site-map: https://www.example.com/s.xml":   {"https://www.example.com/s.xml", `is read as "sitemap: https://www.example.com/s.xml"`},
		"Sitemap: ftp://www.example.com/s.xml":      {"", "leave it out"},
		"Sitemap: https:///s.xml":                   {"", "leave it out"},
		"Sitemap: /a b.xml":                         {"", "leave it out"},
		"Sitemap: https://www.example.com/\x01.xml": {"", "leave it out"},
	} {
		data := []byte("User-agent: *\nDisallow: /a/\n" + line + "\n")
		im, err := robotstxt.Import(data, nil)
		if err != nil {
			t.Fatal(err)
		}
		o := robotsserve.Options{Scheme: "https"}
		imported, _ := robotsserve.Render(compile(t, im.Spec), "www.example.com", o)
		merged, _, mergeNotes := robotsserve.Merge(compile(t, &policy.Spec{}), "www.example.com", robotstxt.Parse(data), o)
		for way, got := range map[string]struct {
			body  []byte
			notes []robotstxt.Note
		}{"import": {imported.Body, im.Notes}, "merge": {merged.Body, mergeNotes}} {
			_, address, _ := strings.Cut(string(got.body), "Sitemap: ")
			if address = strings.TrimSpace(address); address != want.rendered {
				t.Errorf("%s of %q: %q, want %q", way, line, address, want.rendered)
			}
			told := ""
			for _, n := range got.notes {
				told += n.Message
			}
			if want.note == "" && told != "" || !strings.Contains(told, want.note) {
				t.Errorf("%s of %q: %q, want %q", way, line, told, want.note)
			}
		}
	}
}
