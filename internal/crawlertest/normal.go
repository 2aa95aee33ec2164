// SPDX-License-Identifier: Apache-2.0

package crawlertest

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// NormalPath is a path and query as RFC 9309 section 2.2.2 has them compared:
// what is unreserved (RFC 3986 section 2.3) stands plainly, what is no octet of a
// URI encoded, and "*" and "$" too, which are special in a pattern.
func NormalPath(p string) string {
	var b strings.Builder
	if !strings.HasPrefix(p, "/") {
		b.WriteByte('/')
	}
	for i := 0; i < len(p); i++ {
		c := p[i]
		encoded := false
		if c == '%' && i+2 < len(p) {
			if n, err := strconv.ParseUint(p[i+1:i+3], 16, 8); err == nil {
				c, encoded = byte(n), true
				i += 2
			}
		}
		if isUnreserved(c) || !encoded && strings.IndexByte(":/?#[]@!&'()+,;=", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func isUnreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

var parameters = regexp.MustCompile(`;[^/]*`)

// ServedPaths are the paths for which servers may take one that was sent: as it
// is, tidied, and tidied after what some take for a slash is read as one and path
// parameters are dropped. See "Who is refused" in docs/edge.md.
func ServedPaths(sent string) []string {
	normal := NormalPath(sent)
	name, query, asked := strings.Cut(normal, "?")
	if asked {
		query = "?" + query
	}
	slashed := parameters.ReplaceAllString(strings.NewReplacer("%2F", "/", "%5C", "/").Replace(name), "")
	return []string{normal, tidy(name) + query, tidy(slashed) + query}
}

func tidy(name string) string {
	end := ""
	if last := name[strings.LastIndexByte(name, '/'):]; last == "/" || last == "/." || last == "/.." {
		end = "/"
	}
	return strings.TrimSuffix(path.Clean("/"+name), "/") + end
}
