// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"net/http"
	"slices"
	"strings"

	"github.com/dunglas/httpsfv"
)

// signatures are the HTTP message signatures (RFC 9421) of a response, with the
// values of the fields that they cover. It is nil for responses without any.
type signatures struct {
	inputs *httpsfv.Dictionary
	fields map[string][]string // by name, as the handler has set them
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

// each calls f with the fields of the response that each signature covers.
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

// drop removes the signatures that cover a field that has changed, since they no
// longer hold. edited means that the body has, and so its digests in trailers.
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
