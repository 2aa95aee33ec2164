// SPDX-License-Identifier: Apache-2.0

package agreement

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// again is the kind of request that follows after a page was received.
type again int

const (
	askHead  again = iota // request with HEAD
	askMatch              // requests with several entity tags
	notAgain
)

// twice sends the request that follows, if the question demands one.
func (x *exam) twice(q question, a answer, page *page, why *explanation) error {
	switch q.again {
	case askHead:
		return x.head(q, a, page)
	case askMatch:
		return x.match(q, a, page, why)
	}
	return nil
}

// head requests a page with HEAD, and compares the answer with the answer to GET in a. The answer to HEAD has no body,
// so the server cannot know whether the page already contains all meta tags of the policy. It therefore sends the
// header of a changed page, without an entity tag.
func (x *exam) head(q question, a answer, page *page) error {
	h, err := x.at.ask(http.MethodHead, q)
	if err != nil {
		return err
	}
	x.count("HEAD of a page")
	excused := []string{"Date", "Content-Length"}
	if page != nil && page.html() && x.at.meta != "off" {
		excused = append(excused, "Etag")
		if a.body == page.body {
			excused = append(excused, "Last-Modified", "Accept-Ranges")
		}
	}
	if x.at.before == "encode" {
		excused = append(excused, "Vary", "Content-Encoding") // net/http computes it from the length of the written bytes
	}
	same(x, "HEAD: Vary", q, slices.Contains(h.header["Vary"], "User-Agent"), slices.Contains(a.header["Vary"], "User-Agent"))
	same(x, "HEAD: status", q, statusOf(h), statusOf(a))
	same(x, "HEAD: body", q, h.body, "")
	same(x, "HEAD: header", q, fieldsOf(h, excused), fieldsOf(a, excused))
	if n := h.header.Get("Content-Length"); n != "" {
		same(x, "HEAD: Content-Length", q, n, a.header.Get("Content-Length"))
	}
	return nil
}

// fieldsOf returns the header fields of an answer in alphabetical order, except the fields that the list without names.
func fieldsOf(a answer, without []string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(a.header)) {
		if !slices.Contains(without, name) {
			fmt.Fprintf(&b, "%s: %q\n", name, a.header[name])
		}
	}
	return b.String()
}

// match sends three requests with If-None-Match. The first request has the entity tag of the response, so it matches.
// The second has a tag from another policy, so it does not match. The third has the tag of the upstream's page. Clients
// know this tag if they fetched the page before the site had a policy. It must not match either.
//
// A response that is not an HTML page always has the upstream's entity tag. But an HTML page at the same path would get
// meta tags. A client with this tag may have stored the page before it had meta tags. So the server accepts the tag only
// if Sec-Fetch-Dest says that the request is for a part of a page, such as an image.
func (x *exam) match(q question, a answer, page *page, why *explanation) error {
	tag := a.header.Get("Etag")
	if tag == "" {
		return nil
	}
	condition := [][2]string{{"If-None-Match", tag}}
	if !page.html() && x.changesPages(q, a, page, why) {
		m, err := x.at.ask(http.MethodGet, q, condition...)
		if err != nil {
			return err
		}
		x.count("304: none for the entity tag of what may have been a page")
		same(x, "304: not to the entity tag of another policy", q, statusOf(m), a.status)
		same(x, "304: not to the entity tag of another policy", q, m.body, a.body)
		condition = append(condition, [2]string{"Sec-Fetch-Dest", "image"})
	}
	m, err := x.at.ask(http.MethodGet, q, condition...)
	if err != nil {
		return err
	}
	x.count("304 to the entity tag of a page")
	x.unchanged(q, a, m)
	same(x, "304: Etag", q, m.header.Get("Etag"), tag)
	theirs := page.tagIn(a.header.Get("Content-Encoding"))
	if theirs == "" || matches(theirs, tag) {
		return nil
	}
	x.count("the upstream's entity tag for a page that is changed")
	for _, other := range []string{theirs, theirs[:len(theirs)-1] + `-rp01234567"`} {
		if m, err = x.at.ask(http.MethodGet, q, [2]string{"If-None-Match", other}); err != nil {
			return err
		}
		same(x, "304: not to the entity tag of another policy", q, statusOf(m), a.status)
		same(x, "304: not to the entity tag of another policy", q, m.body, a.body)
	}
	return nil
}

// changesPages reports whether the server adds meta tags to a page at the path of the question, or changes the page's
// own meta tags.
func (x *exam) changesPages(q question, a answer, page *page, why *explanation) bool {
	switch {
	case x.at.meta == "off":
		return false
	case x.lifts(q, policy.Index), x.lifts(q, policy.PresentSnippet), x.servedReservation(q) != "":
		return true
	case x.at.tailored:
		return x.speaks(q, x.p.visitor(q.token), why, a, page)
	}
	return len(why.page().Sends) > 0
}

// unchanged compares a 304 with the answer that it confirms (RFC 9110 section 15.4.5). A cache replaces its stored
// header fields by the fields of the 304, so the fields of both responses must be equal.
func (x *exam) unchanged(q question, a, m answer) {
	same(x, "304: status", q, statusOf(m), http.StatusNotModified)
	if statusOf(m) != http.StatusNotModified {
		return
	}
	same(x, "304: body", q, m.body, "")
	// Compare only User-Agent, because Caddy's encode adds Accept-Encoding to Vary.
	same(x, "304: Vary", q, slices.Contains(m.header["Vary"], "User-Agent"), slices.Contains(a.header["Vary"], "User-Agent"))
	for _, name := range allFields {
		same(x, "304: "+name, q, fmt.Sprintf("%q", m.header[name]), fmt.Sprintf("%q", a.header[name]))
	}
}

// robotsAgain requests robots.txt with HEAD and with If-None-Match.
func (x *exam) robotsAgain(q question, a answer) error {
	if x.at.before == "encode" {
		q.coding = "identity" // this test does not check the answers of Caddy's "encode"
		var err error
		if a, err = x.at.get(q); err != nil {
			return err
		}
	}
	h, err := x.at.ask(http.MethodHead, q)
	if err != nil {
		return err
	}
	same(x, "robots.txt: HEAD", q, fmt.Sprint(statusOf(h), h.body), fmt.Sprint(a.status))
	same(x, "robots.txt: HEAD", q, fieldsOf(h, []string{"Date"}), fieldsOf(a, []string{"Date"}))
	tag := a.header.Get("Etag")
	m, err := x.at.ask(http.MethodGet, q, [2]string{"If-None-Match", `"another", ` + tag})
	if err != nil {
		return err
	}
	same(x, "robots.txt: 304", q, fmt.Sprint(statusOf(m), m.body, m.header.Get("Etag"), m.header.Get("Cache-Control")), fmt.Sprint(http.StatusNotModified, tag, a.header.Get("Cache-Control")))
	if m, err = x.at.ask(http.MethodGet, q, [2]string{"If-None-Match", x.at.lastTag}); err != nil {
		return err
	}
	want := http.StatusOK
	if x.at.lastTag == tag {
		want = http.StatusNotModified
	}
	same(x, "robots.txt: 304", q, statusOf(m), want)
	x.at.lastTag = tag
	return nil
}
