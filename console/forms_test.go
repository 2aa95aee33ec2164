// SPDX-License-Identifier: Apache-2.0

package console

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

var editorText = regexp.MustCompile(`(?s)<textarea class="code" id="text"[^>]*>\n(.*?)</textarea>`)

// Each task has a form, which needs no script and writes the lines of the policy.
func TestForms(t *testing.T) {
	s := startCaddy(t, testPolicy)
	for _, tt := range []struct {
		name string
		form map[string]string // nil: a link
		link string
		adds []string // lines of the draft
		says string
	}{
		{
			name: "close a section", form: map[string]string{"do": "decide", "who": "everyone", "choose": "ask", "place": "/members/"},
			adds: []string{"    disallow: {crawl: [/admin/, /members/]}"}, says: "Everyone may no longer crawl /members/ on other hosts",
		},
		{
			name: "close a staging host", form: map[string]string{"do": "decide", "who": "everyone", "choose": "refuse", "place": "/", "on": "test.example.com", "intended": "1"},
			adds: []string{"    hosts: test.example.com", "    enforce: block", "    intended: [refuses-search]"}, says: "on test.example.com",
		},
		{
			name: "set a limit", form: map[string]string{"do": "decide", "who": "AhrefsBot", "choose": "slow", "much": "10/m"},
			adds: []string{"  - for: AhrefsBot", "    limit: 10/m"}, says: "limit of the whole site is now 10/m",
		},
		{
			name: "a limit that is none", form: map[string]string{"do": "decide", "who": "AhrefsBot", "choose": "slow", "much": "fast"},
			says: "“fast” is no rate; write the requests",
		},
		{
			name: "set the length of snippets", form: map[string]string{"do": "decide", "who": "everyone", "choose": "snippet", "place": "/news/", "much": "80"},
			adds: []string{`    robots-tag: {paths: /news/, rules: "max-snippet:80"}`}, says: "max-snippet of /news/ is now max-snippet:80",
		},
		{
			name: "a length that is none", form: map[string]string{"do": "decide", "who": "everyone", "choose": "snippet", "much": "short"},
			says: "“short” is no length of a snippet",
		},
		{
			name: "reserve rights", form: map[string]string{"do": "rights", "train-ai": "1", "tdmrep": "1", "rsl": "1"},
			adds: []string{"    disallow: {crawl: /admin/, train-ai: /}", "publish:", "  tdmrep: on", "  rsl: on"}, says: "tdmrep is now on",
		},
		{name: "add a test from Ask", link: "change?expect=GPTBot+may+not+crawl+%2F", adds: []string{"  - GPTBot may not crawl /"}, says: "All 2 tests pass"},
		{name: "name an unknown client", link: "change?name=python-httpx", adds: []string{"crawlers:", `  python-httpx: {}`}, says: "python-httpx"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := get(t, s, tt.link)
			if tt.form != nil {
				tt.form["text"] = testPolicy
				w = post(t, s, "change", "", tt.form)
			}
			body := html.UnescapeString(w.Body.String())
			if plain := strings.NewReplacer("“", `"`, "”", `"`); w.Code != http.StatusOK || !strings.Contains(plain.Replace(body), plain.Replace(tt.says)) {
				t.Errorf("status %d, and no %q: %s", w.Code, tt.says, regexp.MustCompile(`(?s)<h2 id="sum">.*?</h2>|<ul class="list small">.*?</ul>|Not in the draft:.*?</p>`).FindAllString(body, 4))
			}
			m := editorText.FindStringSubmatch(body)
			if m == nil {
				t.Fatal("no draft")
			}
			for _, line := range tt.adds {
				if !strings.Contains("\n"+m[1], "\n"+line+"\n") {
					t.Errorf("the draft has no %q:\n%s", line, m[1])
				}
			}
			if tt.adds == nil && m[1] != testPolicy {
				t.Errorf("the draft is another:\n%s", m[1])
			}
		})
	}
}

// A reservation is no switch that grants rights when it is off; a register is switched off.
func TestRightsAreNotGrantedByASwitch(t *testing.T) {
	s := startCaddy(t, testPolicy)
	reserved := strings.Replace(testPolicy, "{crawl: /admin/}", "{crawl: /admin/, train-ai: /}", 1) + "publish: {tdmrep: on} # rights\n"
	w := post(t, s, "change", "", map[string]string{"do": "rights", "text": reserved})
	m := editorText.FindStringSubmatch(html.UnescapeString(w.Body.String()))
	if want := strings.Replace(reserved, "tdmrep: on", "tdmrep: off", 1); m == nil || m[1] != want {
		t.Errorf("got %s", m)
	}
	if body := w.Body.String(); !strings.Contains(body, `<span class="pass">Reserved</span> No AI may be trained`) || strings.Contains(body, `name="train-ai"`) || !strings.Contains(body, `name="ai-use"`) {
		t.Error("what is reserved can be switched off")
	}
}
