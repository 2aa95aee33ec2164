// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/ascii"
	"github.com/robotspolicy/caddy-robots-policy/metainject/internal/headscan"
)

// verdict is the first decision about a body, made from the response's header.
type verdict uint8

const (
	notOurs verdict = iota
	ours
	toSniff // the response has no Content-Type, so the first bytes of the body show whether it is a page
)

// pageKind is the kind of page that a media type indicates.
type pageKind uint8

const (
	noPage pageKind = iota
	htmlPage
	xhtmlPage
)

// consider decides whether the response's header must wait until the head of the page is known.
func (rw *ResponseWriter) consider() {
	h := rw.w.Header()
	if rw.status == http.StatusNotModified {
		rw.restoreETag(h)
		rw.commit(0, false, false)
		return
	}
	v, m := rw.evaluate(h)
	if v == notOurs || v == ours && rw.r.Method == http.MethodHead {
		rw.commit(0, v == ours, v == ours)
		return
	}
	p := pages.Get().(*page)
	rw.page, rw.phase = p, phaseHeld
	p.sniff = v == toSniff
	if v == ours {
		p.scan.Reset(rw.o.Set, m.kind == xhtmlPage)
		p.scan.Decided = m.encoding == headscan.ASCIIBased
	}
	p.coding = codingOf(h["Content-Encoding"])
	if len(h["Trailer"]) > 0 {
		rw.keepHeader()
	}
}

// evaluate decides from the header h whether the body is a page that may be changed. It also returns the page's media
// type.
func (rw *ResponseWriter) evaluate(h http.Header) (verdict, media) {
	types, given := h["Content-Type"]
	m := media{}
	if given {
		if len(types) != 1 {
			return notOurs, m
		}
		if m = mediaOf(types[0]); m.kind == noPage || m.encoding == headscan.UTF16 || m.encoding == headscan.Other {
			return notOurs, m
		}
	}
	if rw.status != http.StatusOK || len(h["Content-Range"]) > 0 ||
		forbidsTransform(h["Cache-Control"]) || isIncremental(h["Incremental"]) {
		return notOurs, m
	}
	if given {
		if codingOf(h["Content-Encoding"]) == unknownCoding {
			return notOurs, m
		}
		return ours, m
	}
	// net/http detects the type of a body without Content-Type, but not if it has a content coding.
	if len(h["Content-Encoding"]) > 0 || len(h["Transfer-Encoding"]) > 0 {
		return notOurs, m
	}
	return toSniff, m
}

// media holds the information in a Content-Type.
type media struct {
	kind     pageKind
	encoding headscan.Encoding
}

// mediaOf reads a Content-Type. Whether the body is a page depends only on the media type (RFC 9110 section 8.3.1).
func mediaOf(contentType string) media {
	switch contentType { // the usual values, without parsing
	case "text/html; charset=utf-8", "text/html; charset=UTF-8", "text/html;charset=utf-8", "text/html;charset=UTF-8":
		return media{htmlPage, headscan.ASCIIBased}
	case "text/html":
		return media{htmlPage, headscan.Unlabeled}
	}
	t, params, _ := strings.Cut(contentType, ";")
	switch t = strings.Trim(t, " \t"); {
	case ascii.EqualFold(t, "text/html"):
		return media{htmlPage, headscan.EncodingOf([]byte(charsetOf(params)))}
	case ascii.EqualFold(t, "application/xhtml+xml"):
		return media{xhtmlPage, headscan.EncodingOf([]byte(charsetOf(params)))}
	}
	return media{}
}

// charsetOf returns the charset parameter of a media type, or "".
func charsetOf(params string) string {
	for params != "" {
		var param string
		param, params, _ = strings.Cut(params, ";")
		name, value, ok := strings.Cut(param, "=")
		if ok && ascii.EqualFold(strings.Trim(name, " \t"), "charset") {
			return strings.Trim(value, " \t\"'")
		}
	}
	return ""
}

// changeHeader turns the handler's header into the page's header:
//   - It marks the entity tag.
//   - It removes Last-Modified, because the date does not change with the policy.
//   - It removes Accept-Ranges, because the handler's ranges belong to the unchanged page (RFC 9110 section 14.3).
//   - If the page is changed, it corrects or removes the length (section 8.6), and removes digests (RFC 9530).
func (rw *ResponseWriter) changeHeader(h http.Header, delta int, changed bool) {
	if !changed && !rw.marks() {
		return
	}
	var buf [128]byte // room for the entity tag and the length, so that one string holds both
	text, tagEnd := buf[:0], 0
	if v := h["Etag"]; len(v) == 1 && rw.r.Method != http.MethodHead && rw.marks() && isETag(v[0]) {
		text = rw.appendMarked(text, v[0])
		tagEnd = len(text)
	}
	if v := h["Content-Length"]; changed && len(v) == 1 && rw.r.Method != http.MethodHead && rw.page != nil && rw.page.coding == identity {
		if n, err := strconv.ParseInt(v[0], 10, 64); err == nil && n >= 0 && n+int64(delta) >= 0 {
			text = strconv.AppendInt(text, n+int64(delta), 10)
		}
	}
	s := string(text)
	values := make([]string, 0, 2)
	values = setOrDelete(h, "Etag", s[:tagEnd], values)
	drop(h, "Last-Modified", "Accept-Ranges")
	if t := h["Trailer"]; len(t) > 0 {
		set(h, "Trailer", rw.withoutValidators(t, changed))
	}
	if !changed {
		return
	}
	setOrDelete(h, "Content-Length", s[tagEnd:], values)
	drop(h, digestFields[:]...)
}

