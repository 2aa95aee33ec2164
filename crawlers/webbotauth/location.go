// SPDX-License-Identifier: Apache-2.0

package webbotauth

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// wellKnown is where an origin has its keys. Since -01 of the draft clients send
// the whole URL; most still send the origin.
const wellKnown = "/.well-known/http-message-signatures-directory"

// location is where a key directory is.
type location struct {
	// id tells directories apart: the URL in normal form (RFC 3986 sections 6.2.2 and
	// 6.2.3) without its query (draft section 5.5).
	id string
	// url is fetched. It has the query: the draft drops it from the identifier and not
	// from the request.
	url string
}

// resolve makes a location out of the URL of a key directory, or of its origin.
func resolve(text string) (location, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Fragment != "" || u.Opaque != "" {
		return location{}, fmt.Errorf("%q is no https URL of a key directory", text)
	}
	path := u.EscapedPath()
	if path == "" || normalPath(path) == "/" {
		path = wellKnown
	}
	origin := "https://" + authority("https", strings.TrimSuffix(u.Host, ":"))
	where := location{id: origin + normalPath(path), url: origin + path}
	if u.RawQuery != "" {
		where.url += "?" + u.RawQuery
	}
	return where, nil
}

// normalPath is a path that begins with a slash, with escapes in upper case and only
// where they are needed, and without dot segments.
func normalPath(path string) string {
	var segments []string
	list := strings.Split(normalEscapes(path)[1:], "/")
	for i, s := range list {
		switch s {
		case "..":
			segments = segments[:max(0, len(segments)-1)]
		case ".":
		default:
			segments = append(segments, s)
			continue
		}
		if i == len(list)-1 {
			segments = append(segments, "")
		}
	}
	return "/" + strings.Join(segments, "/")
}

// normalEscapes has escapes in upper case, and what needs none plainly.
func normalEscapes(path string) string {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		if path[i] != '%' || i+3 > len(path) {
			b.WriteByte(path[i])
			continue
		}
		escape := path[i : i+3]
		i += 2
		if n, err := strconv.ParseUint(escape[1:], 16, 8); err == nil && isUnreserved(byte(n)) {
			b.WriteByte(byte(n))
			continue
		}
		b.WriteString(strings.ToUpper(escape))
	}
	return b.String()
}

// isUnreserved is for RFC 3986 section 2.3.
func isUnreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}
