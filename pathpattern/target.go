// SPDX-License-Identifier: Apache-2.0

package pathpattern

import "net/url"

// Target is the path and query of a URL as its author wrote them. EscapedPath of
// net/url writes a path anew that has an octet which should have been encoded,
// and then "%2F" becomes a slash. Of a URL without any slash after its scheme the rest
// is the path.
func Target(u *url.URL) string {
	path := u.EscapedPath()
	if p, err := url.PathUnescape(u.RawPath); err == nil && p == u.Path {
		path = u.RawPath
	}
	if path == "" {
		path = "/" + u.Opaque
	}
	if u.RawQuery != "" || u.ForceQuery {
		path += "?" + u.RawQuery
	}
	return path
}
