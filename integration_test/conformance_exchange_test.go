// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"testing"
)

// Interim responses are passed on unchanged. The final response contains the policy's fields once.
func TestInterimResponses(t *testing.T) { bothDoors(t, testInterimResponses) }

func testInterimResponses(t *testing.T, d door) {
	s := d.start(t, conformancePolicy, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Link", "</other.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, page(""))
	}), "robots_policy POLICY\nreverse_proxy UPSTREAM")

	var hints []string
	r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			hints = append(hints, fmt.Sprint(code, h["Link"], fieldsOf(http.Header(h))))
			return nil
		},
	}), http.MethodPost, "http://"+s.addr+"/drafts/x", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	doors.asked(s)
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if len(hints) != 2 || !strings.HasPrefix(hints[0], "103 [</style.css>") || !strings.HasPrefix(hints[1], "103 [</other.css>") {
		t.Errorf("interim responses: %q", hints)
	}
	for _, h := range hints {
		if !strings.HasSuffix(h, "map[]") {
			t.Errorf("an interim response says %s", h)
		}
	}
	if wrong := judge("/drafts/x", fields{}, fieldsOf(resp.Header)); len(wrong) > 0 {
		t.Error(wrong)
	}
}

// A request with "Expect: 100-continue" gets a final response with the policy's fields.
func TestExpectContinue(t *testing.T) { bothDoors(t, testExpectContinue) }

func testExpectContinue(t *testing.T, d door) {
	s := d.start(t, conformancePolicy, http.HandlerFunc(conformanceUpstream), "robots_policy POLICY\nreverse_proxy UPSTREAM")
	conn, in := s.dial("POST /drafts/x HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: 4\r\nStatus: 200\r\nType: text/plain\r\n\r\n")
	if _, err := io.WriteString(conn, "body"); err != nil {
		t.Fatal(err)
	}
	for {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode == http.StatusContinue {
			continue
		}
		if wrong := judge("/drafts/x", fields{}, fieldsOf(resp.Header)); resp.StatusCode != 200 || len(wrong) > 0 {
			t.Errorf("%s: %v", resp.Status, wrong)
		}
		return
	}
}

// The response 101 of an upgraded connection is not changed, and bytes are passed on in both directions.
func TestUpgrade(t *testing.T) { bothDoors(t, testUpgrade) }

func testUpgrade(t *testing.T, d door) {
	up := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" {
			http.Error(w, "no upgrade", http.StatusBadRequest)
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Robots-Tag: noarchive\r\n\r\nhello ")
		_ = rw.Flush()
		b := make([]byte, 4)
		for {
			if _, err := io.ReadFull(rw, b); err != nil {
				return
			}
			_, _ = conn.Write([]byte(strings.ToUpper(string(b))))
		}
	}
	s := d.startSites(t, conformancePolicy, http.HandlerFunc(up), map[string]string{
		"a.test": "robots_policy POLICY\nreverse_proxy UPSTREAM",
		"b.test": "encode\nrobots_policy POLICY {\nheaders tailored\n}\nreverse_proxy UPSTREAM",
	})
	for _, host := range []string{"a.test", "b.test"} {
		if s.lacks(host) {
			continue
		}
		conn, in := s.dial("GET /drafts/x HTTP/1.1\r\nHost: " + host + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nAccept-Encoding: gzip\r\n\r\n")
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != 101 || !slices.Equal(resp.Header["X-Robots-Tag"], []string{"noarchive"}) || resp.Header.Get("Robots-Tag") != "" || resp.Header.Get("Vary") != "" {
			t.Errorf("%s: %s %v", host, resp.Status, resp.Header)
		}
		b := make([]byte, len("hello PING"))
		if _, err := io.WriteString(conn, "ping"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(in, b); err != nil || string(b) != "hello PING" {
			t.Errorf("%s: %q %v", host, b, err)
		}
		_ = conn.Close()
	}
}

// The answer to CONNECT opens a tunnel, so it is not treated as a page.
func TestConnect(t *testing.T) { bothDoors(t, testConnect) }

func testConnect(t *testing.T, d door) {
	s := d.start(t, slicePolicy, nil, "route {\nrobots_policy POLICY\nheader Content-Type text/html\nrespond `"+page("")+"`\n}")
	_, in := s.dial("CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\nUser-Agent: LogBot/1.0\r\n\r\n")
	resp, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
	if err != nil {
		t.Fatal(err)
	}
	if f := fieldsOf(resp.Header); resp.StatusCode != 200 || len(f) > 0 {
		t.Errorf("%s %v", resp.Status, f)
	}
}

// Trailers are passed on, whether they were announced or not. Digests of a changed page are removed.
func TestTrailers(t *testing.T) { bothDoors(t, testTrailers) }

func testTrailers(t *testing.T, d door) {
	s := d.start(t, conformancePolicy, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", r.Header.Get("Type"))
		h.Set("Trailer", "X-Sum, Content-Digest")
		_, _ = io.WriteString(w, page(""))
		if r.Header.Get("Flush") != "" {
			_ = http.NewResponseController(w).Flush()
		}
		h.Set("X-Sum", "1")
		h.Set("Content-Digest", "sha-256=:AA==:")
		h.Set(http.TrailerPrefix+"X-Late", "2")
		h.Set("X-Robots-Tag", "noarchive") // too late to be a header
	}), "robots_policy POLICY\nreverse_proxy UPSTREAM")
	for _, kind := range []string{"text/html", "text/plain"} {
		for _, flush := range []string{"", "1"} {
			r := s.get("/drafts/x", "Type", kind, "Flush", flush)
			digest := ""
			if kind == "text/plain" {
				digest = "sha-256=:AA==:"
			}
			if tr := r.Trailer; tr.Get("X-Sum") != "1" || tr.Get("X-Late") != "2" || tr.Get("Content-Digest") != digest || tr.Get("X-Robots-Tag") != "" {
				t.Errorf("%s, flush %q: trailers %v", kind, flush, tr)
			}
			if wrong := judge("/drafts/x", fields{}, fieldsOf(r.Header)); len(wrong) > 0 {
				t.Errorf("%s: %v", kind, wrong)
			}
		}
	}
}

