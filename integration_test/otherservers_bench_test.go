// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/otherservers"
)

// BenchmarkNginx measures the processor time of one request for a page from nginx. It compares three cases: no policy,
// an nginx map of the tokens of 166 crawlers, and a Caddy that nginx asks for decisions. The client, the app and Caddy
// run in the benchmark's process, so compare only rows of the same run.
func BenchmarkNginx(b *testing.B) {
	all, err := crawlers.Default()
	if err != nil {
		b.Fatal(err)
	}
	var tokens []string
	for _, c := range all.All() {
		if !c.RobotsOnly && !strings.ContainsAny(c.Token, " ;\"$") && len(tokens) < 166 {
			tokens = append(tokens, c.Token)
		}
	}
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "page") }))
	defer app.Close()
	policy := filepath.Join(b.TempDir(), "policy.yaml")
	text := "version: 1\nrules:\n  - for: [\"" + strings.Join(tokens, "\", \"") + "\"]\n    disallow: {crawl: /}\n    intended: true\n    enforce: block\n"
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, kind := range []string{"bare", "map", "decide", "bare again"} {
		b.Run(kind, func(b *testing.B) {
			front, decider, _ := otherservers.Addrs(b)
			site := "server {\nlisten " + front + ";\nlocation / {\nproxy_pass http://app;\nproxy_set_header Host $host;\n}\n}\n"
			upstream := "upstream app {\nserver " + app.Listener.Addr().String() + ";\n}\n"
			switch kind {
			case "map":
				site = "map $http_user_agent $blocked {\ndefault 0;\n~*(" + strings.Join(tokens, "|") + ") 1;\n}\n" + strings.Replace(site, "location / {", "if ($blocked) { return 403; }\nlocation / {", 1)
				site = upstream + site
			case "decide":
				site = strings.NewReplacer("127.0.0.1:9180", decider, "127.0.0.1:8000", app.Listener.Addr().String(), "listen 80;", "listen "+front+";").Replace(otherservers.Recipe(b, "..", "nginx.conf"))
				if err := load(otherservers.Decider(decider, "nginx", policy, "")); err != nil {
					b.Fatal(err)
				}
				defer func() { _ = caddy.Stop() }()
			default:
				site = upstream + site
			}
			nginx := otherservers.Nginx(b, "..", site, front)
			request, _ := http.NewRequest(http.MethodGet, "http://"+front+"/page", nil)
			request.Header.Set("User-Agent", someBrowser)
			nginxBefore, ownBefore := timeOf(b, nginx.Pid), timeOf(b, os.Getpid())
			for b.Loop() {
				r, err := http.DefaultClient.Do(request)
				if err != nil || r.StatusCode != http.StatusOK {
					b.Fatal(r, err)
				}
				_ = r.Body.Close()
			}
			b.ReportMetric(float64(timeOf(b, nginx.Pid)-nginxBefore)/float64(b.N)/1e3, "nginx-µs/op")
			b.ReportMetric(float64(timeOf(b, os.Getpid())-ownBefore)/float64(b.N)/1e3, "rest-µs/op")
		})
	}
}

// timeOf returns the processor time of a process. Linux counts it in hundredths of a second.
func timeOf(b *testing.B, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Skip(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}
