// SPDX-License-Identifier: Apache-2.0

package console

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
)

// Two editors change the policy at the same time. The first editor has published a version or saved a draft. The change
// of the second editor is then added to this version or draft.
func TestTwoEditors(t *testing.T) {
	startCaddyWith(t, testPolicy, t.TempDir())
	use(t, &Console{Write: true, Roles: people})
	s := &server{all: true, logger: caddy.Log()}
	edda, paul := visitor{s, t, "edda"}, visitor{s, t, "paul"}
	replace := func(old, with string) string { return strings.Replace(testPolicy, old, with, 1) }
	theirs := replace("crawl: /archive/", "crawl: [/archive/, /old/]")
	form := func(text, name string) map[string]string {
		return map[string]string{"text": text, "base": sumOf(testPolicy), "draft": "", "token": token(time.Now(), sumOf(testPolicy), name)}
	}
	send := func(x visitor, form map[string]string, do string) (int, string) {
		form["do"] = do
		w := x.do(http.MethodPost, "change", form)
		return w.Code, w.Body.String()
	}
	published := form(theirs, "paul")
	published["note"] = "Close the old part"
	if status, body := send(paul, published, "publish"); status != http.StatusSeeOther {
		t.Fatalf("%d %s", status, body)
	}
	for _, c := range []struct {
		name, text, want string
	}{
		{"apart", replace("crawl: /admin/", "crawl: [/admin/, /x/]"), "crawl: [/archive/, /old/]"},
		{"a clash", replace("crawl: /archive/", "crawl: [/archive/, /mine/]"), "crawl: [/archive/, /mine/]"},
	} {
		mine := form(c.text, "edda")
		_, body := send(edda, mine, "check")
		if !strings.Contains(body, "by paul: “Close the old part”") || !strings.Contains(body, "Apply my change to version 2") || !strings.Contains(body, "The other change") {
			t.Fatalf("%s: both changes are not shown: %s", c.name, body)
		}
		if status, _ := send(edda, mine, "save"); status != http.StatusSeeOther {
			t.Errorf("%s: a draft of an earlier version is not saved: %d", c.name, status)
		}
		_, body = send(edda, mine, "onto")
		if asks := strings.Contains(body, "You and the other person changed the same lines"); asks != (c.name == "a clash") {
			t.Fatalf("%s: asks: %v", c.name, asks)
		}
		if c.name == "a clash" {
			mine["clash1"] = "mine"
			_, body = send(edda, mine, "onto")
		}
		if !strings.Contains(body, "Your change is now based on version 2") || !strings.Contains(body, c.want) || fields(body)["base"] != sumOf(theirs) {
			t.Errorf("%s: %s", c.name, body)
		}
		if c.name == "apart" && !strings.Contains(body, "crawl: [/admin/, /x/]") {
			t.Errorf("%s: the change is lost: %s", c.name, body)
		}
		mine = form("", "edda")
		saved := fields(edda.do(http.MethodGet, "change", nil).Body.String())
		mine["draft"], mine["base"], mine["token"] = saved["draft"], saved["base"], saved["token"]
		if status, body := send(edda, mine, "discard"); status != http.StatusSeeOther {
			t.Fatalf("%s: not discarded: %d %s", c.name, status, body)
		}
	}

	// The drafts of the two editors start from the same version.
	second := func(x visitor, text string) map[string]string {
		f := form(text, x.name)
		f["base"], f["token"] = sumOf(theirs), token(time.Now(), sumOf(theirs), x.name)
		return f
	}
	first := second(edda, theirs+"# of Edda\n")
	first["note"] = "mine"
	if status, _ := send(edda, first, "save"); status != http.StatusSeeOther {
		t.Fatal(status)
	}
	other := second(paul, strings.Replace(theirs, "crawl: /admin/", "crawl: [/admin/, /y/]", 1))
	status, body := send(paul, other, "save")
	if status != http.StatusConflict || !strings.Contains(body, "Another draft was saved in the meantime, by edda: “mine”") {
		t.Fatalf("saved over a draft that was not seen: %d %s", status, body)
	}
	if _, body = send(paul, other, "onto"); !strings.Contains(body, "Your change is now based on that draft") || !strings.Contains(body, "# of Edda") {
		t.Fatal(body)
	}
	other["draft"], other["text"] = fields(body)["draft"], strings.Replace(theirs, "crawl: /admin/", "crawl: [/admin/, /y/]", 1)+"# of Edda\n"
	if status, body := send(paul, other, "save"); status != http.StatusSeeOther {
		t.Errorf("%d %s", status, body)
	}
}
