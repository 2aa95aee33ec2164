// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/dunglas/httpsfv"
)

// A page's entity tag ends with Options.ETagSuffix and a mark for the elements and the mode, whether or not the
// page was changed. The tag therefore changes whenever a policy, a mode or a time limit changes the page's meta
// tags.
//
// The tag is made weak, because the page's bytes can depend on the coding and on flushes. If the handler's tag was
// strong, the mark ends with weakened: "abc" becomes W/"abc-rp1f2e3d4c5b6a-m1a2b3c4dw". Responses to HEAD have no
// tag, because the tag of a GET depends on the coding of the body.
const weakened = 'w'

// modeLetters identify the modes within the marks of entity tags.
var modeLetters = [...]string{Merge: "-m", Replace: "-r", Off: "-"}

// ending appends to b the suffix and mark of the page's entity tags, without the closing quote.
func (rw *ResponseWriter) ending(b []byte) []byte {
	b = append(b, rw.o.ETagSuffix...)
	b = append(b, modeLetters[rw.o.Mode]...)
	return append(b, rw.o.Set.mark...)
}

// marks reports whether this response's entity tag gets a mark.
func (rw *ResponseWriter) marks() bool {
	return !rw.o.Set.IsEmpty() && rw.o.Mode != Off && rw.o.ETagSuffix != ""
}

// appendMarked appends the handler's entity tag with the mark added.
func (rw *ResponseWriter) appendMarked(b []byte, tag string) []byte {
	weaken := tag[0] == '"'
	if weaken {
		b = append(b, "W/"...)
	}
	b = rw.ending(append(b, tag[:len(tag)-1]...))
	if weaken {
		b = append(b, weakened)
	}
	return append(b, '"')
}

// unmarked removes the mark from an entity tag of this page and returns the handler's tag. ok is false if the tag
// has no mark of this page.
func (rw *ResponseWriter) unmarked(tag string) (original string, ok bool) {
	var buf [64]byte
	ending := rw.ending(buf[:0])
	text := tag[:len(tag)-1]
	if cut, ok := strings.CutSuffix(text, string(append(ending, weakened))); ok {
		return strings.TrimPrefix(cut, "W/") + `"`, true
	}
	if cut, ok := strings.CutSuffix(text, string(ending)); ok {
		return cut + `"`, true
	}
	return tag, false
}

// isETag reports whether v is a well-formed entity tag.
func isETag(v string) bool {
	v = strings.TrimPrefix(v, "W/")
	return len(v) >= 2 && v[0] == '"' && strings.IndexByte(v[1:], '"') == len(v)-2
}

// eachETag calls f for each entity tag of a list. It returns false if the list is malformed.
func eachETag(list string, f func(tag string)) bool {
	for {
		list = strings.TrimLeft(list, " \t,")
		if list == "" {
			return true
		}
		from := strings.IndexByte(list, '"')
		if from < 0 || list[:from] != "" && list[:from] != "W/" {
			return false
		}
		n := strings.IndexByte(list[from+1:], '"')
		if n < 0 {
			return false
		}
		f(list[:from+n+2])
		list = list[from+n+2:]
	}
}

// Request returns the request to pass to the handler, which knows only its own entity tags. Request removes the
// marks from this page's tags in If-None-Match and If-Match. It keeps them in If-Range, so that If-Range does not
// match: the handler's ranges belong to the unchanged page. If a mark was removed from If-Match, Range is removed,
// which a server may do (RFC 9110 section 14.2).
//
// Request also removes unmarked tags from If-None-Match, and the date in If-Modified-Since. These tags and dates may be
// older than the policy, and the handler would confirm them with a 304, although the page's meta tags have changed
// since then. Request keeps them if the browser says that the request is not for a page.
//
// Request asks for gzip rather than zstd or br (see narrowCodings). It copies the header only if a condition
// changes.
func (rw *ResponseWriter) Request() *http.Request {
	rw.narrowCodings()
	r := rw.r
	if !rw.marks() {
		return r
	}
	none, match, since := r.Header["If-None-Match"], r.Header["If-Match"], r.Header["If-Modified-Since"]
	if none == nil && match == nil && since == nil {
		return r
	}
	page := (r.Method == http.MethodGet || r.Method == http.MethodHead) && mayAskForPage(r.Header["Sec-Fetch-Dest"])
	newNone, changedNone := rw.rewriteTags(none, page)
	newMatch, changedMatch := rw.rewriteTags(match, false)
	dropDate := page && since != nil && len(newNone) == 0
	if !changedNone && !changedMatch && !dropDate {
		return r
	}
	h := maps.Clone(r.Header)
	set(h, "If-None-Match", newNone)
	set(h, "If-Match", newMatch)
	if dropDate {
		delete(h, "If-Modified-Since")
	}
	if changedMatch {
		delete(h, "Range")
	}
	r = r.WithContext(r.Context())
	r.Header = h
	return r
}

