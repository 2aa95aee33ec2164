// SPDX-License-Identifier: Apache-2.0

package metainject_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/robotspolicy/caddy-robots-policy/metainject"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// A page gets the policy's element where its head begins, while it is streamed.
func ExampleWrap() {
	set := metainject.NewSet([]metainject.Element{{Name: metainject.Everyone, Rules: robotsrule.Of("noindex")}}, nil, 0)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rw := metainject.Wrap(w, r, metainject.Options{Set: set})
		defer rw.Release()
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, err := io.WriteString(rw, "<!DOCTYPE html><html><head><title>Drafts</title></head></html>")
		if err := rw.Close(err); err != nil {
			panic(err)
		}
	})
	rec := httptest.NewRecorder()
	handler.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/drafts/", nil))
	fmt.Println(rec.Body)
	// Output: <!DOCTYPE html><html><head><meta name="robots" content="noindex"><title>Drafts</title></head></html>
}
