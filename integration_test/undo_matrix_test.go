// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/certmagic"

	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// matrixTexts holds the texts of the policy versions in TestUndoMatrix, keyed by name. "older" is the first version,
// and "before" the second one. No server ever serves "never". "mistake" allows /news/ by mistake. All other versions
// disallow /news/ for Googlebot, which requests it while "mistake" is served.
var matrixTexts = func() map[string]string {
	const head = "version: 1\nenforcement: {mode: block}\nrules:\n  - for: everyone\n    allow: {crawl: [/]}\n  - for: GPTBot\n    disallow: {crawl: [/%s/]}\n"
	const closed = "  - for: Googlebot\n    disallow: {crawl: [/news/]}\n"
	return map[string]string{
		"older": fmt.Sprintf(head, "older") + closed, "before": fmt.Sprintf(head, "before") + closed,
		"never": fmt.Sprintf(head, "never") + closed, "mistake": fmt.Sprintf(head, "mistake"),
	}
}()

const matrixKey = "robots/site.yaml"

// matrixServer is a running Caddy that has served the versions "older", "before" and "mistake", in this order. The
// version "never" was in its storage, but was not served. Search engines have sent requests while "mistake" was served.
type matrixServer struct {
	*reloading
	from  string // file, storage or web
	limit string // the search-loss limit, which is an option of the activity database
	web   *policyServer
}

func (m *matrixServer) configure(approval int) {
	m.t.Helper()
	m.global = "admin " + m.admin + "\nstorage file_system DIR/storage\n" + `servers {
	trusted_proxies static 127.0.0.0/8
}
log {
	output file DIR/log {
		roll_disabled
	}
	format json
}
robots_policy {
	activity DIR/activity {
		` + m.limit + `
	}
	console off {
		write
		user {http.request.header.X-User}
		roles {
			publisher ann
		}
		approval ` + fmt.Sprint(approval) + `
	}
}`
	policy := map[string]string{"file": "POLICY", "storage": "storage:" + matrixKey, "web": ""}[m.from]
	if m.web != nil {
		policy = m.web.URL + "/site.yaml"
	}
	m.body = "handle /crawlers/* {\nrobots_policy_console {\nhosts other.example.com\n}\n}\nrobots_policy " + policy + " {\nreload off\n}\nrespond hello"
	if err := m.reconfigure(m.body); err != nil {
		m.t.Fatal(err)
	}
}

