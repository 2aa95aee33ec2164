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
// If the Set is empty, the writer only calls the HeaderHook. If the handler failed and rw.Committed() is false,
// nothing has been sent and the header map has not been touched. Another response can then be written to w.
// docs/reference/pages.md explains to users which pages are changed.
//
// # What changes
//
// The package adds one meta tag for each audience, which is everyone or one crawler, at the beginning of the page's
// head. It adds them after the element that declares the encoding if the page is AMP, or if that element would
// otherwise move beyond the first 1,024 bytes, where browsers look for it.
//
// Robots elements that the page already has are combined with the policy's elements. In mode Merge the most restrictive
// rules apply, except for the restrictions that the set removes (lift, in NewSet). In mode Replace the policy's rules
// replace the page's rules. The first element for an audience is changed in place, and the others are removed.
//
// # Which elements
//
// A page's robots elements are those with name="robots", with the product token of a crawler that reads such
// elements (NewSet), or with name="yandex". Two common mistakes, which crawlers ignore, are recognized and replaced
// by a valid element:
//
//   - property="robots" in place of name="robots";
//   - http-equiv="X-Robots-Tag". Its content may name one crawler, as in "googlebot: noindex".
//
// An element for one crawler need not repeat the rules for everyone, because crawlers combine both. If the element has
// a rule that allows what the rules for everyone forbid, the rules for everyone replace this rule. The reason is that
// some engines obey the rule that allows more. If the value of an element cannot be read, the element stays next to the
// policy's element. An element that also declares the encoding keeps that declaration.
//
// Elements without a known rule, elements of another XML namespace, and elements in the body, text, comments,
// noscript and templates are not changed. Nor is any other byte of the page.
//
// # Which pages
//
// The package changes responses to GET and HEAD with status 200 and the type text/html or application/xhtml+xml. If
// a response has no type, net/http's detection of HTML decides. The encoding must be based on ASCII, and the
// content coding must be known. Responses with Content-Range, Cache-Control: no-transform or Incremental: ?1 are
// not changed, and neither are fragments of pages (Options.Fragments). The response to HEAD has the header of a
// changed page, without Content-Length.
//
// # Streaming
//
// The writer holds the header and the page's bytes until it has found the end of the head, usually within the first
// Write. It holds at most Options.MaxHead bytes. If the head is longer, elements after these bytes are not changed,
// even in mode Replace. Crawlers combine these elements with the policy's elements. If the head has not begun within
// these bytes, the page is not changed. A flush inside the head waits until the head ends. A flush after </head> does
// not wait, so elements between </head> and <body> are not changed then.
//
// # Content codings
//
// A page in gzip, deflate, zstd or br stays in that coding, and loses its Content-Length. A page that needs no
// change is sent as it arrived, and so is a body that cannot be unpacked.
//
// Streams of gzip and deflate are edited in place (package deflateedit). A broken stream stays broken at the same
// place. If the head continues in another member of gzip, the elements there are not changed, because clients
// differ on whether that member belongs to the page.
//
// Pages in zstd and br are held as a whole, unpacked, and packed again at the fastest level. They are sent
// unchanged if they are damaged, followed by other bytes, or longer than 2 MiB. The memory for all pages, including
// their unpacked text, is bounded. While all of it is in use, further pages are not changed.
//
// # How the head is found
//
// The scan follows the HTML standard's tree construction with scripting enabled. The tests compare it with x/net/html.
// The added elements are in the head for parsers without scripting, too. The scan treats some rare markup as the end of
// the head. In a template, these are plaintext and, after svg, math, select or col, nested templates and some texts.
// Elsewhere it is a numeric character reference of more than 64 bytes. A page that ends inside a tag or comment before
// its head began is not changed. XHTML is read as XML: a page without a head gets one. An XHTML page with an internal
// DTD subset, or a namespace prefix on html or head, is not changed.
package metainject

import (
	"regexp"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/ascii"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// yandex is the name of a meta tag that the search engine Yandex documents. No crawler has this product token
// (https://yandex.com/support/webmaster/controlling-robot/meta-robots.html).
const yandex = "yandex"

// Known implements headscan.Names. The known names are Everyone, the names of the set's elements, the set's tokens, and
// yandex.
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

// oddNoindex matches a text that contains the word noindex or none among other words or characters.
var oddNoindex = regexp.MustCompile(`(?i)(?:^|[^a-z0-9_-])(?:noindex|none)(?:[^a-z0-9_-]|$)`)

// Speaks implements headscan.Names. It returns false if content has no rule that search engines know, because an
// element without such a rule has another purpose, for example to hold the key of a service. It returns true for every
// content with a noindex, even if the spelling is invalid. If the policy's element for the audience has a Content
// instead of rules, such as a license, Speaks only returns false for an empty content.
func (s *Set) Speaks(audience, content string) bool {
	if e := s.find(audience); e != nil && e.Content != "" {
		return content != ""
	}
	return robotsrule.HasRule(content) || oddNoindex.MatchString(content)
}

// deniedTo returns the policy's rules that an audience obeys in addition to the rules in its own element. These are the
// rules for everyone and, for some audiences, the rules for another crawler of the same engine. For example, msnbot
// also obeys the rules for bingbot. A rule in the audience's own element must not allow what these rules forbid,
// because some engines, such as Yandex, obey the rule that allows more.
func (s *Set) deniedTo(audience string) robotsrule.Set {
	rules := s.everyone
	for i := range s.elements {
		p := &s.elements[i]
		if audience == yandex && strings.HasPrefix(p.lower, yandex) || audience == "msnbot" && p.lower == "bingbot" ||
			audience == "googlebot-news" && p.lower == "googlebot" {
			rules = rules.Union(p.Rules)
		}
	}
	return rules
}
