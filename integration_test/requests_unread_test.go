// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// The recorder notes that a crawler has read robots.txt only if the crawler sends a GET request and gets the file. A
// HEAD or POST request for robots.txt does not count. If the server closes a connection without an answer, the recorded
// request has no status.
func TestVisitsThatReadNothing(t *testing.T) {
	s, _ := startRecordingWith(t, strings.Replace(visitsPolicy, "{mode: block}", "{mode: block, action: close}", 1), http.NotFoundHandler())
	ask := func(method, path string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.addr+path, nil)
		if err != nil {
			t.Fatal(method, path, err)
		}
		r.Header.Set("User-Agent", gptBot)
		if res, err := http.DefaultTransport.RoundTrip(r); err == nil {
			_ = res.Body.Close()
		} else if method+path != "POST/x" {
			t.Fatal(method, path, err)
		}
	}
	ask("HEAD", "/robots.txt")
	ask("POST", "/robots.txt")
	ask("POST", "/x")
	ask("GET", "/robots.txt")
	ask("POST", "/x")
	if err := caddy.Stop(); err != nil {
		t.Error(err)
	}
	lines, err := os.ReadFile(filepath.Join(s.dir, "crawlers.log"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(lines)) {
		var v struct {
			Path, Robots string
			Status       int
			RobotsTxt    bool `json:"robots_txt"`
			Violation    bool
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %d reads=%t knows=%t violation=%t", v.Path, v.Status, v.RobotsTxt, v.Robots != "", v.Violation))
	}
	want := []string{
		"/robots.txt 200 reads=false knows=false violation=false",
		"/robots.txt 405 reads=false knows=false violation=false",
		"/x 0 reads=false knows=false violation=false",
		"/robots.txt 200 reads=true knows=true violation=false",
		"/x 0 reads=false knows=true violation=true",
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("the log has\n%s\nwant\n%s", g, w)
	}
}