func startMatrix(t *testing.T, from, limit string) *matrixServer {
	t.Helper()
	m := &matrixServer{reloading: startReloading(t, "", matrixTexts["older"], nil, "respond hello"), from: from, limit: limit}
	switch from {
	case "storage":
		m.file("storage/"+matrixKey, matrixTexts["older"])
	case "web":
		m.web = newPolicyServer(t, matrixTexts["older"])
	}
	m.configure(1)
	m.puts("before", true)
	if from == "storage" { // this version is in the storage but not served, and the next version replaces it
		if err := source.PublishTo(t.Context(), &certmagic.FileStorage{Path: filepath.Join(m.dir, "storage")}, matrixKey,
			source.Change{Replaces: source.SumOf(matrixTexts["before"]), Text: matrixTexts["never"]}); err != nil {
			t.Fatal(err)
		}
	}
	m.puts("mistake", true)
	for range 20 {
		m.get("/news/1", "User-Agent", "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "X-Forwarded-For", "66.249.66.1")
	}
	eventually(t, "the requests are stored", func() bool {
		r, err := store.OpenReader(t.Context(), filepath.Join(m.dir, "activity"))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		visits, err := r.Crawlers(t.Context())
		return err == nil && slices.ContainsFunc(visits, func(c store.Crawler) bool { return c.Name == "Googlebot" })
	})
	return m
}

// serves returns the version that the server serves, according to its robots.txt.
func (m *matrixServer) serves() string {
	m.t.Helper()
	for name := range matrixTexts {
		if m.disallows("/" + name + "/") {
			return name
		}
	}
	return "?"
}

// puts replaces the policy with the version called name. Depending on the source, it changes the policy file, the text
// at the web address, or the storage. The test fails if the server then serves this version although served is false,
// or does not serve it although served is true. puts returns the body of the server's answer.
func (m *matrixServer) puts(name string, served bool) string {
	m.t.Helper()
	var out response
	switch m.from {
	case "storage":
		out = m.publishes(matrixTexts[name], "")
	case "web":
		m.web.serve(matrixTexts[name])
		out = m.ask(http.MethodPost, "/robots_policy/reload", nil)
	default:
		m.write("policy.yaml", matrixTexts[name])
		out = m.ask(http.MethodPost, "/robots_policy/reload", nil)
	}
	m.result(name, served, out)
	return out.body
}

// result checks an answer of the server (out). The test has requested that the server serves the version called name.
// served says whether the server should now serve this version. The answer must report a success if the server serves
// the version, and an error if it does not.
func (m *matrixServer) result(name string, served bool, out response) {
	m.t.Helper()
	now := m.serves()
	if success := out.StatusCode < 300 && out.StatusCode != http.StatusAccepted; success != (now == name) || success != served {
		m.t.Errorf("%s: status %d, and %s is served\n%s", name, out.StatusCode, now, out.body)
	}
}

// publishes asks the admin API to publish a text. With other queries, it asks the API to undo the last version, or to
// publish an older version again.
func (m *matrixServer) publishes(text, query string) response {
	m.t.Helper()
	r, err := http.NewRequest(http.MethodPost, "http://"+m.admin+"/robots_policy/publish?author=ann&"+query, strings.NewReader(text))
	if err != nil {
		m.t.Fatal(err)
	}
	resp, body := m.once(r)
	return response{resp, string(body)}
}

var hiddenField = regexp.MustCompile(`<input type="hidden" name="([a-z]+)" value="([^"]*)">`)

// ofOthers tries to publish the version called name in the console. It does this as the user ann, who may only change
// rules for other.example.com, although the policy also contains rules for other hosts.
func (m *matrixServer) ofOthers(name string) response {
	m.t.Helper()
	const path = "/crawlers/change"
	page := m.get(path, "Host", "other.example.com", "X-User", "ann")
	for _, step := range []string{"check", "publish"} { // only a page with a checked draft has a token
		form := map[string]string{"text": matrixTexts[name], "do": step, "accept": "Googlebot"}
		for _, field := range hiddenField.FindAllStringSubmatch(page.body, -1) {
			form[field[1]] = field[2]
		}
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		for k, v := range form {
			if err := w.WriteField(k, v); err != nil {
				m.t.Fatal(err)
			}
		}
		_ = w.Close()
		r, err := http.NewRequest(http.MethodPost, "http://"+m.addr+path, &b)
		if err != nil {
			m.t.Fatal(err)
		}
		r.Host = "other.example.com"
		r.Header.Set("X-User", "ann")
		r.Header.Set("Origin", "http://other.example.com")
		r.Header.Set("Content-Type", w.FormDataContentType())
		resp, body := m.once(r)
		page = response{resp, string(body)}
	}
	return page
}

// TestUndoMatrix returns to the previous version, to an older version, and to a version that was never served. It does
// this with each kind of source and each search-loss limit. Three people try each of these undos. The first one does
// not need approval. The second one needs the approval of another person. The third one may only change rules for
// other.example.com. If the server does not serve the version, the answer must never report a success.
func TestUndoMatrix(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Caddy nine times")
	}
	for _, from := range []string{"storage", "file", "web"} {
		for _, limit := range []string{"", "max_search_loss 0", "max_search_loss 5"} {
			if from == "web" && limit != "max_search_loss 0" && !testkit.Thorough() {
				continue // tested less often, because it differs from a file only in how it is read
			}
			t.Run(from+" "+limit, func(t *testing.T) {
				m := startMatrix(t, from, limit)
				if from == "storage" {
					m.inStorage(limit == "")
				} else {
					m.elsewhere(limit == "")
				}
			})
		}
	}
}

// says checks that an answer contains all of the words.
func (m *matrixServer) says(out string, words ...string) {
	m.t.Helper()
	for _, w := range words {
		if !strings.Contains(out, w) {
			m.t.Errorf("no %q in\n%s", w, out)
		}
	}
}

