// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/metainject/internal/ascii"
)

// narrowCodings leaves out of a page's request the codings in which a page has to be
// unpacked and packed again, zstd and br, so that it comes in gzip, which is edited
// in place at a tenth of the cost, or as it is. The field is put back by
// restoreCodings: what runs around the handler, such as an access log, sees the
// client's own.
func (rw *ResponseWriter) narrowCodings() {
	line := rw.r.Header["Accept-Encoding"]
	if !rw.active || len(line) != 1 || !acceptsHTML(rw.r.Header["Accept"]) {
		return
	}
	if narrowed := narrow(line[0]); narrowed != line[0] {
		rw.accepted = line[0]
		line[0] = narrowed // in place, which is cheaper than to set the field twice
	}
}

func (rw *ResponseWriter) restoreCodings() {
	if rw.accepted != "" {
		rw.r.Header["Accept-Encoding"][0] = rw.accepted
		rw.accepted = ""
	}
}

// acceptsHTML reports whether an Accept field names HTML, as those of browsers and
// search engines do when they ask for a page.
func acceptsHTML(accept []string) bool {
	for _, v := range accept {
		if strings.Contains(v, "text/html") || strings.Contains(v, "application/xhtml+xml") {
			return true
		}
	}
	return false
}

// narrow returns an Accept-Encoding field without zstd and br. If nothing acceptable
// would be left, or nothing is to be left out, it is the same.
func narrow(line string) string {
	switch line { // what browsers send
	case "gzip, deflate, br, zstd", "gzip, deflate, br":
		return "gzip, deflate"
	}
	var left []string
	removed := false
	for item := range strings.SplitSeq(line, ",") {
		item = strings.Trim(item, " \t")
		name, q, _ := strings.Cut(item, ";")
		name = strings.TrimRight(name, " \t")
		switch {
		case ascii.EqualFold(name, "zstd"), ascii.EqualFold(name, "br"), name == "*":
			removed = removed || name != "*"
		case ascii.EqualFold(name, "identity") && strings.Trim(q, " \tqQ=.0") == "" && q != "":
			return line // packed or not at all
		case item != "":
			left = append(left, item)
		}
	}
	switch {
	case !removed:
		return line
	case left == nil:
		return "identity"
	}
	return strings.Join(left, ", ")
}
