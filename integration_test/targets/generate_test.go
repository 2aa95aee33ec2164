// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
)

// closed lists decoded paths, which these tests call disallowed places. The policies of the tests disallow each of
// these paths, and every path that begins with one of them. patternOf returns the pattern in the policy.
var closed = []string{
	"/@private/", "/wiki/Special:", "/p(1)/", "/a,b/", "/a;v=1/", "/admin/", "/tree/deep/closed/", "/two words/", "/caf\u00e9/", "/x+y&z='!'/",
	"/st*r/", "/do$lar/", "/br[a]ck/", "/{id}/", "/a%b/", "/.hidden/", "/dash-~_.x/",
}

// closedFile is a disallowed place that is a single file. The policies disallow it with two patterns: one ends in "$"
// and matches the path without a query, and one ends in "?" and matches the path with a query.
const closedFile = "/only.html"

// isClosed reports whether a decoded path without dot segments is disallowed.
func isClosed(path string) bool {
	if path == closedFile {
		return true
	}
	for _, c := range closed {
		if strings.HasPrefix(path, c) {
			return true
		}
	}
	return false
}

// isClosedInAnyCase does the same as isClosed, but ignores letter case.
func isClosedInAnyCase(path string) bool {
	path = strings.ToLower(path)
	return path == closedFile || slices.ContainsFunc(closed, func(c string) bool { return strings.HasPrefix(path, strings.ToLower(c)) })
}