func (m *matrixServer) inStorage(unlimited bool) {
	t := m.t
	// An undo is possible even if search engines lose something because of it, but it causes an alert.
	out := m.publishes("", "undo")
	m.result("before", true, out)
	m.says(out.body, `"undo": true`, `"undo_cost":`, "/news/ is now blocked", "for Googlebot")
	if !unlimited {
		m.says(out.body, "Search engines lose 20 requests")
	}
	if len(m.log("an undo restored an earlier version of the policy; with this version, search engines lose something, or a test of the policy fails")) != 1 {
		t.Error("no alert")
	}
	// A second undo would return to the text that was undone, and must be confirmed.
	out = m.publishes("", "undo")
	m.result("mistake", false, out)
	m.says(out.body, "the present version is an undo", "again=yes")
	m.result("mistake", true, m.publishes("", "undo&again=yes"))
	if s := m.policies().Policies[0]; s.Before != source.SumOf(matrixTexts["before"]) || s.UndoCost != "" {
		t.Errorf("%+v", s)
	}

	// To publish an older version again, a person must name each search engine that may lose something because of it.
	out = m.publishes("", "version=1")
	m.result("older", false, out)
	m.says(out.body, "accept it by name:", "Googlebot")
	m.result("older", false, m.publishes("", "version=1&accept_loss=Bingbot"))
	m.result("older", true, m.publishes("", "version=v1&accept_loss="+m.losers(out.body)))
	m.result("mistake", true, m.publishes(matrixTexts["mistake"], ""))

	// A version that was never served is treated as a new text.
	out = m.publishes("", "version=3")
	m.result("never", false, out)
	m.says(out.body, "no server is known to have served it")
	out = m.publishes(matrixTexts["never"], "accept_loss=Googlebot")
	m.result("never", unlimited, out)
	if unlimited {
		m.result("mistake", true, m.publishes("", "undo"))
		m.result("never", true, m.publishes("", "undo&again=yes")) // this version has been served in the meantime
		m.result("mistake", true, m.publishes(matrixTexts["mistake"], ""))
	} else {
		m.says(out.body, "Search engines lose 20 requests")
	}

	// A person who may only change the rules of some hosts cannot use an undo to change the rules of other hosts.
	for _, name := range []string{"older", "before", "never"} {
		out := m.ofOthers(name)
		m.result(name, false, out)
		m.says(out.body, "This draft cannot be published: ", `Fails</span><span>the draft changes rules for hosts other than other.example.com`)
	}

	// Approval also applies to undo: if approval is required and only one person publishes a text, it becomes a draft.
	m.configure(2)
	if m.serves() != "mistake" {
		t.Fatalf("%s is served", m.serves())
	}
	for _, query := range []string{"undo&again=yes", "version=1&accept_loss=Googlebot", ""} {
		text := ""
		if query == "" {
			text = matrixTexts["never"]
		}
		out := m.publishes(text, query)
		m.result("", false, out)
		if out.StatusCode != http.StatusAccepted {
			t.Errorf("%q: status %d\n%s", query, out.StatusCode, out.body)
		}
		m.says(out.body, `"result": "draft"`, "approval 2")
		if err := os.Remove(filepath.Join(m.dir, "storage", filepath.FromSlash(matrixKey)+".draft")); err != nil {
			t.Errorf("%q: no draft: %v", query, err)
		}
		if m.serves() != "mistake" {
			t.Errorf("%q: %s is served", query, m.serves())
		}
	}
}

// losers returns the names in a message about losses, escaped as a query parameter.
func (*matrixServer) losers(message string) string {
	_, names, _ := strings.Cut(message, "accept it by name: ")
	names, _, _ = strings.Cut(names, `"`)
	return url.QueryEscape(names)
}

// elsewhere tests a source, such as a file, that other programs write. If such a program writes the previously served
// text again, this is treated as an undo, so the search-loss limit does not apply. unlimited is true if there is no
// search-loss limit.
func (m *matrixServer) elsewhere(unlimited bool) {
	rejected := func(name string) {
		m.t.Helper()
		if out := m.puts(name, unlimited); !unlimited {
			m.says(out, "Search engines lose 20 requests")
		} else {
			m.puts("mistake", true)
		}
	}
	out := m.puts("before", true)
	m.says(out, `"applied"`)
	if len(m.log("an undo restored an earlier version of the policy; with this version, search engines lose something, or a test of the policy fails")) != 1 || m.policies().Policies[0].UndoCost == "" {
		m.t.Error("no alert")
	}
	m.puts("mistake", true) // mistake is now the previously served text
	rejected("never")
	rejected("older")

	// The command publish says that it cannot publish to a file or a web address.
	name := filepath.Join(m.dir, "policy.yaml")
	if m.web != nil {
		name = m.web.URL + "/site.yaml"
	}
	before := source.SumOf(matrixTexts["before"])
	if unlimited {
		before = source.SumOf(matrixTexts["older"])
	}
	said, code := caddyExits(m.t, "robots-policy", "publish", "--undo", "--to", name, "--address", m.admin)
	if code != 1 || !strings.Contains(said, "is not in Caddy's storage, so this command cannot undo its last change. Restore this text by hand: the text that Caddy served before the present text (sha256 "+before[:12]+"). The limit max_search_loss does not stop Caddy from loading the restored text.") {
		m.t.Errorf("exit %d: %s", code, said)
	}
	// The admin API and the console cannot publish to a file or a web address, either. This is true with and without
	// the approval of a second person, and for a person who may only change the rules of some hosts.
	for _, approval := range []int{1, 2} {
		m.configure(approval)
		for _, query := range []string{"undo", "version=1", ""} {
			out := m.publishes(matrixTexts["never"], query)
			m.result("never", false, out)
			m.says(out.body, "no site uses one")
		}
	}
	for _, name := range []string{"older", "before", "never"} {
		if now := m.serves(); name != now {
			out := m.ofOthers(name)
			m.result(name, false, out)
			m.says(out.body, "The policy is a file")
		}
	}
}
