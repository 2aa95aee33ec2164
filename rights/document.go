// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"time"
)

// Document is a register's file, ready to be served. It does not change and may be
// shared.
type Document struct {
	Body []byte
	ETag string // strong (RFC 9110 section 8.8.3)
	Type string // media type
}

// NewDocument returns a document with its entity tag.
func NewDocument(body []byte, mediaType string) *Document {
	sum := sha256.Sum256(body)
	return &Document{body, `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`, mediaType}
}

// Serve answers GET and HEAD, also for ranges and under conditions (RFC 9110), and
// other methods with 405.
func (d *Document) Serve(w http.ResponseWriter, r *http.Request, cacheControl string) {
	h := w.Header()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "this document answers GET and HEAD only", http.StatusMethodNotAllowed)
		return
	}
	h.Set("Cache-Control", cacheControl)
	h.Set("Etag", d.ETag)
	h.Set("Content-Type", d.Type)
	h.Set("X-Content-Type-Options", "nosniff")
	// Browsers and tools of other sites read it too, and it is public.
	h.Set("Access-Control-Allow-Origin", "*")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(d.Body))
}
