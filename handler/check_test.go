// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

type trusting struct{ NetHTTP }

func (trusting) TrustsProxy(*http.Request) bool { return true }

type visits []activity.Request

func (v *visits) Record(visit activity.Request) { *v = append(*v, visit) }

// Another server asks the handler for decisions. If a request is allowed, the other server sends the page, so the
// handler does not record the status and size of the response. If a request is blocked, the response comes from the
// handler, so its status is recorded.
func TestDecideRecords(t *testing.T) {
	t.Parallel()
	s, err := source.Compile("policy.yaml", []byte("version: 1\nrules:\n  - for: GPTBot\n    disallow: {crawl: /closed/}\n    enforce: block\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got visits
	var recorders activity.Recorders
	recorders.Add("test", &got)
	h := New(Options{Policies: source.Static(s), Recorders: &recorders, Server: trusting{}, Decide: StyleNginx})
	for _, target := range []string{"/open", "/closed/x"} {
		r := httptest.NewRequest(http.MethodGet, DecidePath, nil)
		r.Header = http.Header{"User-Agent": {"GPTBot/1.2"}, "X-Original-Uri": {target}, "X-Original-Method": {"GET"}}
		if err := h.Decide(httptest.NewRecorder(), r); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != 2 || got[0].Path != "/open" || got[0].Status != 0 || got[0].Bytes != 0 || got[1].Path != "/closed/x" || got[1].Status != http.StatusForbidden {
		t.Errorf("%+v", got)
	}
}

// A disallowed target is blocked in every spelling. A target that has a scheme but no host gets status 400, because
// every server that can ask for decisions then does not serve the page.
func TestDecideReadsTargets(t *testing.T) {
	t.Parallel()
	s, err := source.Compile("policy.yaml", []byte("version: 1\nrules:\n  - for: everyone\n    disallow: {crawl: [/closed/, /100%]}\n    enforce: block\n    intended: true\n"+
		"  - for: everyone\n    hosts: shop.example.com\n    disallow: {crawl: /}\n    enforce: block\n    intended: true\n"))
	if err != nil {
		t.Fatal(err)
	}
	const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0"
	for _, style := range []Style{StyleNginx, StyleForward, StyleEnvoy} {
		h := New(Options{Policies: source.Static(s), Server: trusting{}, Decide: style})
		ask := func(method, target, agent string) int {
			r := httptest.NewRequest(http.MethodGet, DecidePath, nil)
			r.Header = http.Header{"User-Agent": {agent}, "X-Original-Uri": {target}, "X-Original-Method": {method}}
			switch style {
			case StyleForward:
				r.Header = http.Header{"User-Agent": {agent}, "X-Forwarded-Uri": {target}, "X-Forwarded-Method": {method}, "X-Forwarded-Host": {"example.com"}}
			case StyleEnvoy:
				r.Method, r.RequestURI = method, DecidePath+target
			}
			w := httptest.NewRecorder()
			if err := h.Decide(w, r); err != nil {
				t.Errorf("%s: %s %s: %v", style, method, target, err)
			}
			return w.Code
		}
		for _, target := range []string{
			"/100%", "/closed/100%", "/%zz/../closed/x", "/closed/x#y", "/x#/../closed/y", "//h/closed/x", "http://h/closed/%", "http://h:port/closed/", "closed/x",
			"/closed/a b", "http:///closed/x", "//h%5C%23/closed/", `/\h\closed/x`, "http://a b/closed/",
			"http:///h/closed/x", "http:/h/closed/x", "http:////h/closed/%", `http://h\closed/x`, `http://h\x/..\closed/`,
			"http://shop.example.com/x", "http://u@shop.example.com:80/%", "http://shop.example.com",
		} {
			if got := ask(http.MethodGet, target, "GPTBot/1.2"); got != http.StatusForbidden {
				t.Errorf("%s: %s of a crawler: %d", style, target, got)
			}
			if got := ask(http.MethodGet, target, firefox); got != http.StatusOK {
				t.Errorf("%s: %s of a browser: %d", style, target, got)
			}
		}
		for _, target := range []string{"/200%", "/x%", "/x#/closed/", "http://h:port/x", "http://h/%", "a b", "/a b", "*"} {
			if got := ask(http.MethodGet, target, "GPTBot/1.2"); got != http.StatusOK {
				t.Errorf("%s: %s is allowed, and a crawler gets %d", style, target, got)
			}
		}
		for _, target := range []string{"x:http://h/closed/x", "x:closed/x", "x:x", "http:closed"} {
			for _, agent := range []string{"GPTBot/1.2", firefox} {
				if got := ask(http.MethodGet, target, agent); got != http.StatusBadRequest {
					t.Errorf("%s: %s of %s: %d", style, target, agent, got)
				}
			}
		}
		for target, want := range map[string]int{"example.com:443": http.StatusOK, "example.com:443/closed/": http.StatusForbidden} {
			if got := ask(http.MethodConnect, target, "GPTBot/1.2"); got != want {
				t.Errorf("%s: CONNECT %s: %d, want %d", style, target, got, want)
			}
		}
	}
}

// FuzzDecide asks a handler for decisions about random targets. A browser must never be blocked. If net/http can parse
// the target, a handler that serves the request itself must decide in the same way.
func FuzzDecide(f *testing.F) {
	for _, target := range []string{"/closed/x", "/100%", "x:/y", "http://h/closed/", "//h/closed/", "/a#b", "*", "h:443", "http://[/", "?", "http:///h/closed/", "@"} {
		f.Add(target, target[0] == 'h')
	}
	s, err := source.Compile("policy.yaml", []byte("version: 1\nrules:\n  - for: everyone\n    disallow: {crawl: /closed/}\n    enforce: block\n    intended: true\n"))
	if err != nil {
		f.Fatal(err)
	}
	decides := New(Options{Policies: source.Static(s), Server: trusting{}, Decide: StyleForward})
	serves := New(Options{Policies: source.Static(s)})
	f.Fuzz(func(t *testing.T, target string, connect bool) {
		if target == "" {
			return
		}
		method := http.MethodGet
		if connect {
			method = http.MethodConnect
		}
		ask := func(agent string) int {
			r := httptest.NewRequest(http.MethodGet, DecidePath, nil)
			r.Header = http.Header{"User-Agent": {agent}, "X-Forwarded-Uri": {target}, "X-Forwarded-Method": {method}, "X-Forwarded-Host": {"example.com"}}
			w := httptest.NewRecorder()
			if err := decides.Decide(w, r); err != nil {
				t.Fatalf("%q: %v", target, err)
			}
			return w.Code
		}
		if got := ask("Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0"); got != http.StatusOK && got != http.StatusBadRequest {
			t.Fatalf("%q of a browser: %d", target, got)
		}
		got := ask("GPTBot/1.2")
		u, err := url.ParseRequestURI(target)
		if err != nil || connect || u.Scheme != "" && u.Host == "" { // some parsers find a host in such a target
			return
		}
		w := httptest.NewRecorder()
		r := &http.Request{Method: http.MethodGet, URL: u, RequestURI: target, Host: "example.com", Header: http.Header{"User-Agent": {"GPTBot/1.2"}}}
		if err := serves.Serve(w, r, nextFunc(func(http.ResponseWriter, *http.Request) error { return nil })); err != nil || w.Code != got {
			t.Fatalf("%q: decided %d, served %d: %v", target, got, w.Code, err)
		}
	})
}