// The answers of Caddy's own handlers get the policy's fields like the answers of an upstream.
func TestHeadersOfHandlers(t *testing.T) { bothDoors(t, testHeadersOfHandlers) }

func testHeadersOfHandlers(t *testing.T, d door) {
	s := d.startSites(t, conformancePolicy, nil, map[string]string{
		"nothing.test":  "robots_policy POLICY",
		"respond.test":  "robots_policy POLICY\nrespond \"x\" {header.Status}",
		"close.test":    "robots_policy POLICY\nrespond \"x\" {header.Status} {\nclose\n}",
		"files.test":    "root DIR\nrobots_policy POLICY\nfile_server {\nstatus {header.Status}\n}",
		"index.test":    "root DIR\nrobots_policy POLICY\nfile_server {\nbrowse\n}",
		"redir.test":    "route {\nrobots_policy POLICY\nredir * /elsewhere {header.Status}\n}",
		"template.test": "root DIR\nrobots_policy POLICY\ntemplates\nfile_server",
		"try.test":      "root DIR\nrobots_policy POLICY\ntry_files {path} /drafts/x\nfile_server",
		"error.test":    "robots_policy POLICY\nerror \"x\" {header.Status}\nhandle_errors {\nrobots_policy POLICY\nrespond \"{err.status_code}\"\n}",
		"errfile.test":  "root DIR\nrobots_policy POLICY\nerror \"x\" {header.Status}\nhandle_errors {\nrobots_policy POLICY\nrewrite * /drafts/x\nfile_server\n}",
		"errhead.test":  "header X-Robots-Tag nofollow\nrobots_policy POLICY\nerror \"x\" {header.Status}\nhandle_errors {\nrobots_policy POLICY\nrespond x\n}",
		"gone.test":     "robots_policy POLICY\nreverse_proxy 127.0.0.1:1\nhandle_errors {\nrobots_policy POLICY\nrespond x\n}",
		"method.test":   "method POST\nrobots_policy POLICY\nrespond \"x\" {header.Status}",
		"vars.test":     "vars x y\nuri strip_prefix /drafts\nrobots_policy POLICY\nrespond \"x\" {header.Status}",
	})
	for _, name := range []string{"drafts/x", "drafts/index.htm"} {
		s.file(name, page("{{`x`}}"))
	}
	for host, statuses := range map[string][]int{
		"nothing.test": {200}, "respond.test": {200, 204, 304, 404, 503}, "close.test": {200, 404}, "files.test": {200, 404, 503}, "index.test": {200},
		"redir.test": {301, 302, 307}, "template.test": {200}, "try.test": {200}, "error.test": {400, 404, 500, 503}, "errfile.test": {404, 410, 503},
		"errhead.test": {404, 500}, "gone.test": {502}, "method.test": {200}, "vars.test": {200, 404},
	} {
		if s.lacks(host) {
			continue
		}
		for _, status := range statuses {
			path := "/drafts/x"
			if host == "index.test" {
				path = "/drafts/"
			}
			var first fields
			for _, method := range []string{"GET", "HEAD"} {
				r := s.do(method, path, "Host", host, "Status", fmt.Sprint(status))
				got := fieldsOf(r.Header)
				before := fields{}
				if host == "errhead.test" {
					before["X-Robots-Tag"] = []string{"nofollow"}
				}
				if wrong := judge("/drafts/x", before, got); r.StatusCode != status || len(wrong) > 0 {
					t.Errorf("%s %s, status %d: %s\n%s", method, host, status, r.Status, strings.Join(wrong, "\n"))
				}
				if first == nil {
					first = got
				} else if fmt.Sprint(first) != fmt.Sprint(got) {
					t.Errorf("%s, status %d: HEAD says %v and GET %v", host, status, got, first)
				}
			}
		}
	}
	if s.lacks("template.test") {
		return
	}
	// Requests for a part of a file, and for a file that has not changed.
	tag := s.get("/drafts/x", "Host", "files.test", "Status", "200").Header.Get("Etag")
	for _, header := range [][]string{{"Range", "bytes=0-4"}, {"If-None-Match", tag}} {
		for _, method := range []string{"GET", "HEAD"} {
			r := s.do(method, "/drafts/x", append([]string{"Host", "template.test"}, header...)...)
			if wrong := judge("/drafts/x", fields{}, fieldsOf(r.Header)); len(wrong) > 0 {
				t.Errorf("%s with %q: %s %v", method, header, r.Status, wrong)
			}
		}
	}
}
