// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"net/http"
	"testing"
)

// A signature (RFC 9421) is removed if it covers a header field that was changed or removed. Other signatures remain.
func TestSignatures(t *testing.T) {
	const params = `;created=1618884475;keyid="k"`
	for _, c := range []struct {
		name, contentType, input, signature string
		wantInput, wantSignature            string
	}{
		{"covers a digest", "text/html", `sig=("@status" "content-digest")` + params, "sig=:AAAA:", "", ""},
		{"covers the length", "text/html", `sig=("content-length")` + params, "sig=:AAAA:", "", ""},
		{"covers the tag", "text/html", `sig=("etag" "content-type")` + params, "sig=:AAAA:", "", ""},
		{"covers the header we set", "application/json", `sig=("x-robots-tag")` + params, "sig=:AAAA:", "", ""},
		{"covers nothing that changes", "text/html", `sig=("@status" "content-type")` + params, "sig=:AAAA:", `sig=("@status" "content-type")` + params, "sig=:AAAA:"},
		{"covers what does not change here", "application/json", `sig=("etag" "content-digest" "content-length")` + params, "sig=:AAAA:", `sig=("etag" "content-digest" "content-length")` + params, "sig=:AAAA:"},
		{"two signatures", "text/html", `a=("content-digest")` + params + `, b=("date")` + params, "a=:AAAA:, b=:BBBB:", `b=("date")` + params, "b=:BBBB:"},
		{"of the request", "text/html", `sig=("content-digest";req "@status")` + params, "sig=:AAAA:", `sig=("content-digest";req "@status")` + params, "sig=:AAAA:"},
		{"of a trailer", "text/html", `sig=("content-digest";tr)` + params, "sig=:AAAA:", "", ""},
		{"malformed", "text/html", `sig=(`, "sig=:AAAA:", `sig=(`, "sig=:AAAA:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			page := benchPage(3000, "")
			s := serve(t, Options{Set: testSet(t, "robots=noindex"), ETagSuffix: testSuffix}, func(w http.ResponseWriter, r *http.Request) {
				h := w.Header()
				h.Set("Etag", `"e"`)
				h.Set("Date", "Sat, 21 Nov 2026 07:00:00 GMT")
				h.Set("Content-Type", c.contentType)
				h.Set("Content-Digest", "sha-256=:AAAA:")
				h.Set("Content-Length", "3000")
				h.Set("X-Robots-Tag", "all")
				h.Set("Signature-Input", c.input)
				h.Set("Signature", c.signature)
				w.Write(page[:3000])
			})
			res, _ := do(t, "GET", s.URL)
			if in, sig := res.Header.Get("Signature-Input"), res.Header.Get("Signature"); in != c.wantInput || sig != c.wantSignature {
				t.Errorf("Signature-Input: %s\nSignature: %s\nwant %s\nand %s", in, sig, c.wantInput, c.wantSignature)
			}
		})
	}
}
