// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// awkwardPages are pages whose head is not where it seems to be. The path of each page is its number. Each page is
// served twice, with and without robots_policy.
var awkwardPages = []struct{ name, kind, text string }{
	{"nothing but text", "text/html", "hello"},
	{"no tags for head and body", "text/html", "<!DOCTYPE html><title>x</title><meta name=robots content=noarchive><p>hello"},
	{"text before the head", "text/html", "<!DOCTYPE html>oops<html><head><meta name='robots' content='index'></head><body>x</body></html>"},
	{"comments first", "text/html", "<!-- <head> --><!DOCTYPE html><!--x--><html lang=en><!-- <meta name=robots content=none> --><head data-x='>'><title>x</title></head><body>x"},
	{"quoted in a script", "text/html", "<!DOCTYPE html><html><head><script>var s = '<meta name=\"robots\" content=\"none\"><head></head>';</script><style>/* <head> */</style></head><body>x"},
	{"quoted in a title", "text/html", "<!DOCTYPE html><html><head><title><meta name=robots content=none></head></title><meta name=robots content='max-snippet:20'></head><body>x"},
	{"noscript and template", "text/html", "<!DOCTYPE html><html><head><noscript><meta name=robots content=none></noscript><template><meta name=robots content=nofollow></template><meta name=googlebot content=noarchive></head><body>x"},
	{"capitals, entities, no quotes", "text/html", "<!DOCTYPE HTML><HTML><HEAD><META CONTENT=&#110;oarchive NAME=ROBOTS><META NAME=\"robots\" CONTENT=\"max&#45;snippet:&#x31;0\">\r\n</HEAD><BODY>x"},
	{"after the head's end", "text/html", "<!DOCTYPE html><html><head><title>x</title></head>\n<meta name=robots content=noimageindex>\n<body>x"},
	{"in the body", "text/html", "<!DOCTYPE html><html><head></head><body><meta name=robots content=none><p>x"},
	{"the body begins by itself", "text/html", "<!DOCTYPE html><html><head><title>x</title><div></div><meta name=robots content=none></head><body>x"},
	{"no doctype", "text/html", "<html><head><base href=/><link rel=icon href=data:,></head><body><table><tr><td>x</table>"},
	{"charset late", "text/html", "<!DOCTYPE html><html><head><!--" + strings.Repeat("x", 930) + "--><meta charset=utf-8><title>ä</title></head><body>é"},
	{"byte order mark", "text/html", "\ufeff<!DOCTYPE html><html><head><title>ü</title></head><body>x"},
	{"windows-1252", "text/html; charset=windows-1252", "<!DOCTYPE html><html><head><title>\xfc</title><meta name=robots content=nofollow></head><body>x"},
	{"frameset", "text/html", "<!DOCTYPE html><html><head><title>x</title></head><frameset></frameset></html>"},
	{"slashes", "text/html", "<!DOCTYPE html><html/><head/><meta/name=robots/content=nofollow/><title>x</title><body/>x"},
	{"head twice", "text/html", "<!DOCTYPE html><html><head></head><head><meta name=robots content=none></head><body>x"},
	{"XHTML", "application/xhtml+xml", "<?xml version='1.0'?><!DOCTYPE html><html xmlns='http://www.w3.org/1999/xhtml'><head><title>x</title><meta name='robots' content='noarchive'/></head><body><p>x</p></body></html>"},
	{"unfinished", "text/html", "<!DOCTYPE html><html><head><title>x</title><meta name=robots content=no"},
}

