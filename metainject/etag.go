// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/dunglas/httpsfv"
)

// The entity tag of a page, changed or not, ends with Options.ETagSuffix and a mark for the elements and
// the mode. So it changes whenever a policy, a mode or a time limit changes the meta tags of pages.
//
// The tag is made weak, because the page can depend on how it arrived (coding, flushes); weakened, at the
// end of the mark, says that the handler's was strong: "abc" becomes W/"abc-rp1f2e3d4c5b6a-m1a2b3c4dw".
// The answer to HEAD has no tag: GET's depends on what encodes the body.
const weakened = 'w'

// modeLetters stand for the modes in marks.
var modeLetters = [...]string{Merge: "-m", Replace: "-r", Off: "-"}

// ending appends to b what the page's entity tags end with, before the quote.
func (rw *ResponseWriter) ending(b []byte) []byte {
	b = append(b, rw.o.ETagSuffix...)
	b = append(b, modeLetters[rw.o.Mode]...)
	return append(b, rw.o.Set.mark...)
}

// marks reports whether entity tags are marked.
func (rw *ResponseWriter) marks() bool {
	return !rw.o.Set.IsEmpty() && rw.o.Mode != Off && rw.o.ETagSuffix != ""
}

// appendMarked appends the page's entity tag, made from the handler's.
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

// unmarked returns the handler's entity tag for one of this page's; ok is false for others.
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

// isETag reports whether v has the form of one entity tag.
func isETag(v string) bool {
	v = strings.TrimPrefix(v, "W/")
	return len(v) >= 2 && v[0] == '"' && strings.IndexByte(v[1:], '"') == len(v)-2
}

// eachETag calls f with the entity tags of a list, and returns false if it contains anything else.
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

// Request returns the request for the handler, which only knows its own entity tags. Tags of this page lose
// their marks in If-None-Match and If-Match. If-Range keeps them, so that it does not match: the handler's
// range is of another text. An If-Match that lost a mark removes Range, which a server may ignore (RFC 9110
// section 14.2).
//
// Unmarked tags and dates are removed: they may be of a page from before the policy, which the handler
// would confirm with a 304. They stay if a browser says that it fetches no document.
//
// A page is asked for in gzip rather than in zstd or br (see narrowCodings). The header is only copied if
// a condition changes.
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

// mayAskForPage reports whether a request with this Sec-Fetch-Dest may be for a page. Only browsers send
// it; scripts that fetch parts of pages send "empty".
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

// rewriteTags removes the marks from lists of entity tags, and with only the unmarked tags. Malformed
// lists and "*" stay.
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

// restoreETag marks the tag of a 304 if the client asked with the mark, and removes the date.
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

// signatures are the HTTP message signatures (RFC 9421) of a response and the values they cover, nil for
// none.
type signatures struct {
	inputs *httpsfv.Dictionary
	fields map[string][]string // by name, in the handler's spelling
}

// signaturesOf reads the signatures of a response before its header changes.
func signaturesOf(h http.Header) *signatures {
	lines := h["Signature-Input"]
	if lines == nil {
		return nil
	}
	inputs, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return nil // nothing that could be verified
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

// drop removes signatures over a changed field. If the body was edited, its digests in trailers are dropped
// too.
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
