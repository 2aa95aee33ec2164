// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"time"
)

// wires are the versions of HTTP that a client uses for requests to a site.
var wires = []struct {
	name, scheme string
	major        int
}{{"HTTP/1.1", "http", 1}, {"HTTP/1.1 over TLS", "https", 1}, {"HTTP/2 over TLS", "https", 2}, {"HTTP/2 in the clear", "http", 2}}

// wired runs a site, so that it can be requested over each version of HTTP in wires. do sends a request over wires[i],
// and returns the response.
func wired(t *testing.T, d door, site string, upstream http.HandlerFunc) (do func(i int, r *http.Request) *http.Response) {
	t.Helper()
	own := httptest.NewTLSServer(nil) // the name in the certificate of the test server
	own.Close()
	run := wiredCaddy
	if d == netHTTPDoor {
		run = wiredNetHTTP
	}
	s, secure := run(t, site, upstream, own.TLS.Certificates[0])
	roots := x509.NewCertPool()
	roots.AddCert(own.Certificate())
	clients := make([]*http.Client, len(wires))
	for i, w := range wires {
		p := new(http.Protocols)
		p.SetHTTP1(w.major == 1)
		p.SetHTTP2(w.major == 2 && w.scheme == "https")
		p.SetUnencryptedHTTP2(w.major == 2 && w.scheme == "http")
		tr := &http.Transport{DisableCompression: true, Protocols: p, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "example.com"}}
		t.Cleanup(tr.CloseIdleConnections)
		clients[i] = &http.Client{Transport: tr, Timeout: time.Minute}
	}
	justLoaded.Store(false)
	return func(i int, r *http.Request) *http.Response {
		t.Helper()
		r.URL.Scheme, r.URL.Host, r.Host = wires[i].scheme, s.addr, "example.com"
		if r.URL.Scheme == "https" {
			r.URL.Host = secure
		}
		doors.asked(s)
		resp, err := clients[i].Do(r)
		if err != nil {
			t.Fatalf("%s: %v", wires[i].name, err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		if resp.ProtoMajor != wires[i].major {
			t.Fatalf("%s: the answer used %s", wires[i].name, resp.Proto)
		}
		return resp
	}
}

// wiredNetHTTP runs a site in HTTP servers of the package net/http, and returns its address for TLS.
func wiredNetHTTP(t *testing.T, site string, upstream http.HandlerFunc, pair tls.Certificate) (s *server, secure string) {
	t.Helper()
	s = netHTTPDoor.start(t, conformancePolicy, upstream, site)
	return s, s.listen(&tls.Config{Certificates: []tls.Certificate{pair}}, false)
}

// wiredCaddy runs a site with Caddy, and returns its address for TLS.
func wiredCaddy(t *testing.T, site string, upstream http.HandlerFunc, pair tls.Certificate) (s *server, secure string) {
	t.Helper()
	doors.ran(t, caddyDoor, "*")
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	s = newServer(t, t.TempDir(), conformancePolicy, upstream)
	s.write("cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})))
	s.write("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
	secure = freeAddr(t)
	_, securePort, _ := net.SplitHostPort(secure)
	s.run(s.caddyfile("admin off\nservers {\nprotocols h1 h2 h2c\n}\nlog {\noutput discard\n}", map[string]string{"": site}) +
		strings.NewReplacer("POLICY", s.dir+"/policy.yaml", "UPSTREAM", s.upstream).Replace(
			"https://example.com:"+securePort+" {\ntls "+s.dir+"/cert.pem "+s.dir+"/key.pem\n"+site+"\n}\n"))
	return s, secure
}

func wireRequest(t *testing.T, method string, header ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://example.com/drafts/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

// The meta tags that conformancePolicy and exemptPolicy add to a page of /drafts/.
const (
	draftElements    = `<meta name="robots" content="noindex, max-snippet:50">` + crawlersElements
	crawlersElements = `<meta name="ExampleBot" content="nofollow">` + amazonsElement
	amazonsElement   = `<meta name="Amazonbot" content="noarchive">`
)

// A changed page is the same over each version of HTTP. This includes its text, its header, its entity tag, and the
// answer to HEAD.
func TestPageOverEachWire(t *testing.T) { bothDoors(t, testPageOverEachWire) }

func testPageOverEachWire(t *testing.T, d door) {
	for name, site := range map[string]string{
		"plain": "robots_policy POLICY\nreverse_proxy UPSTREAM", "encode": "encode gzip\nrobots_policy POLICY\nreverse_proxy UPSTREAM",
	} {
		t.Run(name, func(t *testing.T) {
			pageOverEachWire(t, wired(t, d, site, pageUpstream))
		})
	}
}

func pageOverEachWire(t *testing.T, do func(i int, r *http.Request) *http.Response) {
	t.Helper()
	want := strings.Replace(page(""), "<head>", "<head>"+draftElements, 1)
	for i, w := range wires {
		for _, coding := range []string{"", "gzip", "zstd", "br"} {
			head := []string{
				"Etag", `"v1"`, "Last-Modified", "Sat, 21 Nov 2026 10:00:00 GMT", "Accept-Ranges", "bytes", "Content-Digest", "sha-256=:AA==:",
				"Coding", coding, "Chunks", "whole", "Accept-Encoding", "identity",
			}
			got := do(i, wireRequest(t, "GET", head...))
			text, err := io.ReadAll(unpacking(t, got.Header.Get("Content-Encoding"), got.Body))
			if string(text) != want || err != nil || got.StatusCode != 200 || got.Header.Get("Content-Encoding") != coding {
				t.Fatalf("%s, %q: %s %v %q %v", w.name, coding, got.Status, got.Header, text, err)
			}
			tag := got.Header.Get("Etag")
			if !strings.HasPrefix(tag, `W/"v1-rp`) || coding == "" && got.ContentLength != int64(len(want)) {
				t.Errorf("%s, %q: ETag %s, Content-Length %d", w.name, coding, tag, got.ContentLength)
			}
			asked := do(i, wireRequest(t, "HEAD", head...))
			if body, err := io.ReadAll(asked.Body); len(body) > 0 || err != nil || asked.StatusCode != 200 || asked.Header.Get("Etag") != "" {
				t.Errorf("%s, %q: HEAD %s %v, body %q, %v", w.name, coding, asked.Status, asked.Header, body, err)
			}
			for _, r := range []*http.Response{got, asked} {
				for _, name := range []string{"Last-Modified", "Accept-Ranges", "Content-Digest"} {
					if v := r.Header.Get(name); v != "" {
						t.Errorf("%s, %q: %s: %s", w.name, coding, name, v)
					}
				}
				if wrong := judge("/drafts/x", fields{}, fieldsOf(r.Header)); len(wrong) > 0 {
					t.Errorf("%s, %q: %v", w.name, coding, wrong)
				}
			}
			for method, status := range map[string]int{"GET": 304, "HEAD": 304} {
				again := do(i, wireRequest(t, method, append(head, "If-None-Match", tag)...))
				if body, err := io.ReadAll(again.Body); again.StatusCode != status || again.Header.Get("Etag") != tag || len(body) > 0 || err != nil {
					t.Errorf("%s, %q: %s with %s: %s %v, body %q, %v", w.name, coding, method, tag, again.Status, again.Header, body, err)
				}
			}
		}
	}
}

// Interim responses and trailers are passed on over each version of HTTP. Digests of a changed page are removed.
func TestInterimAndTrailersOverEachWire(t *testing.T) {
	bothDoors(t, testInterimAndTrailersOverEachWire)
}

func testInterimAndTrailersOverEachWire(t *testing.T, d door) {
	do := wired(t, d, "robots_policy POLICY\nreverse_proxy UPSTREAM", func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		h.Set("Content-Type", "text/html")
		h.Set("Trailer", "X-Sum, Content-Digest")
		_, _ = io.WriteString(w, page(""))
		h.Set("X-Sum", "1")
		h.Set("Content-Digest", "sha-256=:AA==:")
		h.Set(http.TrailerPrefix+"X-Late", "2")
		h.Set(http.TrailerPrefix+"Repr-Digest", "sha-256=:AA==:")
	})
	for i, w := range wires {
		var hints []string
		r := wireRequest(t, "GET", "Te", "trailers")
		r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			hints = append(hints, fmt.Sprint(code, h["Link"], fieldsOf(http.Header(h))))
			return nil
		}}))
		resp := do(i, r)
		text, err := io.ReadAll(resp.Body)
		if want := strings.Replace(page(""), "<head>", "<head>"+draftElements, 1); string(text) != want || err != nil {
			t.Errorf("%s: %q %v", w.name, text, err)
		}
		if len(hints) != 1 || hints[0] != "103 [</style.css>; rel=preload] map[]" {
			t.Errorf("%s: interim responses %q", w.name, hints)
		}
		if tr := resp.Trailer; tr.Get("X-Sum") != "1" || tr.Get("X-Late") != "2" || tr.Get("Content-Digest") != "" || tr.Get("Repr-Digest") != "" {
			t.Errorf("%s: trailers %v", w.name, tr)
		}
	}
}

