// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// exempt is a policy that allows training for GPTBot, whatever a rule for everyone says.
const exempt = "version: 1\nrules:\n  - {for: GPTBot, allow: {train-ai: /}}\n"

var editorText = regexp.MustCompile(`(?s)<textarea class="code" id="text"[^>]*>\n(.*?)</textarea>`)

// For each task of the console, there is a form or a link that works without a script, and adds the expected lines to
// the draft.
func TestForms(t *testing.T) {
	s := startCaddy(t, testPolicy)
	for _, tt := range []struct {
		name string
		form map[string]string // nil for a link
		link string
		adds []string // lines that the draft must contain
		says string
	}{
		{
			name: "close a section", form: map[string]string{"do": "decide", "who": "everyone", "choose": "ask", "place": "/members/"},
			adds: []string{"    disallow: {crawl: [/admin/, /members/]}"}, says: "Everyone may no longer crawl /members/ on other hosts",
		},
		{
			name: "close a staging host", form: map[string]string{"do": "decide", "who": "everyone", "choose": "block", "place": "/", "on": "test.example.com", "intended": "1"},
			adds: []string{"    hosts: test.example.com", "    enforce: block", "    intended: [blocks-search]"}, says: "on test.example.com",
		},
		{
			name: "set a limit", form: map[string]string{"do": "decide", "who": "AhrefsBot", "choose": "slow", "much": "10/m"},
			adds: []string{"  - for: AhrefsBot", "    limit: 10/m"}, says: "limit of the whole site is now 10/m",
		},
		{
			name: "a limit that is none", form: map[string]string{"do": "decide", "who": "AhrefsBot", "choose": "slow", "much": "fast"},
			says: "“fast” is not a valid rate; write requests",
		},
		{
			name: "a limit of a section", form: map[string]string{"do": "decide", "who": "AhrefsBot", "choose": "slow", "place": "/news/", "much": "10/m"},
			says: "A rate limit applies to the whole site, not to /news/",
		},
		{
			name: "set the length of snippets", form: map[string]string{"do": "decide", "who": "everyone", "choose": "snippet", "place": "/news/", "much": "80"},
			adds: []string{`    robots-tag: {paths: /news/, rules: "max-snippet:80"}`}, says: "max-snippet of /news/ is now max-snippet:80",
		},
		{
			name: "a length that is none", form: map[string]string{"do": "decide", "who": "everyone", "choose": "snippet", "much": "short"},
			says: "“short” is not a valid length of a snippet",
		},
		{
			name: "reserve rights", form: map[string]string{"do": "rights", "train-ai": "1", "tdmrep": "1", "rsl": "1"},
			adds: []string{"    disallow: {crawl: /admin/, train-ai: /}", "publish:", "  tdmrep: on", "  rsl: on"}, says: "Setting publish.tdmrep: none → on",
		},
		{
			name: "reserve some rights", form: map[string]string{"do": "rights", "train-ai": "1", "ai-use": "1", "text": exempt},
			adds: []string{"      train-ai: /", "      ai-use: /"}, says: "“No AI may be trained with the site” does not apply to everyone: the policy still says “allowed” for GPTBot",
		},
		{name: "add a test from Ask", link: "change?expect=GPTBot+may+not+crawl+%2F", adds: []string{"  - GPTBot may not crawl /"}, says: "2 tests passed"},
		{name: "name an unlisted client", link: "change?name=python-httpx", adds: []string{"crawlers:", `  python-httpx: {}`}, says: "python-httpx"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := get(t, s, tt.link)
			if tt.form != nil {
				tt.form["text"] = cmp.Or(tt.form["text"], testPolicy)
				w = post(t, s, "change", "", tt.form)
			}
			body := html.UnescapeString(w.Body.String())
			if plain := strings.NewReplacer("“", `"`, "”", `"`); w.Code != http.StatusOK || !strings.Contains(plain.Replace(body), plain.Replace(tt.says)) {
				t.Errorf("status %d, and no %q: %s", w.Code, tt.says, regexp.MustCompile(`(?s)<h2 id="sum">.*?</h2>|<ul class="list small">.*?</ul>|Not added to the draft:.*?</p>`).FindAllString(body, 4))
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

// The form for rights reservations cannot remove a reservation, because that would grant rights. It can only stop a
// rights document from publishing the reservation.
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
	one := get(t, s, "who-may?host=www.example.com&crawler=SemrushBot&section=www.example.com%2Fadmin%2F").Body.String()
	cell := html.UnescapeString(get(t, s, "who-may?crawler=SemrushBot&section=www.example.com%2Fadmin%2F").Body.String())
	if !strings.Contains(cell, `place=%2Fadmin%2F&who=SemrushBot#result">Block<`) || !strings.Contains(cell, `choose=slow&who=SemrushBot#result">Slow down everywhere<`) || !strings.Contains(one, `>Slow down on the whole host<`) {
		t.Errorf("a section is slowed down: %q", regexp.MustCompile(`[^"]*choose=[^<]*`).FindAllString(cell, -1))
	}
}

// Content is called reserved only if it is reserved for everyone, on every host and path.
func TestWhatIsReserved(t *testing.T) {
	const all = "  - for: everyone\n    disallow: {train-ai: /}\n"
	for _, tt := range []struct {
		rules, but string
		on         bool
	}{
		{"  - for: everyone\n    disallow: {crawl: /}\n", "", false},
		{all, "", true},
		{"  - for: everyone\n    disallow: {train-ai: '*'}\n", "", true},
		{"  - for: everyone\n    disallow: {other: /}\n", "", true},
		{"  - for: everyone\n    disallow: {train-ai: /$}\n", "", false},
		{"  - for: everyone\n    hosts: a.example.com\n    disallow: {train-ai: /}\n", "", false},
		{all + "  - for: GPTBot\n    disallow: {train-ai: /}\n", "", true},
		{all + "  - for: GPTBot\n    allow: {train-ai: /}\n", "this use is allowed for GPTBot, by the rule on line 5", true},
		{all + "  - for: category:ai-training\n    allow: {train-ai: /}\n", "more, by the rule on line 5", true},
		{all + "  - for: everyone\n    allow: {train-ai: /blog/}\n", "this use is allowed in /blog/, by the rule on line 5", true},
		{all + "  - for: everyone\n    allow: {train-ai: /$}\n", "this use is allowed in /$, by the rule on line 5", true},
		{all + "  - for: everyone\n    allow: {train-ai: '/*.html$'}\n    disallow: {train-ai: /.html}\n", "this use is allowed in /*.html$, by the rule on line 5", true},
		{all + "  - for: everyone\n    hosts: a.example.com\n    allow: {train-ai: /}\n", "this use is allowed on a.example.com, by the rule on line 5", true},
		{all + "  - for: everyone\n    hosts: '*.example.com'\n    allow: {train-ai: /}\n", "this use is allowed on *.example.com, by the rule on line 5", true},
		{all + "  - for: purpose:research\n    allow: {train-ai: /}\n", "research", true},
		{all + "  - for: GPTBot\n    hosts: a.example.com\n    allow: {train-ai: /a}\n", "this use is allowed for GPTBot, on a.example.com, in /a, by the rule on line 5", true},
		{all + "  - for: GPTBot\n    allow: {ai-use: /}\n", "", true},
	} {
		s, ds := site.LoadWith("x.yaml", []byte("version: 1\nrules:\n"+tt.rules), policyfile.Options{Now: time.Now(), Accepted: true})
		if s == nil {
			t.Errorf("%s: %v", tt.rules, ds)
			continue
		}
		if r := reservations(s, time.Now())[0]; r.On != tt.on || !strings.Contains(r.But, tt.but) || (tt.but == "") != (r.But == "") {
			t.Errorf("%s: on %v, but %q", tt.rules, r.On, r.But)
		}
	}
}