func drop(h http.Header, keys ...string) {
	for _, k := range keys {
		if h[k] != nil { // a lookup is cheaper than deleting an absent field
			delete(h, k)
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

// digestFields are the header fields with a hash of the content.
var digestFields = [...]string{"Content-Digest", "Repr-Digest", "Unencoded-Digest", "Digest", "Content-Md5"}

// withoutValidators removes entity tags from a Trailer field. For a changed page it also removes digests.
func (rw *ResponseWriter) withoutValidators(trailer []string, changed bool) (left []string) {
	for _, line := range trailer {
		for name := range strings.SplitSeq(line, ",") {
			name = strings.Trim(name, " \t")
			key := http.CanonicalHeaderKey(name)
			if name != "" && key != "Etag" && (!changed || !slices.Contains(digestFields[:], key)) {
				left = append(left, name)
			}
		}
	}
	return left
}

// dropTrailers removes a page's entity tag from the trailers. If the page was changed, it also removes digests. The
// names of unannounced trailers begin with http.TrailerPrefix.
func (rw *ResponseWriter) dropTrailers(h http.Header) {
	drop(h, http.TrailerPrefix+"Etag")
	if !rw.edited {
		return
	}
	for _, k := range digestFields {
		if rw.trails {
			delete(h, k)
		}
		drop(h, http.TrailerPrefix+k)
	}
}

// forbidsTransform reports whether a Cache-Control field contains no-transform. An argument of no-transform is
// ignored, because the directive has none (RFC 9111 section 5.2).
func forbidsTransform(values []string) bool {
	for directive := range strings.SplitSeq(strings.Join(values, ","), ",") {
		name, _, _ := strings.Cut(directive, "=")
		if ascii.EqualFold(strings.Trim(name, " \t"), "no-transform") {
			return true
		}
	}
	return false
}

// isIncremental reports whether a response asks intermediaries not to buffer it (RFC 10036).
func isIncremental(values []string) bool {
	if len(values) != 1 {
		return false
	}
	item, _, _ := strings.Cut(values[0], ";")
	return strings.Trim(item, " \t") == "?1"
}

// narrowCodings changes Accept-Encoding so that the handler prefers gzip. A page in gzip is edited in place, which
// takes a tenth of the time for unpacking and packing a page in zstd or br. The client's other codings stay acceptable,
// because the handler may have a file only in one of these codings. restoreCodings restores the field, so that access
// logs show the client's value.
func (rw *ResponseWriter) narrowCodings() {
	line := rw.r.Header["Accept-Encoding"]
	if !rw.active || len(line) != 1 || !acceptsHTML(rw.r.Header["Accept"]) {
		return
	}
	if narrowed := narrow(line[0]); narrowed != line[0] {
		rw.accepted = line[0]
		line[0] = narrowed // change the slice in place, which is faster than setting the field twice
	}
}

func (rw *ResponseWriter) restoreCodings() {
	if rw.accepted != "" {
		rw.r.Header["Accept-Encoding"][0] = rw.accepted
		rw.accepted = ""
	}
}

// acceptsHTML reports whether an Accept field contains HTML, as in the requests of browsers and search engines.
func acceptsHTML(accept []string) bool {
	for _, v := range accept {
		if strings.Contains(v, "text/html") || strings.Contains(v, "application/xhtml+xml") {
			return true
		}
	}
	return false
}

// narrow gives zstd and br the lowest rank in line, which is the value of an Accept-Encoding field. If the client does
// not accept any coding besides zstd and br, narrow returns line unchanged.
func narrow(line string) string {
	switch line { // the usual values of browsers
	case "gzip, deflate, br, zstd":
		return "gzip, deflate, br;q=0.002, zstd;q=0.001"
	case "gzip, deflate, br":
		return "gzip, deflate, br;q=0.002"
	}
	items := strings.Split(line, ",")
	others := false
	for i, item := range items {
		name, q, _ := strings.Cut(item, ";")
		name = strings.Trim(name, " \t")
		switch refused := q != "" && strings.Trim(q, " \tqQ=.0") == ""; {
		case ascii.EqualFold(name, "br") && !refused:
			items[i] = " br;q=0.002"
		case ascii.EqualFold(name, "zstd") && !refused:
			items[i] = " zstd;q=0.001"
		default:
			others = others || name != "" && !refused
		}
	}
	if !others {
		return line
	}
	return strings.TrimSpace(strings.Join(items, ","))
}

// FlushError sends as many bytes as possible. Before the end tag of the head it does not send anything. After the end
// tag it sends all bytes, and does not wait for further elements that could still belong to the head.
func (rw *ResponseWriter) FlushError() error {
	if rw.phase == phasePass {
		return rw.flushBelow()
	}
	if rw.phase == phaseOpen {
		rw.WriteHeader(http.StatusOK)
	}
	if rw.phase == phaseHeld {
		if err := rw.flushHeld(); err != nil || rw.phase == phaseHeld {
			return err
		}
	}
	if rw.phase == phaseCoded {
		if err := rw.page.editor.Flush(); err != nil {
			return err
		}
	}
	return rw.flushBelow()
}

func (rw *ResponseWriter) flushBelow() error { return http.NewResponseController(rw.w).Flush() }

// Flush calls FlushError and ignores the error. It implements http.Flusher.
func (rw *ResponseWriter) Flush() { _ = rw.FlushError() }
