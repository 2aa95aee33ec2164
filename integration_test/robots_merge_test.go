// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/andybalholm/brotli"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

const mergePolicy = `version: 1
rules:
  - name: ours
    for: everyone
    disallow:
      crawl: /admin/
  - for: GPTBot
    disallow:
      crawl: /
`

const upstreamRobots = "# of the site\nUser-agent: *\nDisallow: /cart/\nAllow: /admin/\n\nUser-agent: SiteBot\nDisallow: /nothing-for-site-bot/\n\nSitemap: https://www.example.com/site.xml\n"

// everybodys returns the lines of the group of "*", up to the next empty line.
func everybodys(body string) string {
	_, g, _ := strings.Cut(lines(body), "User-agent: *\n")
	g, _, _ = strings.Cut(g, "\n\n")
	var rest []string
	for line := range strings.Lines(g) {
		if !strings.HasPrefix(line, "User-agent:") {
			rest = append(rest, strings.TrimSpace(line))
		}
	}
	return strings.Join(rest, " | ")
}

const (
	oursAlone = "Disallow: /admin/"
	bothStar  = "Disallow: /admin/ | # from the robots.txt of the site | Disallow: /cart/"
)

func TestRobotsMerge(t *testing.T) {
	text := func(body string, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			_, _ = io.WriteString(w, body)
		}
	}
	packed := func(coding string, w func(io.Writer) io.WriteCloser) http.HandlerFunc {
		var b bytes.Buffer
		z := w(&b)
		_, _ = io.WriteString(z, upstreamRobots)
		_ = z.Close()
		return text(b.String(), "Content-Encoding", coding)
	}
	for _, c := range []struct {
		name     string
		upstream http.HandlerFunc
		want     string
		maxAge   string
	}{
		{"text", text(upstreamRobots), bothStar, "max-age=3600"},
		{"no label", text(upstreamRobots, "Content-Type", ""), bothStar, "max-age=3600"},
		{"labeled as a page", text(upstreamRobots, "Content-Type", "text/html"), bothStar, "max-age=3600"},
		{"gzip though nobody asked", packed("gzip", func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }), bothStar, "max-age=3600"},
		{"Brotli though nobody asked", packed("br", func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) }), bothStar, "max-age=3600"},
		{"a coding that nobody knows", text(upstreamRobots, "Content-Encoding", "rot13"), oursAlone, "max-age=60"},
		{"broken gzip", text("\x1f\x8b"+upstreamRobots, "Content-Encoding", "gzip"), oursAlone, "max-age=60"},
		{"gzip of too much", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write(make([]byte, 50<<20))
			_ = z.Close()
		}, oursAlone, "max-age=60"},
		{"404", http.NotFound, oursAlone, "max-age=3600"},
		{"403", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(403) }, oursAlone, "max-age=3600"},
		{"204", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) }, oursAlone, "max-age=3600"},
		{"500", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(500)
			_, _ = io.WriteString(w, upstreamRobots)
		}, oursAlone, "max-age=60"},
		{"429", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(429) }, oursAlone, "max-age=60"},
		{"a page", text("<!DOCTYPE html>\n<title>User-agent: *</title>\nDisallow: /cart/\n", "Content-Type", "text/html"), oursAlone, "max-age=3600"},
		{"a page labeled as text", text("\n <html>\nUser-agent: *\nDisallow: /cart/\n"), oursAlone, "max-age=3600"},
		{"JSON", text(`{"error": "no such page"}`, "Content-Type", "application/json"), oursAlone, "max-age=3600"},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://www.example.com/robots.txt", http.StatusMovedPermanently)
		}, oursAlone, "max-age=60"},
		{"10 MB", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, upstreamRobots)
			for range 10 << 10 {
				if _, err := w.Write(bytes.Repeat([]byte("# longer\n"), 114)); err != nil {
					return
				}
			}
		}, bothStar, "max-age=3600"},
		{"an answer that breaks off", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, upstreamRobots)
			panic(http.ErrAbortHandler)
		}, oursAlone, "max-age=60"},
		{"an upstream that hangs up", func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }, oursAlone, "max-age=60"},
		{"nothing", text(""), oursAlone, "max-age=3600"},
		{"rubbish", text("\x00\xff\xfe User-agent: *\rDisallow: \x01\nallow"), oursAlone, "max-age=3600"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, mergePolicy, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Set-Cookie", "visit=1")
				w.Header().Set("X-Upstream", "yes")
				c.upstream(w, r)
			}), "robots_policy POLICY {\nrobots_txt merge\n}\nreverse_proxy UPSTREAM")
			for range 2 {
				r := s.get("/robots.txt")
				if r.StatusCode != 200 || r.Header.Get("Content-Type") != "text/plain; charset=utf-8" || r.Header.Get("Set-Cookie")+r.Header.Get("X-Upstream") != "" {
					t.Errorf("%s %v", r.Status, r.Header)
				}
				if got := everybodys(r.body); got != c.want {
					t.Errorf("got %s\nwant %s\nof\n%s", got, c.want, r.body)
				}
				if got := r.Header.Get("Cache-Control"); got != c.maxAge {
					t.Errorf("Cache-Control: %s, want %s", got, c.maxAge)
				}
				if got := strings.Contains(r.body, "User-agent: SiteBot\n"); got != (c.want == bothStar) {
					t.Errorf("SiteBot is named: %v", got)
				}
			}
		})
	}
}

