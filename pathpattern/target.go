// SPDX-License-Identifier: Apache-2.0

package pathpattern

import "net/url"

// Target is the path and query of a URL as its author wrote them. EscapedPath of
// net/url writes a path anew that has an octet which should have been encoded,
// and then "%2F" becomes a slash.
func Target(u *url.URL) string {
	path := u.EscapedPath()
	if p, err := url.PathUnescape(u.RawPath); err == nil && p == u.Path {
		path = u.RawPath
	}
	if path == "" {
		path = "/"
	}
	if u.RawQuery != "" || u.ForceQuery {
		path += "?" + u.RawQuery
	}
	return path
}
