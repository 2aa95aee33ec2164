// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
)

// A site is a configuration to test. In its body, POLICY stands for the directive robots_policy, DIR for the directory
// of the site's files, and the name of a program, such as UPSTREAM, for the program's address.
type site struct {
	name, body string
	modes      []string // the ways in which the upstream reads targets; the field X-Mode selects one (see upstream)
	guard      string   // directive that is used instead of robots_policy
	noFields   bool     // the answers do not have the policy's headers and meta tags
}

var sites = []site{
	{name: "file_server", body: "root * DIR\nPOLICY\nfile_server"},
	{name: "path", body: "header Content-Type text/html\nPOLICY\nMATCHERS\nrespond " + quote(document("open"))},
	{name: "handle_path", body: "POLICY\nhandle_path /tree/* {\nroot * DIR/tree\nfile_server\n}\nhandle_path /admin/* {\nroot * DIR/admin\nfile_server\n}\nhandle {\nroot * DIR\nfile_server\n}"},
	{name: "try_files", body: "root * DIR\nPOLICY\ntry_files {path} {path}/ /index.html\nfile_server"},
	{name: "rewrite", body: "POLICY\nroute {\nuri strip_prefix /open\nuri path_regexp ^/zz(/|$) /\nroot * DIR\nfile_server\n}"},
	// If a rewrite uses a part of the path, Caddy decodes this part again. A decoded "?" or "#" then ends the path.
	// After a rewrite, file_server also serves "/x.html" if "/x.html/" is requested. The test does not cover targets of
	// these two kinds, so this site excludes them.
	{name: "rewrite of a capture", body: "POLICY\nroute {\n@all path_regexp all ^(/[^?#]*)$\nrewrite @all {re.all.1}\n@slash path */\nrespond @slash 404\nroot * DIR\nfile_server\n}"},
	{name: "reverse_proxy", body: "POLICY\nreverse_proxy UPSTREAM", modes: goModes},
	{name: "Node", body: "POLICY\nreverse_proxy NODE", modes: nodeModes},
	{name: "PHP", body: "root * PHPROOT\nPOLICY\nphp_fastcgi PHPCGI", modes: phpModes},
	{name: "nginx", body: "POLICY\nreverse_proxy NGINX"},
	{name: "nginx, then Node", body: "POLICY\nreverse_proxy NGINXCHAIN", modes: nodeModes},
	{name: "gunicorn", body: "POLICY\nreverse_proxy GUNICORN", modes: pythonModes},
	{name: "forward_auth", body: "POLICY\nreverse_proxy UPSTREAM", modes: goModes, guard: "forward_auth DECIDER {\nuri /decide\n}", noFields: true},
	{name: "forward_auth, then Node", body: "POLICY\nreverse_proxy NODE", modes: nodeModes, guard: "forward_auth DECIDER {\nuri /decide\n}", noFields: true},
}

func quote(s string) string { return "`" + strings.TrimSpace(s) + "`" }

// matchers returns directives that answer requests for disallowed places with a marked document. They use Caddy's path
// matcher. matchers leaves out the places with characters that are special in this matcher.
func matchers() string {
	var b strings.Builder
	for i, c := range closed {
		if strings.ContainsAny(c, "*{%") {
			continue
		}
		fmt.Fprintf(&b, "@m%d path %s\nrespond @m%d %s\n", i, quote(c+"*"), i, quote(document(mark)))
	}
	return b.String()
}

// policyOf returns a policy that disallows a usage, such as crawling or indexing, of the places in closed.
func policyOf(usage, enforce string) string {
	var b strings.Builder
	b.WriteString("version: 1\nrules:\n  - for: everyone\n    disallow:\n      " + usage + ":\n")
	// One of the sites removes "/open" and "/zz" from the beginning of paths. On this site, each place has three paths,
	// and the policy must disallow all of them.
	for _, prefix := range []string{"", "/open", "/zz"} {
		for i, c := range closed {
			fmt.Fprintf(&b, "        - %q\n", prefix+patternOf(i, c))
		}
		fmt.Fprintf(&b, "        - %q\n        - %q\n", prefix+closedFile+"$", prefix+closedFile+"?")
	}
	b.WriteString(enforce)
	for _, host := range []string{"shop.example.com", "*.wild.example.com"} {
		fmt.Fprintf(&b, "  - for: everyone\n    hosts: %q\n    intended: true\n    disallow:\n      %s: /\n%s", host, usage, enforce)
	}
	return b.String()
}

