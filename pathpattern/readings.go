// SPDX-License-Identifier: Apache-2.0

package pathpattern

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
)

// Readings appends to buf the paths that servers may understand a request target to mean. The target must be in
// origin form. The paths are in normal form. The first one is the path of the target itself. The others can result if
// the target passes through several servers, each of which does some of the following in any order:
//
//   - cut the target at "#", which is not valid in a target;
//   - decode %2F, %5C or both to a slash, which then separates segments;
//   - decode the path a second time, like Caddy's rewrites, so that "%252E" becomes "%2E" and then ".";
//   - drop path parameters (";v=1", RFC 3986 section 3.3);
//   - merge slashes;
//   - remove dot segments (RFC 3986 section 5.2.4), and possibly empty segments as well, so that "/a/b/." becomes
//     "/a/b/" or, in Caddy, "/a/b";
//   - read "//host/path" as "/path" on another host (RFC 3986 section 4.2), like parsers of URLs, or read
//     "//host%70ath" as "%70ath" on another host, like url.parse of Node.
//
// Nearly every target has only one reading. For such a target, Readings does not allocate memory if buf has room. It
// appends at most maxReadings readings with at most maxSize bytes. complete is false if there may be further readings.
func Readings(buf []string, target string) (all []string, complete bool) {
	if isPlain(target) {
		return append(buf, target), true
	}
	odd, complete := oddReadings(target)
	return append(buf, odd...), complete // do not pass buf to oddReadings, because buf would escape to the heap
}

// The limits are for targets that an attacker designed to have many readings. Ordinary targets of a few hundred bytes
// do not reach these limits.
const (
	maxReadings = 64
	maxSize     = 64 << 10
)

// oddParts lists the parts of a path that some servers decode or remove, or that may begin such a part.
var oddParts = []string{"//", "/./", "/..", ";", "%2F", "%5C", "%25"}

// isPlain reports whether a target is in normal form and certainly has only one reading.
func isPlain(target string) bool {
	path, _, _ := strings.Cut(target, "?")
	odd := func(part string) bool { return strings.Contains(path, part) }
	return IsNormal(target) && !slices.ContainsFunc(oddParts, odd) && !strings.HasSuffix(path, "/.")
}

func oddReadings(target string) (all []string, complete bool) {
	var r readings
	r.addAll(target)
	name, query, _ := strings.Cut(target, "?")
	if before, _, cut := strings.Cut(query, "#"); cut {
		r.addAll(name + "?" + before) // Caddy encodes "#" in the path but not in the query
	}
	if before, _, cut := strings.Cut(name, "#"); cut {
		r.addAll(before)
	}
	return r.all, !r.full
}

var (
	decodeSlash = strings.NewReplacer("%2F", "/")
	decodeBack  = strings.NewReplacer("%5C", "/") // the URL Standard treats a plain "\" as "/"
	decodeAgain = strings.NewReplacer("%25", "%") // the normal form decodes the resulting escape
)

type readings struct {
	query string // the query of the target that addAll is adding
	all   []string
	size  int
	full  bool
}

func (r *readings) add(name string) {
	reading := name + r.query
	switch {
	case r.full || slices.Contains(r.all, reading):
	case len(r.all) == maxReadings || len(r.all) > 0 && r.size+len(reading) > maxSize:
		r.full = true
	default:
		r.all = append(r.all, reading)
		r.size += len(reading)
	}
}

// addAll adds the readings of a raw target.
func (r *readings) addAll(raw string) {
	r.query = ""
	if i := strings.IndexByte(raw, '?'); i >= 0 {
		query, _ := appendNormal(nil, raw[i:], inPath)
		raw, r.query = raw[:i], string(query)
	}
	next := len(r.all)
	r.addRaw(raw)
	if hidesMeaning(raw) {
		// A server may remove dot segments and double slashes before decoding, like Caddy's rewrites, and pass on
		// the result.
		for _, tidied := range tidied("/" + strings.TrimPrefix(raw, "/")) {
			r.addRaw(tidied)
		}
	}
	for ; next < len(r.all) && !r.full; next++ {
		name := strings.TrimSuffix(r.all[next], r.query)
		r.addTidied(name)
		if strings.Contains(name, "%2F") {
			r.add(decodeSlash.Replace(name))
		}
		if strings.Contains(name, "%5C") {
			r.add(decodeBack.Replace(name))
		}
		if strings.Contains(name, "%25") {
			r.add(NormalizePath(decodeAgain.Replace(name)))
		}
		if strings.Contains(name, ";") {
			r.add(withoutParameters(name))
		}
		if strings.HasPrefix(name, "//") {
			r.add(withoutAuthority(name[2:]))                                       // the authority may be empty in RFC 3986
			r.add(withoutAuthority(strings.TrimLeft(name, "/")))                    // the URL Standard skips further slashes
			r.addAfterHost(strings.ReplaceAll(name, "%24", "$"), endsHost+"!()*[]") // net/url may encode !()*[], too
		}
	}
}

