// SPDX-License-Identifier: Apache-2.0

package console

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/browser"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// typist is a person who uses the pages only with the keyboard.
type typist struct {
	*reader
	axe string
}

// keyboard starts a browser without JavaScript. The returned typist uses the browser without a mouse.
func keyboard(t *testing.T) (*typist, *browser.Browser) {
	t.Helper()
	b := chromium(t)
	b.Screen(1280, 900, false)
	b.Call("Network.enable", nil, nil)
	b.Call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
	return &typist{&reader{t, b}, axeCore(t)}, b
}

// signIn makes all later requests send the name of a person. If name is "", they do not send a name.
func (y *typist) signIn(name string) {
	headers := map[string]string{}
	if name != "" {
		headers["Authorization"] = "Basic " + base64.StdEncoding.EncodeToString([]byte(name+":secret"))
	}
	y.Call("Network.setExtraHTTPHeaders", map[string]any{"headers": headers}, nil)
}

// key presses and releases a key.
func (y *typist) key(name string, code int, text string) {
	for _, event := range []string{"keyDown", "keyUp"} {
		params := map[string]any{"type": event, "key": name, "code": name, "windowsVirtualKeyCode": code}
		if text != "" && event == "keyDown" {
			params["text"] = text
		}
		y.Call("Input.dispatchKeyEvent", params, nil)
	}
}

// before is a JavaScript function. It returns the element from which the Tab key leads to the element e, or null if
// there is none. It also returns null if an element has a tabindex above 0, because the Tab key would then use another
// order than the page.
const before = `((e) => {
	if (document.querySelector("[tabindex]:not([tabindex='0']):not([tabindex='-1'])")) return null;
	const all = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")];
	const stops = all.filter((x) => x === e || !x.disabled && x.type !== "hidden" && (x.type !== "radio" || x.checked) && x.offsetParent);
	return stops[stops.indexOf(e) - 1] || null;
})`

// reaches moves the focus with the Tab key to the element that an expression finds, from the element before it.
func (y *typist) reaches(element string) {
	y.t.Helper()
	y.Eval(before+"("+element+")?.focus()", nil)
	y.key("Tab", 9, "")
	there := false
	if y.Eval("document.activeElement === "+element, &there); !there {
		at := ""
		y.Eval("document.activeElement.outerHTML.slice(0, 200)", &at)
		y.t.Fatalf("the keyboard does not reach %s, but %s", element, at)
	}
}

