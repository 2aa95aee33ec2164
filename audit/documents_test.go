// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// The audit reports files that this project does not publish, such as llms.txt, if a site has them. It does not report
// them if the site answers every path with a page, or if robots.txt disallows them.
func TestOtherDocuments(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			w.Header().Set("Content-Type", "text/plain")
			fmt.Fprint(w, "User-agent: *\nDisallow: /agents.txt\n")
		case "/llms.txt", "/agents.txt":
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			fmt.Fprint(w, "# Example\n")
		default:
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<title>Example</title>")
		}
	}))
	defer s.Close()
	u, err := url.Parse(s.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	report, err := Run(t.Context(), u, Options{Wait: func(context.Context, time.Duration) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, f := range report.Findings {
		if f.Code == "other-document" {
			listed = append(listed, strings.TrimPrefix(f.URL, s.URL))
		}
	}
	if !slices.Equal(listed, []string{"/llms.txt"}) {
		t.Errorf("%q, of %+v", listed, report.Findings)
	}
}