// hidesMeaning reports whether a raw path contains an escape of "." or ";". The normal form decodes these escapes.
func hidesMeaning(raw string) bool {
	for i := strings.IndexByte(raw, '%'); i >= 0 && i+2 < len(raw); i++ {
		if raw[i] == '%' && (raw[i+1] == '2' && raw[i+2]|0x20 == 'e' || raw[i+1] == '3' && raw[i+2]|0x20 == 'b') {
			return true
		}
	}
	return false
}

// addRaw adds the readings of a path that is not yet decoded.
func (r *readings) addRaw(raw string) {
	r.add(NormalizePath(raw))
	if strings.Contains(raw, ";") {
		// A server that drops parameters before decoding does not treat "%3B" as their separator.
		r.add(NormalizePath(withoutParameters(raw)))
	}
	r.addAfterHost(raw, endsHost) // with raw, because the normal form decodes some of the bytes in endsHost
}

// endsHost lists bytes that a host cannot contain. For url.parse of Node, the path begins at the first of these bytes.
const endsHost = " \"%';<>^`{|}"

// addAfterHost handles a path that begins with at least two slashes or backslashes, which some servers read as a host
// and a path. It adds the part after the host as a reading. The host ends at the first byte that is in ends. If there
// is no such byte, addAfterHost does not add a reading.
func (r *readings) addAfterHost(path, ends string) {
	rest := strings.TrimLeft(path, `/\`)
	if len(path)-len(rest) < 2 {
		return
	}
	authority := rest[:strings.IndexAny(rest+"/", `/\#`)]
	host := strings.LastIndexByte(authority, '@') + 1
	if end := strings.IndexAny(authority[host:], ends); end >= 0 {
		r.add(NormalizePath(rest[host+end:]))
	}
}

// tidied returns the paths that result from path if servers remove dot segments or merge slashes.
func tidied(path string) []string {
	r := readings{all: []string{path}}
	for next := 0; next < len(r.all) && !r.full; next++ {
		r.addTidied(r.all[next])
	}
	return r.all[1:]
}

// withoutAuthority returns the path in s, which begins with a possibly empty authority. If s ends with the authority,
// the path is "/".
func withoutAuthority(s string) string {
	if i := strings.IndexByte(s, '/'); i >= 0 {
		return s[i:]
	}
	return "/"
}

func withoutParameters(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i], _, _ = strings.Cut(s, ";")
	}
	return strings.Join(segments, "/")
}

// addTidied adds the paths that result from name if a server merges slashes or removes dot segments.
func (r *readings) addTidied(name string) {
	runs := strings.Contains(name, "//")
	dots := strings.Contains(name, "/./") || strings.Contains(name, "/../") ||
		strings.HasSuffix(name, "/.") || strings.HasSuffix(name, "/..")
	if runs {
		r.add(collapsed(name, "/"))
	}
	if !dots {
		return
	}
	without := removeDots(name)
	r.add(without)
	if end := strings.TrimRight(name, "/"); strings.HasSuffix(end, "/.") || strings.HasSuffix(end, "/..") {
		if without = strings.TrimRight(without, "/"); without != "" {
			r.add(without)
		}
	}
}

// removeDots removes dot segments (RFC 3986 section 5.2.4).
func removeDots(path string) string {
	out := make([]byte, 0, len(path))
	for rest := path[1:]; ; {
		s, after, more := strings.Cut(rest, "/")
		switch s {
		case "..", ".":
			if s == ".." {
				out = out[:max(0, bytes.LastIndexByte(out, '/'))]
			}
			if !more {
				out = append(out, '/')
			}
		default:
			out = append(out, '/')
			out = append(out, s...)
		}
		if !more {
			return string(out)
		}
		rest = after
	}
}

// Target returns the path and query of a URL in their original spelling, for Readings. EscapedPath of net/url is not
// enough, because it decodes %2F if another byte of the path should have been encoded.
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
