// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/metainject"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
)

// If the policy does not publish a channel, such as a header field, the server does not add it to responses. But if the
// site itself sends the field, the server makes its content as strict as the policy.
func TestUnpublished(t *testing.T) {
	t.Parallel()
	s := load(t, `version: 1
rules:
  - for: everyone
    disallow: {train-ai: /closed/}
    allow: {train-ai: /open/}
publish: {tdmrep: off, noai: off, controls: off}
rights: {tdm-policy: "https://www.example.com/tdm"}
`)
	for _, tt := range []struct{ path, field, sent, want string }{
		{"/closed/", "Tdm-Reservation", "0", "1"},
		{"/closed/", "Tdm-Reservation", "1", "1"},
		{"/closed/", "Tdm-Reservation", "", ""},
		{"/open/", "Tdm-Reservation", "0", "0"},
		{"/open/", "Tdm-Reservation", "1", "1"},
		{"/other", "Tdm-Reservation", "0", "0"},
	} {
		pg := s.Page("", tt.path, time.Now())
		h, name := http.Header{}, strings.ToLower(tt.field)
		page := func(content string) string {
			if content == "" {
				return "<!doctype html><html><head><title>t</title></head></html>"
			}
			return `<!doctype html><html><head><title>t</title><meta name="` + name + `" content="` + content + `"></head></html>`
		}
		if tt.sent != "" {
			h.Set(tt.field, tt.sent)
		}
		pg.Declare(h)
		if pg.Values != nil {
			robotstag.Apply(h, pg.Values, robotstag.AllChannels)
		}
		if got := strings.Join(h[tt.field], ", "); got != tt.want || h.Get("Tdm-Policy") != "" {
			t.Errorf("%s with %s %q: %q, want %q; %v", tt.path, tt.field, tt.sent, got, tt.want, h)
		}
		w := httptest.NewRecorder()
		rw := metainject.Wrap(w, httptest.NewRequest(http.MethodGet, tt.path, http.NoBody), metainject.Options{Set: pg.Elements, MaxHead: 1 << 16})
		rw.Header().Set("Content-Type", "text/html")
		if _, err := rw.Write([]byte(page(tt.sent))); err != nil {
			t.Fatal(err)
		}
		if err := rw.Close(nil); err != nil {
			t.Fatal(err)
		}
		if got := w.Body.String(); got != page(tt.want) {
			t.Errorf("%s with the element %s %q: %s", tt.path, tt.field, tt.sent, got)
		}
	}
}