// A robots.txt with merged lines is served like any other: with an entity tag, HEAD, ranges, conditional requests and
// gzip.
func TestRobotsMergeIsServedLikeAnyOther(t *testing.T) {
	s := start(t, mergePolicy, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.Header.Get("Range")+r.Header.Get("If-None-Match")+r.Header.Get("Cookie") != "" || r.URL.RawQuery != "" || r.Header.Get("Accept-Encoding") != "identity" {
			t.Errorf("the upstream received %s %s %v", r.Method, r.URL, r.Header)
		}
		_, _ = io.WriteString(w, upstreamRobots)
	}), "robots_policy POLICY {\nrobots_txt merge\nrobots_txt_max_age 10m\n}\nreverse_proxy UPSTREAM")
	if r := s.do(http.MethodPost, "/robots.txt"); r.StatusCode != 405 || r.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %s %v", r.Status, r.Header)
	}
	head := s.do(http.MethodHead, "/robots.txt?x=1", "Cookie", "a=b", "If-None-Match", `"x"`, "Range", "bytes=0-3")
	full := s.get("/robots.txt")
	if head.body != "" || head.Header.Get("Etag") != full.Header.Get("Etag") || everybodys(full.body) != bothStar {
		t.Errorf("HEAD %v, GET %v %s", head.Header, full.Header, full.body)
	}
	if !strings.Contains(full.body, "# from the robots.txt of the site\nSitemap: https://www.example.com/site.xml\n") {
		t.Error(full.body)
	}
	tag := full.Header.Get("Etag")
	if r := s.get("/robots.txt", "If-None-Match", tag); r.StatusCode != 304 || r.Header.Get("Cache-Control") != "max-age=600" {
		t.Errorf("If-None-Match: %s %v", r.Status, r.Header)
	}
	if r := s.get("/robots.txt", "Range", "bytes=2-9"); r.StatusCode != 206 || r.body != full.body[2:10] {
		t.Errorf("Range: %s %q", r.Status, r.body)
	}
	z := s.get("/robots.txt", "Accept-Encoding", "gzip")
	zr, err := gzip.NewReader(strings.NewReader(z.body))
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := io.ReadAll(zr); err != nil || string(plain) != full.body || z.Header.Get("Etag") == tag {
		t.Errorf("gzip: %v %v", err, z.Header)
	}
}

