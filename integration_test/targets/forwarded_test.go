// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// forwards lists handlers that forward requests to an upstream. Some of them change the target before they forward it.
// In this case, the field before is a function. It takes the target that the upstream received, and returns all targets
// that can have become this target.
var forwards = []struct {
	name, body string
	before     func(string) []string
}{
	{name: "reverse_proxy", body: "reverse_proxy LOGGER"},
	{name: "reverse_proxy with a rewrite", body: "reverse_proxy LOGGER {\nrewrite /base{uri}\n}", before: behind("/base")},
	{name: "php_fastcgi", body: "root * DIR\nphp_fastcgi FASTCGI"},
	{name: "fastcgi", body: "root * DIR\nreverse_proxy FASTCGI {\ntransport fastcgi {\nsplit .php\n}\n}"},
	{name: "forward_auth", body: "forward_auth LOGGER {\nuri /decide\n}\nreverse_proxy LOGGER"},
	{name: "rewrite of the URI", body: "rewrite * /base{uri}\nreverse_proxy LOGGER", before: behind("/base")},
	{name: "rewrite of the path", body: "rewrite * /base{path}\nreverse_proxy LOGGER", before: behind("/base")},
	{name: "rewrite of a capture", body: "@all path_regexp all ^(/[^?#]*)$\nrewrite @all {re.all.1}\nreverse_proxy LOGGER"},
	{name: "uri strip_prefix", body: "uri strip_prefix /open\nreverse_proxy LOGGER", before: func(s string) []string { return []string{s, "/open" + s, "/open" + s[1:]} }},
	{name: "uri strip_suffix", body: "uri strip_suffix .html\nreverse_proxy LOGGER", before: func(s string) []string {
		name, query, _ := strings.Cut(s, "?")
		return []string{s, strings.TrimSuffix(name+".html?"+query, "?"), name + ".html?" + query}
	}},
	{name: "uri replace", body: "uri replace /open/ /o/\nreverse_proxy LOGGER", before: func(s string) []string {
		if s == "." { // Caddy converts an empty path, which means the root, to "."
			s = "/"
		}
		return []string{s, strings.ReplaceAll(s, "/o/", "/open/")}
	}},
	{name: "uri path_regexp", body: "uri path_regexp /{2,} /\nreverse_proxy LOGGER"},
	{name: "handle_path", body: "handle_path /tree/* {\nreverse_proxy LOGGER\n}\nreverse_proxy LOGGER", before: func(s string) []string { return []string{s, "/tree" + s} }},
}

func behind(prefix string) func(string) []string {
	return func(s string) []string { return []string{strings.TrimPrefix(s, prefix)} }
}

// A server can interpret a target in several ways, which pathpattern.Readings lists. robots_policy decides about all
// readings of the target that the client sent. TestForwardedIsJudged checks the targets that Caddy then forwards to an
// upstream. Each reading of a forwarded target must also be a reading of the client's target. The only exceptions are
// targets with too many readings, because the strictest rules apply to them.
func TestForwardedIsJudged(t *testing.T) {
	dir := files(t, policyOf("crawl", "    enforce: block\n"))
	names := strings.NewReplacer("LOGGER", listen(t, logTargets), "FASTCGI", listen(t, logFastCGI), "DIR", filepath.Join(dir, "files"))
	var config strings.Builder
	config.WriteString("{\nadmin off\npersist_config off\nauto_https off\nservers {\nprotocols h1 h2 h2c h3\n}\nlog {\noutput discard\n}\n}\n")
	addrs, tls := caddytest.FreeAddrs(t, 2*len(forwards)), certificate(t)
	for i, s := range forwards {
		body := "route {\nrobots_policy " + filepath.Join(dir, "policy.yaml") + "\n" + names.Replace(s.body) + "\n}\n"
		fmt.Fprintf(&config, "http://:%s {\n%s}\nhttps://:%s {\n%s\n%s}\n", port(addrs[2*i]), body, port(addrs[2*i+1]), tls, body)
	}
	if err := caddytest.Load(config.String()); err != nil {
		t.Fatalf("%v\n%s", err, config.String())
	}
	t.Cleanup(func() { _ = caddy.Stop() })
	deadline := time.Now().Add(*limit)
	g := generator{r: rand.New(rand.NewPCG(*seed, 5))}
	wires := make([]*wire, len(forwards))
	for i := range wires {
		wires[i] = &wire{addr: addrs[2*i], quic: addrs[2*i+1]}
		defer wires[i].close()
	}
	tally, found := map[string]int{}, 0
	for n := 0; n < *count && time.Now().Before(deadline); n++ {
		i := n % len(forwards)
		q := g.request()
		q.agent = browser
		if q.method == http.MethodConnect {
			continue
		}
		resp, err := ask(wires[i], q)
		if err != nil {
			t.Fatalf("%s: %s: %v", forwards[i].name, q, err)
		}
		if resp.header.Get("Content-Type") != "text/x-log" {
			tally[fmt.Sprintf("%s: status %d by Caddy", forwards[i].name, resp.status)]++
			continue
		}
		tally[forwards[i].name+": forwarded"]++
		got := []string{resp.header.Get("X-Target")}
		if path := resp.header.Get("X-Path"); path != "" && path != "/index.php" {
			got = append(got, path)
		}
		for _, forwarded := range got {
			before := []string{forwarded}
			if f := forwards[i].before; f != nil {
				before = f(forwarded)
			}
			if !slices.ContainsFunc(before, func(s string) bool { return judged(q.target, s) }) {
				found++
				t.Errorf("%s: %s: %q is forwarded, but was not judged", forwards[i].name, q, forwarded)
			}
		}
		if found > 30 {
			t.FailNow()
		}
	}
	for _, f := range forwards {
		t.Logf("%-35s %6d forwarded", f.name, tally[f.name+": forwarded"])
		if tally[f.name+": forwarded"] < *count/len(forwards)/4 {
			t.Errorf("%s forwarded too few targets", f.name)
		}
	}
	t.Logf("seed %d, %d targets that were not judged; %v", *seed, found, tally)
}

// judged reports whether robots_policy has decided about a forwarded target when it decided about the client's target,
// which is in sent. This is true if each reading of forwarded is also a reading of sent. Letter case is ignored, and
// the query must be unchanged or missing.
func judged(sent, forwarded string) bool {
	if !strings.HasPrefix(sent, "/") {
		u, err := url.ParseRequestURI(sent)
		if err != nil {
			return false
		}
		sent = pathpattern.Target(u)
	}
	of, complete := pathpattern.Readings(nil, sent)
	if !complete {
		return true
	}
	all, _ := pathpattern.Readings(nil, forwarded)
	return !slices.ContainsFunc(all, func(s string) bool {
		return !slices.ContainsFunc(of, func(o string) bool {
			name, _, _ := strings.Cut(o, "?")
			return pathpattern.Fold(s) == pathpattern.Fold(o) || pathpattern.Fold(s) == pathpattern.Fold(name)
		})
	})
}
