// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/audit"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

const policyText = `version: 1
sitemaps: /sitemap.xml
usages:
  teaser: {usage: present-snippet, max-length: 200-chars}
rules:
  - for: everyone
    disallow:
      crawl: /admin/
      index: /drafts/
      train-ai: /
    allow:
      teaser: /
  - for: category:ai-training
    disallow:
      crawl: /
    enforce: block
  - for: Googlebot
    robots-tag:
      - {paths: /news/, rules: "max-image-preview:large"}
`

// pages are the pages of the server: three pages, two of them in the sitemap.
var pages = map[string]string{
	"index.html":       "<!doctype html><html><head><title>Home</title></head><body>Home</body></html>",
	"news/index.html":  "<!doctype html><html><head><title>News</title></head><body>News</body></html>",
	"shop/index.html":  "<!doctype html><html><head><title>Shop</title></head><body>Shop</body></html>",
	"other/robots.txt": "User-agent: *\nDisallow: /\n",
	"home.txt":         "<!doctype html><html><head><title>Home</title></head><body>Home</body></html>",
}

// server is a running Caddy with the policy.
type server struct {
	addr, dir string
	site      *site.Site
}

// startSite runs Caddy with the policy, and with additional lines in the block of robots_policy.
func startSite(t *testing.T, text, block string) *server {
	t.Helper()
	s := &server{addr: caddytest.FreeAddr(t), dir: t.TempDir()}
	for name, content := range pages {
		name = filepath.Join(s.dir, "root", name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.write(t, text)
	config := fmt.Sprintf(`{
	admin off
	persist_config off
	auto_https off
	log {
		output discard
	}
}
http://%s {
	robots_policy %s {
		%s
	}
	root %s
	header /news/* Cache-Control max-age=60
	header /sitemap.xml Content-Type application/xml
	respond /sitemap.xml <<XML
		<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://{http.request.host}:{http.request.port}/news/</loc></url><url><loc>http://{http.request.hostport}/shop/</loc></url><url><loc>http://{http.request.hostport}/news/</loc></url></urlset>
		XML
	file_server
}
`, s.addr, filepath.Join(s.dir, "policy.yaml"), block, filepath.Join(s.dir, "root"))
	config = strings.Replace(config, "http://"+s.addr, "http://:"+s.addr[strings.LastIndexByte(s.addr, ':')+1:], 1)
	if err := caddytest.Load(config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// write writes the policy file and loads it for the audit.
func (s *server) write(t *testing.T, text string) {
	t.Helper()
	name := filepath.Join(s.dir, "policy.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, ds := site.Load(name, []byte(text))
	if loaded == nil {
		t.Fatal(ds)
	}
	s.site = loaded
}

// run audits an address without waiting between requests.
func run(t *testing.T, addr string, s *site.Site, as ...string) *audit.Report {
	t.Helper()
	u := &url.URL{Scheme: "http", Host: addr, Path: "/"}
	report, err := audit.Run(t.Context(), u, audit.Options{Policy: s, As: as, Wait: func(context.Context, time.Duration) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// found lists the errors and warnings in the form "code crawler", each once.
func found(r *audit.Report) []string {
	var all []string
	for _, f := range r.Findings {
		if f.Severity == audit.Hint {
			continue
		}
		s := strings.TrimSpace(f.Code + " " + f.Crawler)
		if f.Severity == audit.Warning {
			s += "?"
		}
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	slices.Sort(all)
	return all
}

func text(t *testing.T, r *audit.Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// unverifiable returns a crawler that the policy allows, and whose operator does not publish anything that could verify
// it.
func unverifiable(t *testing.T) string {
	t.Helper()
	known, err := crawlers.Default()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range known.OfCategory(crawlers.CategorySearch) {
		if c.Verification.IsEmpty() && len(c.Patterns()) > 0 && c.Honors == crawlers.HonorsYes {
			return c.Token
		}
	}
	t.Fatal("the catalog has no such crawler")
	return ""
}

const passOn = "proxy_pass http://site; "

// TestCaches puts a proxy with a wrong configuration in front of a site. The audit must find exactly the mistake in
// this configuration.
func TestCaches(t *testing.T) {
	some := unverifiable(t)
	for name, tt := range map[string]struct {
		block     string // lines in the block of robots_policy
		locations string // locations of nginx
		as        []string
		want      []string
	}{
		"clean":                  {locations: "location / { " + passOn + "}", as: []string{"GPTBot", "Googlebot", some}},
		"cache that obeys":       {locations: "location / { proxy_cache c; " + passOn + "}", as: []string{"Googlebot", some}},
		"tailored, cache obeys":  {block: "headers robots-tag x-robots-tag content-usage tailored", locations: "location / { proxy_cache c; " + passOn + "}", as: []string{"Googlebot", some}},
		"robots.txt replaced":    {locations: `location / { ` + passOn + `} location = /robots.txt { default_type text/plain; return 200 "User-agent: *\nDisallow:\n"; }`, want: []string{"robots-rewritten"}},
		"robots.txt closed":      {locations: `location / { ` + passOn + `} location = /robots.txt { default_type text/plain; return 200 "User-agent: *\nDisallow: /\nUser-agent: caddy-robots-policy-audit\nDisallow: /admin/\nSitemap: http://$http_host/sitemap.xml\n"; }`, want: []string{"robots-rewritten", "sitemap-disallowed"}},
		"robots.txt loses lines": {locations: `location / { ` + passOn + `} location = /robots.txt { proxy_set_header Host $http_host; proxy_set_header Accept-Encoding ""; sub_filter_once off; sub_filter_types *; sub_filter "Content-Usage:" "# Content-Usage:"; ` + passOn + `}`, want: []string{"robots-rewritten"}},
		"robots.txt by browser":  {locations: `location / { ` + passOn + `} location = /robots.txt { default_type text/html; add_header X-Robots-Tag noarchive; proxy_hide_header Content-Type; ` + passOn + `}`, want: []string{"robots-content-type"}},
		"robots.txt is a page":   {locations: `location / { ` + passOn + `} location = /robots.txt { default_type text/html; return 200 "<!doctype html><title>Shop</title>"; }`, want: []string{"robots-html"}},
		"robots.txt redirects":   {locations: `location / { ` + passOn + `} location = /robots.txt { return 301 /other/robots.txt; }`, as: nil, want: []string{"robots-redirect", "robots-rewritten"}},
		"robots.txt loops":       {locations: `location / { ` + passOn + `} location = /robots.txt { return 302 /robots.txt; }`, want: []string{"robots-redirect"}},
		"robots.txt missing":     {locations: `location / { ` + passOn + `} location = /robots.txt { return 404; }`, want: []string{"robots-missing"}},
		"robots.txt forbidden":   {locations: `location / { ` + passOn + `} location = /robots.txt { return 403; }`, want: []string{"robots-forbidden"}},
		"robots.txt 503":         {locations: `location / { ` + passOn + `} location = /robots.txt { return 503; }`, want: []string{"robots-unreachable"}},
		"headers dropped":        {locations: `location / { proxy_hide_header X-Robots-Tag; proxy_hide_header Robots-Tag; proxy_hide_header Content-Usage; ` + passOn + `}`, want: []string{"headers-lost", "usage-lost"}},
		"one header dropped":     {locations: `location / { proxy_hide_header Content-Usage; ` + passOn + `}`, want: []string{"usage-lost"}},
		"header for one crawler": {locations: `location / { proxy_hide_header X-Robots-Tag; add_header X-Robots-Tag max-snippet:200; ` + passOn + `}`, as: []string{"Googlebot"}, want: []string{"headers-lost Googlebot"}},
		"meta dropped":           {locations: `location / { sub_filter 'name="robots"' 'name="r"'; ` + passOn + `}`, want: []string{"meta-lost"}},
		"noindex added":          {locations: `location / { add_header X-Robots-Tag noindex; ` + passOn + `}`, want: []string{"home-noindex", "sitemap-noindex"}},
		"usage contradicted":     {locations: `location / { proxy_hide_header Content-Usage; add_header Content-Usage train-ai=y; ` + passOn + `}`, want: []string{"usage-disagrees", "usage-lost"}},
		"page for everyone":      {locations: `location / { proxy_cache c; proxy_cache_valid 200 1h; proxy_ignore_headers Cache-Control Vary Expires; add_header X-Cache $upstream_cache_status; ` + passOn + `}`, as: []string{"GPTBot"}, want: []string{"cached-for-another GPTBot"}},
		"tailored, Vary ignored": {block: "headers robots-tag x-robots-tag content-usage tailored", locations: `location / { proxy_cache c; proxy_cache_valid 200 1h; proxy_ignore_headers Cache-Control Vary Expires; proxy_hide_header Vary; ` + passOn + `}`, as: []string{"Googlebot"}, want: []string{"cached-for-another Googlebot"}},
		"tailored, Vary dropped": {block: "headers robots-tag x-robots-tag content-usage tailored", locations: `location / { proxy_hide_header Vary; ` + passOn + `}`, as: []string{"Googlebot"}, want: []string{"vary-missing Googlebot"}},
		"block is cached":        {locations: `location / { proxy_cache c; proxy_cache_valid 403 1h; proxy_cache_valid 200 0; proxy_ignore_headers Cache-Control Vary Expires; proxy_no_cache $no; set $no 0; ` + passOn + `}`, as: []string{"GPTBot"}, want: []string{"cached-for-another GPTBot"}},
		"Googlebot blocked":      {locations: `location / { if ($http_user_agent ~ Googlebot) { return 403; } ` + passOn + `}`, as: []string{"Googlebot"}, want: []string{"blocked Googlebot?"}},
		"crawler blocked":        {locations: `location / { if ($http_user_agent ~ "` + some + `") { return 403; } ` + passOn + `}`, as: []string{some}, want: []string{"blocked " + some}},
		"all bots blocked":       {locations: `location / { if ($http_user_agent ~ caddy-robots-policy-audit/1.0.*http) { return 403; } ` + passOn + `} location = /robots.txt { ` + passOn + `} location = /sitemap.xml { ` + passOn + `}`, want: []string{"audit-blocked?"}},
		"robots.txt by crawler":  {locations: `location / { ` + passOn + `} location = /robots.txt { default_type text/plain; if ($http_user_agent ~ Googlebot) { return 200 "User-agent: *\nDisallow:\n"; } ` + passOn + `}`, as: []string{"Googlebot"}, want: []string{"robots-varies Googlebot"}},
		"nothing is blocked":     {block: "enforce off", locations: "location / { " + passOn + "}", as: []string{"GPTBot"}, want: []string{"not-blocked GPTBot"}},
		"page of the sitemap":    {locations: "location / { " + passOn + "} location /shop/ { return 404; }", want: []string{"sitemap-error"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := startSite(t, policyText, tt.block)
			addr := startNginx(t, s.addr, tt.locations)
			r := run(t, addr, s.site, tt.as...)
			t.Log("\n" + text(t, r))
			if got := found(r); !slices.Equal(got, tt.want) {
				t.Errorf("found %q, want %q", got, tt.want)
			}
		})
	}
}

// TestStale changes the policy behind a cache that keeps its stored responses. The audit must report the old robots.txt
// and the old page.
func TestStale(t *testing.T) {
	s := startSite(t, policyText, "reload 50ms")
	addr := startNginx(t, s.addr, `location / { proxy_cache c; proxy_cache_valid 200 1h; proxy_ignore_headers Cache-Control Vary Expires; `+passOn+`}`)
	if got := found(run(t, addr, s.site)); got != nil {
		t.Fatalf("before: %q", got)
	}
	before := body(t, "http://"+s.addr+"/robots.txt")
	s.write(t, strings.ReplaceAll(strings.ReplaceAll(policyText, "/admin/", "/secret/"), "200-chars", "100-chars"))
	for range 500 {
		if body(t, "http://"+s.addr+"/robots.txt") != before {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	r := run(t, addr, s.site)
	if got, want := found(r), []string{"page-stale", "robots-stale"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q\n%s", got, want, text(t, r))
	}
}

func body(t *testing.T, u string) string {
	t.Helper()
	resp, err := http.Get(u)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