// If the upstream is down, robots.txt is served nevertheless.
func TestRobotsMergeWithoutAnUpstream(t *testing.T) {
	down := freeAddr(t)
	s := start(t, mergePolicy, nil, "robots_policy POLICY {\nrobots_txt merge\n}\nreverse_proxy "+down+"\nhandle_errors {\nrespond \"broken\" 500\n}")
	if r := s.get("/robots.txt"); r.StatusCode != 200 || everybodys(r.body) != oursAlone || r.Header.Get("Cache-Control") != "max-age=60" {
		t.Errorf("down: %s %v %s", r.Status, r.Header, r.body)
	}
}

// If the upstream never answers, a request for robots.txt waits only for the configured time.
func TestRobotsMergeWithAnUpstreamThatHangs(t *testing.T) {
	testkit.Slow(t)
	var asked atomic.Int32
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	s := start(t, mergePolicy, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, "User-agent: *\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}), "robots_policy POLICY {\nrobots_txt merge\n}\nreverse_proxy UPSTREAM")
	s.do(http.MethodPost, "/robots.txt") // Caddy has started, and the upstream has not received a request yet
	var wg sync.WaitGroup
	began := time.Now()
	for range 20 {
		wg.Go(func() {
			if r := s.get("/robots.txt", "Host", "www.example.com"); r.StatusCode != 200 || everybodys(r.body) != oursAlone {
				t.Errorf("hanging: %s %s", r.Status, r.body)
			}
		})
	}
	wg.Wait()
	if n := asked.Load(); n > 2 {
		t.Errorf("the upstream was asked %d times", n)
	}
	t.Logf("answered after %v", time.Since(began).Round(time.Second/10))
	s.get("/robots.txt", "Host", "www.example.com") // answered at once, because the upstream is not asked again so soon
	if n := asked.Load(); n > 2 {
		t.Errorf("the upstream was asked %d times", n)
	}
}

// Many simultaneous requests for robots.txt cause only one request to the upstream.
func TestRobotsMergeAsksOnce(t *testing.T) {
	var asked atomic.Int32
	s := start(t, mergePolicy, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Host == "www.example.com" {
			time.Sleep(50 * time.Millisecond)
		}
		_, _ = io.WriteString(w, strings.ReplaceAll(upstreamRobots, "www.example.com", r.Host))
	}), "robots_policy POLICY {\nrobots_txt merge\n}\nreverse_proxy UPSTREAM")
	s.do(http.MethodPost, "/robots.txt")
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if r := s.get("/robots.txt", "Host", "www.example.com"); everybodys(r.body) != bothStar {
				t.Errorf("%s %s", r.Status, r.body)
			}
		})
	}
	wg.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("100 requests asked the upstream %d times", n)
	}
	for i := range 300 {
		host := fmt.Sprintf("h%d.example.com", i)
		if r := s.get("/robots.txt", "Host", host); !strings.Contains(r.body, "Sitemap: https://"+host+"/site.xml\n") {
			t.Fatalf("%s: %s", host, r.body)
		}
	}
}

