// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// hookCount is a HeaderHook that counts its calls and adds a header field.
type hookCount struct {
	calls  int
	status int
}

func (c *hookCount) OnHeader(status int, h http.Header) {
	c.calls++
	c.status = status
	h["X-Robots-Tag"] = []string{"noindex"}
}

const testSuffix = "-rp1f"

// serve starts a real server that runs handler behind Wrap.
func serve(t testing.TB, o Options, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	return serveOptions(t, func() Options { return o }, handler)
}

// serveOptions does the same as serve, but calls the function options for each response to get its Options.
func serveOptions(t testing.TB, options func() Options, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hook := new(hookCount)
		o := options()
		o.Header = hook
		rw := Wrap(w, r, o)
		defer rw.Release()
		handler(rw, rw.Request())
		if err := rw.Close(nil); err != nil {
			t.Logf("close: %v", err)
		}
		if hook.calls != 1 {
			t.Errorf("%s %s: the hook ran %d times", r.Method, r.URL, hook.calls)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

var rawClient = &http.Client{
	Transport:     &http.Transport{DisableCompression: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func do(t testing.TB, method, url string, header ...string) (*http.Response, []byte) {
	t.Helper()
	r, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	res, err := rawClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %s %v: %v", method, url, header, err)
	}
	return res, b
}

// writings lists ways in which handlers write a body.
var writings = []struct {
	name  string
	write func(w http.ResponseWriter, body []byte)
}{
	{"one", func(w http.ResponseWriter, b []byte) { w.Write(b) }},
	{"bytes", func(w http.ResponseWriter, b []byte) {
		for i := range b {
			w.Write(b[i : i+1])
		}
	}},
	{"flushed", func(w http.ResponseWriter, b []byte) {
		for c := range slices.Chunk(b, 700) {
			w.Write(c)
			w.(http.Flusher).Flush()
		}
	}},
	{"string", func(w http.ResponseWriter, b []byte) {
		text := string(b) // this tests the writer's own WriteString
		io.WriteString(w, text)
	}},
	{"copy", func(w http.ResponseWriter, b []byte) { io.Copy(w, bytes.NewBuffer(b)) }},
	{"readfrom", func(w http.ResponseWriter, b []byte) {
		w.(io.ReaderFrom).ReadFrom(struct{ io.Reader }{bytes.NewReader(b)})
	}},
}

// TestConformance combines methods, statuses, types, header sets and ways of writing. It compares each response with
// the expected result in a row of the table.
func TestConformance(t *testing.T) {
	set := testSet(t, "robots=noindex", "googlebot=nosnippet")
	plain := benchPage(9000, "")
	merged := benchPage(9000, benchMeta)
	says := benchPage(9000, set.HTML())
	image := append([]byte("\x89PNG\r\n\x1a\n"), plain...)
	rows := []struct {
		name    string
		header  string // lines "Name: value", separated by |
		status  int
		body    []byte
		changes bool
	}{
		{"html", "Content-Type: text/html; charset=utf-8", 200, plain, true},
		{"html, other case", "Content-Type: Text/HTML;Charset=\"ISO-8859-1\"", 200, plain, true},
		{"element to merge", "Content-Type: text/html", 200, merged, true},
		{"says it already", "Content-Type: text/html", 200, says, false},
		{"sniffed", "", 200, plain, true},
		{"sniffed image", "", 200, image, false},
		{"sniffing off", "Content-Type: ", 200, plain, false},
		{"json", "Content-Type: application/json", 200, plain, false},
		{"html-like type", "Content-Type: text/htmlx", 200, plain, false},
		{"two types", "Content-Type: text/html|Content-Type: text/plain", 200, plain, false},
		{"utf-16", "Content-Type: text/html; charset=utf-16", 200, plain, false},
		{"iso-2022-jp", "Content-Type: text/html; charset=ISO-2022-JP", 200, plain, false},
		{"404", "Content-Type: text/html", 404, plain, false},
		{"410", "Content-Type: text/html", 410, plain, false},
		{"500", "Content-Type: text/html", 500, plain, false},
		{"204", "Content-Type: text/html", 204, nil, false},
		{"301", "Content-Type: text/html|Location: /x", 301, plain, false},
		{"206", "Content-Type: text/html|Content-Range: bytes 0-8999/9001", 206, plain, false},
		{"content-range in a 200", "Content-Type: text/html|Content-Range: bytes 0-8999/9001", 200, plain, false},
		{"no-transform", "Content-Type: text/html|Cache-Control: max-age=5, No-Transform", 200, plain, false},
		{"no-transform with an argument", "Content-Type: text/html|Cache-Control: no-transform=1", 200, plain, false},
		{"unknown coding", "Content-Type: text/html|Content-Encoding: x-own", 200, plain, false},
		{"identity named", "Content-Type: text/html|Content-Encoding: identity", 200, plain, true},
		{"incremental", "Content-Type: text/html|Incremental: ?1", 200, plain, false},
		{"not incremental", "Content-Type: text/html|Incremental: ?0", 200, plain, true},
		{"empty page", "Content-Type: text/html", 200, nil, false},
		{"fragment", "Content-Type: text/html", 200, []byte("<p>part</p>"), false},
		{"weak etag", "Content-Type: text/html|Etag: W/\"w\"", 200, plain, true},
		{"digests", "Content-Type: text/html|Content-Digest: a=:b:|Repr-Digest: a=:b:|Unencoded-Digest: a=:b:|Digest: a=b|Content-MD5: x", 200, plain, true},
	}
	for _, row := range rows {
		for _, w := range writings {
			for _, length := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%s/length=%v", row.name, w.name, length), func(t *testing.T) {
					s := serve(t, Options{Set: set, ETagSuffix: testSuffix}, func(rw http.ResponseWriter, r *http.Request) {
						h := rw.Header()
						h.Set("Etag", `"e"`)
						h.Set("Last-Modified", "Sat, 21 Nov 2026 07:00:00 GMT")
						h.Set("Accept-Ranges", "bytes")
						for line := range strings.SplitSeq(row.header, "|") {
							k, v, _ := strings.Cut(line, ": ")
							switch {
							case k == "":
							case v == "":
								h[k] = nil
							case k == "Etag":
								h.Set(k, v)
							default:
								h.Add(k, v)
							}
						}
						if length && row.status != 204 {
							h.Set("Content-Length", strconv.Itoa(len(row.body)))
						}
						rw.WriteHeader(row.status)
						rw.WriteHeader(500)
						if row.status != 204 {
							w.write(rw, row.body)
						}
					})
					want := row.body
					if row.changes {
						want, _, _ = rewriteHead(row.body, set, Merge, false, false, nil)
						if bytes.Equal(want, row.body) {
							t.Fatal("nothing to change")
						}
					}
					for _, method := range []string{"GET", "HEAD", "POST"} {
						res, got := do(t, method, s.URL)
						checkAnswer(t, method, res, got, expected{
							status: row.status, body: row.body, want: want, length: length, changed: row.changes,
							set: set, weak: strings.Contains(row.header, "W/"), digests: row.name == "digests",
							page: row.changes || row.name == "says it already" || row.name == "empty page" || row.name == "fragment",
						})
					}
				})
			}
		}
	}
}

