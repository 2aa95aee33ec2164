// SPDX-License-Identifier: Apache-2.0

package recorders

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/clickhousetest"
)

var monday = time.Date(2026, 11, 16, 10, 0, 0, 0, time.UTC)

// analyticsVisits are requests to test the queries in docs/reference/crawler-log.md.
var analyticsVisits = []activity.Request{
	{Crawler: "GPTBot", Category: "ai-training", Identity: activity.Unverified, Decision: activity.Allowed, Path: "/robots.txt", RobotsTxt: true, Robots: "r1", Bytes: 10},
	{Crawler: "GPTBot", Category: "ai-training", Identity: activity.Unverified, Decision: activity.Blocked, Path: "/a", Rule: "AI out", Robots: "r1", Violation: true, Bytes: 1},
	{Crawler: "GPTBot", Category: "ai-training", Identity: activity.Unverified, Decision: activity.Blocked, Path: "/a", Rule: "AI out", Robots: "r1", Violation: true, Bytes: 1},
	{Crawler: "GPTBot", Category: "ai-training", Identity: activity.Unverified, Decision: activity.Allowed, Path: "/open", Bytes: 100, QueryOmitted: true},
	{Crawler: "Googlebot", Category: "search", Identity: activity.Verified, Decision: activity.Allowed, Path: "/robots.txt", RobotsTxt: true, Robots: "r1", Bytes: 10},
	{Crawler: "Googlebot", Category: "search", Identity: activity.Verified, Decision: activity.Blocked, Path: "/shop", Rule: "shop", Bytes: 1},
	{Crawler: "Googlebot", Category: "search", Identity: activity.Verified, Decision: activity.Blocked, Path: "/private", Rule: "shop", Robots: "r1", Violation: true, Bytes: 1},
	{Crawler: "Googlebot", Category: "search", Identity: activity.Impostor, Decision: activity.Blocked, Path: "/shop", Rule: "enforcement.impostors", Bytes: 1},
	{Crawler: "curl", Category: "unknown", Identity: activity.Unverified, Decision: activity.Allowed, Path: "/x", Bytes: 5},
	{Crawler: "curl", Category: "unknown", Identity: activity.Unverified, Decision: activity.Allowed, Path: "/y", Bytes: 5},
}

// analyticsAnswers are the expected answers to the queries of docs/reference/crawler-log.md. Fields are separated by
// "|".
var analyticsAnswers = []string{
	"GPTBot|ai-training|unverified|4|112\nGooglebot|search|verified|3|12\ncurl|unknown|unverified|2|10\nGooglebot|search|impostor|1|1",
	"AI out|2\nshop|2\nenforcement.impostors|1",
	"Googlebot|/private|shop|1\nGooglebot|/shop|shop|1",
	"GPTBot|unverified|/a|2\nGooglebot|verified|/private|1",
	"/open|1|100",
	"Googlebot|www.example.com|1",
}

