// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// padding makes pages long enough to be compressed by "encode". On sites with "encode", it replaces the word PADDING in
// pageHeads.
var padding = "<!--" + strings.Repeat(" much to say ", 60) + "-->"

// pageHeads lists contents of a page's head, such as robots meta tags. Each pageCell uses one of them.
var pageHeads = []string{
	"",
	`PADDING`,
	`<meta charset=utf-8>PADDING<META NAME=Robots CONTENT="index,follow">`,
	`<meta name="robots" content="noarchive"><meta name="robots" content="max-snippet:10"><script>"<meta name=robots content=all>"</script>PADDING`,
	`PADDING<noscript><meta name="robots" content="nosnippet"></noscript><meta content='all' name='googlebot'><meta name="examplebot" content="none">`,
}

// pageValidators lists sets of header fields, mostly validators, that the upstream sends with a page.
var pageValidators = [][]string{
	{},
	{"Etag", `"v1"`, "Accept-Ranges", "bytes"},
	{"Etag", `W/"v1"`, "Last-Modified", "Sat, 21 Nov 2026 10:00:00 GMT"},
	{"Last-Modified", "Sat, 21 Nov 2026 10:00:00 GMT", "Cache-Control", "max-age=60"},
	{"Etag", `"v1"`, "Cache-Control", "private, no-transform", "Content-Digest", "sha-256=:AA==:"},
	{"Content-Digest", "sha-256=:AA==:", "Etag", `no tag`},
}

var pageRoutes = map[string]string{
	"plain":  "robots_policy POLICY\nreverse_proxy UPSTREAM",
	"flush":  "robots_policy POLICY\nreverse_proxy UPSTREAM {\nflush_interval -1\n}",
	"encode": "encode zstd gzip\nrobots_policy POLICY\nreverse_proxy UPSTREAM",
	"inside": "route {\nrobots_policy POLICY\nencode gzip\nreverse_proxy UPSTREAM\n}",
}

var pageCodings = []string{"", "gzip", "deflate", "zstd", "br", "compress"}

// A pageCell is a request for a page, and the properties of the upstream's answer.
type pageCell struct {
	route, method, coding, chunks, accept string
	status                                int
	head                                  string
	validators                            []string
}

func (c pageCell) String() string {
	return fmt.Sprintf("%s: %s → %d %s, %s, %q, accepts %q, head %.60q", c.route, c.method, c.status, c.coding, c.chunks, c.validators, c.accept, c.head)
}

func (c pageCell) validator(name string) string {
	if i := slices.Index(c.validators, name); i >= 0 {
		return c.validators[i+1]
	}
	return ""
}

// changes reports whether robots_policy must change the page.
func (c pageCell) changes() bool {
	return (c.method == "GET" || c.method == "HEAD") && c.status == 200 && c.coding != "compress" &&
		!strings.Contains(c.validator("Cache-Control"), "no-transform")
}

// TestPageConformance requests pages with every combination of a method, a status, a content coding, validators such as
// an entity tag, and a way to write the page in parts. Without ROBOTSPOLICY_LONG, statuses other than 200 are tested
// with only some of these combinations.
func TestPageConformance(t *testing.T) { bothDoors(t, testPageConformance) }

func testPageConformance(t *testing.T, d door) {
	sites := map[string]string{}
	for name, body := range pageRoutes {
		sites[siteName(name)] = body
	}
	s := d.startSites(t, conformancePolicy, http.HandlerFunc(pageUpstream), sites)
	for name := range pageRoutes {
		t.Run(name, func(t *testing.T) {
			s.needs(t, siteName(name))
			n := 0
			for i, coding := range pageCodings {
				for j, validators := range pageValidators {
					for k, status := range []int{200, 204, 206, 304, 404, 500} {
						if k > 0 && (k+i+j)%testkit.Rounds(6, 3) != 0 && !testkit.Long() {
							continue
						}
						c := pageCell{route: name, coding: coding, validators: validators, status: status, chunks: "whole", head: pageHeads[n%len(pageHeads)]}
						c.accept = []string{"gzip", "", "zstd"}[n%3]
						s.pageMethods(t, c)
						n++
					}
					for _, chunks := range []string{"", "bytes", "slow"} {
						if chunks == "slow" && !testkit.Long() || chunks != "" && testing.Short() {
							continue
						}
						c := pageCell{route: name, method: "GET", coding: coding, validators: validators, status: 200, chunks: chunks, head: pageHeads[n%len(pageHeads)]}
						s.pageCell(t, c)
						n++
					}
				}
			}
		})
	}
}

