// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A condition on a tag that we gave holds for any method.
func TestIfMatchOnAnyMethod(t *testing.T) {
	for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "POST", "PATCH"} {
		req := httptest.NewRequest(method, "/", nil)
		req.Header.Set("If-Match", `"e`+testSuffix+`"`)
		rw := Wrap(newRecorder(), req, Options{Set: testSet(t, "robots=noindex"), ETagSuffix: testSuffix})
		if v := rw.Request().Header.Get("If-Match"); v != `"e"` || req.Header.Get("If-Match") != `"e`+testSuffix+`"` {
			t.Errorf("%s: the handler sees %s", method, v)
		}
		rw.Release()
	}
}

// A range of the handler's text is none of the text whose tag the client has.
func TestIfMatchWithRange(t *testing.T) {
	page := benchPage(5000, "")
	set := testSet(t, "robots=noindex")
	s := serve(t, Options{Set: set, ETagSuffix: testSuffix}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", `"e"`)
		w.Header().Set("Content-Type", "text/html")
		http.ServeContent(w, r, "", testTime, strings.NewReader(string(page)))
	})
	want, _, _ := rewriteHead(page, set, Merge, false, false, nil)
	res, got := do(t, "GET", s.URL, "Range", "bytes=1000-", "If-Match", `"e`+testSuffix+`"`)
	if res.StatusCode != 200 || string(got) != string(want) {
		t.Errorf("%d, ETag %s, %d bytes", res.StatusCode, res.Header.Get("Etag"), len(got))
	}
	if res, _ := do(t, "GET", s.URL, "Range", "bytes=1000-", "If-Match", `"e"`); res.StatusCode != 206 || res.Header.Get("Etag") != `"e"` {
		t.Errorf("%d, ETag %s", res.StatusCode, res.Header.Get("Etag"))
	}
}
