// SPDX-License-Identifier: Apache-2.0

package robotsserve_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

// A Server has the robots.txt of every host, rendered and compressed when the policy
// loads. A crawler that has read it revalidates it by its entity tag.
func ExampleServer() {
	p := policy.Compile(&policy.Spec{Rules: []policy.Rule{{
		For:        []policy.Audience{policy.ParseAudience("everyone")},
		Statements: []policy.Statement{{Usage: policy.Crawl, Pattern: pathpattern.MustParse("/admin/")}},
	}}})
	file, _ := robotsserve.Render(p, "www.example.com", robotsserve.Options{})
	s := robotsserve.NewServer(p, robotsserve.ServeOptions{})
	for _, tag := range []string{"", file.ETag} {
		r := httptest.NewRequest(http.MethodGet, "https://www.example.com/robots.txt", nil)
		r.Header.Set("If-None-Match", tag)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("Content-Type"))
	}
	// Output:
	// 200 text/plain; charset=utf-8
	// 304
}
