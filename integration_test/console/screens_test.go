// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/browser"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

var update = flag.Bool("update", false, "write the pictures of docs/get-started/console-tour.md")

// screens maps the names of pictures to the pages that they show.
var screens = []struct{ name, path string }{
	{"overview", ""},
	{"who-may", "who-may?crawler=PerplexityBot&section=www.example.com%2Fpremium%2F"},
	{"who-came", "who-came"},
	{"crawler", "crawler?name=Bytespider"},
	{"ask", "ask?agent=PerplexityBot&url=https%3A%2F%2Fwww.example.com%2Fpremium%2Fletters.html&address=192.0.2.44"},
	{"change", "change?expect=GPTBot+may+crawl+%2Fx"},
	{"published", "published"},
	{"health", "health"},
}

// shapes are the windows and settings in which the pages are viewed.
var shapes = []struct {
	name   string
	width  int
	height int
	dark   bool
	script bool
	always bool // this shape is tested even without ROBOTSPOLICY_LONG
}{
	{"desktop", 1280, 900, false, true, false},
	{"desktop-dark", 1280, 900, true, true, false},
	{"laptop", 1120, 760, false, true, false},
	{"phone", 390, 844, false, true, false},
	{"phone-dark", 390, 844, true, true, true},
	{"narrow", 360, 700, false, true, false},
	{"no-script", 1280, 900, false, false, true},
}

// wrong lists problems that a page must not have: parts that are wider than the window, and
// text that is cut off without a way to scroll to it.
const wrong = `(() => {
	const found = [];
	const root = document.documentElement;
	if (root.scrollWidth > root.clientWidth) found.push("the page is " + root.scrollWidth + " wide in a window of " + root.clientWidth);
	for (const e of document.querySelectorAll("main *, header *")) {
		const box = e.getBoundingClientRect();
		if (!box.width || e.closest(".vh, .scroll, pre, .page, .editor, svg, datalist, .skip")) continue;
		if (box.right > root.clientWidth + 1 || box.left < -1) found.push(e.tagName + "." + e.className + " reaches from " + box.left + " to " + box.right);
		if (e.scrollWidth > e.clientWidth + 2 && e.clientWidth && getComputedStyle(e).overflowX === "hidden") found.push(e.tagName + "." + e.className + " cuts off its text");
	}
	const cells = [...document.querySelectorAll("td, th, .card h2, .card h3")].filter((e) => e.offsetWidth && !e.closest(".vh"));
	for (const e of cells) {
		for (const child of e.children) {
			if (child.classList.contains("vh") || child.closest(".scroll") && getComputedStyle(child).position === "sticky") continue;
			const a = child.getBoundingClientRect(), b = e.getBoundingClientRect();
			if (a.width && (a.right > b.right + 2 || a.left < b.left - 2)) found.push(child.tagName + " in " + e.tagName + " “" + e.textContent.trim().slice(0, 40) + "” sticks out");
		}
	}
	for (const e of document.querySelectorAll(".matrix td a")) {
		if (e.scrollWidth > e.clientWidth + 1) found.push("“" + e.textContent.trim() + "” is wider than its cell");
	}
	for (const e of document.querySelectorAll(".scroll")) {
		if ((root.clientWidth > 1100 || !e.closest("details") && !e.querySelector(".matrix, .diff")) && e.scrollWidth > e.clientWidth + 1) found.push(e.getAttribute("aria-label") + " is cut off");
	}
	return found.slice(0, 10);
})()`