type expected struct {
	status                int
	body, want            []byte
	length, changed, weak bool
	digests               bool
	page                  bool // judged only by its header, because HEAD has no body
	set                   *Set
}

// marked returns the entity tag of a page after a change in mode Merge. tag is the handler's own entity tag.
func marked(set *Set, tag string) string {
	ending := testSuffix + "-m" + set.mark
	if tag[0] == '"' {
		tag, ending = "W/"+tag, ending+"w"
	}
	return tag[:len(tag)-1] + ending + `"`
}

func checkAnswer(t *testing.T, method string, res *http.Response, got []byte, a expected) {
	t.Helper()
	changed := a.changed
	if method == "POST" {
		changed, a.want = false, a.body
	}
	page := a.page && method != "POST"
	if method == "HEAD" && page {
		changed = true
	}
	if res.StatusCode != a.status || res.Header.Get("X-Robots-Tag") != "noindex" {
		t.Fatalf("%s: status %d, header %v", method, res.StatusCode, res.Header)
	}
	if method == "HEAD" {
		if len(got) > 0 {
			t.Fatalf("HEAD has a body")
		}
	} else if !bytes.Equal(got, a.want) {
		t.Fatalf("%s: body %q\nwant %q", method, got, a.want)
	}
	tag := `"e"`
	if a.weak {
		tag = `W/"w"`
	}
	if page {
		tag = marked(a.set, tag)
	}
	if page && method == "HEAD" {
		tag = ""
	}
	if g := res.Header.Get("Etag"); g != tag {
		t.Errorf("%s: ETag %s, want %s", method, g, tag)
	}
	for _, k := range []string{"Last-Modified", "Accept-Ranges"} {
		if has := res.Header.Get(k) != ""; has == page {
			t.Errorf("%s: %s present: %v", method, k, has)
		}
	}
	for _, k := range digestFields {
		if has := res.Header.Get(k) != ""; has != (a.digests && !changed) {
			t.Errorf("%s: %s present: %v", method, k, has)
		}
	}
	switch {
	case method == "HEAD" && changed:
		if res.Header.Get("Content-Length") != "" {
			t.Errorf("HEAD guesses Content-Length %s", res.Header.Get("Content-Length"))
		}
	case method != "HEAD" && a.length && a.status != 204:
		if res.ContentLength != int64(len(a.want)) {
			t.Errorf("%s: Content-Length %d, body %d", method, res.ContentLength, len(a.want))
		}
	}
}

