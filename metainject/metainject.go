// SPDX-License-Identifier: Apache-2.0

// Package metainject adds the robots meta tags of a policy to HTML pages while they are streamed. Its writer also
// lets the caller set the matching response headers.
//
// A handler wraps the response, calls the next handler, and closes the writer:
//
//	rw := metainject.Wrap(w, r, metainject.Options{Set: set, ETagSuffix: "-rp1f2e3d", Header: hook})
//	defer rw.Release()
//	err := next(rw, rw.Request())
//	if cerr := rw.Close(err); err == nil {
//		err = cerr
//	}
//	return err
//
// Without elements (an empty Set) the writer only calls the HeaderHook. If the handler failed and rw.Committed() is
// false, nothing has been sent and the header map has not been touched. Another response can then be written to w.
// docs/reference/pages.md lists for users which pages are changed.
//
// # What changes
//
// The package adds one meta element per audience at the beginning of the page's head. It adds them after the
// element that declares the encoding if the page is AMP, or if that element would otherwise move beyond the first
// 1,024 bytes.
//
// Robots elements that the page already has are combined with the policy's. In mode Merge the most restrictive
// rules apply, except for restrictions that the set lifts. In mode Replace the policy's rules replace the page's.
// The first element for an audience is changed in place, and the others are removed.
//
// # Which elements
//
// The package changes responses to GET and HEAD with status 200 whose type is text/html or application/xhtml+xml,
// or is missing where net/http would find HTML. The encoding must be based on ASCII and the content coding known.
// Responses with Content-Range, Cache-Control: no-transform or Incremental: ?1 are not changed. The page must show
// that it is not a fragment (Options.Fragments). The response to HEAD has the header of a changed page, without
// Content-Length.
//
// # Streaming
//
// The header and the page's bytes are held until the head's end is known, usually within the first Write, up to
// Options.MaxHead bytes. Elements further down a longer head stay (readers add them to ours; so they do in mode
// Replace), and a page whose head has not begun by then is not changed. A flush inside the head waits; one after
// </head> does not, so that elements between </head> and <body> are not seen then.
//
// # Content codings
//
// A page in gzip, deflate, zstd or br stays in that coding, without Content-Length. A page that does not change
// passes as it arrived, and so does a body that its coding cannot decode. Streams of gzip and deflate are edited
// (package deflateedit), and a broken body stays as broken as it was. If the head continues in a further member of
// gzip, that member is not merged, because clients differ on whether it belongs to the page. zstd and br are held
// as a whole, unpacked and packed again at the fastest level. They pass unchanged if they are damaged, followed by
// other bytes, or longer than 2 MiB. The memory for all pages, including their unpacked text, is bounded. While it
// is in use, further pages are not changed.
//
// # How the head is found
//
// The scan follows the HTML standard's tree construction with scripting; the tests compare it with x/net/html.
// Parsers without scripting also find the inserted elements in the head. The scan ends the head early in a template
// at plaintext, and at nested templates. It also does so at some texts behind svg, math, select or col, and at a
// numeric character reference of more than 64 bytes. A page that ends inside a tag or comment before its head began
// is not changed. XHTML is read as XML: it gets a head if it has none, and is not changed with an internal DTD
// subset or a prefixed html or head.
package metainject

import (
	"regexp"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/ascii"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// yandex is a name that an engine documents, although no crawler has it
// (https://yandex.com/support/webmaster/controlling-robot/meta-robots.html).
const yandex = "yandex"

// Known implements headscan.Names: Everyone, the names of the set's elements, its tokens and yandex.
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

// oddNoindex is a noindex among other words or signs.
var oddNoindex = regexp.MustCompile(`(?i)(?:^|[^a-z0-9_-])(?:noindex|none)(?:[^a-z0-9_-]|$)`)

// Speaks implements headscan.Names: an element without a rule that engines know has some other purpose,
// such as other permissions or a service's key. But a noindex is meant however it is written.
func (s *Set) Speaks(audience, content string) bool {
	if e := s.find(audience); e != nil && e.content != "" {
		return content != ""
	}
	return robotsrule.HasRule(content) || oddNoindex.MatchString(content)
}

// deniedTo returns the rules of other elements that readers of the audience's element obey, too. A permission
// must not contradict them, because some engines, such as Yandex, let permissions win.
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
