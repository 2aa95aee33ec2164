// SPDX-License-Identifier: Apache-2.0

package agreement

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// page is a page of the upstream.
type page struct {
	name   string
	status int
	kind   string // Content-Type of the page
	header http.Header
	body   string
	plain  bool   // the upstream has the page only without a content coding
	tag    string // entity tag of the page, or "" if there is none
}

func (p *page) html() bool {
	return strings.HasPrefix(p.kind, "text/html") && p.status == http.StatusOK
}

func htmlPage(head string) string {
	return "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8><title>A page</title>" + head +
		"</head><body><p>Some words. <!-- <meta name=robots content=none> --></p></body></html>\n"
}

// pages are the pages of the upstream. A request contains the index of its page.
var pages = []page{
	{name: "a page", kind: "text/html; charset=utf-8", body: htmlPage(""), tag: `"a-page"`},
	{name: "a page with a long head", kind: "text/html; charset=utf-8", body: htmlPage(strings.Repeat("<link rel=preload href=/x>", 40)), tag: `W/"long"`},
	{name: "its own elements", kind: "text/html", body: htmlPage(`<meta name="robots" content="noarchive, max-snippet:30"><META NAME=AlphaBot CONTENT="NoSnippet"><meta name="TDM-Reservation" content="0"><meta name="googlebot" content="nofollow">`)},
	{name: "its own elements behind a script", kind: "text/html", tag: `"behind"`, body: htmlPage(`<script>"<meta name=robots content=none>"</script><meta name=tdm-reservation content=1><meta content='max-image-preview:standard, unavailable_after: 2998-01-02T03:04:05Z' name='ROBOTS'>`)},
	{name: "no head", kind: "text/html", body: "<!DOCTYPE html>\n<p>Words without a head.\n", plain: true},
	{name: "data with headers of its own", kind: "application/json", body: `{"a":"<head></head>"}`, tag: `"data"`, header: http.Header{"X-Robots-Tag": {"noindex, noai"}, "Content-Usage": {"train-ai=n"}, "Content-Signal": {"ai-train=yes, search=yes, use=reference"}, "Tdm-Reservation": {"1"}, "Link": {"</x.css>; rel=preload"}}},
	{name: "headers for some crawlers", kind: "text/html", body: htmlPage(""), tag: `"some"`, header: http.Header{
		"Robots-Tag":    {"*;max-snippet=40, alphabot;noarchive, gptbot;noindex"},
		"X-Robots-Tag":  {"max-snippet:40", "alphabot: noarchive", "GPTBot: noindex, nofollow"},
		"Content-Usage": {"ai-use=y, search=n"}, "Content-Signal": {"AI-Input = no"}, "Tdm-Reservation": {"0"}, "Tdm-Policy": {"https://upstream.example/tdm"},
	}},
	{name: "a page that says all there is to say", kind: "text/html", tag: `"none"`, body: htmlPage(`<meta name="robots" content="none, noarchive, nosnippet, noimageindex, notranslate, nocache, max-snippet:0, max-image-preview:none, max-video-preview:0, unavailable_after: 1990-01-02T00:00:00Z">`)},
	{name: "not found", status: http.StatusNotFound, kind: "text/html", body: htmlPage(`<meta name="robots" content="noindex">`)},
}

func init() {
	for i := range pages {
		if pages[i].status == 0 {
			pages[i].status = http.StatusOK
		}
	}
}

// in returns the bodies of all pages for each content coding, in the order of the variable pages. A body is nil if the
// upstream does not have the page in that coding.
var in = sync.OnceValue(func() map[string][][]byte {
	bodies := map[string][][]byte{}
	for _, coding := range codings {
		for i := range pages {
			var body []byte
			if !pages[i].plain {
				body = encoded(coding, pages[i].body)
			}
			bodies[coding] = append(bodies[coding], body)
		}
	}
	return bodies
})

// tagIn returns the entity tag of the page in a coding. Each representation has its own tag (RFC 9110 section 8.8.3).
func (p *page) tagIn(coding string) string {
	if p.plain || coding == "identity" || coding == "" || p.tag == "" {
		return p.tag
	}
	return p.tag[:len(p.tag)-1] + "." + coding + `"` // the suffix "-gzip" would come from Caddy's "encode"
}

// upstream is the application behind Caddy. Each request says how to answer it.
type upstream struct {
	mu    sync.Mutex
	files map[string]string // robots.txt files, keyed by the name in a request's X-Forwarded-Host
	n     int
}

// know adds a robots.txt to the upstream, and returns the host name under which the upstream serves it. Each call
// returns a new name, because the server under test caches these files by host name.
func (u *upstream) know(file string) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.n++
	name := fmt.Sprintf("site-%d.example", u.n)
	if u.files == nil {
		u.files = map[string]string{}
	}
	u.files[name] = file
	return name
}

func (u *upstream) forget(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.files, name)
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/.well-known/tdmrep.json" && r.Header.Get("X-Page") == "" {
		u.tdmrep(w, r.Header.Get("X-Forwarded-Host"))
		return
	}
	if r.URL.Path == "/robots.txt" && r.Header.Get("X-Page") == "" {
		u.robots(w, r.Header.Get("X-Forwarded-Host"))
		return
	}
	n, _ := strconv.Atoi(r.Header.Get("X-Page"))
	n %= len(pages)
	p := &pages[n]
	h := w.Header()
	for name, lines := range p.header {
		h[name] = lines
	}
	h.Set("Content-Type", p.kind)
	coding := r.Header.Get("Accept-Encoding")
	body := []byte(p.body)
	if known := in()[coding]; known != nil && known[n] != nil {
		body = known[n]
		h.Set("Content-Encoding", coding)
	}
	if tag := p.tagIn(coding); tag != "" {
		h.Set("Etag", tag)
		h.Set("Last-Modified", "Mon, 02 Mar 2026 10:00:00 GMT")
		if matches(r.Header.Get("If-None-Match"), tag) {
			h.Del("Content-Encoding")
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(p.status)
	_, _ = w.Write(body)
}

// matches reports whether an entity tag is among the tags of an If-None-Match header, compared weakly (RFC 9110 section
// 13.1.2).
func matches(condition, tag string) bool {
	for c := range strings.SplitSeq(condition, ",") {
		if strings.TrimPrefix(strings.TrimSpace(c), "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}

func (u *upstream) tdmrep(w http.ResponseWriter, name string) {
	u.mu.Lock()
	file := u.files[name]
	u.mu.Unlock()
	if file == "" {
		http.Error(w, "there is none", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, theirTDMRep)
}

func (u *upstream) robots(w http.ResponseWriter, name string) {
	u.mu.Lock()
	file := u.files[name]
	u.mu.Unlock()
	if file == "" {
		http.Error(w, "there is none", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	_, _ = io.WriteString(w, file)
}