// mayAskForPage reports whether a request with this Sec-Fetch-Dest may be for a page. Clients other than browsers do
// not send the field, so it returns true without the field. It also returns true for "empty", which browsers send when
// a script fetches a page or a part of it.
func mayAskForPage(dest []string) bool {
	return len(dest) != 1 || slices.Contains([]string{"document", "iframe", "frame", "embed", "object", "empty", ""}, dest[0])
}

func set(h http.Header, key string, values []string) {
	if len(values) == 0 {
		delete(h, key)
		return
	}
	h[key] = values
}

// rewriteTags removes the marks from lists of entity tags. If only is true, it also removes tags without a mark. It
// does not change "*" and malformed lists.
func (rw *ResponseWriter) rewriteTags(lines []string, only bool) (out []string, changed bool) {
	for _, line := range lines {
		var tags []string
		differs := false
		ok := eachETag(line, func(tag string) {
			original, marked := rw.unmarked(tag)
			if marked || !only {
				tags = append(tags, original)
			}
			differs = differs || marked || only
		})
		switch {
		case !ok || !differs:
			out = append(out, line)
		case len(tags) > 0:
			out = append(out, strings.Join(tags, ", "))
		}
		changed = changed || ok && differs
	}
	return out, changed
}

// restoreETag changes the handler's header of a 304, because the handler knows only its own entity tag. If the client's
// If-None-Match has this tag with the mark, restoreETag adds the mark to the tag in the 304. In this case, it also
// removes Last-Modified and Accept-Ranges, for the reasons given at changeHeader.
func (rw *ResponseWriter) restoreETag(h http.Header) {
	v := h["Etag"]
	if len(v) != 1 || !rw.marks() || !isETag(v[0]) {
		return
	}
	opaque := strings.TrimPrefix(v[0], "W/")
	for _, line := range rw.r.Header["If-None-Match"] {
		eachETag(line, func(tag string) {
			if original, ok := rw.unmarked(tag); ok && strings.TrimPrefix(original, "W/") == opaque {
				h["Etag"] = []string{string(rw.appendMarked(nil, v[0]))}
				delete(h, "Last-Modified")
				delete(h, "Accept-Ranges")
			}
		})
	}
}

// signatures holds the HTTP message signatures (RFC 9421) of a response and the field values that they cover. It is
// nil if the response has none.
type signatures struct {
	inputs *httpsfv.Dictionary
	fields map[string][]string // the values of the covered fields, unchanged from the handler; the key is the name
}

// signaturesOf reads the signatures of a response, before the writer changes its header.
func signaturesOf(h http.Header) *signatures {
	lines := h["Signature-Input"]
	if lines == nil {
		return nil
	}
	inputs, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return nil // the signatures are incomplete, so they cannot be verified
	}
	s := &signatures{inputs, map[string][]string{}}
	s.each(func(_, field string) {
		s.fields[field] = slices.Clone(h[http.CanonicalHeaderKey(field)])
	})
	return s
}

func (s *signatures) each(f func(label, field string)) {
	for _, label := range s.inputs.Names() {
		member, _ := s.inputs.Get(label)
		list, _ := member.(httpsfv.InnerList)
		for _, item := range list.Items {
			name, _ := item.Value.(string)
			if _, ofRequest := item.Params.Get("req"); !ofRequest && name != "" && name[0] != '@' {
				f(label, strings.ToLower(name))
			}
		}
	}
}

// drop removes the signatures that cover a changed field. If the body was edited, it also removes the signatures that
// cover a digest, even one in a trailer.
func (s *signatures) drop(h http.Header, edited bool) {
	if s == nil {
		return
	}
	broken := map[string]bool{}
	s.each(func(label, field string) {
		key := http.CanonicalHeaderKey(field)
		if !slices.Equal(s.fields[field], h[key]) || edited && slices.Contains(digestFields[:], key) {
			broken[label] = true
		}
	})
	if len(broken) == 0 {
		return
	}
	values, err := httpsfv.UnmarshalDictionary(h["Signature"])
	if err != nil {
		values = httpsfv.NewDictionary()
	}
	for label := range broken {
		s.inputs.Del(label)
		values.Del(label)
	}
	setDictionary(h, "Signature-Input", s.inputs)
	setDictionary(h, "Signature", values)
}

func setDictionary(h http.Header, key string, d *httpsfv.Dictionary) {
	text, err := httpsfv.Marshal(d)
	if err != nil || text == "" {
		delete(h, key)
		return
	}
	h[key] = []string{text}
}
