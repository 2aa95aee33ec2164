// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"maps"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/policies"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// visitor sends requests to pages as a user that Caddy has authenticated.
type visitor struct {
	*server
	t    *testing.T
	name string // empty: not signed in
}

func (x visitor) do(method, path string, form map[string]string) *httptest.ResponseRecorder {
	x.t.Helper()
	var b strings.Builder
	m := multipart.NewWriter(&b)
	for k, v := range form {
		if err := m.WriteField(k, v); err != nil {
			x.t.Fatal(err)
		}
	}
	_ = m.Close()
	r := httptest.NewRequest(method, "https://www.example.com/crawlers/"+path, strings.NewReader(b.String()))
	r.Header.Set("Remote-User", "paul") // a client can send any name in this field, so it must not sign in paul
	if method == http.MethodPost {
		r.Header.Set("Content-Type", m.FormDataContentType())
		r.Header.Set("Origin", "https://www.example.com")
	}
	replacer := caddy.NewReplacer()
	if x.name != "" {
		replacer.Set("http.auth.user.id", x.name)
	}
	w := httptest.NewRecorder()
	x.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), caddy.ReplacerCtxKey, replacer)))
	return w
}

// use sets options of the console for a test.
func use(t *testing.T, c *Console) {
	t.Helper()
	options.Add(c)
	t.Cleanup(func() { options.Remove(c) })
}

var people = map[string][]string{"viewer": {"vera"}, "editor": {"edda", "emil"}, "publisher": {"paul", "petra"}}

