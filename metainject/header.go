// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// verdict is what a response's header tells of its body.
type verdict uint8

const (
	notOurs verdict = iota
	ours
	toSniff // there is no Content-Type
)

// pageKind is what a media type makes of a body.
type pageKind uint8

const (
	noPage pageKind = iota
	htmlPage
	xhtmlPage
)

// consider decides, when the handler gives its final header, whether that has
// to wait for the body.
func (rw *ResponseWriter) consider() {
	h := rw.w.Header()
	if rw.status == http.StatusNotModified {
		rw.restoreETag(h)
		rw.commit(0, false)
		return
	}
	v := rw.judge(h)
	if v == notOurs || v == ours && rw.r.Method == http.MethodHead {
		rw.commit(0, v == ours)
		return
	}
	p := pages.Get().(*page)
	rw.page, rw.phase = p, phaseHeld
	p.sniff = v == toSniff
	if v == ours {
		kind := first(h["Content-Type"])
		p.scan.reset(rw.o.Set, mediaKind(kind) == xhtmlPage)
		p.scan.decided = encodingOf([]byte(charsetOf(kind))) == asciiBased
	}
	p.coding = codingOf(h["Content-Encoding"])
	if len(h["Trailer"]) > 0 {
		rw.keepHeader()
	}
}

// judge tells from the header whether the body is a page that may be changed.
func (rw *ResponseWriter) judge(h http.Header) verdict {
	if !rw.changes(rw.status) || len(h["Content-Range"]) > 0 ||
		hasToken(h["Cache-Control"], "no-transform") || isIncremental(h["Incremental"]) {
		return notOurs
	}
	c := codingOf(h["Content-Encoding"])
	if c == unknownCoding {
		return notOurs
	}
	types, given := h["Content-Type"]
	if !given && c == identity && len(h["Content-Encoding"]) == 0 && len(h["Transfer-Encoding"]) == 0 {
		return toSniff
	}
	if len(types) != 1 || mediaKind(types[0]) == noPage {
		return notOurs
	}
	if e := encodingOf([]byte(charsetOf(types[0]))); e == utf16 || e == otherEncoding {
		return notOurs
	}
	return ours
}

// changes tells whether pages with this status are changed.
func (rw *ResponseWriter) changes(status int) bool {
	switch status {
	case http.StatusOK:
		return true
	case http.StatusNoContent, http.StatusResetContent, http.StatusPartialContent, http.StatusNotModified:
		return false
	}
	return slices.Contains(rw.o.Statuses, status)
}

// mediaKind looks at the media type alone (RFC 9110 §8.3.1).
func mediaKind(contentType string) pageKind {
	t, _, _ := strings.Cut(contentType, ";")
	switch t = strings.Trim(t, " \t"); {
	case equalFold(t, "text/html"):
		return htmlPage
	case equalFold(t, "application/xhtml+xml"):
		return xhtmlPage
	}
	return noPage
}

// charsetOf is the charset parameter of a media type, or "".
func charsetOf(contentType string) string {
	_, params, _ := strings.Cut(contentType, ";")
	for params != "" {
		var param string
		param, params, _ = strings.Cut(params, ";")
		name, value, ok := strings.Cut(param, "=")
		if ok && equalFold(strings.Trim(name, " \t"), "charset") {
			return strings.Trim(value, " \t\"'")
		}
	}
	return ""
}

// changeHeader makes a page's header that of the changed page: RFC 9110 §8.6
// (Content-Length), §8.8.3 (a strong entity tag changes with the content; a
// weak one has to as well, because the elements matter), §14.3 (we do not serve
// ranges of it), RFC 9530 (digests). Last-Modified goes because its date does
// not move when the policy does, so that revalidation by date would keep an old
// policy's page alive.
func (rw *ResponseWriter) changeHeader(h http.Header, delta int) {
	length, tag := "", ""
	if v := h["Content-Length"]; len(v) == 1 && rw.r.Method != http.MethodHead && (rw.page != nil && rw.page.coding == identity) {
		if n, err := strconv.ParseInt(v[0], 10, 64); err == nil && n >= 0 && n+int64(delta) >= 0 {
			length = strconv.FormatInt(n+int64(delta), 10)
		}
	}
	if v := h["Etag"]; len(v) == 1 && rw.o.ETagSuffix != "" && isETag(v[0]) {
		tag = v[0][:len(v[0])-1] + rw.o.ETagSuffix + `"`
	}
	values := make([]string, 0, 2) // one allocation for both
	values = setOrDelete(h, "Content-Length", length, values)
	setOrDelete(h, "Etag", tag, values)
	for _, k := range [...]string{"Last-Modified", "Accept-Ranges", "Content-Md5", "Digest", "Content-Digest", "Repr-Digest"} {
		delete(h, k)
	}
	if t := h["Trailer"]; len(t) > 0 {
		if t = withoutDigests(t); t == nil {
			delete(h, "Trailer")
		} else {
			h["Trailer"] = t
		}
	}
}

func setOrDelete(h http.Header, key, value string, values []string) []string {
	if value == "" {
		delete(h, key)
		return values
	}
	values = append(values, value)
	h[key] = values[len(values)-1 : len(values) : len(values)]
	return values
}

// isETag tells whether v has the form of one entity tag.
func isETag(v string) bool {
	v = strings.TrimPrefix(v, "W/")
	return len(v) >= 2 && v[0] == '"' && strings.IndexByte(v[1:], '"') == len(v)-2
}

// digestFields hold a hash of the content.
var digestFields = [...]string{"Content-Digest", "Repr-Digest", "Digest", "Content-Md5"}

// withoutDigests takes digests out of the announced trailers.
func withoutDigests(trailer []string) (kept []string) {
	for _, line := range trailer {
		for name := range strings.SplitSeq(line, ",") {
			name = strings.Trim(name, " \t")
			if name != "" && !slices.Contains(digestFields[:], http.CanonicalHeaderKey(name)) {
				kept = append(kept, name)
			}
		}
	}
	return kept
}

// dropDigestTrailers takes back the digests that a handler has set as trailers
// of a page that was changed.
func dropDigestTrailers(h http.Header) {
	for _, k := range digestFields {
		delete(h, k)
		delete(h, http.TrailerPrefix+k)
	}
}

// hasToken tells whether a comma list in values has the token, which is in
// lower case, alone or with an argument.
func hasToken(values []string, token string) bool {
	for _, v := range values {
		for v != "" {
			var item string
			item, v, _ = strings.Cut(v, ",")
			item, _, _ = strings.Cut(item, "=")
			if equalFold(strings.Trim(item, " \t"), token) {
				return true
			}
		}
	}
	return false
}

// isIncremental tells whether a response asks not to be held (RFC 10036).
func isIncremental(values []string) bool {
	if len(values) != 1 {
		return false
	}
	item, _, _ := strings.Cut(values[0], ";")
	return strings.Trim(item, " \t") == "?1"
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