// To get the site's own robots.txt, the server runs the handlers that come after robots_policy in the route of the
// client's request. This works at every place of the Caddyfile where the directive robots_policy can be.
func TestRobotsMergeOnRoutes(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"files", "robots_policy POLICY {\nrobots_txt merge\n}\nroot DIR/site\nfile_server", bothStar},
		{"a root that is set by a variable", "vars where DIR/site\nrobots_policy POLICY {\nrobots_txt merge\n}\nfile_server {\nroot {vars.where}\n}", bothStar},
		{"no such file", "robots_policy POLICY {\nrobots_txt merge\n}\nroot DIR/empty\nfile_server", oursAlone},
		{"try_files with the file", "robots_policy POLICY {\nrobots_txt merge\n}\nroot DIR/site\ntry_files {path} /index.html\nfile_server", bothStar},
		{"try_files without", "robots_policy POLICY {\nrobots_txt merge\n}\nroot DIR/app\ntry_files {path} /index.html\nfile_server", oursAlone},
		{"try_files behind", "route {\nrobots_policy POLICY {\nrobots_txt merge\n}\nroot DIR/site\ntry_files {path} /index.html\nfile_server\n}", bothStar},
		{"handle_path", "root DIR/site\nhandle_path /robots.txt {\nrobots_policy POLICY {\nrobots_txt merge\n}\nrewrite /robots.txt\nfile_server\n}", bothStar},
		{"rewritten behind", "root DIR\nroute {\nrobots_policy POLICY {\nrobots_txt merge\n}\nrewrite /site{path}\nfile_server\n}", bothStar},
		{"rewritten with a query", "rewrite /robots.txt /app?file=robots\nrobots_policy POLICY {\nrobots_txt merge\n}\n@it query file=robots\nrespond @it \"User-agent: *\nDisallow: /cart/\n\"", bothStar},
		{"an error", "error 502\nhandle_errors {\nrobots_policy POLICY {\nrobots_txt merge\n}\nrespond \"User-agent: *\nDisallow: /cart/\n\" 200\n}", oursAlone},
		{"respond", "robots_policy POLICY {\nrobots_txt merge\n}\nheader Set-Cookie a=b\nrespond \"User-agent: *\nDisallow: /cart/\n\"", bothStar},
		{"abort", "robots_policy POLICY {\nrobots_txt merge\n}\nabort", oursAlone},
		{"templates and encode", "robots_policy POLICY {\nrobots_txt merge\n}\nencode\nroot DIR/site\ntemplates {\nmime text/plain\n}\nfile_server", bothStar},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, mergePolicy, nil, c.body)
			for name, text := range map[string]string{"site/robots.txt": upstreamRobots, "site/index.html": page(""), "app/index.html": page(""), "empty/x": ""} {
				if err := os.MkdirAll(filepath.Join(s.dir, filepath.Dir(name)), 0o700); err != nil {
					t.Fatal(err)
				}
				s.write(name, text)
			}
			if r := s.get("/robots.txt"); r.StatusCode != 200 || everybodys(r.body) != c.want {
				t.Errorf("%s %v\n%s\nwant %s", r.Status, r.Header, r.body, c.want)
			}
			if r := s.get("/%72obots.txt?x=y"); r.StatusCode != 200 || everybodys(r.body) != c.want {
				t.Errorf("with another spelling of the path: %s\n%s", r.Status, r.body)
			}
		})
	}
}

// The admin API shows the robots.txt that the server serves. Before the upstream's file is known, the API shows the
// policy's robots.txt, with a comment which says that lines of the upstream will be added.
func TestRobotsMergeInTheAdminAPI(t *testing.T) {
	s := startReloading(t, "", mergePolicy, nil, "robots_policy DIR/policy.yaml {\nrobots_txt merge\n}\nrespond \"User-agent: *\nDisallow: /cart/\n\"")
	const path = "/robots_policy/robots.txt?host=127.0.0.1"
	r := s.ask(http.MethodGet, path, nil)
	first, _, _ := strings.Cut(r.body, "\n\n")
	if !strings.HasPrefix(first, "# robots_txt merge: ") || everybodys(r.body) != oursAlone || r.Header.Get("Etag") != "" {
		t.Errorf("%v %s", r.Header, r.body)
	}
	served := s.get("/robots.txt")
	if everybodys(served.body) != bothStar {
		t.Error(served.body)
	}
	if r := s.ask(http.MethodGet, path, nil); r.body != served.body || r.Header.Get("Etag") != served.Header.Get("Etag") {
		t.Errorf("%v %s\nserved %v %s", r.Header, r.body, served.Header, served.body)
	}
	const unknown = "is not known yet"
	for question, want := range map[string]string{
		"agent=Googlebot&url=http://x/cart/":         unknown,
		"agent=Googlebot&url=http://127.0.0.1/cart/": "the site's own robots.txt:2",
		"agent=GPTBot&url=http://x/cart/":            `"may_crawl": false`, // whatever rules the site's file has
	} {
		r := s.ask(http.MethodGet, "/robots_policy/explain?"+question, nil)
		if !strings.Contains(r.body, want) || strings.Contains(r.body, unknown) != (want == unknown) {
			t.Errorf("%s: %s", question, r.body)
		}
	}
}
