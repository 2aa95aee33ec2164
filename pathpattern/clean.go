// SPDX-License-Identifier: Apache-2.0

package pathpattern

import (
	"bytes"
	"strings"
)

// Clean returns what a server that tidies its paths makes of path: the normal
// form, with dot segments removed (RFC 3986 section 5.2.4) and runs of slashes
// made one. The query is not touched. It does not allocate for a path that is
// in normal form and tidy.
func Clean(path string) string {
	whole := NormalizePath(path)
	path, query := whole, ""
	if i := strings.IndexByte(whole, '?'); i >= 0 {
		path, query = whole[:i], whole[i:]
	}
	if !strings.Contains(path, "//") && !strings.Contains(path, "/.") {
		return whole
	}
	var out []byte
	segments := strings.Split(path[1:], "/")
	for i, s := range segments {
		last := i == len(segments)-1
		switch {
		case s == ".." || s == ".":
			if s == ".." {
				out = out[:max(0, bytes.LastIndexByte(out, '/'))]
			}
			if last {
				out = append(out, '/')
			}
		case s != "" || last:
			out = append(out, '/')
			out = append(out, s...)
		}
	}
	return string(out) + query
}