// patternOf returns the pattern of a disallowed place. In every second pattern, reserved characters are encoded.
func patternOf(i int, place string) string {
	var b strings.Builder
	for _, c := range []byte(place) {
		reserved := strings.IndexByte(":@!&'()+,;=[]", c) >= 0
		if reserved && i%2 == 0 || strings.IndexByte(" %*${}", c) >= 0 || c >= 0x80 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// open lists allowed paths that are similar to disallowed ones.
var open = []string{"/", "/open/", "/admin", "/@privates/", "/wiki/Special", "/tree/deep/", "/p1/", "/index.html", "/only.htm", "/only.html/"}

var hosts = []string{"www.example.com", "shop.example.com", "a.wild.example.com", "other.example.org", "192.0.2.1", "[2001:db8::1]"}

// generator makes requests that are likely to reach a disallowed place with an unusual target.
type generator struct{ r *rand.Rand }

func (g generator) one(from ...string) string { return from[g.r.IntN(len(from))] }

func (g generator) request() request {
	r := request{method: http.MethodGet, proto: protos[g.r.IntN(len(protos))], host: g.host()}
	r.target = g.target()
	switch g.r.IntN(24) {
	case 0:
		if r.proto == 1 {
			r.target = g.one("http://", "HTTP://", "x://", "http:///", "http:") + g.host() + r.target
		}
	case 1: // a scheme without a slash after it
		r.target = g.one("x:", "http:", "x-y+z.1:") + g.one("", "http://", "https:", "HTTP://u@") + g.one(g.host(), "", "*") + g.one(r.target, strings.TrimPrefix(r.target, "/"))
	case 2:
		r.method = http.MethodConnect
		r.target = g.host() + r.target
	case 3:
		r.method = g.one("HEAD", "POST", "OPTIONS", "PROPFIND", "get", "PUT")
	}
	return r
}

// target returns an unusual spelling of a place.
func (g generator) target() string {
	place := g.one(closed...)
	if n := g.r.IntN(8); n == 0 {
		place = g.one(open...)
	} else if n == 1 {
		place = closedFile
	}
	if !strings.HasSuffix(place, ".html") {
		place += g.one("x.html", "x.html", "x.html", "sub/y.html", "", "none")
	}
	t := g.escape(place)
	for range g.r.IntN(5) {
		t = g.distort(t)
	}
	if g.r.IntN(6) == 0 {
		t = g.reference(t)
		for range g.r.IntN(2) {
			t = g.distort(t)
		}
	}
	return t
}

// reference writes a path as a reference to another host.
func (g generator) reference(path string) string {
	slashes := g.one("//", "//", "///", "////", `/\`, `\/`, "/%2f", "%2F/", "/%5c", "/./", "/.//", "/zz/..//", "/%2e/%2f", "/;//", "//./")
	authority := g.one("x", "x", "u@h", "u:p@h:1", "h:", "[::1]", "", "%78", "x%5C%23", `x\#`, "a b", "x%2f", "-", "..", "@", "h:99999", "x;p=1", "x,y", "admin", "%e2%82%ac")
	if path = strings.TrimPrefix(path, "/"); g.r.IntN(3) == 0 && path != "" && path[0] != '%' {
		// In url.parse of Node, a "%" ends the host, so the text from there on becomes the path.
		return g.one("//", "//", slashes) + g.one("x", "u@h", "u:p@h:1") + fmt.Sprintf("%%%02x", path[0]) + path[1:]
	}
	return slashes + authority + "/" + path
}

// escape writes a path as a target. It encodes the bytes not allowed in a target, and some other bytes.
func (g generator) escape(place string) string {
	var b strings.Builder
	often := g.r.IntN(3) * 4
	for _, c := range []byte(place) {
		switch {
		case c == '%' || c <= ' ' || c >= 0x7f || c != '/' && g.r.IntN(32) < often:
			fmt.Fprintf(&b, g.one("%%%02x", "%%%02X"), c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// distort makes one random change in a target.
func (g generator) distort(t string) string {
	slash := strings.IndexByte(t, '/') // a random occurrence
	for range g.r.IntN(1 + strings.Count(t, "/")) {
		if i := strings.IndexByte(t[slash+1:], '/'); i >= 0 {
			slash += 1 + i
		}
	}
	if slash < 0 {
		return "/" + t
	}
	at := func(with string) string { return t[:slash] + with + t[slash+1:] }
	switch g.r.IntN(12) {
	case 0:
		return at(g.one("//", "///"))
	case 1:
		return at(g.one("/./", "/%2e/", "/.//"))
	case 2:
		return at(g.one("/zz/../", "/zz/%2e%2E/", "/zz//../", "/zz/..//", "/zz/..;/", "/zz%2F../", "/zz/..%2f", `/zz\..\`, "/zz/.%2e%5c"))
	case 3:
		return at(g.one(";p=1/", ";/", ";a;b=c/", "%3Bp/", ";p=%2F/", ";p=/../"))
	case 4:
		return at(g.one("%2f", "%2F", `\`, "%5c", "%5C", "/%2F", "%2f/"))
	case 5:
		return at("/..") + "/" + strings.TrimPrefix(t, "/")
	case 6:
		return t + g.one("?q", "?/../x", "?a=%2F", "#f", "?", "/", "/.", "/..", "/zz/..", "%20", ".", ";x", "%00", "%23", "%3f", "//", "\\")
	case 7:
		i := g.r.IntN(len(t))
		if t[i] == '%' || i > 0 && t[i-1] == '%' || i > 1 && t[i-2] == '%' {
			return t
		}
		return t[:i] + fmt.Sprintf(g.one("%%%02x", "%%%02X", "%%25%02x"), t[i]) + t[i+1:]
	case 8:
		return g.one("/..", "/../..", "/.", "/", "/open/..", "/%2e%2e", "/admin/..", "/open/../") + t
	case 9:
		return strings.Replace(t, "x.html", g.one("X.html", "x.html/..", "../x.html", "./x.html", ""), 1)
	}
	i := g.r.IntN(len(t)) // Caddy's path matchers, and the upstreams in one mode, ignore letter case
	if g.r.IntN(4) == 0 {
		return t[:i] + strings.ToLower(t[i:])
	}
	return t[:i] + strings.ToUpper(t[i:])
}

// host returns an unusual spelling of a host that a site or an upstream may understand as a disallowed host.
func (g generator) host() string {
	h := g.one(hosts...)
	for range g.r.IntN(3) {
		switch g.r.IntN(10) {
		case 0:
			h = strings.ToUpper(h)
		case 1:
			h += g.one(":80", ":", ":80:80", ":x", "]:80", ":443")
		case 2:
			h += g.one(".", "..", ".:80", ".]")
		case 3:
			h = "[" + h + g.one("]", "", "]:80", "].")
		case 4:
			h = strings.Replace(h, "a.", g.one(strings.Repeat("a", 250)+".", "a.b.", ".", "*.", "a:1.", "a:1:2.", "xn--a."), 1)
		case 5:
			h = strings.Replace(h, "s", g.one("\u017f", "%73", "S"), 1)
		}
	}
	return h
}