// writeVisits writes the requests to a log file, in the format of Caddy's JSON encoder.
func writeVisits(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	f, err := os.Create(filepath.Join(dir, "crawlers.log"))
	if err != nil {
		t.Fatal(err)
	}
	config := zap.NewProductionEncoderConfig()
	logger := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(config), f, zapcore.InfoLevel)).Named("http.robots_policy.crawler_log")
	l := &CrawlerLog{logger: logger}
	for i, v := range analyticsVisits {
		v.Time, v.Host, v.Policy, v.Status = monday, "www.example.com", "p1", 200
		if i == 7 {
			v.Time = monday.Add(24 * time.Hour)
		}
		l.write(v)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// docBlocks returns the fenced blocks under a heading of docs/reference/crawler-log.md.
func docBlocks(t *testing.T, heading string) []string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/reference/crawler-log.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("docs/reference/crawler-log.md has no heading %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var blocks []string
	for _, m := range regexp.MustCompile("(?s)```(?:sql|sh)\n(.*?)```").FindAllStringSubmatch(section, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// pageQueries returns the queries of docs/reference/crawler-log.md.
func pageQueries(t *testing.T) []string {
	t.Helper()
	queries := strings.Split(strings.TrimSuffix(strings.TrimSpace(docBlocks(t, "Queries for ClickHouse and DuckDB")[0]), ";"), ";\n")
	if len(queries) != len(analyticsAnswers) {
		t.Fatalf("%d queries, want %d", len(queries), len(analyticsAnswers))
	}
	return queries
}

func checkAnswers(t *testing.T, tool string, answers []string) {
	t.Helper()
	for i, want := range analyticsAnswers {
		got := strings.TrimSpace(strings.ReplaceAll(answers[i], "\t", "|"))
		if got != want {
			t.Errorf("%s, query %d:\n%s\nwant\n%s", tool, i+1, got, want)
		}
	}
}

// node runs a script that uses an npm package in Node.js. If the package is not installed, it skips the test.
func node(t *testing.T, module, script string, args ...string) string {
	t.Helper()
	if exec.Command("node", "-e", "require.resolve("+fmt.Sprintf("%q", module)+")").Run() != nil {
		t.Skipf("node has no %s: npm install it, and set NODE_PATH to the folder node_modules", module)
	}
	out, err := exec.Command("node", append([]string{"-e", script, "--"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", module, err, out)
	}
	return string(out)
}

const separator = "\n=====\n"

func TestAnalyticsWithDuckDB(t *testing.T) {
	t.Parallel()
	dir := writeVisits(t)
	statements := append([]string{strings.ReplaceAll(docBlocks(t, "DuckDB")[0], "'crawlers.log'", "'"+dir+"/crawlers.log'")}, pageQueries(t)...)
	out := node(t, "@duckdb/node-api", `const {DuckDBInstance} = require('@duckdb/node-api');
(async () => {
  const c = await (await DuckDBInstance.create(':memory:')).connect();
  const all = [];
  for (const s of process.argv[1].split('`+"\\n=====\\n"+`')) {
    const r = await c.runAndReadAll(s);
    all.push(r.getRows().map(row => row.map(String).join('\t')).join('\n'));
  }
  console.log(all.slice(1).join('`+"\\n=====\\n"+`'));
})().catch(e => { console.error(e); process.exit(1) })`, strings.Join(statements, separator))
	checkAnswers(t, "DuckDB", strings.Split(out, separator))
}

func TestAnalyticsWithChdb(t *testing.T) {
	t.Parallel()
	dir := writeVisits(t)
	lines, err := os.ReadFile(filepath.Join(dir, "crawlers.log"))
	if err != nil {
		t.Fatal(err)
	}
	statements := append([]string{
		docBlocks(t, "ClickHouse")[0],
		"INSERT INTO requests SETTINGS input_format_skip_unknown_fields=1 FORMAT JSONEachRow " + string(lines),
	}, pageQueries(t)...)
	out := node(t, "chdb", `const {Session} = require('chdb');
const s = new Session(process.argv[2]), all = [];
for (const q of process.argv[1].split('`+"\\n=====\\n"+`')) all.push(String(s.query(q, 'TabSeparated')));
console.log(all.slice(2).join('`+"\\n=====\\n"+`'));`, strings.Join(statements, separator), filepath.Join(dir, "chdb"))
	checkAnswers(t, "chdb", strings.Split(out, separator))
}

func TestAnalyticsWithClickHouse(t *testing.T) {
	t.Parallel()
	server := clickhousetest.Start(t)
	run := func(query, input string) string {
		address := server.URL("") + "?input_format_skip_unknown_fields=1&query=" + url.QueryEscape(query)
		resp, err := http.Post(address, "", strings.NewReader(input))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		out, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s\n%v\n%s", query, err, out)
		}
		return string(out)
	}
	lines, err := os.ReadFile(filepath.Join(writeVisits(t), "crawlers.log"))
	if err != nil {
		t.Fatal(err)
	}
	run(docBlocks(t, "ClickHouse")[0], "")
	run("INSERT INTO requests FORMAT JSONEachRow", string(lines))
	var answers []string
	for _, q := range pageQueries(t) {
		answers = append(answers, run(q, ""))
	}
	checkAnswers(t, "ClickHouse", answers)
}

func TestAnalyticsWithJQ(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("jq is not installed")
	}
	dir := writeVisits(t)
	want := []string{"3 Googlebot\n      2 GPTBot"}
	for i, command := range strings.Split(strings.TrimSpace(docBlocks(t, "jq")[0]), "\n") {
		c := exec.Command("sh", "-c", command)
		c.Dir = dir
		out, err := c.CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != want[i] {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
}
