// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// failing is a Policies whose policies cannot be read.
type failing struct{}

func (failing) Get(context.Context, string) (*source.Snapshot, error) {
	return nil, errors.New("open /srv/policies/www.example.com.yaml: permission denied")
}

// Without Caddy, the handler itself answers errors. It logs the error, and does not show it to the client.
func TestErrorsAreNotShownToClients(t *testing.T) {
	core, logged := observer.New(zap.ErrorLevel)
	h := New(Options{Policies: failing{}, Logger: zap.New(core)})
	w := httptest.NewRecorder()
	h.Wrap(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "/srv/policies") {
		t.Errorf("%d %q", w.Code, w.Body)
	}
	if all := logged.All(); len(all) != 1 || !strings.Contains(all[0].ContextMap()["error"].(string), "/srv/policies") {
		t.Errorf("logged: %v", all)
	}
}

// The message that a policy contains for blocked clients is sent to them.
func TestRaisedRefusalIsShown(t *testing.T) {
	text := strings.Replace(closedToGPTBot, "rules:", "enforcement: {message: Write to licenses@example.com}\nrules:", 1)
	h := newHandlerWith(t, text, Options{RaiseRefusals: true})
	w := httptest.NewRecorder()
	h.Wrap(http.NotFoundHandler()).ServeHTTP(w, newRequest("GPTBot/1.2"))
	if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "licenses@example.com") || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
	}
}

// An earlier handler may have changed the URL of a request. The policy is applied to the target that the client sent,
// whether the target is a path or a complete URL (RFC 9112 section 3.2).
func TestTargetBehindStripPrefix(t *testing.T) {
	text := "version: 1\nrules:\n  - for: GPTBot\n    disallow: {crawl: /members/}\n    enforce: block\n"
	site := http.StripPrefix("/members", newHandler(t, text).Wrap(http.NotFoundHandler()))
	for _, target := range []string{"/members/x", "http://www.example.com/members/x"} {
		r := httptest.NewRequest(http.MethodGet, target, nil)
		r.Header.Set("User-Agent", "GPTBot/1.2")
		w := httptest.NewRecorder()
		site.ServeHTTP(w, r)
		if w.Code != http.StatusForbidden {
			t.Errorf("%s: %d", target, w.Code)
		}
	}
}

// An earlier handler may add a query that tells the upstream which site is meant. The request for the upstream's
// robots.txt must contain this query.
func TestMergeBehindRewrite(t *testing.T) {
	asked := ""
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.RawQuery
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "User-agent: *\nDisallow: /theirs/\n")
	})
	wrapped := newHandlerWith(t, closedToGPTBot, Options{RobotsTxt: RobotsTxtMerge}).Wrap(next)
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/robots.txt", nil)
	r.URL.RawQuery = "site=a"
	wrapped.ServeHTTP(w, r)
	if asked != "site=a" || !strings.Contains(w.Body.String(), "Disallow: /theirs/") {
		t.Errorf("the upstream was asked for %q\n%s", asked, w.Body)
	}
}

// limited is a policy that lets GPTBot send two requests an hour.
const limited = "version: 1\nrules:\n  - for: GPTBot\n    allow: {crawl: /}\n    limit: 2/h\n    enforce: block\n"

// If a request passes through two handlers of this package, the rate limit counts it only once. This applies to the
// method Serve and to the method Wrap.
func TestNestedServeCountsOnce(t *testing.T) {
	h := newHandler(t, limited)
	inner := nextFunc(func(w http.ResponseWriter, r *http.Request) error {
		return h.Serve(w, r, nextFunc(func(http.ResponseWriter, *http.Request) error { return nil }))
	})
	for range 2 {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("User-Agent", "GPTBot/1.2")
		w := httptest.NewRecorder()
		if err := h.Serve(w, r, inner); err != nil || w.Code != http.StatusOK {
			t.Errorf("%d %v", w.Code, err)
		}
	}
}

