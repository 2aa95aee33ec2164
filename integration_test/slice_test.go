// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"net/http"
	"strings"
	"testing"
)

const slicePolicy = `version: 1
rules:
  - for: everyone
    disallow:
      crawl: /admin/
      index: /drafts/
      train-ai: /
  - name: no AI training
    for: category:ai-training
    disallow:
      crawl: /
    enforce: block
  - for: LogBot
    disallow:
      crawl: /
    enforce: log
`

// lines converts the line ends of a robots.txt to LF. A file with ACAP records has CRLF.
func lines(robots string) string { return strings.ReplaceAll(robots, "\r\n", "\n") }

func TestEveryChannelOfOnePolicy(t *testing.T) {
	s := start(t, slicePolicy, htmlUpstream(page("")), "robots_policy POLICY\nreverse_proxy UPSTREAM")

	if r := s.get("/robots.txt"); r.StatusCode != 200 || r.Header.Get("Content-Type") != "text/plain; charset=utf-8" ||
		!strings.Contains(lines(r.body), "User-agent: GPTBot\n") || !strings.Contains(lines(r.body), "Disallow: /admin/\n") {
		t.Errorf("robots.txt: %s %v\n%s", r.Status, r.Header, r.body)
	}
	r := s.get("/drafts/x")
	for name, want := range map[string]string{
		"Robots-Tag": "*;noindex", "X-Robots-Tag": "noindex", "Content-Usage": "train-ai=n",
	} {
		if got := r.Header.Values(name); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if want := page(""); strings.Replace(r.body, `<meta name="robots" content="noindex">`, "", 1) != want || r.body == want {
		t.Errorf("page: %q", r.body)
	}
	r = s.get("/news/")
	if r.body != page("") || r.Header.Get("X-Robots-Tag") != "" || r.Header.Get("Content-Usage") != "train-ai=n" {
		t.Errorf("a page that may be indexed: %v %q", r.Header, r.body)
	}
}

func TestEdge(t *testing.T) {
	s := start(t, slicePolicy, htmlUpstream(page("")), "robots_policy POLICY\nreverse_proxy UPSTREAM")
	browser := "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0"
	for _, c := range []struct {
		name, path, agent string
		want              int
	}{
		{"a blocked crawler", "/", gptBot, 403},
		{"robots.txt stays allowed to it", "/robots.txt", gptBot, 200},
		{"also with a query", "/robots.txt?x", gptBot, 200},
		{"and what is well known", "/.well-known/security.txt", gptBot, 200},
		{"but not what is tidied out of there", "/.well-known/../x", gptBot, 403},
		{"log mode blocks nobody", "/", "LogBot/1.0", 200},
		{"a browser is never blocked", "/admin/", browser, 200},
		{"nor is a disallowed path with enforce off", "/admin/", "Googlebot/2.1", 200},
		{"nor one whose URL names a crawler", "/", "Mozilla/5.0 (+https://example.com/GPTBot)", 200},
	} {
		r := s.get(c.path, "User-Agent", c.agent)
		if r.StatusCode != c.want {
			t.Errorf("%s: %s, want %d", c.name, r.Status, c.want)
		}
		if c.want == 403 && (r.Header.Get("Cache-Control") != "no-store" || r.Header.Get("X-Robots-Tag") != "noindex" ||
			r.Header.Get("Robots-Tag") != "*;noindex" || r.Header.Get("Content-Usage") != "") {
			t.Errorf("%s: header %v", c.name, r.Header)
		}
	}
}

// The policy is applied to the path as the client sent it, and to each form that a server may make of it by
// normalizing.
func TestEdgePaths(t *testing.T) {
	s := start(t, `version: 1
rules:
  - for: Scraper
    disallow:
      crawl:
        - /admin/
        - /caf%C3%A9
        - "/*.pdf$"
    enforce: block
`, htmlUpstream(page("")), "robots_policy POLICY\nreverse_proxy UPSTREAM")
	for path, want := range map[string]int{
		"/": 200, "/admin/": 403, "/x/../admin/": 403, "//admin/": 403, "/%61dmin/": 403, "/./admin/": 403,
		"/x/%2e%2e/admin/": 403, "/admin%2Fx": 403, "/x/..%2Fadmin/": 403, "/.well-known/..%2fadmin/": 403, "/.well-known/..;/admin/": 403, "/admin;a=b/": 403,
		"/admin%5Cx": 403, "/admin;a=%2F..%2Fpublic/x": 403, "/admin;a=%5c..%5cpublic/x": 403, "/caf%c3%a9": 403, "/Admin/": 403, "/Administration/": 200, "/a.pdf": 403, "/a.pdf?x": 200, "/admin/../x": 403,
	} {
		if got := s.raw(path, "Scraper/1.0"); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	if got := s.raw("http://"+s.addr+"/admin/", "Scraper/1.0"); got != 403 {
		t.Errorf("absolute form: %d", got)
	}
	// A target such as x:admin/x has a scheme that no slash follows. Such a target is rejected, because Caddy would
	// forward the text after the colon as the path.
	for _, target := range []string{"x:admin/x", "x:http://www.example.com/admin/x", "x:public/x"} {
		if got := s.raw(target, "Scraper/1.0"); got != 400 {
			t.Errorf("%s: %d", target, got)
		}
	}
}

// Reserved characters, such as "@" and ":", may be escaped or not, in the policy and in the request. The host may be
// spelled in every way that Caddy's host matcher accepts.
func TestEdgeSpellings(t *testing.T) {
	s := start(t, `version: 1
rules:
  - for: everyone
    disallow:
      crawl: [/@private/, "/wiki/Special:", /p(1)/, "/a,b/", /a;v=1/, /%21%26%27%2B%5B%5D/, /lit%2Aeral/, "/foo?to=https%3A%2F%2Fx"]
    enforce: block
  - for: everyone
    hosts: shop.example.com
    disallow:
      crawl: /cart/
    enforce: block
  - for: everyone
    hosts: "*.wild.example.com"
    disallow:
      crawl: /
    enforce: block
    intended: true
`, nil, "robots_policy POLICY\nrespond ok")
	for target, want := range map[string]int{
		"/@private/x": 403, "/%40private/x": 403, "/wiki/Special%3AX": 403, "/p%281%29/x": 403, "/p(1%29/x": 403, "/a%2Cb/x": 403, "/a%2cb/x": 403,
		"/a;v=1/x": 403, "/a%3Bv=1/x": 403, "/a;v%3D1/x": 403, "/a;v=1%2Fx": 403, "/!&'+[]/": 403, "/%21&%27+%5b]/": 403,
		"/lit*eral/": 403, "/lit%2aeral/": 403, "/litxeral/": 200, "/foo?to=https://x": 403, "/foo?to=https%3a/%2fx": 403, "/foo%3Fto=https://x": 200,
		"/%2540private/x": 403, "/%252540private/x": 403, "/%2540privates/x": 200, "/@private": 200, "/p1/x": 200,
	} {
		if got := s.raw(target, "GPTBot/1.2"); got != want {
			t.Errorf("%s: %d, want %d", target, got, want)
		}
	}
	for host, want := range map[string]int{
		"shop.example.com": 403, "SHOP.example.com:80": 403, "[shop.example.com]": 403, "[shop.example.com]:80": 403, "shop.example.com.": 403, "shop.example.com:80:80": 403, "other.example.com": 200,
		"a.wild.example.com": 403, strings.Repeat("a", 250) + ".wild.example.com": 403, strings.Repeat("a.", 300) + "wild.example.com": 403, "wild.example.com": 200,
	} {
		_, in := s.dial("GET /cart/x HTTP/1.1\r\nHost: " + host + "\r\nUser-Agent: GPTBot/1.2\r\n\r\n")
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != want {
			t.Errorf("%.30s: %d, want %d", host, resp.StatusCode, want)
		}
	}
}

// A crawler whose User-Agent also names a harmless crawler, or has the token in quotation marks, is still blocked.
func TestEdgeSeveralTokens(t *testing.T) {
	s := start(t, "version: 1\nrules:\n  - for: GPTBot\n    disallow:\n      crawl: /premium/\n      index: /premium/\n    enforce: block\n", nil, "robots_policy POLICY\nrespond ok")
	for _, agent := range []string{
		"GPTBot/1.2 Googlebot-Image/1.0", "Googlebot-Image/1.0\r\nUser-Agent: GPTBot/1.2", "GPTBot/1.2\r\nUser-Agent: Googlebot-Image/1.0",
		`"GPTBot/1.2"`, "[GPTBot]", "GPTBot-1.2", "Mozilla/GPTBot", "Mozilla/5.0 (compatible:GPTBot)",
	} {
		if got := s.raw("/premium/x", agent); got != 403 {
			t.Errorf("%q: %d", agent, got)
		}
	}
}

// A CONNECT request can have a path after the host. It is treated like a request for this path, because Caddy's
// directive "respond" and many upstreams would answer with the content of this path.
func TestEdgeConnectWithAPath(t *testing.T) {
	s := start(t, "version: 1\nrules:\n  - for: GPTBot\n    disallow:\n      crawl: /premium/\n    enforce: block\n", nil, "robots_policy POLICY\nrespond /premium/* secret")
	for target, want := range map[string]int{"example.com/premium/x": 403, "example.com:80/premium/x": 403, "example.com/news/x": 200, "example.com:443": 200} {
		_, in := s.dial("CONNECT " + target + " HTTP/1.1\r\nHost: example.com\r\nUser-Agent: GPTBot/1.0\r\n\r\n")
		resp, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", target, resp.StatusCode, want)
		}
	}
}

// A block applies to every method.
func TestEdgeMethods(t *testing.T) {
	s := start(t, slicePolicy, nil, "robots_policy POLICY\nrespond \"{method} {path}\"")
	for _, method := range []string{"GET", "HEAD", "POST", "OPTIONS", "TRACE", "PROPFIND", "get", "CONNECT"} {
		for agent, want := range map[string]int{"GPTBot/1.0": 403, "Firefox/143.0": 200} {
			_, in := s.dial(method + " /premium/x HTTP/1.1\r\nHost: " + s.addr + "\r\nUser-Agent: " + agent + "\r\n\r\n")
			resp, err := http.ReadResponse(in, &http.Request{Method: method})
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != want {
				t.Errorf("%s for %s: %d, want %d", method, agent, resp.StatusCode, want)
			}
		}
	}
}

// The policy is applied to the path that the client requested, even if a directive has rewritten the path before
// robots_policy runs.
func TestOriginalRequest(t *testing.T) {
	s := start(t, slicePolicy, htmlUpstream(page("")), `
	handle_path /app/* {
		robots_policy POLICY
		reverse_proxy UPSTREAM
	}
	handle {
		rewrite * /index.html
		robots_policy POLICY
		reverse_proxy UPSTREAM
	}`)
	if r := s.get("/robots.txt"); !strings.Contains(r.body, "User-agent: *") {
		t.Errorf("robots.txt behind a rewrite: %s %q", r.Status, r.body)
	}
	if r := s.get("/drafts/x"); r.Header.Get("X-Robots-Tag") != "noindex" {
		t.Errorf("behind a rewrite: %v", r.Header)
	}
	if r := s.get("/app/drafts/x"); r.Header.Get("X-Robots-Tag") != "" {
		t.Errorf("/app/drafts/ is not /drafts/: %v", r.Header)
	}
}

func TestHandleErrors(t *testing.T) {
	s := start(t, slicePolicy, nil, `
	robots_policy POLICY {
		block_with error
	}
	error /broken 500
	error * 404
	handle_errors {
		robots_policy POLICY
		respond "{err.status_code} {err.message}"
	}`)
	if r := s.get("/drafts/x"); r.StatusCode != 404 || r.body != "404 " || r.Header.Get("X-Robots-Tag") != "noindex" {
		t.Errorf("not found: %s %v %q", r.Status, r.Header, r.body)
	}
	r := s.get("/drafts/x", "User-Agent", gptBot)
	if r.StatusCode != 403 || !strings.HasPrefix(r.body, "403 the site's policy does not allow") || len(r.Header.Values("X-Robots-Tag")) != 1 {
		t.Errorf("a block: %s %v %q", r.Status, r.Header, r.body)
	}
	if r := s.get("/robots.txt"); r.StatusCode != 200 {
		t.Errorf("robots.txt: %s", r.Status)
	}
}

func TestPlaceholders(t *testing.T) {
	s := start(t, slicePolicy, nil, `
	route {
		robots_policy POLICY
		respond "[{http.robots_policy.crawler}] [{http.robots_policy.decision}] [{http.robots_policy.rule}]"
	}`)
	if r := s.get("/", "User-Agent", "LogBot/1.0"); r.body != "[LogBot] [disallowed] [LogBot]" {
		t.Errorf("%q", r.body)
	}
	if r := s.get("/"); r.body != "[] [] []" {
		t.Errorf("nobody: %q", r.body)
	}
}

func TestConnectAndMethods(t *testing.T) {
	s := start(t, slicePolicy, htmlUpstream(page("")), "robots_policy POLICY\nreverse_proxy UPSTREAM")
	if r := s.do(http.MethodPost, "/robots.txt"); r.StatusCode != 405 || r.Header.Get("Allow") == "" {
		t.Errorf("POST /robots.txt: %s %v", r.Status, r.Header)
	}
	head, get := s.do(http.MethodHead, "/drafts/x"), s.get("/drafts/x")
	for _, name := range []string{"Robots-Tag", "X-Robots-Tag", "Content-Usage", "Etag", "Vary", "Content-Type"} {
		if a, b := head.Header.Values(name), get.Header.Values(name); strings.Join(a, "|") != strings.Join(b, "|") {
			t.Errorf("%s: HEAD %q, GET %q", name, a, b)
		}
	}
}

func TestHosts(t *testing.T) {
	s := start(t, `version: 1
rules:
  - for: everyone
    hosts: "*.staging.example.com"
    disallow:
      crawl: /
      index: /
    intended: true
  - for: Scraper
    hosts: www.example.com
    disallow:
      crawl: /
    enforce: block
`, htmlUpstream(page("")), "rewrite * /index.html\nrobots_policy POLICY\nreverse_proxy UPSTREAM")
	for host, want := range map[string]string{"www.example.com": "", "WWW.staging.example.com:8080": "noindex"} {
		if r := s.get("/x", "Host", host); r.Header.Get("X-Robots-Tag") != want {
			t.Errorf("%s: %v", host, r.Header)
		}
		r := s.get("/robots.txt", "Host", host)
		_, everyone, _ := strings.Cut(lines(r.body), "User-agent: *\n")
		if everyone, _, _ = strings.Cut(everyone, "\n\n"); strings.Contains(everyone+"\n", "Disallow: /\n") != (want != "") {
			t.Errorf("%s: %s", host, r.body)
		}
	}
	for host, want := range map[string]int{"www.example.com": 403, "example.com": 200} {
		if r := s.get("/x", "Host", host, "User-Agent", "Scraper/1.0"); r.StatusCode != want {
			t.Errorf("%s: %s, want %d", host, r.Status, want)
		}
	}
}