// collector is a page that loads every awkward page, with and without robots_policy, in the browser. It writes down how
// the browser has parsed each page.
const collector = `<!DOCTYPE html><title>collector</title><pre id=out></pre><script>
const read = async (prefix, i) => {
	const f = document.createElement("iframe");
	const loaded = new Promise(r => f.onload = r);
	f.src = prefix + i;
	document.body.append(f);
	await loaded;
	const d = f.contentDocument, robots = [];
	for (const m of d.head.querySelectorAll(":scope > meta[name]")) {
		if (["robots", "amazonbot", "googlebot", "examplebot"].includes(m.getAttribute("name").toLowerCase())) {
			robots.push([m.getAttribute("name"), m.getAttribute("content")]);
			m.remove();
		}
	}
	d.normalize();
	return {robots: robots, rest: d.documentElement.outerHTML, charset: d.characterSet, mode: d.compatMode, title: d.title};
};
(async () => {
	const all = [];
	for (let i = 0; i < COUNT; i++) all.push({without: await read("/without/", i), with: await read("/drafts/", i)});
	for (const f of document.querySelectorAll("iframe")) f.remove();
	document.getElementById("out").textContent = JSON.stringify(all);
})();
</script>`

type browserTree struct {
	Robots                     [][2]string
	Rest, Charset, Mode, Title string
}

func (b browserTree) says() reading {
	r := reading{}
	for _, m := range b.Robots {
		audience := strings.ToLower(m[0])
		if audience == "robots" {
			audience = "*"
		}
		r.add(audience, rulesOf(m[1]))
	}
	return r
}

// In the head of each awkward page, a real browser finds the rules of the original page and of the policy. Apart from
// these rules, the browser sees the same page as without robots_policy.
func TestBrowserReadsHeads(t *testing.T) { bothDoors(t, testBrowserReadsHeads) }

func testBrowserReadsHeads(t *testing.T, d door) {
	testkit.Slow(t)
	if testing.Short() {
		t.Skip("starts a browser")
	}
	if d == netHTTPDoor && !testkit.Long() {
		d.skip(t, "starts the browser once more; ROBOTSPOLICY_LONG does")
	}
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("SKIPPED: no real browser reads the pages, since there is no chromium on this machine; `apt-get install chromium` gives one")
	}
	s := d.start(t, conformancePolicy, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/collector" {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, strings.Replace(collector, "COUNT", fmt.Sprint(len(awkwardPages)), 1))
			return
		}
		for i, p := range awkwardPages {
			if strings.HasSuffix(r.URL.Path, fmt.Sprintf("/%d", i)) {
				w.Header().Set("Content-Type", p.kind)
				_, _ = io.WriteString(w, p.text)
				return
			}
		}
		http.NotFound(w, r)
	}), "robots_policy POLICY\nreverse_proxy UPSTREAM")
	for i, p := range awkwardPages {
		if r := s.get(fmt.Sprintf("/without/%d", i)); r.body != p.text {
			t.Errorf("%s: without the policy: %q", p.name, r.body)
		}
	}
	trees := s.browse(t, browser)
	for i, tree := range trees {
		name, was, is := awkwardPages[i].name, tree["without"], tree["with"]
		policy := conformanceSays["/drafts/x"].rules
		if name == "nothing but text" {
			policy = reading{} // fragments that may be part of a page are not changed
		}
		if d := is.says().difference(was.says().and(policy)); d != "" {
			t.Errorf("%s: %s\nwithout %q\nwith    %q", name, d, was.Robots, is.Robots)
		}
		was.Robots, is.Robots = nil, nil
		if was.Rest != is.Rest || was.Charset != is.Charset || was.Mode != is.Mode || was.Title != is.Title {
			t.Errorf("%s: the page differs:\nwithout %q\nwith    %q", name, was, is)
		}
	}
}

var collected = regexp.MustCompile(`(?s)<pre id="out">(.*?)</pre>`)

// browse runs the browser on the collector.
func (s *server) browse(t *testing.T, browser string) (trees []map[string]browserTree) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
		"--disable-quic", "--no-first-run", "--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-default-apps", "--no-proxy-server",
		"--user-data-dir="+t.TempDir(), "--virtual-time-budget=20000", "--dump-dom", "http://"+s.addr+"/collector")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%.2000s", err, stderr.String())
	}
	found := collected.FindSubmatch(out)
	if found == nil || json.Unmarshal([]byte(html.UnescapeString(string(found[1]))), &trees) != nil || len(trees) != len(awkwardPages) {
		t.Fatalf("the browser wrote %.2000s\n%.2000s", out, stderr.String())
	}
	return trees
}
