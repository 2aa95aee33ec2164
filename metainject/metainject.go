// SPDX-License-Identifier: Apache-2.0

// Package metainject puts the robots meta elements of a policy into pages as they
// are streamed, and lets the caller set the headers that say the same.
//
// One writer serves both. A handler wraps the response, runs the next one, and
// closes:
//
//	rw := metainject.Wrap(w, r, metainject.Options{Set: set, ETagSuffix: "-rp1f2e3d", Header: hook})
//	defer rw.Release()
//	err := next(rw, rw.Request())
//	if cerr := rw.Close(err); err == nil {
//		err = cerr
//	}
//	return err
//
// Without elements (an empty Set) the writer only calls the HeaderHook. If the
// handler failed and rw.Committed() is false, nothing has been sent, the header map
// has not been touched, and another response can be written to w.
//
// docs/pages.md says, for users, what is changed and what is not.
//
// # What changes
//
// The page gets one element per audience, where its head begins, or after the
// element that declares the character encoding if that would otherwise leave
// the first 1,024 bytes. Elements that the page has already in its head are
// merged to the most restrictive (Merge), or replaced (Replace): the first one
// for an audience is changed where it stands, further ones are removed. These
// count as such:
//
//   - name="robots", the product token of a crawler that reads elements (NewSet), or
//     yandex;
//   - property= instead of name=, a common slip, and
//     http-equiv="X-Robots-Tag", by which an author means the header (with
//     "googlebot: noindex" for one crawler). Crawlers ignore both, so an
//     element with name= takes their place.
//
// An element for one crawler need not repeat the rules for everyone, as readers
// add both up; but if it permits what everyone is denied ("index" against
// noindex), it is made to deny it, since some engines let a permission win.
// Elements without a known rule, those that declare the encoding too, those in the body, and those in
// text, comments, noscript and templates are left alone.
//
// Every other byte stays. A page that says already what the policy says keeps its
// bytes and its Content-Length.
//
// # Which pages
//
// Responses to GET and HEAD with status 200 (Options.Statuses adds others),
// media type text/html or application/xhtml+xml (or none, where net/http would
// find HTML), in an encoding based on ASCII, without Content-Range, without
// Cache-Control: no-transform, without Incremental: ?1, and in a content coding
// that is understood. The page must show that it is not a fragment
// (Options.Fragments).
//
// The response to HEAD has the header of a changed page, without Content-Length.
//
// # Streaming
//
// The header and the page's bytes are held until the head's end is known:
// usually within the handler's first Write. At most Options.MaxHead bytes are
// held. Elements further down a longer head stay as they are (readers add
// them up with ours; in mode Replace they remain), and a page whose head has
// not even begun is not changed. A flush inside the head has to wait; one
// after </head> does not: an element between </head> and <body>, which the
// HTML standard puts back into the head, is then not looked at.
//
// # Content codings
//
// A page in gzip, deflate, zstd or br stays in that coding, without Content-Length.
// Until the head is known the body is held as it arrived; a page that does not
// change, and a body that is not what its coding says, pass as they arrived.
//
// In gzip and deflate the stream itself is edited (package deflateedit). A body that
// is broken or incomplete is so afterwards too. If its head goes on in a further member
// of gzip, clients differ on whether that belongs to it: the elements go into the first
// member, and what follows is not merged. zstd and br are held as a whole, unpacked and
// packed again, at their fastest levels; what is damaged, followed by something else or
// longer than 2 MiB passes as it is. All of them together take a bounded amount of memory;
// while it is in use, further pages are not changed. Request asks for gzip first.
//
// # How the head is found
//
// As the HTML standard's tree construction does it with scripting enabled;
// x/net/html is the reference in the tests. What is put in stands in the head for
// parsers without scripting too. The head is taken to end in a template at plaintext, at
// nested templates and some texts behind svg, math, select or col, and at a numeric
// character reference of more than 64 bytes: elements after them stay as they are. A page that ends inside a tag
// or comment before its head began is not changed. XHTML is read as XML; with an
// internal DTD subset, or a prefix on its html or head element, it is not changed; if it
// has no head, it gets one.
package metainject

import (
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/metainject/internal/ascii"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// yandex is a name that an engine documents and that is no crawler's
// (https://yandex.com/support/webmaster/controlling-robot/meta-robots.html).
const yandex = "yandex"

// Known implements headscan.Names: robots, the names of this set's elements, its
// tokens and yandex.
func (s *Set) Known(name []byte) string {
	var buf [maxToken]byte
	for len(name) > 0 && ascii.IsSpace(name[0]) {
		name = name[1:]
	}
	for len(name) > 0 && ascii.IsSpace(name[len(name)-1]) {
		name = name[:len(name)-1]
	}
	if len(name) == 0 || len(name) > len(buf) {
		return ""
	}
	for i, c := range name {
		if neverInToken(c) {
			return ""
		}
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		buf[i] = c
	}
	lower := buf[:len(name)]
	if string(lower) == Everyone {
		return Everyone
	}
	if _, ok := s.tokens[string(lower)]; ok {
		return string(lower)
	}
	for i := range s.elements {
		if s.elements[i].lower == string(lower) {
			return s.elements[i].lower
		}
	}
	if string(lower) == yandex {
		return yandex
	}
	return ""
}

// Speaks implements headscan.Names: an element with none of the rules that engines know
// has some other purpose, whatever it is called, such as ACAP's permissions or a key by
// which a service knows its sites.
func (s *Set) Speaks(audience, content string) bool {
	if e := s.find(audience); e != nil && e.content != "" {
		return content != ""
	}
	return robotsrule.HasRule(content)
}

// deniedTo returns the rules of other elements that the readers of an element for
// the audience obey too: everyone's, and those for the crawlers that read the name.
// A permission in the element must not contradict them, because some engines let
// permissions win (Yandex documents it).
func (s *Set) deniedTo(audience string) robotsrule.Set {
	rules := s.everyone
	for i := range s.elements {
		p := &s.elements[i]
		if audience == yandex && strings.HasPrefix(p.lower, yandex) || audience == "msnbot" && p.lower == "bingbot" ||
			audience == "googlebot-news" && p.lower == "googlebot" {
			rules = rules.Union(p.rules)
		}
	}
	return rules
}
