// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/accesslog"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

var update = flag.Bool("update", false, "write the golden files")

const oldPolicy = `version: 1
enforcement: {mode: block}
rules:
  - name: everyone
    for: everyone
    disallow: {crawl: [/private/]}
`

const newPolicy = `version: 1
enforcement: {mode: block}
rules:
  - name: everyone
    for: everyone
    allow: {crawl: [/]}
  - name: AI training out
    for: category:ai-training
    disallow: {crawl: [/]}
  - name: no archive of the shop
    for: category:archive
    enforce: log
    disallow: {crawl: [/shop/]}
  - name: Bing out
    for: Bingbot
    intended: true
    disallow: {crawl: [/shop/]}
  - name: never comes
    for: Diffbot
    disallow: {crawl: [/]}
`

func load(t testing.TB, name, text string) *site.Site {
	t.Helper()
	s, ds := site.Load(name, []byte(text))
	if s == nil {
		t.Fatal(ds)
	}
	return s
}

// agents are the clients of the generated traffic. The identity of each client is proven either by the embedded address
// lists or not at all.
var agents = []struct {
	ua, crawler, address string
	identity             string
}{
	{"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36", "", "198.51.100.7", ""},
	{"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "Googlebot", "66.249.66.1", "verified"},
	{"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "Googlebot", "203.0.113.9", "unverified"}, // only DNS could verify this client
	{"Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)", "Bingbot", "157.55.39.1", "verified"},
	{"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)", "GPTBot", "203.0.113.9", ""},
	{"CCBot/2.0 (https://commoncrawl.org/faq/)", "CCBot", "203.0.113.10", "unverified"},
	{"Mozilla/5.0 (compatible; archive.org_bot +http://archive.org/details/archive.org_bot)", "archive.org_bot", "203.0.113.11", "unverified"},
	{"curl/8.5.0", "", "198.51.100.8", ""},
}

var paths = []string{"/", "/news/1", "/shop/a?b=c", "/private/x", "/shop/b", "/robots.txt"}

// traffic writes n lines of Caddy's log. If live is true, the lines of crawlers have the field "robots_policy", which
// says that the crawler was verified. traffic returns how many requests each agent made for each path; the keys are
// indexes of agents and paths.
func traffic(w io.Writer, seed uint64, n int, live bool) map[[2]int]int64 {
	rnd := rand.New(rand.NewPCG(seed, seed))
	truth := map[[2]int]int64{}
	at := time.Date(2026, 5, 6, 0, 0, 0, 0, time.UTC) // a day after the date of the embedded lists
	for range n {
		a, p := rnd.IntN(len(agents)), rnd.IntN(len(paths))
		truth[[2]int{a, p}]++
		at = at.Add(time.Duration(rnd.IntN(6*86400/n*1000+1)) * time.Millisecond)
		field := ""
		if live && agents[a].crawler != "" {
			field = `,"robots_policy":{"crawler":"` + agents[a].crawler + `","identity":"verified","decision":"allowed"}`
		}
		fmt.Fprintf(w, `{"level":"info","ts":%d.%06d,"logger":"http.log.access.log0","msg":"handled request","request":{"remote_ip":"%s","client_ip":"%s","proto":"HTTP/2.0","method":"GET","host":"www.example.com","uri":"%s","headers":{"Accept":["*/*"],"Accept-Encoding":["gzip, br"],"User-Agent":["%s"]},"tls":{"resumed":false,"version":772,"cipher_suite":4865,"proto":"h2","server_name":"www.example.com"}},"bytes_read":0,"user_id":"","duration":0.000929675,"size":%d,"status":200,"resp_headers":{"Server":["Caddy"],"Content-Type":["text/html; charset=utf-8"],"Etag":["\"d5sf8ssj7ps4p\""],"Vary":["Accept-Encoding"]}%s}`+"\n",
			at.Unix(), at.Nanosecond()/1000, agents[a].address, agents[a].address, paths[p], agents[a].ua, 1000+p, field)
	}
	return truth
}

func run(t *testing.T, old bool, log []byte) *Report {
	t.Helper()
	name := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(name, log, 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{New: load(t, "new.yaml", newPolicy), Files: []string{name}, Workers: 3}
	if old {
		o.Old = load(t, "old.yaml", oldPolicy)
	}
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	r.Files = []string{"access.log"}
	for i := range r.NotReplayed {
		r.NotReplayed[i].What = strings.ReplaceAll(r.NotReplayed[i].What, name, "access.log")
	}
	return r
}

// TestReportCountsEveryRequest compares every number of a report with the generated traffic. The test itself contains
// the decisions that the policies must make.
func TestReportCountsEveryRequest(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	truth := traffic(&log, 1, 20_000, false)
	r := run(t, true, log.Bytes())

	sum := func(fits func(agent, path int) bool) (n int64) {
		for k, c := range truth {
			if fits(k[0], k[1]) {
				n += c
			}
		}
		return n
	}
	crawler := func(name string) func(a, p int) bool {
		return func(a, _ int) bool { return agents[a].crawler == name }
	}
	isRobots := func(p int) bool { return paths[p] == "/robots.txt" }
	if want := sum(func(a, _ int) bool { return agents[a].crawler != "" }); r.Crawlers != want || r.Requests != 20_000 || r.Lines != 20_000 {
		t.Errorf("%d requests of crawlers of %d in %d lines, want %d", r.Crawlers, r.Requests, r.Lines, want)
	}
	refused := sum(func(a, p int) bool {
		switch agents[a].crawler {
		case "GPTBot", "CCBot":
			return !isRobots(p)
		case "Bingbot":
			return strings.HasPrefix(paths[p], "/shop/")
		}
		return false
	})
	dryRun := sum(func(a, p int) bool {
		return agents[a].crawler == "archive.org_bot" && strings.HasPrefix(paths[p], "/shop/")
	})
	for _, v := range r.Verdicts {
		want := map[activity.Decision]int64{activity.Blocked: refused, activity.WouldBlock: dryRun, activity.Disallowed: 0, activity.Allowed: r.Crawlers - refused - dryRun}[v.Decision]
		if v.Requests != want {
			t.Errorf("%s: %d, want %d", v.Decision, v.Requests, want)
		}
	}
	find := func(counts []CrawlerCount, name string) CrawlerCount {
		for _, c := range counts {
			if c.Crawler == name {
				return c
			}
		}
		return CrawlerCount{}
	}
	google := find(r.ByCrawler, "Googlebot")
	if want := sum(func(a, _ int) bool { return a == 1 }); google.Verified != want {
		t.Errorf("%d verified requests of Googlebot, want %d", google.Verified, want)
	}
	if want := sum(func(a, _ int) bool { return a == 2 }); google.Unverified != want || google.Impostor != 0 || google.Requests != google.Verified+google.Unverified {
		t.Errorf("%+v, want %d unverified", google, want)
	}
	private := func(a, p int) bool { return paths[p] == "/private/x" }
	if got, want := find(r.NewlyAllowed, "Googlebot").Requests, sum(func(a, p int) bool { return crawler("Googlebot")(a, p) && private(a, p) }); got != want {
		t.Errorf("%d newly allowed requests of Googlebot, want %d", got, want)
	}
	gpt := find(r.NewlyRefused, "GPTBot")
	if want := sum(func(a, p int) bool { return crawler("GPTBot")(a, p) && !private(a, p) && !isRobots(p) }); gpt.Requests != want {
		t.Errorf("%d newly blocked requests of GPTBot, want %d", gpt.Requests, want)
	}
	for _, p := range gpt.Paths {
		want := sum(func(a, i int) bool {
			path, _, _ := strings.Cut(paths[i], "?")
			return crawler("GPTBot")(a, i) && path == p.Path
		})
		if p.Requests != want {
			t.Errorf("%s: %d requests of GPTBot, want %d", p.Path, p.Requests, want)
		}
	}
	shop := sum(func(a, p int) bool { return crawler("Bingbot")(a, p) && strings.HasPrefix(paths[p], "/shop/") })
	if l := r.SearchLoss; l.Intended != shop || l.Requests != 0 || len(l.Crawlers) != 1 || l.Crawlers[0].Crawler != "Bingbot" || l.Crawlers[0].Loss != effect.LossBlocked || l.Crawlers[0].Requests != shop || !l.Crawlers[0].Intended || !r.Search.Holds() {
		t.Errorf("search engines lose: %+v", l)
	}
	if len(r.IdleRules) != 1 || r.IdleRules[0].Place != "new.yaml:18" {
		t.Errorf("idle rules: %+v", r.IdleRules)
	}
	curl := sum(func(a, _ int) bool { return agents[a].ua == "curl/8.5.0" })
	if len(r.Unknown) != 1 || r.Unknown[0].Name != "curl" || r.Unknown[0].Requests != curl || r.UnknownRequests != curl || r.UnknownClients != 1 {
		t.Errorf("unlisted clients: %+v, want %d requests of curl", r.Unknown, curl)
	}
	days := int64(0)
	for _, d := range r.Days {
		for _, n := range d.Requests {
			days += n
		}
	}
	if days != r.Crawlers {
		t.Errorf("%d requests by day, want %d", days, r.Crawlers)
	}
	if len(r.NotReplayed) != 1 || r.NotReplayed[0].Requests != google.Unverified+find(r.ByCrawler, "CCBot").Requests {
		t.Errorf("not replayed: %+v, want the requests of Googlebot and CCBot that only DNS could have verified", r.NotReplayed)
	}
}

func TestIdentityThatTheServerHadFoundCounts(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	traffic(&log, 2, 500, true)
	for _, c := range run(t, false, log.Bytes()).ByCrawler {
		if c.Verified != c.Requests {
			t.Errorf("%+v, want all verified", c)
		}
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	traffic(&log, 3, 3000, false)
	log.WriteString("a line of something else\n")
	r := run(t, true, log.Bytes())
	var text, html bytes.Buffer
	if err := r.WriteText(&text, false); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteHTML(&html); err != nil {
		t.Fatal(err)
	}
	js, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][]byte{"report.txt": text.Bytes(), "report.json": append(js, '\n'), "report.html": html.Bytes()} {
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs; got:\n%s", name, got)
		}
	}
	for _, needless := range []string{"http:", "https:", "<script", "@import", "url("} {
		if bytes.Contains(html.Bytes(), []byte(needless)) {
			t.Errorf("the page has %q: it must load nothing", needless)
		}
	}
}

// A rule that only the old policy has is reported as a rule of the old policy.
func TestRuleOfTheOldPolicyIsNamedAsSuch(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(name, []byte(`192.0.2.7 - - [22/Nov/2026:10:34:56 +0100] "GET /private/x HTTP/1.1" 200 9 "-" "CCBot/2.0"`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), Options{
		New: load(t, "new.yaml", "version: 1\nrules:\n  - for: CCBot\n    disallow: {crawl: /other/}\n"), Old: load(t, "old.yaml", oldPolicy), Files: []string{name},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.NewlyAllowed) != 1 || fmt.Sprint(r.NewlyAllowed[0].Rules) != "[line 4 of the old policy (everyone)]" {
		t.Errorf("newly allowed: %+v", r.NewlyAllowed)
	}
}

// Rate limits are applied in the order of time, whichever worker reads a request. For requests in a database, the
// report says that their rate limits were not replayed.
func TestLimitsAreReplayed(t *testing.T) {
	t.Parallel()
	const limited = "version: 1\nrules:\n  - for: CCBot\n    limit: {rate: 60/h, burst: 5}\n    disallow: {crawl: /private/}\n    enforce: block\n"
	limits := load(t, "new.yaml", limited)
	dir := t.TempDir()
	var files []string
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	// Ten requests arrive together every ten minutes. Five of them pass, and after ten minutes the limit allows five
	// requests again. Disallowed requests and the requests of other clients do not count. The order of the log names is
	// not the order of time. The ten requests of each time are in two logs, five in each.
	for i := 5; i >= 0; i-- {
		for half := range 2 {
			name := filepath.Join(dir, fmt.Sprintf("%d-%d.log", i, half))
			var log strings.Builder
			for range 5 {
				for _, c := range [][2]string{{"/a?b=c", "CCBot/2.0"}, {"/private/x", "CCBot/2.0"}, {"/a", "AhrefsBot/7.0"}} {
					fmt.Fprintf(&log, `192.0.2.7 - - [%s] "GET %s HTTP/1.1" 200 9 "-" "%s"`+"\n", at.Add(time.Duration(i)*10*time.Minute).Format("02/Jan/2006:15:04:05 -0700"), c[0], c[1])
				}
			}
			if err := os.WriteFile(name, []byte(log.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			files = append(files, name)
		}
	}
	stored := func(_ context.Context, _, _ time.Time, each func(activity.Totals) error) (claim.Coverage, error) {
		return claim.Coverage{}, each(activity.Totals{Start: at, Crawler: "CCBot", Identity: activity.Unverified, Path: "/a", Requests: 5})
	}
	decided := func(r *Report) map[activity.Decision]int64 {
		all := map[activity.Decision]int64{}
		for _, v := range r.Verdicts {
			all[v.Decision] = v.Requests
		}
		return all
	}
	for _, c := range []struct {
		what     string
		old, new *site.Site
		limited  activity.Decision
		newly    int
	}{
		{"alone", nil, limits, activity.Limited, 1},
		{"as before", limits, limits, activity.Limited, 0},
		{"in dry run", nil, load(t, "new.yaml", strings.Replace(limited, "block", "log", 1)), activity.WouldLimit, 0},
	} {
		r, err := Run(t.Context(), Options{New: c.new, Old: c.old, Files: files, Workers: 3})
		if err != nil {
			t.Fatal(err)
		}
		if n := decided(r)[c.limited]; n != 30 || len(r.NewlyLimited) != c.newly || r.Requests != 180 {
			t.Errorf("%s: %d of %d over the limit, want 30; newly %+v", c.what, n, r.Requests, r.NewlyLimited)
		}
		if c.newly > 0 && fmt.Sprint(r.NewlyLimited[0].Requests, r.NewlyLimited[0].Paths, r.NewlyLimited[0].Rules) != "30 [{/a 30}] [line 3 (CCBot)]" {
			t.Errorf("%s: newly %+v", c.what, r.NewlyLimited)
		}
	}
	r, err := Run(t.Context(), Options{New: limits, Stored: stored})
	if err != nil || len(r.NotReplayed) == 0 || r.NotReplayed[0].Requests != 5 || !strings.Contains(r.NotReplayed[0].What, "rate limit") {
		t.Errorf("%v, not replayed: %+v", err, r.NotReplayed)
	}
}

// The memory for queued requests with a rate limit is limited, even if their paths are long. Requests that do not fit
// are counted as allowed, and the report gives their number.
func TestLimitsTakeBoundedMemory(t *testing.T) {
	t.Parallel()
	limits := load(t, "new.yaml", "version: 1\nrules:\n  - for: CCBot\n    limit: {rate: 60/h, burst: 5}\n    enforce: block\n")
	w := newWorker(&Options{New: limits, Workers: 512})
	const requests, length = 100, 60_000
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	for range requests {
		w.record(&accesslog.Record{Time: at, Host: []byte("www.example.com"), UserAgent: []byte("CCBot/2.0"), Target: []byte("/" + strings.Repeat("x", length))})
	}
	queued := len(w.queue.requests)
	w.limitAll()
	all := map[activity.Decision]int64{}
	for k, c := range w.tally.counts {
		all[k.new.decision] += c.requests
	}
	if queued == 0 || queued*length > maxQueued/512 || w.tally.limited != int64(requests-queued) || all[activity.Limited] != int64(queued-5) || all[activity.Allowed] != int64(requests-queued+5) {
		t.Errorf("%d of %d requests are queued, %d are not limited; %v", queued, requests, w.tally.limited, all)
	}
}

// The report shows a query only if it mattered for the decision.
func TestQueriesThatMatterAreShown(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "access.log")
	var log strings.Builder
	for _, target := range []string{"/a?print=1", "/a?print=1", "/a?token=secret", "/private/x?token=secret", "/private/x"} {
		fmt.Fprintf(&log, `192.0.2.7 - - [22/Nov/2026:10:34:56 +0100] "GET %s HTTP/1.1" 200 9 "-" "CCBot/2.0"`+"\n", target)
	}
	if err := os.WriteFile(name, []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), Options{New: load(t, "new.yaml", "version: 1\nrules:\n  - for: CCBot\n    disallow: {crawl: [/private/, \"/*?print=\"]}\n    enforce: block\n"), Files: []string{name}})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(r.NewlyRefused[0].Paths); got != "[{/a?print=1 2} {/private/x 2}]" {
		t.Errorf("paths: %s", got)
	}
}

// Replay makes the same decision about a request target as the server: the scheme and the host of an absolute URL do
// not matter. A target with a scheme but no host is not replayed, because the server rejects such requests.
func TestTargetsAreJudgedAsTheServerDoes(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "access.log")
	var log strings.Builder
	for _, target := range []string{
		"/closed/1", "http://h/closed/2", "http://u@h:80/closed/%33?a=/b", "/x/../closed/4", "//h/closed/5", "x:/closed/6", // disallowed
		"http://h", "http://h/?/closed/", "example.com:443", "*", // allowed
		"x:http://h/closed/7", "x:closed/8", "http:closed/9",
	} {
		fmt.Fprintf(&log, `192.0.2.7 - - [22/Nov/2026:10:34:56 +0100] "GET %s HTTP/1.1" 200 9 "-" "CCBot/2.0"`+"\n", target)
	}
	if err := os.WriteFile(name, []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), Options{New: load(t, "new.yaml", "version: 1\nrules:\n  - for: CCBot\n    disallow: {crawl: /closed/}\n    enforce: block\n"), Files: []string{name}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[activity.Decision]int64{}
	for _, v := range r.Verdicts {
		got[v.Decision] = v.Requests
	}
	if r.Requests != 13 || got[activity.Blocked] != 6 || got[activity.Allowed] != 4 {
		t.Errorf("%d requests, %v", r.Requests, got)
	}
	if notes := fmt.Sprint(r.NotReplayed); !strings.Contains(notes, "{3 crawler requests whose address has a scheme, but no host") {
		t.Error(notes)
	}
}

func TestHTMLEscapesWhatStrangersChoose(t *testing.T) {
	t.Parallel()
	const evil = `<img src=x onerror=alert(1)>"'&`
	r := &Report{
		New: evil, Files: []string{evil}, NotReplayed: []Note{{1, evil}}, Requests: 1,
		NewlyRefused: []CrawlerCount{{Crawler: evil, Category: evil, Rules: []string{evil}, Paths: []PathCount{{evil, 1}}, Requests: 1}},
		Rules:        []RuleCount{{Rule: evil, Place: evil}},
	}
	var b bytes.Buffer
	if err := r.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "<img") {
		t.Error("the page contains text of the log as markup")
	}
}

func TestManyPathsAreBounded(t *testing.T) {
	t.Parallel()
	c := new(count)
	for i := range 5 * maxPaths {
		c.addPath(fmt.Sprint("/", i), 1)
		c.addPath("/often", 1)
	}
	if len(c.paths) > maxPaths {
		t.Errorf("%d paths", len(c.paths))
	}
	sum := c.dropped
	for _, n := range c.paths {
		sum += n
	}
	if sum != 10*maxPaths || topPaths(c.paths, 1)[0] != (PathCount{"/often", 5 * maxPaths}) {
		t.Errorf("sum %d, most %v", sum, topPaths(c.paths, 1))
	}
}

// BenchmarkRun replays a log of ROBOTSPOLICY_REPLAY_LINES lines, 100,000 by default. 1,200,000 lines have about 1 GB.
func BenchmarkRun(b *testing.B) {
	lines := 100_000
	if v := os.Getenv("ROBOTSPOLICY_REPLAY_LINES"); v != "" {
		if _, err := fmt.Sscan(v, &lines); err != nil {
			b.Fatal(err)
		}
	}
	name := filepath.Join(b.TempDir(), "access.log")
	f, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	traffic(f, 1, lines, false)
	size, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	o := Options{New: load(b, "new.yaml", newPolicy), Old: load(b, "old.yaml", oldPolicy), Files: []string{name}}
	b.SetBytes(size)
	for b.Loop() {
		if _, err := Run(b.Context(), o); err != nil {
			b.Fatal(err)
		}
	}
}