// With each version of HTTP, the client receives the first part of a stream, or the head of a page, before the upstream
// sends the rest. The upstream waits until the client has received this part.
func TestStreamsOverEachWire(t *testing.T) { bothDoors(t, testStreamsOverEachWire) }

func testStreamsOverEachWire(t *testing.T, d door) {
	goOn := make(chan struct{})
	do := wired(t, d, "robots_policy POLICY\nreverse_proxy UPSTREAM", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.Header.Get("Type"))
		for part := range strings.SplitSeq(r.Header.Get("Parts"), "|") {
			_, _ = io.WriteString(w, strings.ReplaceAll(part, "/n", "\n"))
			_ = http.NewResponseController(w).Flush()
			select {
			case <-goOn:
			case <-r.Context().Done():
				return
			}
		}
	})
	for i, w := range wires {
		for _, c := range []struct{ kind, parts, want string }{
			{"text/event-stream", "data: 1/n/n|data: 2/n/n|data: 3/n/n", "data: 1\n\n|data: 2\n\n|data: 3\n\n"},
			{"text/html", "<html><head><title>x</title></head>|<body>1|2", "<html><head>" + draftElements + "<title>x</title></head>|<body>1|2"},
		} {
			resp := do(i, wireRequest(t, "GET", "Type", c.kind, "Parts", c.parts))
			for part := range strings.SplitSeq(c.want, "|") {
				b := make([]byte, len(part)) // if the part does not arrive, the client's timeout ends the wait
				if _, err := io.ReadFull(resp.Body, b); err != nil || string(b) != part {
					t.Fatalf("%s, %s: %q, want %q: %v", w.name, c.kind, b, part, err)
				}
				goOn <- struct{}{}
			}
			if rest, err := io.ReadAll(resp.Body); len(rest) > 0 || err != nil {
				t.Errorf("%s, %s: %q follows: %v", w.name, c.kind, rest, err)
			}
		}
	}
}
