// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"golang.org/x/net/html"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
)

func TestMain(m *testing.M) { caddytest.Main(m, func(bool) {}) }

// served is a running site with its own port and access log.
type served struct {
	addr string // host:port
	log  string // file of the access log
}

// named returns the site's URL with the given host and the site's port. If host is "", the URL contains the site's
// address.
func (s served) named(host string) string {
	if host == "" {
		return "http://" + s.addr
	}
	return "http://" + host + s.addr[strings.LastIndexByte(s.addr, ':'):]
}

// setting is a policy with the options of the directive robots_policy.
type setting struct {
	policy string // text of the policy; if empty, the site has no policy
	block  string // lines of the directive's block
}

// serve runs the example site once for each setting. The function stop stops Caddy. The access logs are complete when
// stop has returned.
func serve(t *testing.T, settings []setting) (sites []served, stop func()) {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs("../../examples/site")
	if err != nil {
		t.Fatal(err)
	}
	var config strings.Builder
	config.WriteString("{\n\tadmin off\n\tpersist_config off\n\tauto_https off\n\tlog {\n\t\toutput discard\n\t}\n}\n")
	addrs := caddytest.FreeAddrs(t, len(settings))
	for i, set := range settings {
		s := served{addr: addrs[i], log: filepath.Join(dir, fmt.Sprintf("%d.log", i))}
		sites = append(sites, s)
		directive := ""
		if set.policy != "" {
			file := filepath.Join(dir, fmt.Sprintf("%d.yaml", i))
			if err := os.WriteFile(file, []byte(set.policy), 0o600); err != nil {
				t.Fatal(err)
			}
			directive = "robots_policy " + file + " {\n" + set.block + "\n}"
		}
		fmt.Fprintf(&config, "http://:%s {\n\tlog {\n\t\toutput file %s {\n\t\t\troll_disabled\n\t\t}\n\t\tformat json\n\t}\n\tencode\n\t%s\n\troot %s\n\ttry_files {path} {path}.html\n\tfile_server\n}\n",
			s.addr[strings.LastIndexByte(s.addr, ':')+1:], s.log, directive, root)
	}
	if err := caddytest.Load(config.String()); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return sites, stop
}

// entry is a line of an access log.
type entry struct {
	path   string // with the query
	status int
	began  float64 // in seconds
}

// read returns the entries of a site's access log in the order in which the requests arrived. The file lists them in
// the order in which they were answered.
func (s served) read(t *testing.T) (entries []entry) {
	t.Helper()
	f, err := os.Open(s.log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var line struct {
			Request struct {
				URI string
			}
			Status       int
			TS, Duration float64
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(line.Request.URI) // a client of a proxy sends the host in the target
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, entry{u.RequestURI(), line.Status, line.TS - line.Duration})
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.began, b.began) })
	return entries
}

// graph holds the links of every page of the site, read without a policy.
var graph struct {
	once  sync.Once
	links map[string][]string // links of every resource, keyed by its path with the query
}

// linksOf reads the site once for all tests. It fails the test if a link of the site does not work.
func linksOf(t *testing.T) map[string][]string {
	t.Helper()
	graph.once.Do(func() {
		sites, stop := serve(t, []setting{{}})
		defer stop()
		links := map[string][]string{}
		for queue := []string{"/", "/sitemap.xml", "/news-sitemap.xml"}; len(queue) > 0; queue = queue[1:] {
			path := queue[0]
			if _, seen := links[path]; seen {
				continue
			}
			links[path] = fetchLinks(t, "http://"+sites[0].addr, path)
			queue = append(queue, links[path]...)
		}
		graph.links = links
	})
	if graph.links == nil {
		t.Fatal("the site could not be read")
	}
	return graph.links
}

func fetchLinks(t *testing.T, base, path string) (links []string) {
	t.Helper()
	resp, err := http.Get(base + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Request.URL.RequestURI() != path {
		t.Fatalf("%s of the example site: %s from %s", path, resp.Status, resp.Request.URL)
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
		_, _ = io.Copy(io.Discard, resp.Body)
		return nil
	}
	for z := html.NewTokenizer(resp.Body); ; {
		switch z.Next() {
		case html.ErrorToken:
			return links
		case html.StartTagToken, html.SelfClosingTagToken:
			token := z.Token()
			for _, a := range token.Attr {
				if slices.Contains([]string{"a", "link", "img"}, token.Data) && (a.Key == "href" || a.Key == "src") {
					u, err := resp.Request.URL.Parse(a.Val)
					if err != nil {
						t.Fatal(err)
					}
					if u.Host == resp.Request.URL.Host {
						links = append(links, u.RequestURI())
					}
				}
			}
		}
	}
}