// TestWhoMayDoWhat tries each action as each person. Each form is sent from a page with a valid token of this person.
func TestWhoMayDoWhat(t *testing.T) {
	admin := startCaddyWith(t, testPolicy, t.TempDir())
	site := &server{all: true, logger: caddy.Log()}
	v, err := admin.view(httptest.NewRequest(http.MethodGet, "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	document, base, text := v.Running.document, sumOf(testPolicy), ""
	const (
		no   = http.StatusForbidden
		ok   = http.StatusOK
		done = http.StatusSeeOther
		not  = http.StatusConflict
	)
	who := []string{"", "mallory", "vera", "edda", "paul", "localhost"}
	actions := []struct {
		name     string
		approval int
		draft    string // who saved the draft; empty if there is none
		want     [6]int
	}{
		{"read", 1, "", [6]int{no, no, ok, ok, ok, ok}},
		{"check", 1, "", [6]int{no, no, ok, ok, ok, ok}},
		{"download", 1, "", [6]int{no, no, ok, ok, ok, ok}},
		{"save", 1, "", [6]int{no, no, no, done, done, done}},
		{"save", 1, "emil", [6]int{no, no, no, done, done, done}},
		{"discard", 1, "emil", [6]int{no, no, no, done, done, done}},
		{"approve", 2, "emil", [6]int{no, no, no, done, done, done}},
		{"approve", 2, "edda", [6]int{no, no, no, no, done, done}},
		{"approve", 2, "", [6]int{no, no, no, not, not, not}},
		{"publish", 1, "", [6]int{no, no, no, no, done, done}},
		{"publish", 2, "", [6]int{no, no, no, no, not, not}},
		{"publish", 2, "paul", [6]int{no, no, no, no, not, done}},
		{"publish", 2, "emil", [6]int{no, no, no, no, done, done}},
		{"publish", 3, "emil", [6]int{no, no, no, no, not, not}},
	}
	for _, a := range actions {
		use(t, &Console{Write: true, Roles: people, Approval: a.approval})
		for i, name := range who {
			text += "#" // each text is new, because other rules apply to the texts of earlier versions
			text := testPolicy + text + "\n"
			// Begin each case with testPolicy in force, and with the draft of the case.
			if now := document.Current(); now.Text != testPolicy {
				if _, err := document.Publish(t.Context(), source.Change{Replaces: now.SHA256, Text: testPolicy}); err != nil {
					t.Fatal(err)
				}
			}
			saved, err := document.Draft(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var draft *source.Draft
			if a.draft != "" {
				draft = &source.Draft{Base: base, Text: text, Time: time.Now(), Signed: source.Signed{By: a.draft}}
			}
			if err := document.SaveDraft(t.Context(), saved.ID(), draft); err != nil {
				t.Fatal(err)
			}
			if draft != nil {
				if draft, err = document.Draft(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			x := visitor{site, t, name}
			if name == localName {
				x = visitor{admin, t, ""}
			}
			form := map[string]string{"text": text, "base": base, "draft": draft.ID(), "do": a.name, "note": "why", "token": token(time.Now(), base, name)}
			var w *httptest.ResponseRecorder
			switch a.name {
			case "read":
				w = x.do(http.MethodGet, "who-may", nil)
			case "download":
				w = x.do(http.MethodPost, "draft", form)
			default:
				w = x.do(http.MethodPost, "change", form)
			}
			if w.Code != a.want[i] {
				t.Errorf("%s (approval %d, draft by %q) as %q: status %d, not %d: %.200s", a.name, a.approval, a.draft, name, w.Code, a.want[i], w.Body)
			}
			changed := document.Current().Text == text
			now, err := document.Draft(t.Context())
			if err != nil || changed != (a.name == "publish" && w.Code == done) || w.Code != done && now.ID() != draft.ID() {
				t.Errorf("%s as %q: published %v, draft %+v (%v)", a.name, name, changed, now, err)
			}
			// The action fails for everyone without a token that is valid for the person and for the version.
			if w.Code == done {
				for _, bad := range []string{token(time.Now(), base, "petra"), token(time.Now(), "", name), ""} {
					again := maps.Clone(form)
					again["token"] = bad
					if w := x.do(http.MethodPost, "change", again); w.Code == done {
						t.Errorf("%s as %q with another token: done", a.name, name)
					}
				}
			}
		}
	}
	st, err := document.Standing(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if all := st.History; all[0].Note != "" || len(all) < 9 || !slices.ContainsFunc(all, func(p source.Published) bool {
		return p.By == localName && p.Note == "why" && slices.Equal(p.Approved, []string{"emil"})
	}) {
		t.Errorf("the history has no names: %+v", all)
	}
}

// A header alone does not sign anyone in, and without `write` no action is possible.
func TestWhoIsWho(t *testing.T) {
	s := startCaddyWith(t, testPolicy, t.TempDir())
	site := &server{all: true, logger: caddy.Log()}
	for _, c := range []struct {
		console *Console
		name    string
		role    role
		says    string
	}{
		{&Console{Write: true}, "", viewer, "You are not signed in: these pages are read-only."},
		{&Console{Write: true}, "paul", viewer, "Signed in as paul, with read access."},
		{&Console{Write: true, Roles: people}, "edda", editor, "Signed in as edda, an editor."},
		{&Console{Write: true, Roles: people}, "paul", publisher, "Signed in as paul, a publisher."},
		{&Console{Roles: people}, "paul", publisher, "Signed in as paul, with read access."},
		{&Console{Write: true, Roles: map[string][]string{"viewer": {"*"}, "publisher": {"*"}}}, "", viewer, "You are not signed in: these pages are read-only."},
		{&Console{Write: true, Roles: map[string][]string{"editor": {"*"}}}, "", stranger, ""},
		{&Console{Write: true, Roles: map[string][]string{"editor": {"*"}}}, "x", editor, "an editor."},
		{&Console{Write: true, Roles: people, User: "{http.auth.user.email}"}, "paul", stranger, ""},
		{&Console{Write: true, Roles: people}, "paul\r\n", publisher, ""},
		{&Console{Write: true, Roles: people}, "pa\x00ul", stranger, ""},
		{&Console{Write: true, Roles: people}, strings.Repeat("paul", 100), stranger, ""},
	} {
		use(t, c.console)
		x := visitor{site, t, c.name}
		w := x.do(http.MethodGet, "health", nil)
		if refused := w.Code == http.StatusForbidden; refused != (c.role == stranger) || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%+v as %q: status %d, and not %q", c.console, c.name, w.Code, c.says)
		}
		if on := strings.Contains(w.Body.String(), "on: use the page “What would change”"); on != (c.role == publisher && c.console.Write) {
			t.Errorf("%+v as %q: Health says that this person can publish: %t", c.console, c.name, on)
		}
	}
	use(t, &Console{Roles: people})
	form := map[string]string{"text": testPolicy + "# more\n", "base": sumOf(testPolicy), "do": "publish", "token": token(time.Now(), sumOf(testPolicy), "paul")}
	if w := (visitor{site, t, "paul"}).do(http.MethodPost, "change", form); w.Code != http.StatusForbidden {
		t.Errorf("published without write: %d", w.Code)
	}
	if body := get(t, s, "change").Body.String(); strings.Contains(body, "Signed in") {
		t.Error("the pages of this machine name somebody")
	}
}

// People who use the console on a site can change only rules for the hosts of this site.
func TestSitesChangeTheirHostsOnly(t *testing.T) {
	const text = `version: 1
rules:
  - for: everyone
    disallow: {crawl: /admin/}
  - for: GPTBot
    hosts: www.example.com
    disallow: {crawl: /news/}
expect:
  - GPTBot may not crawl https://www.example.com/news/
  - GPTBot may crawl https://shop.example.com/
  - everyone may not crawl /admin/
`
	startCaddyWith(t, text, t.TempDir())
	use(t, &Console{Write: true, Roles: people})
	x := visitor{&server{hosts: []string{"www.example.com"}, logger: caddy.Log()}, t, "paul"}
	if body := x.do(http.MethodGet, "change", nil).Body.String(); !strings.Contains(body, `id="decide"`) || strings.Contains(body, `id="rights"`) {
		t.Error("the pages of a site offer to reserve rights for every host")
	}
	base := text
	for _, c := range []struct {
		name, old, new string
		ok             bool
	}{
		{"a rule for every host", "crawl: /admin/", "crawl: [/admin/, /x/]", false},
		{"a rule that was for this host", "    hosts: www.example.com\n", "", false},
		{"another host", "hosts: www.example.com", "hosts: [www.example.com, shop.example.com]", false},
		{"a wildcard", "hosts: www.example.com", "hosts: '*.example.com'", false},
		{"a new crawler", "rules:\n", "crawlers:\n  NewBot: {category: search}\nrules:\n", false},
		{"what blocks", "rules:\n", "enforcement: {mode: block}\nrules:\n", false},
		{"a register", "rules:\n", "publish: {tdmrep: on}\nrules:\n", false},
		{"a sitemap", "rules:\n", "sitemaps: [/s.xml]\nrules:\n", false},
		{"the test of another host", "  - GPTBot may crawl https://shop.example.com/\n", "", false},
		{"the test of every host", "  - everyone may not crawl /admin/\n", "", false},
		{"its own test", "  - GPTBot may not crawl https://www.example.com/news/\n", "", true},
		{"its own host", "crawl: /news/", "crawl: [/news/, /y/]", true},
		{"a test", "expect:\n", "expect:\n  - Bingbot may crawl https://www.example.com/\n", true},
	} {
		draft := strings.Replace(base, c.old, c.new, 1)
		for _, do := range []string{"save", "publish"} {
			w := x.do(http.MethodPost, "change", map[string]string{"text": draft, "base": sumOf(base), "do": do, "draft": "", "token": token(time.Now(), sumOf(base), "paul")})
			if (w.Code == http.StatusSeeOther) != c.ok {
				_, problem, _ := strings.Cut(w.Body.String(), `id="problem">`)
				t.Errorf("%s: %s: status %d: %.300s", c.name, do, w.Code, problem)
			}
		}
		if c.ok {
			base = draft
			continue
		}
		// Now petra, who may change everything, has saved the draft. paul, who may change only the rules of one host,
		// must not be able to approve petra's draft.
		document := policies.Pool.Documents()[0]
		if err := document.SaveDraft(t.Context(), "", &source.Draft{Base: sumOf(base), Text: draft, Time: time.Now(), Signed: source.Signed{By: "petra"}}); err != nil {
			t.Fatal(err)
		}
		saved, err := document.Draft(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		form := map[string]string{"text": draft, "base": sumOf(base), "do": "approve", "draft": saved.ID(), "token": token(time.Now(), sumOf(base), "paul")}
		if w := x.do(http.MethodPost, "change", form); w.Code == http.StatusSeeOther {
			t.Errorf("%s: approved", c.name)
		}
		if err := document.SaveDraft(t.Context(), saved.ID(), nil); err != nil {
			t.Fatal(err)
		}
	}
}

// The option "user" must be a single placeholder. With a value such as `{http.auth.user.id}@example.com`, people who
// are not signed in would also have a name.
func TestUserIsOnePlaceholder(t *testing.T) {
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	defer cancel()
	for user, ok := range map[string]bool{
		"": true, "{http.auth.user.id}": true, "{http.request.header.X-Forwarded-Email}": true,
		"{http.auth.user.id}@example.com": false, "x{http.auth.user.id}": false, "{a}{b}": false, "{a": false, "a}": false, "{}": false, "anyone": false, "{a}}": false,
	} {
		if err := (&Console{Listen: "off", User: user}).Provision(ctx); (err == nil) != ok {
			t.Errorf("%q: %v", user, err)
		}
	}
}
