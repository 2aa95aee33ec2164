// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/robotspolicy/caddy-robots-policy"
	"github.com/robotspolicy/caddy-robots-policy/activity/replay"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/internal/cli/storecmd"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

const testPolicy = `version: 1
rules:
  - for: everyone
    disallow: {crawl: /admin/}
  - name: no AI training
    for: category:ai-training
    disallow: {crawl: /}
    enforce: block
  - name: late
    for: SemrushBot
    disallow: {crawl: /archive/}
  - name: staging
    for: everyone
    hosts: staging.example.com
    disallow: {crawl: /}
    enforce: block
    intended: [blocks-search]
expect:
  - Googlebot may crawl https://www.example.com/news/
`

// startCaddy starts Caddy with a policy in its storage, an activity database with a generated week of requests, and the
// console. It returns a server that answers requests as the console does on its local address, but does not listen on a
// port.
func startCaddy(t *testing.T, policy string) *server {
	t.Helper()
	dir := t.TempDir()
	if _, err := (storecmd.Demo{Name: "storage:robots/site.yaml", Text: policy, Hosts: []string{"www.example.com", "news.example.com"}, Days: 7, Seed: 1, Share: 0.1, Now: time.Now()}).Fill(t.Context(), filepath.Join(dir, "activity")); err != nil {
		t.Fatal(err)
	}
	return startCaddyWith(t, policy, dir)
}

