// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
)

// goModes are the ways in which known servers read a path; see upstream.
var goModes = []string{"go", "wsgi", "rfc", "rfc decoded", "tomcat", "late parameters", "iis", "express", "host"}

// upstream is a server that imitates how other programs read the path or the host of a request. The field X-Mode of the
// request selects the program.
func upstream(w http.ResponseWriter, r *http.Request) {
	raw, _, _ := strings.Cut(r.RequestURI, "?")
	if raw == "" || raw[0] != '/' {
		raw = "/" + raw
	}
	decoded, err := url.PathUnescape(raw)
	if err != nil {
		decoded = raw
	}
	text := "open"
	switch mode := r.Header.Get("X-Mode"); {
	case mode == "host" && hostIsClosed(r.Host), mode != "host" && isClosed(read(mode, raw, decoded)),
		mode == "express" && isClosedInAnyCase(decoded): // its routes ignore letter case
		text = mark
	}
	w.Header().Set("Content-Type", "text/html")
	_, _ = io.WriteString(w, document(text))
}

func read(mode, raw, decoded string) string {
	switch mode {
	case "go", "iis":
		if mode == "iis" {
			decoded = strings.ReplaceAll(decoded, `\`, "/")
		}
		return clean(decoded)
	case "rfc":
		p, err := url.PathUnescape(crawlertest.RemoveDotSegments(strings.NewReplacer("%2e", ".", "%2E", ".").Replace(raw)))
		if err != nil {
			return ""
		}
		return p
	case "rfc decoded":
		return crawlertest.RemoveDotSegments(decoded)
	case "tomcat": // it drops path parameters before it decodes the path
		p, err := url.PathUnescape(dropParameters(raw))
		if err != nil {
			return ""
		}
		return clean(strings.ReplaceAll(p, `\`, "/"))
	case "late parameters":
		return clean(dropParameters(decoded))
	}
	return decoded // the form in which WSGI and CGI pass it to programs
}

func clean(p string) string {
	cleaned := path.Clean(p)
	if strings.HasSuffix(p, "/") && cleaned != "/" {
		cleaned += "/"
	}
	return cleaned
}

func dropParameters(p string) string {
	segments := strings.Split(p, "/")
	for i, s := range segments {
		segments[i], _, _ = strings.Cut(s, ";")
	}
	return strings.Join(segments, "/")
}

// hostIsClosed reports whether a host is disallowed. It reads the host as servers with virtual hosts do.
func hostIsClosed(host string) bool {
	host, _, _ = strings.Cut(strings.ToLower(strings.TrimPrefix(host, "[")), ":")
	host = strings.TrimRight(host, ".]")
	return host == "shop.example.com" || strings.HasSuffix(host, ".wild.example.com")
}
