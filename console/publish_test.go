// SPDX-License-Identifier: Apache-2.0

package console

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/recorders"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

const closingBingbot = "  - name: closed\n    for: Bingbot\n    disallow: {crawl: /news/}\n    enforce: block\n"

// If search engines would lose something because an earlier version is restored, the user must accept the loss for each
// search engine by name. This is necessary even if no requests for the affected paths are stored.
func TestEarlierVersionAsksForEachLoss(t *testing.T) {
	s := startCaddy(t, testPolicy)
	v, err := s.view(httptest.NewRequest(http.MethodGet, "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := strings.Replace(testPolicy, "  - name: late\n", "  - name: elsewhere\n    for: Bingbot\n    disallow: {crawl: /where-it-never-came/}\n  - name: late\n", 1)
	texts := []string{testPolicy, elsewhere, testPolicy + "# one\n", testPolicy + "# two\n"}
	for i := range texts[1:] {
		if _, err := v.Running.document.Publish(t.Context(), source.Change{Replaces: sumOf(texts[i]), Text: texts[i+1]}); err != nil {
			t.Fatal(err)
		}
	}
	form := map[string]string{"text": elsewhere, "do": "check", "base": sumOf(texts[3])}
	for accept, ready := range map[string]bool{"": false, "Googlebot": false, "Bingbot": true} {
		form["accept"] = accept
		body := post(t, s, "change", "http://localhost:2020", form).Body.String()
		if checked := strings.Contains(body, `name="accept" value="Bingbot" checked`); checked != ready || strings.Contains(body, "Ready to go live") != ready {
			t.Errorf("accepted %q: the box is checked: %v, ready: %v", accept, checked, !ready)
		}
	}
}

// An undo restores the version before the version in force. It can be published even if search engines lose something
// because of it, but there is an alert then. If the version in force is itself the result of an undo, the page calls
// the next undo "undo the undo". For any other earlier version, the user must accept the losses of the search engines.
func TestUndoAndEarlierVersions(t *testing.T) {
	closing := strings.Replace(testPolicy, "  - name: late\n", closingBingbot+"  - name: late\n", 1)
	s := startCaddy(t, testPolicy) // Bingbot requests /news/ in the generated traffic
	v, err := s.view(httptest.NewRequest(http.MethodGet, "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	document := v.Running.document
	for _, p := range [][2]string{{testPolicy, closing}, {closing, testPolicy}} { // publish directly, without the checks of the console
		if _, err := document.Publish(t.Context(), source.Change{Replaces: sumOf(p[0]), Text: p[1]}); err != nil {
			t.Fatal(err)
		}
	}
	publish := func(text, accept string) (int, string) {
		t.Helper()
		now := document.Current().SHA256
		form := map[string]string{"do": "publish", "text": text, "base": now, "accept": accept, "token": token(time.Now(), now, localName)}
		w := post(t, s, "change", "http://localhost:2020", form)
		if served := document.Current().Text == text; served != (w.Code == http.StatusSeeOther) {
			t.Errorf("status %d, and served: %v", w.Code, served)
		}
		return w.Code, w.Body.String()
	}
	undo := get(t, s, "change?back=v2&from="+sumOf(closing)).Body.String()
	for _, want := range []string{"Ready to undo", "Losses do not stop an undo: Search engines lose", ">Undo the undo: back to v2</button>", "The version in force is itself an undo."} {
		if !strings.Contains(undo, want) {
			t.Errorf("no %q in %s", want, undo)
		}
	}
	if code, body := publish(closing, ""); code != http.StatusSeeOther {
		t.Errorf("undo: status %d: %s", code, body)
	}
	if body := get(t, s, "").Body.String(); !strings.Contains(body, "The undo may take something away from search engines, or a test of the policy now fails") {
		t.Error("no alert")
	}
	for _, text := range []string{testPolicy, testPolicy + "# more\n"} {
		if code, body := publish(text, ""); code != http.StatusSeeOther {
			t.Fatalf("status %d: %s", code, body)
		}
	}
	if body := get(t, s, "").Body.String(); strings.Contains(body, "The undo may take something away from search engines, or a test of the policy now fails") {
		t.Error("the alert stays")
	}
	code, body := publish(closing, "")
	if code != http.StatusConflict || !strings.Contains(body, "is now blocked for Bingbot") || !strings.Contains(body, `name="accept" value="Bingbot`) {
		t.Errorf("an earlier version: status %d: %s", code, body)
	}
	names := regexp.MustCompile(`name="accept" value="([^"]+)"`).FindStringSubmatch(body)
	if code, _ := publish(closing, "Googlebot"); code != http.StatusConflict {
		t.Errorf("accepted for another one: status %d", code)
	}
	if code, body := publish(closing, names[1]); code != http.StatusSeeOther {
		t.Errorf("accepted: status %d: %s", code, body)
	}
}

// A published draft is deleted, whether its text was published unchanged, or combined with another person's version.
// The draft does not reappear, even if deleting it failed.
func TestPublishedDraftIsGone(t *testing.T) {
	s := startCaddyWith(t, testPolicy, t.TempDir())
	v, err := s.view(httptest.NewRequest(http.MethodGet, "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	document := v.Running.document
	fields := regexp.MustCompile(`<input type="hidden" name="([a-z]+)" value="([^"]*)">`)
	send := func(page, do, text string) string {
		t.Helper()
		var w *httptest.ResponseRecorder
		for _, step := range []string{"check", do} { // only the page of a checked draft has a token
			form := map[string]string{"do": step, "text": text}
			for _, f := range fields.FindAllStringSubmatch(page, -1) {
				form[f[1]] = f[2]
			}
			w = post(t, s, "change", "http://localhost:2020", form)
			page = w.Body.String()
		}
		if do != "onto" && w.Code != http.StatusSeeOther {
			t.Fatalf("%s: status %d: %s", do, w.Code, w.Body)
		}
		return w.Body.String()
	}
	saved := func(want bool) {
		t.Helper()
		if page := get(t, s, "change").Body.String(); strings.Contains(page, "draft is saved") != want || !want && strings.Contains(page, "Another version was published") {
			t.Errorf("a draft is saved: %v, want %v: %s", !want, want, page)
		}
	}
	send(get(t, s, "change").Body.String(), "save", testPolicy+"# mine\n")
	saved(true)
	theirs := "# theirs\n" + testPolicy
	if _, err := document.Publish(t.Context(), source.Change{Replaces: sumOf(testPolicy), Text: theirs}); err != nil {
		t.Fatal(err)
	}
	page := get(t, s, "change").Body.String()
	page = send(page, "onto", testPolicy+"# mine\n")
	send(page, "publish", theirs+"# mine\n")
	saved(false)
	send(get(t, s, "change").Body.String(), "save", theirs)
	send(get(t, s, "change").Body.String(), "publish", theirs)
	saved(false)

	// If the published text did not come from the draft, the draft remains.
	send(get(t, s, "change").Body.String(), "save", theirs+"# a draft\n")
	send(get(t, s, "change?draft=none").Body.String(), "publish", theirs+"# something else\n")
	if draft, err := document.Draft(t.Context()); err != nil || draft == nil || draft.Text != theirs+"# a draft\n" {
		t.Errorf("%+v, %v", draft, err)
	}
	if err := document.SaveDraft(t.Context(), draftID(t, document), &source.Draft{Text: theirs + "# something else\n"}); err != nil {
		t.Fatal(err)
	}
	saved(false)
}

func draftID(t *testing.T, d *source.Document) string {
	t.Helper()
	draft, err := d.Draft(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return draft.ID()
}

// The author and the note belong to a version, not to its text. If another person publishes the text of an older
// version again, the older version keeps its author.
func TestAuthorsOfTheSameText(t *testing.T) {
	s := startCaddy(t, testPolicy)
	v, err := s.view(httptest.NewRequest(http.MethodGet, "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	document := v.Running.document
	other := testPolicy + "# other\n"
	before := testPolicy
	for i, by := range []string{"ann", "bob", "cleo"} {
		text := []string{other, testPolicy, other}[i]
		if _, err := document.Publish(t.Context(), source.Change{Replaces: sumOf(before), Text: text, Signed: source.Signed{By: by, Note: "for " + by}}); err != nil {
			t.Fatal(err)
		}
		before = text
		get(t, s, "published") // this page stores the version in force
		recorders.Running().Publish(document.Current().Publication())
	}
	page := get(t, s, "published").Body.String()
	rows := regexp.MustCompile(`(?s)<h3>(v[0-9]+).*?</div><p>(.*?)</p>`).FindAllStringSubmatch(page, -1)
	got := map[string]string{}
	for _, r := range rows {
		got[r[1]] = r[2]
	}
	for version, by := range map[string]string{"v2": "ann", "v3": "bob", "v4": "cleo"} {
		if !strings.Contains(got[version], "By "+by+": “for "+by+"”") {
			t.Errorf("%s: %q, want %s; all: %q", version, got[version], by, got)
		}
	}
}

// If the storage fails, the page does not report a conflict between versions.
func TestPublishingToAStorageThatFails(t *testing.T) {
	dir := t.TempDir()
	s := startCaddyWith(t, testPolicy, dir)
	history := filepath.Join(dir, "storage", "robots", "site.yaml.history")
	if err := os.MkdirAll(history, 0o700); err != nil { // the history cannot be read, because it is a directory
		t.Fatal(err)
	}
	draft := map[string]string{"do": "publish", "text": testPolicy + "# more\n", "base": sumOf(testPolicy), "token": token(time.Now(), sumOf(testPolicy), localName)}
	w := post(t, s, "change", "http://localhost:2020", draft)
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "storage error: publishing: reading the history of storage:robots/site.yaml") {
		t.Errorf("status %d: %.500s", w.Code, w.Body)
	}
	if err := os.Remove(history); err != nil {
		t.Fatal(err)
	}
	if w := post(t, s, "change", "http://localhost:2020", draft); w.Code != http.StatusSeeOther {
		t.Errorf("again: status %d: %.500s", w.Code, w.Body)
	}
}

// A panic while a draft is checked becomes an error message. After that, the next draft can be checked.
func TestDraftThatPanics(t *testing.T) {
	defer func(before func(string, string, source.Return) *draft) { check = before }(check)
	check = func(name, text string, returns source.Return) *draft {
		if strings.Contains(text, "boom") {
			panic("a fault")
		}
		return newDraft(name, text, returns)
	}
	if d, err := checkDraft(t.Context(), "x.yaml", "boom", source.NeverServed); d != nil || err == nil || !strings.Contains(err.Error(), "because of an error in the program") {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := checkDraft(t.Context(), "x.yaml", testPolicy, source.NeverServed); err != nil || !d.ok() {
		t.Errorf("after a panic: %+v, %v", d, err)
	}
}

// Requests that were served although they are disallowed, and requests that would be blocked if blocking were on, are
// counted separately. A rate limit is counted like a block.
func TestClosedAndWouldAreCountedApart(t *testing.T) {
	v := &view{server: &server{}, q: map[string][]string{"decision": {"would_block"}}}
	row := func(decision string, n int64) *store.Row {
		return &store.Row{Values: store.Values{store.ByDecision: decision}, Counts: store.Counts{Requests: n}}
	}
	closed, would := &client{clientID: clientID{Name: "A"}}, &client{clientID: clientID{Name: "B"}}
	addRow(&closed.counts, row("disallowed", 5))
	addRow(&would.counts, row("would_block", 2))
	addRow(&would.counts, row("would_limit", 1))
	addRow(&would.counts, row("blocked", 4))
	addRow(&would.counts, row("limited", 3))
	if want := (counts{All: 10, Would: 3, Blocked: 7}); would.counts != want {
		t.Errorf("counts: %+v, want %+v", would.counts, want)
	}
	all := []*client{closed, would}
	if got := v.filter(all); len(got) != 1 || got[0] != would {
		t.Errorf("would be blocked: %+v", got)
	}
	v.q.Set("decision", "disallowed")
	if got := v.filter(all); len(got) != 1 || got[0] != closed {
		t.Errorf("closed, served: %+v", got)
	}
	d := &whoCameData{Clients: all, Total: counts{Closed: 5, Would: 3}}
	v.q.Set("sort", "would")
	v.sort(d)
	if d.Clients[0] != would {
		t.Error("sorting by what would be blocked counts what is disallowed")
	}
	var names []string
	for _, c := range d.Columns {
		names = append(names, c.Name)
	}
	if text := strings.Join(names, ","); !strings.Contains(text, "Disallowed, served,Would be blocked,Blocked") {
		t.Errorf("columns: %s", text)
	}
	d.Total.Closed, d.Columns = 0, nil
	v.sort(d)
	if len(d.Columns) != len(names)-1 {
		t.Error("an empty column is shown")
	}
}

// sumOf returns the SHA-256 hash of a text in hexadecimal digits.
func sumOf(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// A failing test does not prevent an undo, so the headline does not mention it.
func TestHeadlineOfAnUndoWithAFailingTest(t *testing.T) {
	t.Parallel()
	d := &changeData{Draft: &draft{Errors: 1, Failing: 1}, Losses: new(compare.Losses), Returns: source.Undo}
	if h := d.Headline(); h.Text != "Ready to undo" {
		t.Errorf("%+v", h)
	}
	d.Draft.Errors = 2
	d.Publish.WhyNot = "1 error in the draft"
	if h := d.Headline(); h.Text != "Not ready: 1 error in the draft" {
		t.Errorf("%+v", h)
	}
}
