// SPDX-License-Identifier: Apache-2.0

package pathpattern

import "net/url"

// Target is the path and query of a URL as its author wrote them, for Readings.
// It undoes EscapedPath of net/url, which decodes %2F where another byte should
// have been encoded. Of a URL without a slash after its scheme ("x:a/b") it is
// the whole URL, and "/" if there is nothing else.
func Target(u *url.URL) string {
	path := u.EscapedPath()
	if p, err := url.PathUnescape(u.RawPath); err == nil && p == u.Path {
		path = u.RawPath
	}
	switch {
	case path != "":
	case u.Opaque != "":
		path = u.Scheme + ":" + u.Opaque
	default:
		path = "/"
	}
	if u.RawQuery != "" || u.ForceQuery {
		path += "?" + u.RawQuery
	}
	return path
}