// TestScreens checks every screen on a desktop and a phone, in light and dark colors, and without JavaScript. Without
// ROBOTSPOLICY_LONG, it uses only a narrow dark window, and a wide light window without JavaScript. Nothing may be cut
// off, overlap or be blocked by the Content-Security-Policy, and axe-core must not find any barrier. If
// ROBOTSPOLICY_SHOTS names a folder, each screen is saved there as a picture.
func TestScreens(t *testing.T) {
	testkit.Slow(t)
	b := chromium(t)
	text := policyText
	if *update { // leave out what this server cannot verify, because the warnings about it would fill the pictures
		text = strings.NewReplacer("    identity: verified\n", "", ", impostors: block", "").Replace(text)
	}
	n := open(t, text, "")
	axe := axeCore(t)
	var problems []string
	b.On = func(method string, params json.RawMessage) {
		if method == "Log.entryAdded" && strings.Contains(string(params), `"error"`) || method == "Runtime.exceptionThrown" {
			problems = append(problems, fmt.Sprintf("%.600s", params))
		}
	}
	b.Call("Log.enable", nil, nil)
	b.Call("Runtime.enable", nil, nil)
	for _, shape := range shapes {
		if !shape.always && !testkit.Long() && !*update {
			continue
		}
		b.Screen(shape.width, shape.height, shape.dark)
		b.Call("Emulation.setScriptExecutionDisabled", map[string]any{"value": !shape.script}, nil)
		for _, s := range screens {
			t.Run(s.name+" "+shape.name, func(t *testing.T) {
				problems = nil
				var title string
				b.Visit(n.console + s.path)
				b.Eval("document.title", &title)
				if !strings.Contains(title, "The Example Gazette") {
					t.Fatalf("title %q", title)
				}
				var found []string
				b.Eval(wrong, &found)
				for _, f := range found {
					t.Error(f)
				}
				if axe != "" && shape.name != "narrow" && shape.script {
					checkAxe(t, b, axe)
				}
				for _, p := range problems {
					t.Errorf("the browser says: %s", p)
				}
				save(t, b, s.name+"-"+shape.name)
			})
		}
	}
	t.Run("forced colors", func(t *testing.T) {
		b.Screen(1280, 900, false)
		b.Call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "forced-colors", "value": "active"}}}, nil)
		defer b.Call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{}}, nil)
		for _, s := range screens {
			b.Visit(n.console + s.path)
			var looks []string // the colors of the lines under the tabs, and under the chosen tab
			b.Eval(`(() => {
				const line = (e) => getComputedStyle(e).borderBottomColor;
				const tabs = [...document.querySelectorAll("nav a")], here = tabs.filter((e) => e.hasAttribute("aria-current"));
				return [String(matchMedia("(forced-colors: active)").matches), String(here.length), line(here[0]), ...new Set(tabs.filter((e) => e !== here[0]).map(line))];
			})()`, &looks)
			if len(looks) != 4 || looks[0] != "true" || looks[1] != "1" || looks[2] == looks[3] {
				t.Errorf("%s: the chosen tab does not look chosen, or another does: %v", s.name, looks)
			}
			if s.name == "overview" {
				save(t, b, "overview-forced-colors")
			}
		}
	})
	if *update {
		b.Call("Emulation.setScriptExecutionDisabled", map[string]any{"value": false}, nil)
		pictures(t, b, n)
	}
}

// axeCore returns the source of axe-core, or "" if it is not installed.
func axeCore(t *testing.T) string {
	t.Helper()
	name := os.Getenv("AXE_CORE")
	if name == "" {
		if out, err := exec.Command("npm", "root", "-g").Output(); err == nil {
			name = filepath.Join(strings.TrimSpace(string(out)), "axe-core", "axe.min.js")
		}
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Log("axe-core is not installed, so accessibility is not checked: npm install -g axe-core@4, or name axe.min.js in AXE_CORE")
	}
	return string(text)
}

func checkAxe(t *testing.T, b *browser.Browser, axe string) {
	t.Helper()
	b.Eval(axe+";undefined", nil)
	var violations []struct {
		ID, Help string
		Nodes    []string
	}
	b.Eval(`axe.run(document).then((r) => r.violations.map((v) => ({ ID: v.id, Help: v.help, Nodes: v.nodes.map((n) => n.html.slice(0, 160) + " " + n.failureSummary).slice(0, 3) })))`, &violations)
	for _, v := range violations {
		t.Errorf("axe %s: %s: %s", v.ID, v.Help, strings.Join(v.Nodes, " | "))
	}
}

// save writes a picture of the page, if a folder for pictures is set.
func save(t *testing.T, b *browser.Browser, name string) {
	t.Helper()
	dir := os.Getenv("ROBOTSPOLICY_SHOTS")
	if dir == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), b.Screenshot(true), 0o600); err != nil {
		t.Fatal(err)
	}
}

// pictures writes the pictures of docs/get-started/console-tour.md.
func pictures(t *testing.T, b *browser.Browser, n *newsroom) {
	t.Helper()
	for _, s := range screens {
		if s.name == "crawler" {
			continue // the docs have no picture of this page
		}
		b.Screen(1120, 760, false)
		var title string
		if s.name == "change" { // a draft that can be published
			s.path = "change?who=SemrushBot&choose=block"
		}
		b.Open(n.console+s.path, "document.title", &title)
		if err := os.WriteFile(filepath.Join("..", "..", "docs", "pictures", "console-"+s.name+".png"), b.Screenshot(false), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
