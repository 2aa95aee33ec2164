// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// job describes a crawl for the programs in testdata.
type job struct {
	Agent string   `json:"agent"` // the User-Agent that the program sends
	URLs  []string `json:"urls"`
	Proxy string   `json:"proxy"` // the URL of the server, used as a proxy for hosts that only this server knows
}

// crawler is a program that crawls and obeys robots.txt.
type crawler struct {
	name    string
	version []string // command that prints the version of the program, and fails if the program is not installed
	install string   // command that installs the program
	crawl   func(t *testing.T, jobs []job)
	proxy   bool // the program finds hosts through a proxy; otherwise, names of hosts lead to loopback

	// onlyAs is the only product token that the program looks for in robots.txt.
	onlyAs string
	// browserLike means that the program sends its name inside a User-Agent like a browser's.
	browserLike bool

	// What the program reads in addition to Allow and Disallow lines.
	sitemaps bool // it fetches the sitemaps that robots.txt names
	nofollow bool // it does not follow links in pages with nofollow

	// The peculiarities of the program.
	noWildcards  bool // it treats "*" and "$" in a pattern as ordinary characters
	noQuery      bool // it compares patterns with the path without the query
	noAllow      bool // it does not support Allow lines
	cutsMark     bool // it ignores a "?" at the end of a pattern
	startsAnyway bool // it requests its first page even if robots.txt disallows it, and fetches robots.txt only before it follows a link
	noindexToo   bool // it treats noindex like nofollow
}

var crawlers = []crawler{
	{
		name: "wget", version: []string{"wget", "--version"}, install: "apt-get install wget", crawl: wget, proxy: true,
		onlyAs: "Wget", noWildcards: true, noQuery: true, startsAnyway: true, nofollow: true,
	},
	{
		name: "Scrapy", version: []string{"/usr/bin/python3", "-c", "import scrapy; print('Scrapy', scrapy.__version__)"}, install: "apt-get install python3-scrapy",
		crawl: program("/usr/bin/python3", "testdata/scrapy_crawl.py"), proxy: true, browserLike: true,
	},
	{
		name: "urllib.robotparser", version: []string{"python3", "--version"}, install: "apt-get install python3",
		crawl: program("python3", "testdata/robotparser_crawl.py"), proxy: true, noWildcards: true, cutsMark: true,
	},
	{
		name: "LWP::RobotUA", version: []string{"perl", "-MLWP::RobotUA", "-MJSON::PP", "-e", "print $LWP::RobotUA::VERSION"}, install: "apt-get install libwww-perl",
		crawl: program("perl", "testdata/robotua_crawl.pl"), proxy: true, noWildcards: true, noAllow: true,
	},
	{
		name: "simplecrawler", version: npmVersion("simplecrawler"), install: "npm install simplecrawler@1.1.9, and NODE_PATH",
		crawl: program("node", "testdata/simplecrawler_crawl.js"), sitemaps: true, nofollow: true,
	},
	{
		name: "broken-link-checker", version: npmVersion("broken-link-checker"), install: "npm install broken-link-checker@0.7.8, and NODE_PATH",
		crawl: program("node", "testdata/blc_crawl.js"), browserLike: true, noQuery: true, startsAnyway: true, nofollow: true, noindexToo: true,
	},
}

func npmVersion(name string) []string {
	return []string{"node", "-p", "require('" + name + "/package.json').version"}
}

// find skips the test if the program is not installed.
func find(t *testing.T, c *crawler) {
	t.Helper()
	out, err := exec.Command(c.version[0], c.version[1:]...).Output()
	if err != nil {
		t.Skipf("SKIPPED: %s does not request the site, since it is not on this machine (%v); install it with `%s`", c.name, err, c.install)
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	t.Logf("%s: %s", c.name, first)
}

// environment returns the environment of this process without the variables that set proxies.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasSuffix(strings.ToLower(name), "_proxy")
	})
}

// run runs a program. A program that hangs is killed after a long time.
func run(t *testing.T, in []byte, name string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Stdin, cmd.WaitDelay = environment(), bytes.NewReader(in), 5*time.Second
	out, err := cmd.CombinedOutput()
	// wget's exit code 8 means that the server has blocked a request. This is expected, and the access log shows which
	// requests were blocked.
	if err != nil && !(name == "wget" && cmd.ProcessState.ExitCode() == 8) {
		t.Fatalf("%s %.300q: %v\n%.4000s", name, args, err, out)
	}
	if name != "wget" && len(out) > 0 {
		t.Errorf("%s says\n%.4000s", name, out)
	}
}

// program returns a function that crawls with a program. The program reads the jobs from its standard input.
func program(name, script string) func(*testing.T, []job) {
	return func(t *testing.T, jobs []job) {
		t.Helper()
		in, err := json.Marshal(jobs)
		if err != nil {
			t.Fatal(err)
		}
		run(t, in, name, script)
	}
}

func wget(t *testing.T, jobs []job) {
	for _, j := range jobs {
		wgetAs(t, j, "-r", "-l", "10", "--delete-after", "-P", t.TempDir())
	}
}

func wgetAs(t *testing.T, j job, options ...string) {
	t.Helper()
	args := append([]string{"--no-config", "-nv", "--tries=1", "--timeout=20"}, options...)
	if j.Agent != "" {
		args = append(args, "-U", j.Agent)
	}
	if j.Proxy != "" {
		args = append(args, "-e", "use_proxy=yes", "-e", "http_proxy="+j.Proxy)
	}
	run(t, nil, "wget", append(args, j.URLs...)...)
}