// startCaddyWith is like startCaddy, but uses the activity database in dir.
func startCaddyWith(t *testing.T, policy, dir string) *server {
	t.Helper()
	storage := filepath.Join(dir, "storage")
	if err := os.MkdirAll(filepath.Join(storage, "robots"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(storage, "robots", "site.yaml"), []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(`{
	admin off
	persist_config off
	storage file_system `+storage+`
	robots_policy {
		activity `+filepath.Join(dir, "activity")+`
		console off {
			title "The Example Gazette"
			write
		}
	}
}
http://127.0.0.1:0 {
	robots_policy storage:robots/site.yaml
}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load(config, true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = caddy.Stop() })
	return &server{local: true, logger: caddy.Log()}
}

func get(t *testing.T, s *server, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "http://www.example.com/console/"+path, nil)
	s.ServeHTTP(w, r)
	return w
}

// Most pages accept only GET and HEAD. Requests with other methods for these pages are rejected.
func TestMethods(t *testing.T) {
	s := startCaddy(t, testPolicy)
	for _, name := range []string{"", "who-came", "published", "health", "news", "evidence.zip", "policy.yaml", "static/console.css", "nowhere"} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequest(method, "http://www.example.com/console/"+name, nil))
			if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d, Allow %q", method, name, w.Code, w.Header().Get("Allow"))
			}
		}
	}
}

func post(t *testing.T, s *server, path, origin string, form map[string]string) *httptest.ResponseRecorder {
	t.Helper()
	var b bytes.Buffer
	m := multipart.NewWriter(&b)
	for k, v := range form {
		if err := m.WriteField(k, v); err != nil {
			t.Fatal(err)
		}
	}
	_ = m.Close()
	r := httptest.NewRequest(http.MethodPost, "http://localhost:2020/"+path, &b)
	r.Header.Set("Content-Type", m.FormDataContentType())
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

var allScreens = []string{
	"", "?days=1", "?days=30", "?days=90", "?days=365", "?days=dates&since=2026-11-01&until=2026-11-20", "?days=dates&since=x", "who-came?row=100000&unknown=-3", "who-may", "who-may?usage=train-ai", "who-may?all=1", "who-may?q=nobody", "who-came", "who-came?sort=bytes&order=up", "who-came?path=/news/",
	"who-came?q=nobody", "crawler?name=Bytespider", "crawler?name=Googlebot&identity=impostor", "crawler?name=nobody", "crawler?name=python-httpx", "ask", "ask?agent=GPTBot&url=/news/", "ask?agent=nobody&url=x",
	"change", "change?expect=GPTBot+may+crawl+/x", "change?name=python-httpx", "published", "health",
}

// inline matches markup that the Content-Security-Policy forbids.
var inline = regexp.MustCompile(`(?i)<style|<script(?:\s[^>]*)?>[^<]|\sstyle=|\son[a-z]+=|javascript:|(?:src|action)="(?:https?:)?//|<link[^>]*href="(?:https?:)?//`)

func TestScreens(t *testing.T) {
	s := startCaddy(t, testPolicy)
	css, err := files.ReadFile("static/console.css")
	if err != nil {
		t.Fatal(err)
	}
	js, err := files.ReadFile("static/console.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range allScreens {
		t.Run(path, func(t *testing.T) {
			w := get(t, s, path)
			if w.Code != http.StatusOK {
				t.Fatalf("status %d: %s", w.Code, w.Body)
			}
			if got := w.Header().Get("Content-Security-Policy"); got != contentPolicy || strings.Contains(got, "unsafe") {
				t.Errorf("Content-Security-Policy: %s", got)
			}
			body := w.Body.String()
			if m := inline.FindString(body); m != "" {
				t.Errorf("the page has %q", m)
			}
			if n := len(body) + len(css) + len(js); n > 150_000 {
				t.Errorf("the page, its stylesheet and script have %d bytes", n)
			}
			if strings.Contains(body, "ZgotmplZ") || strings.Contains(body, "%!") {
				t.Error("a value did not fit where the template puts it")
			}
			if !strings.Contains(body, "</html>") {
				t.Error("the page is not complete")
			}
		})
	}
}

func TestNumbersAgree(t *testing.T) {
	s := startCaddy(t, testPolicy)
	v, err := s.view(httptest.NewRequest(http.MethodGet, "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	d, q := &overviewData{}, v.query(store.ByDay, store.ByKind, store.ByDecision)
	rows, err := v.store.Totals(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	v.overTime(d, rows)
	all, unknown, err := v.whoCame()
	if err != nil {
		t.Fatal(err)
	}
	var sum counts
	for _, c := range append(all, unknown...) {
		sum.plus(c.counts)
	}
	c := d.Total
	if c.All == 0 || c.All != sum.All || c.Blocked != sum.Blocked || c.Unknown != sum.Unknown {
		t.Errorf("overview %+v, who came %+v", c, sum)
	}
	if c.Allowed+c.Unknown+c.Closed+c.Would+c.Blocked != c.All {
		t.Errorf("the verdicts do not add up to %d: %+v", c.All, c)
	}
}

// The pages "Who may" and "Ask" give the same answer about a path that differs from a disallowed path only in letter
// case, such as /ADMIN/. The test asks for crawlers of the catalog, and for a crawler that is not in the catalog.
func TestGridAndExplainInAnyCase(t *testing.T) {
	l, err := source.Compile("p.yaml", []byte(testPolicy))
	if err != nil {
		t.Fatal(err)
	}
	v := &view{server: &server{}, Running: &running{Snapshot: l}, Now: time.Now()}
	for _, path := range []string{"/admin/", "/ADMIN/", "/open/"} {
		s := section{Host: "www.example.com", Path: path}
		s.probe(nil, nil)
		for _, agent := range []string{"Googlebot", "SemrushBot", "AnyOtherCrawler/1.0"} {
			word, parts := v.evaluate(&asker{Name: agent, id: l.Site.Policy.Crawler(agent)}, &s, policy.Crawl)
			e := l.Site.Explain(site.Question{Agent: agent, URL: &url.URL{Scheme: "https", Host: s.Host, Path: parts[0].path}, Now: v.Now})
			if closed := path != "/open/"; e.MayCrawl == closed || (word == "disallowed") != closed {
				t.Errorf("%s %s: the grid says %s, explain that it may crawl: %v", agent, path, word, e.MayCrawl)
			}
		}
	}
}

func TestTestsOfADraft(t *testing.T) {
	d := newDraft("x.yaml", strings.Replace(testPolicy, "Googlebot may crawl https://www.example.com/news/", "Googlebot may crawl /admin/", 1), source.NeverServed)
	if d.ok() || d.Failing != 1 || d.Errors != 1 || d.site == nil || d.Tests[0].Outcome != claim.Fails || d.Tests[0].Message == "" {
		t.Errorf("%+v", d)
	}
	if d := newDraft("x.yaml", testPolicy, source.NeverServed); !d.ok() || len(d.Tests) != 1 {
		t.Errorf("%+v", d.Diagnostics)
	}
	if d := newDraft("x.yaml", "version: 1\nrules: 3\n", source.NeverServed); d.ok() || d.site != nil || d.Errors == 0 {
		t.Errorf("%+v", d)
	}
}

// A draft gets an error if it has more rules than a new policy may have.
func TestDraftsOfTooManyRules(t *testing.T) {
	var names, hosts strings.Builder
	for i := range 1001 {
		names.WriteString("      - x" + strings.Repeat(string(rune('a'+i%26)), 1+i/26) + "\n")
		hosts.WriteString("      - h" + strconv.Itoa(i) + ".example.com\n")
	}
	text := "version: 1\nrules:\n  - for:\n" + names.String() + "    hosts:\n" + hosts.String() + "    disallow:\n      crawl: /\n"
	if d := newDraft("x.yaml", text, source.NeverServed); d.ok() || d.Errors != 1 {
		t.Errorf("%d errors: %v", d.Errors, d.Diagnostics.Text())
	}
}

// A test that was not run is not listed as passing.
func TestTestsThatDoNotRun(t *testing.T) {
	defer func(before func(string, string, source.Return) *draft) { check = before }(check)
	check = func(name, text string, returns source.Return) *draft {
		d := newDraft(name, text, returns)
		tests := d.site.Policy.Spec().Expect
		ds := policyfile.Diagnostics{{Pos: tests[1].Pos, Code: "too-many-rules", Severity: policy.Error}}
		d.Tests, d.TestsPass = policyfile.TestResults(tests, ds), policyfile.TestsPass(tests, ds)
		return d
	}
	s := startCaddyWith(t, testPolicy, t.TempDir())
	body := post(t, s, "change", "http://localhost:2020", map[string]string{"do": "check", "text": testPolicy + "  - everyone may crawl /else/\n"}).Body.String()
	for want, n := range map[string]int{
		"Tests: It cannot be judged whether 2 tests pass": 1, `<span class="muted">Not run</span><span><code>everyone may crawl /else/`: 1,
		`<span class="pass">Passes</span><span><code>Googlebot may crawl`: 1, "tests pass</h2>": 1, "Ready to go live": 0,
	} {
		if strings.Count(body, want) != n {
			t.Errorf("%q %d times in %s", want, strings.Count(body, want), body)
		}
	}
}

var hiddenField = regexp.MustCompile(`name="(token|base|draft|back)" value="([^"]*)"`)

func fields(body string) map[string]string {
	form := map[string]string{}
	for _, m := range hiddenField.FindAllStringSubmatch(body, -1) {
		form[m[1]] = m[2]
	}
	return form
}

func TestPublish(t *testing.T) {
	s := startCaddy(t, testPolicy)
	draft := strings.Replace(testPolicy, "crawl: /archive/", "crawl: [/archive/, /feed.xml]", 1)
	checked := post(t, s, "change", "http://localhost:2020", map[string]string{"text": draft, "do": "check"})
	form := fields(checked.Body.String())
	form["text"], form["do"], form["note"] = draft, "publish", "Close the feed to Semrush"
	other := map[string]string{}
	for k, v := range form {
		other[k] = v
	}
	other["token"] = strings.Repeat("0", 64)
	for name, refused := range map[string]struct {
		origin string
		form   map[string]string
		server *server
	}{
		"no Origin":      {"", form, s},
		"another Origin": {"http://evil.example", form, s},
		"another port":   {"http://localhost:2021", form, s},
		"wrong token":    {"http://localhost:2020", other, s},
		"on a site":      {"http://localhost:2020", form, &server{hosts: []string{"www.example.com", "staging.example.com"}, logger: caddy.Log()}},
	} {
		if w := post(t, refused.server, "change", refused.origin, refused.form); w.Code == http.StatusSeeOther {
			t.Errorf("%s: published", name)
		}
	}
	w := post(t, s, "change", "http://localhost:2020", form)
	if w.Code != http.StatusSeeOther {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	if v, err := s.view(httptest.NewRequest(http.MethodGet, "/", nil)); err != nil || v.Running.Text != draft {
		t.Fatalf("not in force: %v", err)
	}
	if w := post(t, s, "change", "http://localhost:2020", form); w.Code != http.StatusConflict {
		t.Errorf("published over a newer version: %d", w.Code)
	}
	// The Published page has a button that goes back to the previous version.
	v, err := s.view(httptest.NewRequest(http.MethodGet, "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	history := v.stands().History
	if len(history) != 2 || history[0].Note != "Close the feed to Semrush" || history[1].Text != testPolicy {
		t.Fatalf("history: %+v", history)
	}
	shown := get(t, s, "published?done="+v.Running.SHA256[:12]).Body.String()
	undo := regexp.MustCompile(`href="./(change\?back=v1&amp;from=[0-9a-f]+)#result">Undo: back to v1<`).FindStringSubmatch(shown)
	if undo == nil || !strings.Contains(shown, "Published: v") || !strings.Contains(shown, "By localhost: “Close the feed to Semrush”") {
		t.Fatalf("the result: %s", shown)
	}
	confirm := get(t, s, strings.ReplaceAll(undo[1], "&amp;", "&")).Body.String()
	if !strings.Contains(confirm, "may now crawl /feed.xml") || !strings.Contains(confirm, ">Undo: back to v1</button>") {
		t.Fatalf("what going back changes is not shown: %s", confirm)
	}
	form = fields(confirm)
	form["text"], form["do"] = testPolicy, "publish"
	back := post(t, s, "change", "http://localhost:2020", form)
	if back.Code != http.StatusSeeOther {
		t.Fatalf("going back: %d %s", back.Code, back.Body)
	}
	if v, err := s.view(httptest.NewRequest(http.MethodGet, "/", nil)); err != nil || v.Running.Text != testPolicy {
		t.Errorf("not back: %v", err)
	}
}

// The headline of the Change page is never green unless the draft was checked.
func TestHeadline(t *testing.T) {
	s := startCaddy(t, testPolicy)
	for _, c := range []struct{ name, rule, want string }{
		{"nothing for search", "  - for: GPTBot\n    disallow: {train-ai: /}\n", `notice fine" aria-labelledby="sum" id="result"><div class="title"><h2 id="sum">Ready to go live</h2>`},
		{"the whole site disallowed", "  - for: everyone\n    disallow: {crawl: /}\n", "is now disallowed for Googlebot"},
		{"a section disallowed", "  - for: everyone\n    disallow: {crawl: /news/}\n", "The most requested paths that search engines would lose: <code>/news/"},
		{"not to be indexed", "  - for: everyone\n    disallow: {index: /}\n", "is now kept out of the index for Googlebot"},
		{"without snippets", "  - for: everyone\n    disallow: {present-snippet: /}\n", "shown with a shorter snippet or no snippet for Googlebot"},
		{"where nobody was", "  - for: everyone\n    disallow: {crawl: /of-this-nobody-asked/}\n", "Not requested in this traffic: /of-this-nobody-asked/ is now disallowed"},
	} {
		text := strings.Replace(testPolicy, "expect:\n  - Googlebot may crawl https://www.example.com/news/\n", c.rule, 1)
		body := post(t, s, "change", "http://localhost:2020", map[string]string{"text": text, "do": "check"}).Body.String()
		_, notice, _ := strings.Cut(body, `<section class="card notice`)
		notice, _, _ = strings.Cut("card notice"+notice, "</section>")
		if green := strings.Contains(notice, "Ready to go live"); !strings.Contains(notice, c.want) || green != (c.name == "nothing for search" || c.name == "where nobody was") || green == strings.Contains(notice, "notice alert") {
			t.Errorf("%s: %.1500s", c.name, notice)
		}
	}
}

// The headline of a draft says whether the draft is ready to be published. It depends on a replay of the recorded
// traffic or, without traffic, on a comparison of the draft with the policy in force. A gap in the traffic matters only
// if the draft and the policy in force differ for search engines.
func TestReady(t *testing.T) {
	t.Parallel()
	load := func(rules string) *site.Site {
		s, ds := site.Load("site.yaml", []byte("version: 1\nrules:\n  - for: everyone\n    allow: {crawl: /}\n"+rules))
		if s == nil {
			t.Fatal(ds)
		}
		return s
	}
	before, same, some := load(""), load("  - for: GPTBot\n    disallow: {crawl: /}\n"), load("  - for: Bingbot\n    disallow: {crawl: /a/}\n")
	known := func(now *site.Site) claim.Known[*compare.Losses] {
		return compare.Sites(before, now, compare.Options{}).Losses.Known()
	}
	now := time.Now()
	seen := func(lost int64, gaps ...claim.Gap) claim.Known[*replay.SearchLoss] {
		return claim.Read(&replay.SearchLoss{Requests: lost, Crawlers: []replay.CrawlerLoss{{Crawler: "Bingbot", Requests: lost}}[:min(lost, 1)]},
			claim.Coverage{Items: 5, From: now, To: now, Gaps: gaps})
	}
	silent := claim.Gap{Name: "unsent", What: "web-17 is silent"}
	for _, c := range []struct {
		name    string
		subject replay.KeepsSubject
		unmet   string
		want    string
		class   string
	}{
		{"nobody compared", replay.KeepsSubject{}, "", "It cannot be judged", "warning"},
		{"no traffic", replay.KeepsSubject{Comparison: known(same)}, "", "Ready to go live", "fine"},
		{"no traffic, and a loss", replay.KeepsSubject{Comparison: known(some)}, "", "Search engines lose something", "alert"},
		{"traffic without requests, and a loss", replay.KeepsSubject{Comparison: known(some), Traffic: claim.Read(new(replay.SearchLoss), claim.Coverage{})}, "", "Search engines lose something", "alert"},
		{"replayed", replay.KeepsSubject{Comparison: known(same), Traffic: seen(0)}, "", "Ready to go live", "fine"},
		{"replayed, and a loss that nobody requested", replay.KeepsSubject{Comparison: known(some), Traffic: seen(0)}, "", "Ready to go live", "fine"},
		{"a request is lost", replay.KeepsSubject{Comparison: known(some), Traffic: seen(1)}, "", "Search engines lose 1 request", "alert"},
		{"a silent server, and nothing differs", replay.KeepsSubject{Comparison: known(same), Traffic: seen(0, silent)}, "", "Ready to go live", "fine"},
		{"a silent server, and a loss somewhere", replay.KeepsSubject{Comparison: known(some), Traffic: seen(0, silent)}, "", "It cannot be judged", "warning"},
		{"a condition", replay.KeepsSubject{Comparison: known(same)}, "a test fails", "Not ready: a test fails", "warning"},
		{"a condition and a loss", replay.KeepsSubject{Comparison: known(some)}, "a test fails", "Search engines lose something", "alert"},
	} {
		d := &changeData{Draft: &draft{}, Keeps: claim.Judge(replay.SearchKeeps, c.subject), Publish: publishBox{WhyNot: c.unmet}}
		if h := d.Headline(); !strings.HasPrefix(h.Text, c.want) || h.Class != c.class {
			t.Errorf("%s: the headline is %+v", c.name, h)
		}
	}
}

// If the draft no longer has a rule for search engines, the site's own robots.txt decides, because the server merges
// it.
func TestDraftOverTheSitesOwnRobotsTxt(t *testing.T) {
	s := startCaddy(t, testPolicy)
	v, err := s.view(httptest.NewRequest(http.MethodGet, "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	own := robotstxt.Parse([]byte("User-agent: *\nDisallow: /\n"))
	for _, below := range []*robotstxt.File{nil, own} {
		v.Running.below = func(string) (*robotstxt.File, bool) { return below, true }
		old, _ := site.Load("site.yaml", []byte("version: 1\nrules:\n  - for: category:search\n    allow: {crawl: /}\n"))
		now, _ := site.Load("site.yaml", []byte("version: 1\nrules:\n  - for: GPTBot\n    disallow: {train-ai: /}\n"))
		got := (&changeData{Losses: compare.Sites(old, now, compare.Options{Below: v.Running.below}).Losses}).judgeKeeps(v)
		if want := map[bool]claim.Outcome{true: claim.Holds, false: claim.Fails}[below == nil]; got.Outcome() != want {
			t.Errorf("with a file: %v: %s %q", below != nil, got.Text(), got.Lines())
		}
	}
}

// A decision about a name is not added to the draft if no crawler has this name. A draft that already has a rule for
// such a name cannot be published.
func TestDraftForANameWithoutACrawler(t *testing.T) {
	s := startCaddy(t, testPolicy)
	for _, who := range []string{"ChatGPT", "all AI"} {
		body := post(t, s, "change", "http://localhost:2020", map[string]string{"text": testPolicy, "do": "decide", "who": who, "choose": "block"}).Body.String()
		if !strings.Contains(body, "Not added to the draft:") || strings.Contains(body, "for: "+who) || who == "ChatGPT" && !strings.Contains(body, "OAI-SearchBot (search)") {
			t.Errorf("the form takes %q", who)
		}
	}
	body := post(t, s, "change", "http://localhost:2020", map[string]string{"text": strings.Replace(testPolicy, "rules:\n", "rules:\n  - for: ChatGPT\n    disallow: {crawl: /}\n", 1), "do": "check"}).Body.String()
	if strings.Contains(body, "Ready to go live") || !strings.Contains(body, "Not ready: line ") {
		t.Error("a draft for ChatGPT is ready")
	}
}

func TestGuard(t *testing.T) {
	s := startCaddy(t, testPolicy)
	closing := strings.Replace(testPolicy, "  - name: late\n", "  - name: closed\n    for: Bingbot\n    disallow: {crawl: /news/}\n    enforce: block\n  - name: late\n", 1)
	form := map[string]string{"text": closing, "do": "check"}
	body := post(t, s, "change", "http://localhost:2020", form).Body.String()
	if !strings.Contains(body, "blocked by line 9 (closed)") {
		_, section, _ := strings.Cut(body, `id="publish"`)
		t.Fatalf("the safety check does not see that Bingbot would be blocked: %.3000s", section)
	}
	form = fields(body)
	form["text"], form["do"] = closing, "publish"
	if w := post(t, s, "change", "http://localhost:2020", form); w.Code != http.StatusConflict && w.Code != http.StatusForbidden {
		t.Errorf("status %d", w.Code)
	}
	waived := strings.Replace(closing, "    enforce: block\n  - name: late", "    enforce: block\n    intended: [blocks-search]\n  - name: late", 1)
	body = post(t, s, "change", "http://localhost:2020", map[string]string{"text": waived, "do": "check"}).Body.String()
	if !strings.Contains(body, `value="publish"`) {
		t.Errorf("a rule that says it is intended cannot be published")
	}
}

// Console pages that a site serves show only the hosts of this site.
func TestSiteShowsItsHostsOnly(t *testing.T) {
	startCaddy(t, testPolicy)
	s := &server{hosts: []string{"www.example.com"}, logger: caddy.Log()}
	for _, path := range append([]string{"?host=news.example.com", "who-came.csv", "ask?agent=GPTBot&url=https://staging.example.com/"}, allScreens...) {
		w := get(t, s, path)
		if body := w.Body.String(); strings.Contains(body, "news.example.com") || strings.Contains(body, "staging.example.com") && !strings.HasPrefix(path, "ask?") {
			t.Errorf("%s shows another host", path)
		}
	}
	if w := get(t, s, "change"); strings.Contains(w.Body.String(), "no AI training") {
		t.Error("the text of a policy with rules for another host is shown")
	}
}

// If a row sums up several clients, the page does not offer to add these clients to the policy as one crawler.
func TestWhoCanBeNamed(t *testing.T) {
	s := startCaddy(t, testPolicy)
	for name, want := range map[string]string{"harbor-fetch": "Name harbor-fetch</h2>", "(none)": "Name python-httpx</h2>"} {
		body := get(t, s, "who-came?name="+url.QueryEscape(name)).Body.String()
		if !strings.Contains(body, "<code>(none)</code>") || strings.Count(body, ">Name it<") != 2 || !strings.Contains(body, want) {
			t.Errorf("%s: %s", name, body)
		}
	}
}

func TestHostile(t *testing.T) {
	s := startCaddy(t, testPolicy)
	for _, x := range []string{`"><script>alert(1)</script>`, `'onmouseover=alert(1) x='`, "\u202ereversed", `</textarea><img src=x onerror=alert(1)>`, "{{.}}", strings.Repeat("x", 5000)} {
		q := url.QueryEscape(x)
		for _, path := range []string{"?host=" + q, "who-came?q=" + q + "&kind=" + q + "&path=" + q, "crawler?name=" + q, "ask?agent=" + q + "&url=" + q + "&address=" + q, "who-may?q=" + q + "&crawler=" + q + "&section=" + q, "change?expect=" + q + "&name=" + q, "published?done=" + q} {
			w := get(t, s, path)
			body := w.Body.String()
			if strings.Contains(body, "<script>alert") || strings.Contains(body, "<img") || strings.Contains(body, "'onmouseover") {
				t.Errorf("%s is not escaped", path)
			}
			if w.Code >= http.StatusInternalServerError {
				t.Errorf("%s: status %d: %s", path, w.Code, body)
			}
		}
	}
}

func TestDraftLimits(t *testing.T) {
	s := startCaddy(t, testPolicy)
	w := post(t, s, "change", "", map[string]string{"text": strings.Repeat("#", maxDraft+1), "do": "check"})
	if w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d", w.Code)
	}
	if w := post(t, s, "change", "", map[string]string{"text": strings.Repeat("#", maxForm+100), "do": "check"}); w.Code < 400 {
		t.Errorf("status %d", w.Code)
	}
}

// ok reports whether a draft can be published.
func (d *draft) ok() bool { return d.site != nil && d.Errors == 0 && d.Failing == 0 }
