// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/metainject/internal/ascii"
)

// narrowCodings asks for a page in gzip, which is edited in place at a tenth of the cost,
// rather than in zstd or br, in which it has to be unpacked and packed again. These stay
// acceptable: a file may be there in no other coding. The field is put back by
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

// narrow returns an Accept-Encoding field in which zstd and br come last. Where there
// is nothing else they stay as they are.
func narrow(line string) string {
	switch line { // what browsers send
	case "gzip, deflate, br, zstd":
		return "gzip, deflate, br;q=0.002, zstd;q=0.001"
	case "gzip, deflate, br":
		return "gzip, deflate, br;q=0.002"
	}
	items := strings.Split(line, ",")
	others := false
	for i, item := range items {
		name, q, _ := strings.Cut(item, ";")
		name = strings.Trim(name, " \t")
		switch refused := q != "" && strings.Trim(q, " \tqQ=.0") == ""; {
		case ascii.EqualFold(name, "br") && !refused:
			items[i] = " br;q=0.002"
		case ascii.EqualFold(name, "zstd") && !refused:
			items[i] = " zstd;q=0.001"
		default:
			others = others || name != "" && !refused
		}
	}
	if !others {
		return line
	}
	return strings.TrimSpace(strings.Join(items, ","))
}