// pageMethods sends the request c with each method, and checks the answers. The answers to HEAD and GET must have the
// same header.
func (s *server) pageMethods(t *testing.T, c pageCell) {
	t.Helper()
	headers := map[string]http.Header{}
	for _, c.method = range []string{"GET", "HEAD", "POST"} {
		r := s.pageCell(t, c)
		h := r.Header.Clone()
		h.Del("Date")
		h.Del("Content-Length")
		if c.route == "encode" && c.changes() {
			// The answer to GET can be compressed although the answer to HEAD is not, or the other way round. Caddy's
			// "encode" uses the length of an answer to HEAD to decide whether to compress it, but the length of a
			// changed page is not known.
			h.Del("Content-Encoding")
			h["Vary"] = slices.DeleteFunc(h["Vary"], func(v string) bool { return v == "Accept-Encoding" })
		}
		if c.changes() {
			if tag := h.Get("Etag"); c.method == "HEAD" && tag != "" {
				t.Errorf("%v: ETag %s in the answer to HEAD, although the tag of the GET is not known", c, tag)
			}
			h.Del("Etag")
		}
		headers[c.method] = h
	}
	if get, head := fmt.Sprint(headers["GET"]), fmt.Sprint(headers["HEAD"]); get != head {
		t.Errorf("%v:\nGET  %s\nHEAD %s", c, get, head)
	}
}

func (s *server) pageCell(t *testing.T, c pageCell) response {
	t.Helper()
	pad := ""
	if c.route == "encode" || c.route == "inside" {
		pad = padding
	}
	c.head = strings.Replace(c.head, "PADDING", pad, 1)
	header := []string{"Host", siteName(c.route), "Status", strconv.Itoa(c.status), "Chunks", c.chunks, "Head", c.head}
	if c.coding != "" {
		header = append(header, "Coding", c.coding)
	}
	if c.accept == "" {
		c.accept = "identity" // without this field, the proxy's HTTP client would request gzip and decompress the response
	}
	header = append(header, "Accept-Encoding", c.accept)
	r := s.do(c.method, "/drafts/x", append(header, c.validators...)...)
	if r.StatusCode != c.status {
		t.Errorf("%v: %s", c, r.Status)
		return r
	}
	if wrong := judge("/drafts/x", fields{}, fieldsOf(r.Header)); len(wrong) > 0 {
		t.Errorf("%v: %s", c, strings.Join(wrong, "\n"))
	}
	s.pageBody(t, c, r)
	pageHeader(t, c, r)
	return r
}

// pageBody checks the body of the response r to the request c.
func (s *server) pageBody(t *testing.T, c pageCell, r response) {
	t.Helper()
	original := page(c.head)
	if c.method == "HEAD" || c.status == 204 || c.status == 304 {
		if r.body != "" {
			t.Errorf("%v: body %q", c, r.body)
		}
		return
	}
	if c.status == 206 {
		if r.body != string(encoded(c.coding, original)[:5]) {
			t.Errorf("%v: a part became %q", c, r.body)
		}
		return
	}
	coding := r.Header.Get("Content-Encoding")
	if c.coding != "" && coding != c.coding {
		t.Errorf("%v: in coding %q", c, coding)
	}
	got := decoded(t, coding, r.body)
	if !c.changes() {
		if got != original || c.coding != "" && r.body != string(encoded(c.coding, original)) {
			t.Errorf("%v: changed to %.500q", c, got)
		}
		return
	}
	if problem := treeChange(original, got, conformanceSays["/drafts/x"].rules); problem != "" {
		t.Errorf("%v: %.500s\n%.500s", c, problem, got)
	}
	if !strings.Contains(strings.ToLower(c.head), "name=") && len(got) > len(original) {
		at := strings.Index(got, "<meta")
		if at < 0 || got[:at]+got[at+len(got)-len(original):] != original {
			t.Errorf("%v: other changes than inserted elements: %.500q", c, got)
		}
	}
	if c.chunks == "whole" && coding == "" && r.ContentLength != int64(len(r.body)) {
		t.Errorf("%v: Content-Length %d of %d bytes", c, r.ContentLength, len(r.body))
	}
}

// pageHeader checks the header of the response r to the request c.
func pageHeader(t *testing.T, c pageCell, r response) {
	t.Helper()
	changed := c.changes()
	tag, got := c.validator("Etag"), r.Header.Get("Etag")
	packed := r.Header.Get("Content-Encoding") != c.coding // compressed by "encode"
	switch own := strings.TrimSuffix(got, `"`); {
	case !changed && !packed && got != tag:
		t.Errorf("%v: ETag %s", c, got)
	case changed && (tag == "" || tag == "no tag" || c.method == "HEAD"):
		if got != "" {
			t.Errorf("%v: ETag %s", c, got)
		}
	case changed && (!strings.HasPrefix(strings.Replace(strings.TrimPrefix(own, "W/"), "-gzip-", "-", 1), strings.TrimPrefix(strings.TrimSuffix(tag, `"`), "W/")+"-rp") || !strings.HasSuffix(got, `"`) || strings.Count(got, `"`) != 2):
		t.Errorf("%v: ETag %s", c, got)
	case changed && !strings.HasPrefix(got, "W/"):
		t.Errorf("%v: strong ETag %s of a changed page", c, got)
	}
	for _, name := range []string{"Last-Modified", "Content-Digest", "Accept-Ranges"} {
		want := c.validator(name)
		if changed || packed && name == "Accept-Ranges" {
			want = ""
		}
		if v := r.Header.Get(name); v != want {
			t.Errorf("%v: %s: %q, want %q", c, name, v, want)
		}
	}
	if !slices.Contains(r.Header.Values("Vary"), "Cookie") {
		t.Errorf("%v: Vary: %q", c, r.Header.Values("Vary"))
	}
}
