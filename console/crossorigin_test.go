// SPDX-License-Identifier: Apache-2.0

package console

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// A form from a page of another site is rejected before the console computes anything. Links from other sites work.
func TestFormsOfOtherSites(t *testing.T) {
	s := &server{local: true, logger: caddy.Log()}
	for _, tt := range []struct {
		method, path string
		header       [2]string
		refused      bool
	}{
		{http.MethodPost, "/change", [2]string{"Sec-Fetch-Site", "cross-site"}, true},
		{http.MethodPost, "/change", [2]string{"Sec-Fetch-Site", "same-site"}, true}, // a page on another port of this machine
		{http.MethodPost, "/change", [2]string{"Origin", "https://evil.example"}, true},
		{http.MethodPost, "/change", [2]string{"Origin", "null"}, true},
		{http.MethodPost, "/draft", [2]string{"Sec-Fetch-Site", "cross-site"}, true},
		{http.MethodPost, "/change?host=x", [2]string{"Sec-Fetch-Site", "cross-site"}, true},
		{http.MethodPost, "/change", [2]string{"Sec-Fetch-Site", "same-origin"}, false},
		{http.MethodPost, "/change", [2]string{"Origin", "http://localhost:2020"}, false},
		{http.MethodPost, "/change", [2]string{"X-From", "curl"}, false},
		{http.MethodGet, "/", [2]string{"Sec-Fetch-Site", "cross-site"}, false},
		{http.MethodGet, "/health", [2]string{"Origin", "https://evil.example"}, false},
	} {
		r := httptest.NewRequest(tt.method, "http://localhost:2020"+tt.path, strings.NewReader("text=version%3A+1"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set(tt.header[0], tt.header[1])
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if (w.Code == http.StatusForbidden) != tt.refused {
			t.Errorf("%s %s with %q: %d", tt.method, tt.path, tt.header, w.Code)
		}
		if tt.refused && strings.Contains(w.Body.String(), "<form") {
			t.Errorf("%s %s with %q: a form is shown", tt.method, tt.path, tt.header)
		}
	}
}