// fleet is a server that runs each of the sites twice: without a policy and with one.
type fleet struct {
	names         []string          // names of the sites
	modes         [][]string        // modes of the sites; see site
	bare, guarded []string          // addresses, in the order of names
	quic          map[string]string // addresses for HTTP/3, keyed by the addresses above; nil if the server has only HTTP/1.1
}

// files creates a directory with the files of a site, the policy in policy.yaml, and a list of the disallowed places in
// closed.json. It returns the directory.
func files(t *testing.T, policy string) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range closed {
		write("files"+c+"x.html", document(mark))
		write("files"+c+"sub/y.html", document(mark))
	}
	write("files"+closedFile, document(mark))
	for _, name := range []string{"index.html", "open/x.html", "tree/x.html"} {
		write("files/"+name, document("open"))
	}
	write("policy.yaml", policy)
	list, err := json.Marshal(append(slices.Clone(closed), closedFile))
	if err != nil {
		t.Fatal(err)
	}
	write("closed.json", string(list))
	return dir
}

// start runs the sites whose programs are installed.
func start(t *testing.T, policy string) *fleet {
	t.Helper()
	dir := files(t, policy)
	up := httptest.NewServer(http.HandlerFunc(upstream))
	t.Cleanup(up.Close)
	addresses := programs(t, dir)
	addresses["UPSTREAM"], addresses["DIR"], addresses["MATCHERS"] = up.Listener.Addr().String(), filepath.Join(dir, "files"), matchers()
	addresses["DECIDER"] = caddytest.FreeAddr(t)
	f := &fleet{quic: map[string]string{}}
	var config strings.Builder
	config.WriteString("{\n\tadmin off\n\tpersist_config off\n\tauto_https off\n\tservers {\n\t\tprotocols h1 h2 h2c h3\n" +
		"\t\ttrusted_proxies static 127.0.0.1/32\n\t\ttrusted_proxies_strict\n\t}\n\tlog {\n\t\toutput discard\n\t}\n}\n")
	fmt.Fprintf(&config, "http://:%s {\nrobots_policy_decide %s {\nstyle forward\n}\n}\n", port(addresses["DECIDER"]), filepath.Join(dir, "policy.yaml"))
	addrs, tls := caddytest.FreeAddrs(t, 4*len(sites)+4), certificate(t)
	for i := range 2*len(sites) + 2 {
		f.quic[addrs[i]] = addrs[2*len(sites)+2+i]
	}
	add := func(addr, host, body, guard string) {
		body = strings.ReplaceAll(body, "POLICY", guard)
		for _, name := range slices.Backward(slices.Sorted(maps.Keys(addresses))) { // longer names first, because some contain others
			body = strings.ReplaceAll(body, name, addresses[name])
		}
		fmt.Fprintf(&config, "http://%s:%s {\n%s\n}\nhttps://%s:%s {\n%s\n%s\n}\n", host, port(addr), body, host, port(f.quic[addr]), tls, body)
	}
	guard := "robots_policy " + filepath.Join(dir, "policy.yaml")
	for i, s := range sites {
		if needs := programIn(s.body); needs != "" && addresses[needs] == "" {
			t.Logf("%s is not compared: its program is not installed", s.name)
			continue
		}
		add(addrs[2*i], "", s.body, "")
		add(addrs[2*i+1], "", s.body, cmp.Or(s.guard, guard))
		f.add(s.name, s.modes, addrs[2*i], addrs[2*i+1])
	}
	// The last site tests Caddy's host matcher.
	last := addrs[2*len(sites):]
	for i, guard := range []string{"", guard} {
		for host, text := range map[string]string{"shop.example.com": mark, "*.wild.example.com": mark, "": "open"} {
			add(last[i], host, "header Content-Type text/html\nPOLICY\nrespond "+quote(document(text)), guard)
		}
	}
	f.add("host", nil, last[0], last[1])
	if err := caddytest.Load(config.String()); err != nil {
		t.Fatalf("%v\n%s", err, config.String())
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func (f *fleet) add(name string, modes []string, bare, guarded string) {
	f.names, f.modes = append(f.names, name), append(f.modes, modes)
	f.bare, f.guarded = append(f.bare, bare), append(f.guarded, guarded)
}

// without returns a copy of the fleet, without the sites that drop selects.
func (f *fleet) without(drop func(site) bool) *fleet {
	g := &fleet{quic: f.quic}
	for i, name := range f.names {
		if j := slices.IndexFunc(sites, func(s site) bool { return s.name == name }); j < 0 || !drop(sites[j]) {
			g.add(name, f.modes[i], f.bare[i], f.guarded[i])
		}
	}
	return g
}

func port(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}
