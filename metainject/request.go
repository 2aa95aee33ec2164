// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"maps"
	"net/http"
	"strings"
)

// Request gives the request for the handler. Entity tags that clients have got
// with ETagSuffix lose it in If-None-Match and If-Match, whatever the method is,
// since the handler knows its own tags only. If-Range keeps it: that must not
// match, for the handler's range is one of another text; and an If-Match that
// has lost it takes a Range along, which a server may ignore (RFC 9110 §14.2).
// The header is copied when it changes; otherwise the result is the request
// given to Wrap.
//
// A tag that a client got before the policy had elements for this page still
// matches, so that the page it has without them can be told to be fresh. The
// headers of that answer (304) say the same as the elements.
func (rw *ResponseWriter) Request() *http.Request {
	r := rw.r
	if rw.o.Set.IsEmpty() || rw.o.Mode == Off || rw.o.ETagSuffix == "" {
		return r
	}
	var h http.Header
	for _, key := range [...]string{"If-None-Match", "If-Match"} {
		for i, v := range r.Header[key] {
			if !strings.Contains(v, rw.o.ETagSuffix+`"`) {
				continue
			}
			if h == nil {
				h = maps.Clone(r.Header)
			}
			if &h[key][0] == &r.Header[key][0] {
				h[key] = append([]string(nil), h[key]...)
			}
			h[key][i] = strings.ReplaceAll(v, rw.o.ETagSuffix+`"`, `"`)
			if key == "If-Match" {
				delete(h, "Range")
			}
		}
	}
	if h == nil {
		return r
	}
	r = r.WithContext(r.Context())
	r.Header = h
	return r
}

// restoreETag puts the suffix back on a 304's tag if the client asked with it,
// and so has the changed page. The page's date then stays away from it too.
func (rw *ResponseWriter) restoreETag(h http.Header) {
	v := h["Etag"]
	if len(v) != 1 || rw.o.ETagSuffix == "" || !isETag(v[0]) {
		return
	}
	tag := v[0][:len(v[0])-1] + rw.o.ETagSuffix + `"`
	opaque := strings.TrimPrefix(tag, "W/")
	for _, asked := range rw.r.Header["If-None-Match"] {
		if strings.Contains(asked, opaque) {
			h["Etag"] = []string{tag}
			delete(h, "Last-Modified")
			delete(h, "Accept-Ranges")
			return
		}
	}
}
