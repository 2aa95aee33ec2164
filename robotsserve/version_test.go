// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"net/http/httptest"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// A crawler that accepts gzip gets the same version as other crawlers.
func TestVersion(t *testing.T) {
	s := NewServer(compile(t, manyStatements(100)), ServeOptions{})
	versions := map[string]string{}
	for _, coding := range []string{"", "gzip"} {
		r := httptest.NewRequest("GET", "http://www.example.com/robots.txt", nil)
		r.Header.Set("Accept-Encoding", coding)
		w := httptest.NewRecorder()
		s.Serve(w, r, Answer{})
		if got := w.Header().Get("Content-Encoding"); got != coding {
			t.Fatalf("coding %q, want %q", got, coding)
		}
		versions[coding] = Version(w.Header().Get("Etag"))
	}
	f, _ := Render(s.p, "www.example.com", Options{})
	if want := Version(f.ETag); len(want) != 16 || versions[""] != want || versions["gzip"] != want {
		t.Errorf("%q, want %q", versions, want)
	}
	for etag, want := range map[string]string{`W/"abc-br"`: "abc", `"abc-zstd"`: "abc", `"abc"`: "abc", `"WabcW"`: "WabcW", `W/"abcW-gz"`: "abcW", "": ""} {
		if got := Version(etag); got != want {
			t.Errorf("%s: %q, want %q", etag, got, want)
		}
	}
}

// If any part of a file differs, its entity tag differs, too.
func TestETags(t *testing.T) {
	training := []policy.Rule{{For: []policy.Audience{{}}, Statements: []policy.Statement{{Usage: policy.TrainAI, Pattern: pathpattern.All}}}}
	noIndex := []policy.Rule{{For: []policy.Audience{{}}, Statements: []policy.Statement{{Usage: policy.Index, Pattern: pathpattern.MustParse("/a")}}}}
	noFollow := []policy.Rule{{For: []policy.Audience{{}}, Statements: []policy.Statement{{Usage: policy.Follow, Pattern: pathpattern.MustParse("/a")}}}}
	seen := map[string]string{}
	for _, c := range []struct {
		name, host string
		spec       policy.Spec
	}{
		{"a policy", "a.example", policy.Spec{Rules: training}},
		{"other groups", "a.example", *manyStatements(1)},
		{"a license of its host", "a.example", policy.Spec{Rules: training, Publish: policy.Publish{RSL: "/l.xml"}}},
		{"that of another host", "b.example", policy.Spec{Rules: training, Publish: policy.Publish{RSL: "/l.xml"}}},
		{"a sitemap of its host", "a.example", policy.Spec{Rules: training, Sitemaps: []policy.Sitemaps{{Addresses: []string{"/s.xml"}}}}},
		{"that of another host, too", "b.example", policy.Spec{Rules: training, Sitemaps: []policy.Sitemaps{{Addresses: []string{"/s.xml"}}}}},
		{"ACAP records", "a.example", policy.Spec{Rules: noIndex, Publish: policy.Publish{ACAP: policy.Auto}}},
		{"other records", "a.example", policy.Spec{Rules: noFollow, Publish: policy.Publish{ACAP: policy.Auto}}},
	} {
		f, _ := Render(compile(t, &c.spec), c.host, Options{})
		if seen[f.ETag] != "" {
			t.Errorf("%s has the same tag as %s:\n%s", c.name, seen[f.ETag], f.Body)
		}
		seen[f.ETag] = c.name
	}
}