// presses follows a link or a button with Enter.
func (y *typist) presses(element string) {
	y.t.Helper()
	y.reaches(element)
	y.Eval("void (window.before = true)", nil)
	y.key("Enter", 13, "\r")
	for range 200 {
		var next bool
		y.Eval("!window.before && document.readyState === 'complete'", &next)
		if next {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	y.t.Fatalf("%s leads nowhere", element)
}

// writes replaces the value of a field.
func (y *typist) writes(element, text string) {
	y.t.Helper()
	y.reaches(element)
	y.Eval(element+".select()", nil)
	y.Call("Input.insertText", map[string]any{"text": text}, nil)
}

// looks saves pictures of the page on a desktop and on a phone, and checks the layout there. If axe-core is installed,
// a long run also checks the page with it.
func (y *typist) looks(name string) {
	y.t.Helper()
	for _, screen := range []struct {
		name   string
		width  int
		height int
	}{{"-phone", 390, 844}, {"-desktop", 1280, 900}} {
		y.Screen(screen.width, screen.height, false)
		var found []string
		y.Eval(wrong, &found)
		for _, f := range found {
			y.t.Errorf("%s%s: %s", name, screen.name, f)
		}
		save(y.t, y.Browser, name+screen.name)
	}
	if y.axe != "" && testkit.Long() { // axe-core is a script itself
		y.Call("Emulation.setScriptExecutionDisabled", map[string]any{"value": false}, nil)
		checkAxe(y.t, y.Browser, y.axe)
		y.Call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
	}
}

func named(name string) string { return `document.querySelector("[name=` + name + `]")` }

func button(value string) string { return `document.querySelector("button[value=` + value + `]")` }

// TestPeople checks the roles of people on the pages of a site. An editor saves a draft, and a publisher publishes it.
// Other people cannot do this.
func TestPeople(t *testing.T) {
	testkit.Slow(t)
	y, _ := keyboard(t)
	n := open(t, policyText, "approval 2\n roles {\n viewer vera\n editor edda\n publisher paul\n }")
	pages := n.site + "/crawlers/"
	const agent = "Mozilla/5.0 (compatible; SemrushBot/7~bl; +http://www.semrush.com/bot.html)"

	y.signIn("mallory")
	y.Visit(pages)
	y.sees("You do not have a role for these pages.")
	y.signIn("")
	y.Visit(n.site + "/open/change")
	y.sees("You do not have a role for these pages.") // no person is signed in, and "everyone" has no role

	y.signIn("vera")
	y.Visit(pages + "change?who=SemrushBot&choose=block")
	y.sees("Signed in as vera, with read access.")
	y.sees("Only an editor or a publisher (edda)")
	y.looks("people-viewer")

	y.signIn("edda")
	y.Visit(pages + "crawler?name=SemrushBot")
	y.presses(link("Block it"))
	y.writes(named("note"), "They take too much")
	y.looks("people-editor")
	y.presses(button("save"))
	y.sees("The draft is saved")
	y.sees("Only a publisher (paul)")
	y.looks("people-saved")

	y.signIn("paul")
	y.Visit(pages + "change")
	y.sees("This draft is saved, by edda")
	y.sees("“They take too much”")
	y.sees("Approved by edda")
	y.looks("people-publisher")
	if status := n.visit(agent, "www.example.com", "/news/"); status != 200 {
		t.Fatalf("before publishing: status %d", status)
	}
	y.presses(button("publish"))
	y.sees("By paul, with edda: “They take too much”.")
	y.looks("people-published")
	n.waits(agent, 403)

	// Without approval by another person, paul can neither publish a new version nor undo one.
	y.Visit(pages + "change?who=AhrefsBot&choose=block")
	y.sees("1 other person must approve the draft")
	y.presses(button("save"))
	y.signIn("edda")
	y.Visit(pages + "change")
	y.presses(button("approve"))
	y.sees("Approved by edda.")
	y.looks("people-approved")
	y.signIn("paul")
	y.Visit(pages + "published")
	y.presses(link("Go back to v1"))
	y.sees("1 other person must approve the draft")
	y.presses(button("save"))
	y.signIn("edda")
	y.Visit(pages + "change")
	y.presses(button("approve"))
	y.signIn("paul")
	y.Visit(pages + "change")
	y.sees("Ready to undo")
	y.presses(button("publish"))
	n.waits(agent, 200)
	if text, err := os.ReadFile(n.policy); err != nil || string(text) != policyText {
		t.Errorf("the storage has another text: %v", err)
	}
}

// In TestTwoEditorsInABrowser, two editors change version 1 at the same time. The first editor publishes a change,
// which becomes version 2. The second editor's change is then applied to version 2 and published, so that both changes
// are in the policy.
func TestTwoEditorsInABrowser(t *testing.T) {
	testkit.Nightly(t)
	y, _ := keyboard(t)
	n := open(t, policyText, "")
	y.Visit(n.console + "change?who=AhrefsBot&choose=block")
	var mine string
	y.Eval(named("text")+".value", &mine)
	other := strings.Replace(policyText, "crawl-delay: 10", "crawl-delay: 20", 1)
	y.Visit(n.console + "change")
	y.writes(named("text"), other)
	y.presses(button("check"))
	y.writes(named("note"), "Slower")
	y.presses(button("publish"))
	y.sees("Published: v2")
	// The second editor opened the page before the first one published.
	y.Visit(n.console + "change?from=v1&who=AhrefsBot&choose=block")
	y.Eval(named("base")+".value = '"+sum(policyText)+"'", nil)
	y.presses(button("check"))
	y.sees("Since this draft was begun, version 2 was published, by localhost: “Slower”")
	y.looks("two-editors")
	y.presses(button("onto"))
	y.sees("Your change is now based on version 2.")
	y.looks("two-editors-onto")
	y.presses(button("publish"))
	text, err := os.ReadFile(n.policy)
	if err != nil || string(text) != strings.Replace(mine, "crawl-delay: 10", "crawl-delay: 20", 1) {
		t.Errorf("%s (%v)", text, err)
	}
}

// TestFirstPolicy begins without a policy, answers the questions on the page, and publishes the resulting policy.
func TestFirstPolicy(t *testing.T) {
	y, _ := keyboard(t)
	n := prepare(t, "")
	n.load("activity "+filepath.Join(n.dir, "activity"), "")
	const agent = "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"
	if status := n.visit(agent, "www.example.com", "/news/"); status != 200 {
		t.Fatalf("without a policy: status %d", status)
	}
	y.Visit(n.console)
	y.sees("There is no policy yet")
	y.looks("first-overview")
	y.presses(link("Answer a few questions"))
	y.sees("May search engines find the site?")
	y.looks("first-questions")
	y.writes(named("site"), "www.example.com")
	y.writes(named("disallowed"), "/members/")
	y.presses(button("answers"))
	y.sees("Rules for crawlers in this draft")
	y.sees("crawlers for AI training may read")
	y.sees("Ready to go live")
	y.looks("first-draft")
	y.presses(button("publish"))
	y.sees("Published: v1")
	text, err := os.ReadFile(n.policy)
	if err != nil || !strings.Contains(string(text), "/members/") {
		t.Fatalf("%s (%v)", text, err)
	}
	n.waits(agent, 403)
	y.Visit(n.site + "/robots.txt")
	y.sees("Disallow: /members/")
}

// TestFormsByKeyboard uses the forms with the keyboard. It limits snippets and reserves rights in one draft, and
// publishes the draft.
func TestFormsByKeyboard(t *testing.T) {
	testkit.Slow(t)
	y, _ := keyboard(t)
	n := open(t, policyText, "")
	y.Visit(n.console + "change")
	y.writes(named("who"), "everyone")
	y.reaches(named("choose"))
	for range 2 { // two options further down
		y.key("ArrowDown", 40, "")
	}
	chosen := ""
	if y.Eval(named("choose")+".value", &chosen); chosen != "snippet" {
		t.Fatalf("the keys chose %q", chosen)
	}
	y.writes(named("place"), "/news/")
	y.writes(named("much"), "80")
	y.reaches(named("intended")) // accepts that search engines show less of these pages
	y.key(" ", 32, " ")
	y.presses(button("decide"))
	y.sees("max-snippet of /news/ is now max-snippet:80")
	for _, name := range []string{"tdmrep", "rsl"} {
		y.reaches(named(name))
		y.key(" ", 32, " ")
	}
	y.presses(button("rights"))
	y.sees("publish.tdmrep: none → on")
	y.sees("max-snippet of /news/ is now max-snippet:80")
	y.looks("forms-rights")
	y.presses(button("publish"))
	y.sees("Published: v2")
	y.Visit(n.site + "/.well-known/tdmrep.json")
	y.sees("tdm-reservation")
	text, err := os.ReadFile(n.policy)
	if err != nil || !strings.Contains(string(text), `robots-tag: {paths: /news/, rules: "max-snippet:80"}`) || !strings.Contains(string(text), "publish:\n  tdmrep: on\n  rsl: on\n") {
		t.Errorf("%s (%v)", text, err)
	}
}

// sum returns the SHA-256 of a text in hexadecimal digits.
func sum(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
