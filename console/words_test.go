// SPDX-License-Identifier: Apache-2.0

package console

import (
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
)

// The label of a spark (a small line chart) names the unit of time of its numbers. Each point of a chart is the sum of
// the same number of units, for example of two days.
func TestSpark(t *testing.T) {
	for _, c := range []struct {
		n      int
		unit   string
		label  string
		points int
	}{
		{3, "hour", "Requests per hour: 5, 5, 5", 3},
		{53, "week", "Requests per week over 53 weeks; the highest number is 5", 53},
		{91, "day", "Requests per day over 91 days; the highest number is 5", 45},
	} {
		counts := make([]int64, c.n)
		for i := range counts {
			counts[i] = 5
		}
		s := newSpark(counts, c.unit)
		points := append(strings.Fields(s.Points), strings.Fields(s.Part)[1])
		if s.Label != c.label || len(points) != c.points {
			t.Errorf("%d: %q, %d points", c.n, s.Label, len(points))
		}
		for _, p := range points {
			if !strings.HasSuffix(p, ",2") {
				t.Errorf("%d of the same: a point at %s", c.n, p)
			}
		}
	}
}

func TestWithin(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "hour", time.Hour: "hour", time.Hour + 1: "2 hours", 2*time.Hour + 59*time.Minute: "3 hours", 48 * time.Hour: "48 hours", 49 * time.Hour: "3 days",
	} {
		if got := within(d); got != want {
			t.Errorf("%s: %s", d, got)
		}
	}
}

// The Content-Type headers of the script and the stylesheet do not depend on the MIME types that the operating system
// assigns to file names.
func TestTypesOfStaticFiles(t *testing.T) {
	for end, want := range map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"} {
		before := mime.TypeByExtension(end)
		if err := mime.AddExtensionType(end, "text/plain"); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = mime.AddExtensionType(end, before) }()
		for _, encoding := range []string{"", "gzip"} {
			r := httptest.NewRequest(http.MethodGet, "/console"+end, nil)
			r.Header.Set("Accept-Encoding", encoding)
			w := httptest.NewRecorder()
			(&server{local: true, logger: caddy.Log()}).ServeHTTP(w, r)
			if got := w.Header().Get("Content-Type"); got != want || w.Code != http.StatusOK {
				t.Errorf("%s as %q: status %d, %s", end, encoding, w.Code, got)
			}
		}
	}
}

// If a policy has one file for each host, the Health page shows the number of files.
func TestHealthOfFilesOfHosts(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "www.example.com.yaml"), []byte(testPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(`{
	admin off
	persist_config off
	storage file_system `+filepath.Join(dir, "storage")+`
	robots_policy {
		console off
	}
}
http://127.0.0.1:0 {
	robots_policy `+dir+`/{host}.yaml
}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load(config, true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = caddy.Stop() })
	s := &server{local: true, logger: caddy.Log()}
	for _, c := range []struct {
		s          *server
		path, lead string
		row        string
	}{
		{s, "health", "0 policies are loaded. The policy file of a host is loaded at the first request for this host.", "<td>0 files</td>"},
		{s, "health?host=www.example.com", "1 policy is loaded.", "<td>1 file</td>"},
		{&server{hosts: []string{"www.example.com"}, logger: caddy.Log()}, "health", "1 policy is loaded.", `<code>` + shortVersion(sumOf(testPolicy)) + `</code>`},
	} {
		if body := get(t, c.s, c.path).Body.String(); !strings.Contains(body, "<p>"+c.lead) || !strings.Contains(body, c.row) {
			t.Errorf("%s, of %v: %.4000s", c.path, c.s.hosts, body[strings.Index(body, "<main"):])
		}
	}
}