// A handler can make several requests at a time with the context of the client's request. The rate limit counts each of
// these requests, and each of them has its own variables (see NetHTTP.Vars).
func TestRequestsWithinARequest(t *testing.T) {
	h := newHandler(t, strings.Replace(limited, "2/h", "1000/s", 1))
	vars := make(chan map[string]any, 100)
	part := newHandler(t, strings.Replace(limited, "2/h", "{rate: 2/h, burst: 2}", 1)).Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { vars <- NetHTTP{}.Vars(r) }))
	page := h.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var wait sync.WaitGroup
		for range cap(vars) {
			wait.Go(func() {
				sub, err := http.NewRequestWithContext(r.Context(), http.MethodGet, "/part", nil)
				if err != nil {
					t.Error(err)
					return
				}
				sub.Header = r.Header.Clone()
				h.Wrap(part).ServeHTTP(httptest.NewRecorder(), sub)
			})
		}
		wait.Wait()
		w.WriteHeader(http.StatusNoContent)
	}))
	r := httptest.NewRequest(http.MethodGet, "/page", nil)
	r.Header.Set("User-Agent", "GPTBot/1.2")
	w := httptest.NewRecorder()
	page.ServeHTTP(w, r)
	if w.Code != http.StatusNoContent || len(vars) == 0 || len(vars) == cap(vars) {
		t.Errorf("%d, %d of the requests passed", w.Code, len(vars))
	}
	if first, second := <-vars, <-vars; len(first) == 0 || reflect.ValueOf(first).Pointer() == reflect.ValueOf(second).Pointer() {
		t.Errorf("%v, %v", first, second)
	}
}

// The next handler can take over the connection through http.Hijacker, even if requests are recorded. The recorded
// request then shows that the connection was taken over.
func TestHijackWhileRecording(t *testing.T) {
	visits := make(chan activity.Request, 1)
	var recorders activity.Recorders
	recorders.Add("test", visitChan(visits))
	h := newHandlerWith(t, "version: 1\n", Options{Recorders: &recorders})
	server := httptest.NewServer(h.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hijacker, ok := w.(http.Hijacker)
		if !ok {
			t.Error("the connection cannot be taken over")
			return
		}
		connection, _, err := hijacker.Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(connection, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
		_ = connection.Close()
	})))
	defer server.Close()
	r, err := http.NewRequest(http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("User-Agent", "GPTBot/1.2")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if v := <-visits; v.Status != http.StatusSwitchingProtocols {
		t.Errorf("%+v", v)
	}
}

// The response to HEAD has no body, whatever the handlers write.
func TestNoBytesOfHEAD(t *testing.T) {
	visits := make(chan activity.Request, 1)
	var recorders activity.Recorders
	recorders.Add("test", visitChan(visits))
	wrapped := newHandlerWith(t, "version: 1\n", Options{Recorders: &recorders}).Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	for method, want := range map[string]int64{http.MethodHead: 0, http.MethodGet: 5} {
		r := httptest.NewRequest(method, "/", nil)
		r.Header.Set("User-Agent", "GPTBot/1.2")
		wrapped.ServeHTTP(httptest.NewRecorder(), r)
		if v := <-visits; v.Bytes != want || v.Status != http.StatusOK {
			t.Errorf("%s: %+v", method, v)
		}
	}
}

// visitChan is a recorder that sends each recorded request on the channel.
type visitChan chan activity.Request

func (c visitChan) Record(v activity.Request) { c <- v }

// A target with a scheme but no host, such as http:admin, is never forwarded, because the next server could interpret
// it as any host and path. The handler answers with status 400 without looking for a policy.
func TestOpaqueTargets(t *testing.T) {
	t.Parallel()
	h := newHandlerWith(t, closedToGPTBot, Options{RaiseRefusals: true})
	wrapped := h.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the request reached the next handler") }))
	for _, line := range []string{"GET x:http://h/admin/ HTTP/1.1", "HEAD http:admin HTTP/1.1", "GET x:y HTTP/1.0", "OPTIONS x:* HTTP/1.1"} {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(line + "\r\nHost: h\r\n\r\n")))
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		wrapped.ServeHTTP(w, r)
		if w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", line, w.Code)
		}
	}
}
