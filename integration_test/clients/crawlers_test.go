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
	Agent string   `json:"agent"` // the User-Agent
	URLs  []string `json:"urls"`
	Proxy string   `json:"proxy"` // the URL of the server, for hosts that only it knows
}

// crawler is a program that crawls and obeys robots.txt.
type crawler struct {
	name    string
	version []string // prints its version, and fails where it is not installed
	install string   // the command
	crawl   func(t *testing.T, jobs []job)
	proxy   bool // it finds hosts through a proxy; else names lead to loopback

	// onlyAs is the only product token that it looks for in robots.txt.
	onlyAs string
	// browserLike means that it sends its name inside a User-Agent like a browser's.
	browserLike bool

	// The lines of robots.txt that it reads, and more.
	sitemaps bool // it fetches those that robots.txt names
	nofollow bool // it follows no links of pages that say so

	// What is peculiar about it.
	noWildcards  bool // "*" and "$" in a pattern are letters to it
	noQuery      bool // it compares patterns with the path alone
	noAllow      bool // it does not know Allow lines
	cutsMark     bool // it leaves a "?" at the end of a pattern out
	startsAnyway bool // it asks for its first page, whatever robots.txt says, and reads that only when there is a link to follow
	noindexToo   bool // noindex is nofollow to it
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

// find skips the test where a program is not installed.
func find(t *testing.T, c *crawler) {
	t.Helper()
	out, err := exec.Command(c.version[0], c.version[1:]...).Output()
	if err != nil {
		t.Skipf("SKIPPED: %s does not request the site, since it is not on this machine (%v); install it with `%s`", c.name, err, c.install)
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	t.Logf("%s: %s", c.name, first)
}

// environment returns the environment of this process without proxies.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasSuffix(strings.ToLower(name), "_proxy")
	})
}

// run runs a program, with a limit that only a program that hangs reaches.
func run(t *testing.T, in []byte, name string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Stdin, cmd.WaitDelay = environment(), bytes.NewReader(in), 5*time.Second
	out, err := cmd.CombinedOutput()
	// wget's 8 means that the server blocked something, which the log shows.
	if err != nil && !(name == "wget" && cmd.ProcessState.ExitCode() == 8) {
		t.Fatalf("%s %.300q: %v\n%.4000s", name, args, err, out)
	}
	if name != "wget" && len(out) > 0 {
		t.Errorf("%s says\n%.4000s", name, out)
	}
}

// program is a crawl by a program that reads jobs.
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
