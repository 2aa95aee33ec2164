// SPDX-License-Identifier: Apache-2.0

package pathpattern

import (
	"bytes"
	"strings"
)

// Readings returns the paths that a server may take path for, the first of them
// being path itself in normal form: tidied (see Clean), and with what some
// servers take for a slash read as one (%2F, "\\", %5C) and path parameters
// (";x=y", RFC 3986 section 3.3) dropped, before that or after. Nearly every path has
// one reading, and then nothing is allocated.
func Readings(path string) (readings [4]string, n int) {
	if isPlain(path) {
		readings[0] = path
		return readings, 1
	}
	return readingsOf(path)
}

func readingsOf(path string) (readings [4]string, n int) {
	normal := NormalizePath(path)
	readings[0], n = normal, 1
	name, query := normal, ""
	if i := strings.IndexByte(normal, '?'); i >= 0 {
		name, query = normal[:i], normal[i:]
	}
	add := func(r string) {
		for _, have := range readings[:n] {
			if r == have {
				return
			}
		}
		readings[n] = r
		n++
	}
	if strings.Contains(name, "//") || strings.Contains(name, "/.") {
		add(clean(name) + query)
	}
	if strings.Contains(name, "%2F") || strings.Contains(name, "%5C") || strings.Contains(name, ";") {
		slashes := strings.NewReplacer("%2F", "/", "%5C", "/")
		add(clean(withoutParameters(slashes.Replace(name))) + query)
		add(clean(slashes.Replace(withoutParameters(name))) + query)
	}
	return readings, n
}

// withoutParameters drops the parameters of every segment of a path.
func withoutParameters(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i], _, _ = strings.Cut(s, ";")
	}
	return strings.Join(segments, "/")
}

// isPlain reports, in one pass, whether a path is certainly in normal form and read
// in one way only.
func isPlain(path string) bool {
	if path == "" || path[0] != '/' {
		return false
	}
	for i := range len(path) {
		switch c := path[i]; {
		case c == '/' || c == '.':
			if i > 0 && path[i-1] == '/' {
				return false
			}
		case c == '?':
			return normalOctets(path[i:])
		case c == ';' || classes[c] < reserved:
			return false
		}
	}
	return true
}

// Clean returns the path that a server that tidies paths makes of path: in
// normal form, with runs of slashes made one and then dot segments removed (RFC
// 3986 section 5.2.4). The query is not touched.
func Clean(path string) string {
	path = NormalizePath(path)
	query := ""
	if i := strings.IndexByte(path, '?'); i >= 0 {
		path, query = path[:i], path[i:]
	}
	return clean(path) + query
}

func clean(path string) string {
	if !strings.Contains(path, "//") && !strings.Contains(path, "/.") {
		return path
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
	return string(out)
}