func TestConditionalRequests(t *testing.T) {
	set := testSet(t, "robots=noindex")
	page := benchPage(5000, "")
	var seen http.Header
	s := serve(t, Options{Set: set, ETagSuffix: testSuffix}, func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header
		w.Header().Set("Etag", `"e"`)
		w.Header().Set("Content-Type", "text/html")
		http.ServeContent(w, r, "", testTime, bytes.NewReader(page))
	})
	changed, _, _ := rewriteHead(page, set, Merge, false, false, nil)
	ours := marked(set, `"e"`)
	res, got := do(t, "GET", s.URL)
	if tag := res.Header.Get("Etag"); tag != ours || !bytes.Equal(got, changed) {
		t.Fatalf("ETag %s", tag)
	}
	const html, image = "text/html,*/*", "image"
	date := "Sat, 21 Nov 2026 07:00:00 GMT"
	tests := []struct {
		name, accept, key, value string
		seen                     string
		status                   int
		tag                      string
		body                     []byte
	}{
		{"our tag", html, "If-None-Match", ours, `"e"`, 304, ours, nil},
		{"our tag, for anything", "*/*", "If-None-Match", ours, `"e"`, 304, ours, nil},
		{"our tag, weak", html, "If-None-Match", marked(set, `W/"e"`), `W/"e"`, 304, ours, nil},
		{"a list", html, "If-None-Match", `"x", ` + ours + `, "y"`, `"e"`, 304, ours, nil},
		{"a list, for anything", "*/*", "If-None-Match", `"x",` + ours, `"e"`, 304, ours, nil},
		{"any", html, "If-None-Match", `*`, `*`, 304, `"e"`, nil},
		{"a tag without mark", html, "If-None-Match", `"e"`, "", 200, ours, changed},
		{"a tag without mark, for an image", image, "If-None-Match", `"e"`, `"e"`, 304, `"e"`, nil},
		{"an older policy's", html, "If-None-Match", `"e-rp00-m` + set.mark + `"`, "", 200, ours, changed},
		{"an older policy's, for anything", "*/*", "If-None-Match", `"e-rp00-m` + set.mark + `"`, "", 200, ours, changed},
		{"other elements", html, "If-None-Match", `"e-rp1f-m00000000"`, "", 200, ours, changed},
		{"another mode", html, "If-None-Match", `"e-rp1f-r` + set.mark + `"`, "", 200, ours, changed},
		{"malformed", html, "If-None-Match", `"e`, `"e`, 200, ours, changed},
		{"if-match", html, "If-Match", ours, `"e"`, 200, ours, changed},
		{"if-match, another", html, "If-Match", `"z"`, `"z"`, 412, `"e"`, nil},
		{"range", html, "Range", "bytes=10-19", "bytes=10-19", 206, `"e"`, page[10:20]},
		{"date", html, "If-Modified-Since", date, "", 200, ours, changed},
		{"date, for an image", image, "If-Modified-Since", date, date, 304, `"e"`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			headers := []string{"Accept", tt.accept, tt.key, tt.value}
			if tt.accept == image {
				headers = append(headers, "Sec-Fetch-Dest", image)
			}
			res, got := do(t, "GET", s.URL, headers...)
			if v := seen.Get(tt.key); v != tt.seen {
				t.Errorf("the handler sees %q, want %q", v, tt.seen)
			}
			if res.StatusCode != tt.status || res.Header.Get("Etag") != tt.tag || !bytes.Equal(got, tt.body) {
				t.Errorf("%d, ETag %s, body %.80q", res.StatusCode, res.Header.Get("Etag"), got)
			}
			if tt.status == 304 && strings.HasSuffix(tt.tag, ours) && res.Header.Get("Last-Modified") != "" {
				t.Errorf("a changed page's 304 has the page's date")
			}
		})
	}
	t.Run("if-range", func(t *testing.T) {
		res, got := do(t, "GET", s.URL, "Range", "bytes=10-19", "If-Range", ours)
		if res.StatusCode != 200 || !bytes.Equal(got, changed) {
			t.Errorf("%d %.80q", res.StatusCode, got)
		}
	})
	t.Run("304 with a date", func(t *testing.T) {
		s := serve(t, Options{Set: set, ETagSuffix: testSuffix}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Etag", `"e"`)
			w.Header().Set("Last-Modified", "Sat, 21 Nov 2026 07:00:00 GMT")
			w.WriteHeader(304)
		})
		for tag, date := range map[string]bool{ours: false, `"e"`: true} {
			res, _ := do(t, "GET", s.URL, "If-None-Match", tag)
			if res.Header.Get("Etag") != tag || (res.Header.Get("Last-Modified") != "") != date {
				t.Errorf("asked with %s: %v", tag, res.Header)
			}
		}
	})
	t.Run("several lines", func(t *testing.T) {
		res, _ := do(t, "GET", s.URL, "If-None-Match", `"x"`, "If-None-Match", ours)
		if len(seen["If-None-Match"]) != 1 || seen["If-None-Match"][0] != `"e"` {
			t.Errorf("the handler sees %q, %d", seen["If-None-Match"], res.StatusCode)
		}
	})
}
