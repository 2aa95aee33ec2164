// SPDX-License-Identifier: Apache-2.0

package console

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/activity/store/journal"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

const closingBingbot = "  - name: closed\n    for: Bingbot\n    disallow: {crawl: /news/}\n    enforce: block\n"

// Going back to an earlier version is guarded as publishing a draft is.
func TestGoingBackIsGuarded(t *testing.T) {
	closing := strings.Replace(testPolicy, "  - name: late\n", closingBingbot+"  - name: late\n", 1)
	s := startCaddy(t, testPolicy) // whose traffic has Bingbot at /news/
	v, err := s.view(httptest.NewRequest(http.MethodGet, "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	now, earlier := sumOf(testPolicy), sumOf(closing)
	for _, p := range [][2]string{{now, closing}, {earlier, testPolicy}} { // without the guard of the console
		if _, err := v.Running.document.Publish(t.Context(), p[0], p[1], source.Signed{}); err != nil {
			t.Fatal(err)
		}
	}
	const origin = "http://localhost:2020"
	w := post(t, s, "change", origin, map[string]string{"do": "publish", "back": "v1", "text": closing, "base": now, "token": token(time.Now(), now, localName)})
	if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "of Bingbot refused, line ") {
		t.Errorf("going back to a version that refuses Bingbot: status %d: %s", w.Code, w.Body)
	}
	if v, err := s.view(httptest.NewRequest(http.MethodGet, "/", nil)); err != nil || v.Running.Text != testPolicy {
		t.Errorf("the earlier version is in force: %v", err)
	}
}

// A storage that fails is not a conflict between versions.
func TestPublishingToAStorageThatFails(t *testing.T) {
	dir := t.TempDir()
	s := startCaddyWith(t, testPolicy, dir)
	history := filepath.Join(dir, "storage", "robots", "site.yaml.history")
	if err := os.MkdirAll(history, 0o700); err != nil { // which cannot be read as a file
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

// A fault in checking a draft is a message, and the next draft can be checked.
func TestDraftThatPanics(t *testing.T) {
	defer func(before func(name, text string) *draft) { check = before }(check)
	check = func(name, text string) *draft {
		if strings.Contains(text, "boom") {
			panic("a fault")
		}
		return newDraft(name, text)
	}
	if d, err := checkDraft(t.Context(), "x.yaml", "boom"); d != nil || err == nil || !strings.Contains(err.Error(), "error of the program") {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := checkDraft(t.Context(), "x.yaml", testPolicy); err != nil || !d.ok() {
		t.Errorf("after a panic: %+v, %v", d, err)
	}
}

// What is closed but served, and what would be refused if refusing were on, are two
// numbers.
func TestClosedAndWouldAreCountedApart(t *testing.T) {
	v := &view{server: &server{}, q: map[string][]string{"verdict": {"would"}}}
	row := func(decision string, n int64) *store.Row {
		return &store.Row{Values: store.Values{store.ByDecision: decision}, Counts: journal.Counts{Requests: n}}
	}
	closed, would := &client{Name: "A"}, &client{Name: "B"}
	addRow(&closed.counts, row("disallowed", 5))
	addRow(&would.counts, row("would_refuse", 3))
	all := []*client{closed, would}
	if got := v.filter(all); len(got) != 1 || got[0] != would {
		t.Errorf("would be refused: %+v", got)
	}
	v.q.Set("verdict", "closed")
	if got := v.filter(all); len(got) != 1 || got[0] != closed {
		t.Errorf("closed, served: %+v", got)
	}
	d := &whoCameData{Clients: all, Total: counts{Closed: 5, Would: 3}}
	v.q.Set("sort", "would")
	v.sort(d)
	if d.Clients[0] != would {
		t.Error("sorting by what would be refused counts what is closed")
	}
	var names []string
	for _, c := range d.Columns {
		names = append(names, c.Name)
	}
	if text := strings.Join(names, ","); !strings.Contains(text, "Closed, served,Would be refused,Refused") {
		t.Errorf("columns: %s", text)
	}
	d.Total.Closed, d.Columns = 0, nil
	v.sort(d)
	if len(d.Columns) != len(names)-1 {
		t.Error("an empty column is shown")
	}
}

// sumOf is the SHA-256 of a text in hexadecimal digits.
func sumOf(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
