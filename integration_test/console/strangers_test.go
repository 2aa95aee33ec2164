// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// hostile returns texts that would run as a script if a page forgot to escape them. They try all known ways to break
// out of a text into HTML, attributes, URLs and scripts, in all notations.
func hostile() (all []string) {
	calls := []string{"window.hacked=1", "window['hacked']=1", "top.hacked=1", "self.hacked=1"}
	shapes := []string{
		`<script>%s</script>`, `"><script>%s</script>`, `'><script>%s</script>`, `</title><script>%s</script>`, `</textarea><script>%s</script>`,
		`--><script>%s</script>`, `]]><script>%s</script>`, `<ScRiPt>%s</sCrIpT>`, `<script/x>%s</script>`, "<script\t>%s</script\n>",
		`<img src=x onerror=%s>`, `"><img src=x onerror="%s">`, `'><img src=x onerror='%s'>`, `<svg onload=%s>`, `<svg/onload=%s>`, `<svg><script>%s</script></svg>`,
		`<body onload=%s>`, `<input autofocus onfocus=%s>`, `" autofocus onfocus="%s`, `' autofocus onfocus='%s`, `" onmouseover="%s" x="`, `<details open ontoggle=%s>`,
		`<video><source onerror=%s></video>`, `<audio src=x onerror=%s>`, `<iframe srcdoc="&lt;script&gt;%s&lt;/script&gt;">`, `<iframe src="javascript:%s">`, `<a href="javascript:%s">x</a>`,
		`javascript:%s`, `data:text/html,<script>%s</script>`, `<object data="javascript:%s">`, `<embed src="javascript:%s">`, `<form action="javascript:%s"><button>x</button></form>`,
		`<math><mtext><img src=x onerror=%s>`, `<template><script>%s</script></template><img src=x onerror=%[1]s>`, `<base href="javascript:%s//">`, `<meta http-equiv="refresh" content="0;url=javascript:%s">`,
		`<link rel=stylesheet href="javascript:%s">`, `<style>@import 'javascript:%s';</style>`, `&lt;script&gt;%s&lt;/script&gt;`, `&#60;script&#62;%s&#60;/script&#62;`,
		`%%3Cscript%%3E%s%%3C/script%%3E`, `\x3cscript\x3e%s\x3c/script\x3e`, `\u003cscript\u003e%s\u003c/script\u003e`, "`;%s;//", `';%s;//`, `";%s;//`, `${%s}`, `{{constructor.constructor('%s')()}}`,
		`</script><script>%s</script>`, "\u202e<script>%s</script>",
	}
	for i, c := range calls {
		for j, s := range shapes {
			all = append(all, fmt.Sprintf(s, c)+fmt.Sprintf("x%d", i*len(shapes)+j))
		}
	}
	return all
}

// TestStrangers sends requests with 200 hostile texts, in every part of a request that a client can choose. It then
// opens every screen of the console in a browser. No text may run as a script, or become an element or an attribute.
func TestStrangers(t *testing.T) {
	testkit.Nightly(t)
	b := chromium(t)
	n := open(t, policyText, "")
	texts := hostile()
	if len(texts) < 200 {
		t.Fatalf("only %d texts", len(texts))
	}
	for _, x := range texts {
		plain := strings.Map(func(c rune) rune {
			if c < ' ' || c > '~' {
				return '_'
			}
			return c
		}, x)
		path := "/" + strings.NewReplacer(" ", "%20", "#", "%23", "?", "%3F", "\\", "%5C").Replace(plain)
		n.visit(plain, "www.example.com", path, "Referer", "http://"+plain)
		n.visit(plain+"bot/1.0 (+http://"+plain+")", "www.example.com", path)
		n.visit("Mozilla/5.0 (compatible; GPTBot/1.1) "+plain, plain, path)
		n.visit("python-requests/2.0 "+plain, "www.example.com", "/?q="+url.QueryEscape(x))
		n.visit("curl/8 "+plain, strings.ToLower(strings.Trim(url.QueryEscape(plain), "%")), path)
	}
	settled()
	var problems []string
	b.On = func(method string, params json.RawMessage) {
		switch method {
		case "Page.javascriptDialogOpening", "Runtime.exceptionThrown", "Log.entryAdded":
			problems = append(problems, fmt.Sprintf("%s %.400s", method, params))
		}
	}
	b.Call("Log.enable", nil, nil)
	b.Call("Runtime.enable", nil, nil)
	paths := []string{"?days=1", "?host=www.example.com", "who-may", "who-came", "who-came?path=%2F", "who-came?days=1&sort=name", "published", "health", "change", "ask"}
	asked := texts[:25]
	if !testkit.Long() {
		asked = asked[:3]
	}
	for _, x := range asked {
		q := url.QueryEscape(x)
		paths = append(paths, "ask?agent="+q+"&url="+q, "crawler?name="+q, "who-came?q="+q+"&name="+q, "change?name="+q)
	}
	shown := 0
	for _, path := range paths {
		var page struct {
			Hacked   bool
			Elements int
			Text     int
		}
		problems = nil
		b.Open(n.console+path, `({
			Hacked: "hacked" in window,
			Elements: document.querySelectorAll("script:not([src]), img, iframe, object, embed, video, audio, math, style, base, meta[http-equiv], body [onerror], [onload], [onfocus], [onmouseover], [ontoggle], [href^='javascript:'], [src^='javascript:'], [action^='javascript:']").length,
			Text: (document.body.innerText.match(/hacked/g) || []).length,
		})`, &page)
		shown += page.Text
		if page.Hacked || page.Elements > 0 {
			t.Errorf("%s: hacked %v, %d elements that the page does not have", path, page.Hacked, page.Elements)
		}
		for _, p := range problems {
			if !strings.Contains(p, "status of 4") {
				t.Errorf("%s: %s", path, p)
			}
		}
	}
	if shown < 60 {
		t.Errorf("only %d of the texts are on the pages, so the test cannot fail", shown)
	}
}
