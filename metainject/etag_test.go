// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// For every method, the handler sees If-Match with its own entity tag, without the mark that this package adds.
func TestIfMatchOnAnyMethod(t *testing.T) {
	for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "POST", "PATCH"} {
		req := httptest.NewRequest(method, "/", nil)
		set := testSet(t, "robots=noindex")
		req.Header.Set("If-Match", marked(set, `"e"`))
		rw := Wrap(newRecorder(), req, Options{Set: set, ETagSuffix: testSuffix})
		if v := rw.Request().Header.Get("If-Match"); v != `"e"` || req.Header.Get("If-Match") != marked(set, `"e"`) {
			t.Errorf("%s: the handler sees %s", method, v)
		}
		rw.Release()
	}
}

// The client has the tag of the changed page, so it must not get a range of the handler's unchanged page.
func TestIfMatchWithRange(t *testing.T) {
	page := benchPage(5000, "")
	set := testSet(t, "robots=noindex")
	s := serve(t, Options{Set: set, ETagSuffix: testSuffix}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", `"e"`)
		w.Header().Set("Content-Type", "text/html")
		http.ServeContent(w, r, "", testTime, strings.NewReader(string(page)))
	})
	want, _, _ := rewriteHead(page, set, Merge, false, false, nil)
	res, got := do(t, "GET", s.URL, "Range", "bytes=1000-", "If-Match", marked(set, `"e"`))
	if res.StatusCode != 200 || string(got) != string(want) {
		t.Errorf("%d, ETag %s, %d bytes", res.StatusCode, res.Header.Get("Etag"), len(got))
	}
	if res, _ := do(t, "GET", s.URL, "Range", "bytes=1000-", "If-Match", `"e"`); res.StatusCode != 206 || res.Header.Get("Etag") != `"e"` {
		t.Errorf("%d, ETag %s", res.StatusCode, res.Header.Get("Etag"))
	}
}

// A client's copy of a page is not confirmed if the page would now have other meta tags. This happens after a change of
// the mode, of the elements (because a time limit has passed), or of the policy.
func TestTagsTrackThePage(t *testing.T) {
	page := benchPage(5000, benchMeta)
	before := Options{Set: testSet(t, "robots=unavailable_after: 2026-12-31T23:59:59Z"), Mode: Replace, ETagSuffix: testSuffix}
	current := before
	s := serveOptions(t, func() Options { return current }, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", `"e"`)
		w.Header().Set("Content-Type", "text/html")
		http.ServeContent(w, r, "", testTime, strings.NewReader(string(page)))
	})
	for _, accept := range []string{"text/html", "*/*", ""} {
		current = before
		res, _ := do(t, "GET", s.URL, "Accept", accept)
		tag := res.Header.Get("Etag")
		for name, now := range map[string]Options{
			"the mode":       {Set: before.Set, Mode: Merge, ETagSuffix: testSuffix},
			"the elements":   {Set: testSet(t, "robots=noindex"), Mode: Replace, ETagSuffix: testSuffix},
			"more elements":  {Set: testSet(t, "robots=unavailable_after: 2026-12-31T23:59:59Z", "googlebot=noindex"), Mode: Replace, ETagSuffix: testSuffix},
			"the policy":     {Set: before.Set, Mode: Replace, ETagSuffix: "-rp2a"},
			"nothing to say": {ETagSuffix: testSuffix},
			"switched off":   {Set: before.Set, Mode: Off, ETagSuffix: testSuffix},
		} {
			current = now
			if res, _ := do(t, "GET", s.URL, "Accept", accept, "If-None-Match", tag); res.StatusCode != 200 {
				t.Errorf("Accept %q, %s changed: %d for %s", accept, name, res.StatusCode, tag)
			}
		}
		current = before
		if res, _ := do(t, "GET", s.URL, "Accept", accept, "If-None-Match", tag); res.StatusCode != 304 || res.Header.Get("Etag") != tag {
			t.Errorf("Accept %q, nothing changed: %d, ETag %s", accept, res.StatusCode, res.Header.Get("Etag"))
		}
	}
	// A client made its copy before the policy had elements for the page, so the copy has the handler's own validators.
	// The copy is only confirmed if the browser says that it does not request a page, but for example an image.
	for dest, want := range map[string]int{"": 200, "document": 200, "empty": 200, "image": 304} {
		for _, accept := range []string{"text/html,*/*", "*/*", "", "text/plain"} {
			for _, old := range [][2]string{{"If-None-Match", `"e"`}, {"If-Modified-Since", testTime.Format(http.TimeFormat)}} {
				if res, _ := do(t, "GET", s.URL, "Accept", accept, "Sec-Fetch-Dest", dest, old[0], old[1]); res.StatusCode != want {
					t.Errorf("Accept %q, Sec-Fetch-Dest %q, %s: %d, want %d", accept, dest, old, res.StatusCode, want)
				}
			}
		}
	}
}

// HEAD returns the same validators as GET, or none. This is tested in every coding, for changed and unchanged pages.
func TestHeadAndGetAgree(t *testing.T) {
	set := testSet(t, "robots=noindex")
	for _, c := range append(testCodings[:len(testCodings):len(testCodings)], testCodings[0]) {
		for name, page := range map[string][]byte{
			"changed": benchPage(5000, ""), "says it": benchPage(5000, set.HTML()), "fragment": []byte("<p>x"), "empty": nil,
		} {
			raw := c.pack(page, 7, 0)
			s := serve(t, Options{Set: set, ETagSuffix: testSuffix}, func(w http.ResponseWriter, r *http.Request) {
				h := w.Header()
				h.Set("Etag", `"e"`)
				h.Set("Content-Type", "text/html")
				h.Set("Last-Modified", "Sat, 21 Nov 2026 07:00:00 GMT")
				h.Set("Accept-Ranges", "bytes")
				h.Set("Content-Encoding", c.name)
				w.Write(raw)
			})
			get, _ := do(t, "GET", s.URL)
			head, _ := do(t, "HEAD", s.URL)
			for _, key := range []string{"Etag", "Last-Modified", "Accept-Ranges", "Content-Encoding", "Content-Type"} {
				if g, h := get.Header.Get(key), head.Header.Get(key); g != h && (key != "Etag" || h != "") {
					t.Errorf("%s, %s: %s is %q for GET and %q for HEAD", c.name, name, key, g, h)
				}
			}
			if !strings.HasPrefix(get.Header.Get("Etag"), "W/") {
				t.Errorf("%s, %s: the tag of a packed page is strong: %s", c.name, name, get.Header.Get("Etag"))
			}
		}
	}
}
