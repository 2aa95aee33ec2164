// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/site"
)

func TestSearchGuard(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	load := func(text string) *site.Site {
		s, ds := site.Load("new.yaml", []byte("version: 1\nenforcement: {mode: block}\nrules:\n"+text))
		if s == nil {
			t.Fatal(ds.Text())
		}
		return s
	}
	const (
		googlebot = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
		seznam    = "SeznamHomepageCrawler/v1.0.6" // the operator does not publish any data to verify this crawler
		full      = 7*24*time.Hour - time.Hour     // the log goes back far enough
	)
	log := func(name, agent, address string, from, at time.Duration) string {
		name = filepath.Join(dir, name)
		line := func(age time.Duration, path, agent string) string {
			return fmt.Sprintf("%s - - [%s] \"GET %s HTTP/1.1\" 200 2326 \"-\" %q\n", address, time.Now().Add(-age).Format("02/Jan/2006:15:04:05 -0700"), path, agent)
		}
		text := strings.Repeat(line(at, "/news/a", agent), 3)
		for age := from; age >= at; age -= 24 * time.Hour {
			text = line(age, "/", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0") + text
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	ahead := log("ahead.log", googlebot, "66.249.66.1", 0, -48*time.Hour)
	verified := log("verified.log", googlebot, "66.249.66.1", full, time.Hour)
	gap := log("gap.log", googlebot, "66.249.66.1", full, full)
	add := func(name, to, text string) string {
		old, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if to = filepath.Join(dir, to); os.WriteFile(to, append(old, text...), 0o600) != nil {
			t.Fatal(err)
		}
		return to
	}
	at := time.Now().Add(-time.Hour).Format("02/Jan/2006:15:04:05 -0700")
	gap = add(gap, "gap.log", `192.0.2.1 - - [`+at+`] "GET / HTTP/1.1" 200 1 "-" "curl/8"`+"\n")
	nameless := strings.NewReplacer(` "-" "`+googlebot+`"`, "", ` "-" "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"`, "")
	text, err := os.ReadFile(verified)
	if err != nil {
		t.Fatal(err)
	}
	common := filepath.Join(dir, "common.log")
	if err := os.WriteFile(common, []byte(nameless.Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for range 2 { // the second copy is not complete in short.log.gz
		_, _ = z.Write(text)
		_ = z.Flush()
	}
	_ = z.Close()
	short := filepath.Join(dir, "short.log.gz")
	if err := os.WriteFile(short, packed.Bytes()[:packed.Len()-30], 0o600); err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(text), " \"-\"")
	cut := add(verified, "cut.log", line+"\n")
	unreadable := add(verified, "unreadable.log", "66.249.66.1 - - [27/Nov\n")
	claimed := log("unverified.log", googlebot, "203.0.113.9", full, time.Hour)
	both := add(claimed, "both.log", `66.249.66.1 - - [`+at+`] "GET /robots.txt HTTP/1.1" 200 1 "-" "`+googlebot+"\"\n")
	unverifiable := log("unverifiable.log", seznam, "203.0.113.9", full, time.Hour)
	proxied := log("proxied.log", googlebot, "10.0.0.5", full, time.Hour)
	elsewhere := filepath.Join(dir, "elsewhere.log")
	if err := os.WriteFile(elsewhere, append([]byte("b.example:443 "), bytes.ReplaceAll(bytes.TrimSpace(text), []byte("\n"), []byte("\nb.example:443 "))...), 0o600); err != nil {
		t.Fatal(err)
	}
	ended := log("ended.log", googlebot, "66.249.66.1", full, 4*24*time.Hour)
	young := log("young.log", googlebot, "66.249.66.1", 2*time.Hour, time.Hour)
	old := log("old.log", googlebot, "66.249.66.1", 9*24*time.Hour, 8*24*time.Hour)
	const (
		in  = "  - for: everyone\n    allow: {crawl: /}\n"
		ask = "  - for: everyone\n    disallow: {crawl: /}\n    enforce: off\n"
		out = "  - for: Googlebot\n    disallow: {crawl: [/news/]}\n"

		bogus = "  - for: everyone\n    allow: {crawl: /}\n    identity: verified\ncrawlers:\n  Googlebot: {reverse-dns: [.nobody.example]}\n"
	)
	for _, c := range []struct {
		name, traffic string
		most          int64
		old, new      string
		want          string
	}{
		{"nothing published before", "", 0, "", out, ""},
		{"by comparison", "", 0, in, out, "not published. To publish the policy anyway, add --yes; to judge the losses from real traffic, add --if-replay"},
		{"by comparison, intended", "", 0, in, out + "    intended: true\n", ""},
		{"by comparison, nothing lost", "", 0, out, in, ""},
		{"by comparison, an engine's own rule", "", 0, in, in + "    robots-tag: [noindex]\n", "not published"},
		{"by comparison, of those that nobody can verify", "", 0, in, in + "  - for: everyone\n    disallow: {crawl: /news/}\n  - for: category:search\n    identity: verified\n    allow: {crawl: /news/}\n", "not published"},
		{"by comparison, expired", "", 0, in, in + "  - for: everyone\n    allow: {index: [{paths: /, time-limit: until-2020-01-31}]}\n", "not published"},
		{"by comparison, no text", "", 0, in, in + "  - for: everyone\n    allow: {present-snippet: [{paths: /, max-length: 0-chars}]}\n", "not published"},
		{"by comparison, called another kind", "", 0, in, "  - for: category:seo\n    disallow: {crawl: /news/}\ncrawlers:\n  Googlebot: {category: seo}\n", "not published"},
		{"by comparison, all but the home page", "", 0, in, "  - for: everyone\n    disallow: {crawl: /}\n    enforce: off\n  - for: everyone\n    allow: {crawl: \"/$\"}\n", "not published"},
		{"by comparison, an index after search", "", 0, "  - for: everyone\n    disallow: {search: /}\n", "  - for: everyone\n    disallow: {index: /}\n", "not published"},
		{"an index after search", verified, 0, "  - for: everyone\n    disallow: {search: /}\n", "  - for: everyone\n    disallow: {index: /}\n", "Googlebot: 3 requests for 1 path kept out of the index"},
		{"by comparison, a user-agent that catches an engine", "", 0, in, "  - for: Scraper\n    disallow: {crawl: /news/}\ncrawlers:\n  Scraper: {user-agent: Googlebot/2.1}\n", "not published"},
		{"a user-agent that catches an engine", verified, 0, in, "  - for: Scraper\n    disallow: {crawl: /news/}\ncrawlers:\n  Scraper: {user-agent: Googlebot/2.1}\n", "for 1 path blocked"},
		{"by comparison, some day", "", 0, in, in + "  - for: everyone\n    allow: {index: [/, {paths: /news/, time-limit: until-2999-01-31}]}\n", "not published"},
		{"by comparison, unavailable some day", "", 0, in, in + "  - for: everyone\n    robots-tag: ['unavailable_after: 2999-01-31T00:00:00Z']\n", "not published"},
		{"some day", verified, 0, in, in + "  - for: everyone\n    allow: {index: [{paths: /, time-limit: until-2999-01-31}]}\n", "Googlebot: 3 requests for 1 path kept out of the index"},
		{"some day, as before", verified, 0, in + "  - for: everyone\n    allow: {index: [{paths: /, time-limit: until-2999-01-30}]}\n", in + "  - for: everyone\n    allow: {index: [{paths: /, time-limit: until-2999-01-31}]}\n", ""},
		{"no search engine came", claimed, 0, in, out, ""},
		{"a log without User-Agents", common, 3, in, out, "; or accept the gap no-user-agents"},
		{"a compressed log that ends early", short, 9, in, out, "; or accept the gap incomplete-archive"},
		{"a compressed log that ends early, and a policy that changes nothing", short, 0, in, in, ""},
		{"a line that is cut", cut, 0, in, out, "Search engines lose 3 requests"},
		{"a line that cannot be read, and a loss within the limit", unreadable, 9, in, out, "; or accept the gap unreadable-lines"},
		{"a part of the log is missing", gap, 3, in, out, "; or accept the gap no-traffic"},
		{"by comparison, verified otherwise", "", 0, in, bogus, "not published"},
		{"verified otherwise", verified, 0, in, bogus, "; or accept the gap verified-otherwise"},
		{"options of traffic without any", "", 3, in, in, "--max-search-loss needs --if-replay"},
		{"hosts, and a log without them", verified, 0, in, "  - for: everyone\n    hosts: www.example.com\n    disallow: {crawl: /news/}\n", "3 requests of Googlebot without a host in the log; name the host with --host; or accept the gap unlogged-hosts"},
		{"a log of another host", elsewhere, 0, in, in + "  - for: everyone\n    hosts: www.example.com\n    disallow: {crawl: /news/}\n", "the log has no request for www.example.com, so it does not show how many requests search engines may lose on this host; add the log of this host; or accept the gap unlogged-hosts"},
		{"a log of the host", elsewhere, 0, in, in + "  - for: everyone\n    hosts: b.example\n    disallow: {crawl: /shop/}\n", ""},
		{"behind a proxy", proxied, 0, in, out, "Googlebot: 3 requests for 1 path blocked"},
		{"a clock that is ahead", ahead, 3, in, out, "; or accept the gap future-traffic"},
		{"the log ends early", ended, 3, in, out, "; or accept the gap traffic-ends"},
		{"blocked", verified, 0, in, out, `Googlebot: 3 requests for 1 path blocked by line 4 (Googlebot); if this is intended, write "intended: [blocks-search]" into the rule`},
		{"more than may be lost", verified, 2, in, out, ", and the limit is 2"},
		{"disallowed", verified, 0, in, ask, `Googlebot: 3 requests for 1 path disallowed by line 4 (everyone); if this is intended, write "intended: [disallows-search]"`},
		{"not to be indexed", verified, 0, in, "  - for: everyone\n    disallow: {index: /news/}\n", `Googlebot: 3 requests for 1 path kept out of the index by line 4 (everyone); if this is intended, write "intended: [site-not-indexed]"`},
		{"noindex of an engine", verified, 0, in, "  - for: Googlebot\n    robots-tag: [{rules: noindex, paths: /news/}]\n", `Googlebot: 3 requests for 1 path kept out of the index`},
		{"without a snippet", verified, 0, in, "  - for: everyone\n    disallow: {present-snippet: /}\n", `Googlebot: 3 requests for 1 path shown with a shorter snippet or no snippet`},
		{"where nobody was", verified, 0, in, "  - for: everyone\n    disallow: {crawl: /shop/}\n", ""},
		{"as many as may be lost", verified, 3, in, out, ""},
		{"blocked before too", verified, 0, out, out, ""},
		{"intended", verified, 0, in, out + "    intended: true\n", ""},
		{"this guard intended", verified, 0, in, out + "    intended: [blocks-search]\n", ""},
		{"another guard intended", verified, 0, in, out + "    intended: [site-not-indexed]\n", "not published"},
		{"not verified, though it could have been", both, 0, in, out, ""},
		{"nothing can verify it", unverifiable, 0, in, "  - for: SeznamHomepageCrawler\n    disallow: {crawl: /news/}\n", "SeznamHomepageCrawler: 3 requests for 1 path blocked"},
		{"the log begins late", young, 3, in, out, ""},
		{"too long ago", old, 0, in, out, "Search engines lose something"},
		{"no such file", filepath.Join(dir, "none"), 0, in, out, "--if-replay: "},
		{"a directory without a build that reads it", dir, 0, in, out, "this build of Caddy cannot read an activity database"},
		{"negative", verified, -1, "", out, "invalid --max-search-loss -1: must be 0 or more"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var before *site.Site
			if c.old != "" {
				before = load(c.old)
			}
			cmd, out := &cobra.Command{}, &strings.Builder{}
			cmd.SetOut(out)
			cmd.SetIn(strings.NewReader(""))
			p := publication{site: load(c.new), key: "site.yaml", guard: searchGuard{traffic: c.traffic, most: c.most, old: before}}
			err := p.check(t.Context(), cmd)
			if err != nil {
				fmt.Fprint(out, err)
			}
			if (err == nil) != (c.want == "") || !strings.Contains(out.String(), c.want) {
				t.Errorf("%v, want %q\n%s", err, c.want, out)
			}
		})
	}
}

// If the server merges the site's own robots.txt, the search losses depend on that file. The flag --merge of the
// command publish names a copy of that file. Without the flag, the command does not know the file, and does not publish
// unless the user accepts this.
func TestPublishOverTheSitesFile(t *testing.T) {
	dir, write := newFolder(t)
	allow := write("allow.yaml", "version: 1\nrules:\n  - for: category:search\n    allow: {crawl: /}\n  - for: GPTBot\n    disallow: {crawl: /}\n")
	silent := write("silent.yaml", "version: 1\nrules:\n  - for: GPTBot\n    disallow: {crawl: /}\n")
	closed, open := write("closed.txt", "User-agent: *\nDisallow: /\n"), write("open.txt", "User-agent: *\nDisallow:\n")
	config := func(merge string) string {
		return write("caddy"+merge+".json", `{"storage": {"module": "file_system", "root": "`+dir+`/storage"}, "apps": {"http": {"servers": {"s": {"routes": [{"handle": [
			{"handler": "robots_policy", "policy": "storage:site.yaml", "robots_txt": "`+merge+`"}]}]}}}}}`)
	}
	log := write("access.log", "")
	if err := os.WriteFile(log, []byte(strings.Repeat(fmt.Sprintf("66.249.66.1 - - [%s] \"GET /a HTTP/1.1\" 200 1 \"-\" \"Googlebot/2.1\"\n", time.Now().Add(-time.Hour).Format("02/Jan/2006:15:04:05 -0700")), 3)), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		out, errOut, _ := execute(publishCommand(), "", append(args, "--to", "storage:site.yaml", "--wait", "1ms", "--address", "127.0.0.1:1")...)
		return out + errOut
	}
	if out := run(allow, "--config", config("merge"), "--yes"); !strings.Contains(out, "written to") {
		t.Fatal(out)
	}
	for _, c := range []struct {
		merge string
		args  []string
		want  string
	}{
		{"replace", nil, "Search engines do not lose anything"},
		{"merge", nil, "the site's own robots.txt of hosts that the policy does not name is not known"},
		{"merge", []string{"--accept", "site-robots-txt"}, "Search engines do not lose anything"},
		{"merge", []string{"--merge", open}, "Search engines do not lose anything"},
		{"merge", []string{"--merge", closed}, "Search engines lose nearly all pages of a host"},
		{"merge", []string{"--merge", closed, "--if-replay", log, "--max-search-loss", "3"}, "Googlebot: 3 requests for 1 path disallowed by the site's own robots.txt:2"},
		{"merge", []string{"--merge", open, "--if-replay", log}, "Search engines lose none of their requests"},
	} {
		if out := run(append([]string{silent, "--config", config(c.merge), "--dry-run"}, c.args...)...); !strings.Contains(out, c.want) {
			t.Errorf("robots_txt %s %v: want %q in\n%s", c.merge, c.args, c.want, out)
		}
	}
}
