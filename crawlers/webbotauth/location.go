// SPDX-License-Identifier: Apache-2.0

package webbotauth

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// wellKnown is the path of the keys of an origin. Since draft -01 clients send the
// whole URL, but most still send the origin.
const wellKnown = "/.well-known/http-message-signatures-directory"

// location identifies a key directory.
type location struct {
	// id is the normalized URL (RFC 3986 sections 6.2.2 and 6.2.3) without its query
	// (draft section 5.5). Directories are compared by it.
	id string
	// url is what to fetch, with the query.
	url string
}

// resolve returns the location for the URL of a key directory or its origin.
func resolve(text string) (location, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Fragment != "" || u.Opaque != "" {
		return location{}, fmt.Errorf("invalid key directory %q: must be an https URL", text)
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

// normalPath normalizes a path: escapes in upper case and only where they are needed,
// no dot segments. A directory is only ever one that the caller names, so it is enough
// that no two of an operator's are alike.
func normalPath(path string) string {
	u, err := url.Parse("https://bot.example" + pathpattern.NormalizePath(path))
	if err != nil {
		return path
	}
	return u.ResolveReference(u).EscapedPath()
}
