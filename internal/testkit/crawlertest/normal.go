// SPDX-License-Identifier: Apache-2.0

package crawlertest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// NormalPath converts a path and query to the normal form, which RFC 9309 section 2.2.2 requires for comparisons. In
// this form, letters, digits and some marks are plain, and all other characters are encoded. "*" and "$" are encoded,
// too, because they are special in a pattern. Before the query, "/" and "?" are separators, so %2F and %3F stay encoded
// there.
func NormalPath(p string) string {
	name, query, asked := strings.Cut(p, "?")
	if !strings.HasPrefix(name, "/") {
		name = "/" + name
	}
	name = respell(name, "/")
	if asked {
		name += "?" + respell(strings.NewReplacer("%2F", "/", "%2f", "/", "%3F", "?", "%3f", "?").Replace(query), "/?")
	}
	return name
}

// respell decodes characters that isPlain accepts, and encodes all others. It does not change the characters in
// separators, so an encoded separator is still encoded in the result.
func respell(p, separators string) string {
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		c, encoded := p[i], false
		if c == '%' && i+2 < len(p) {
			if n, err := strconv.ParseUint(p[i+1:i+3], 16, 8); err == nil {
				c, encoded = byte(n), true
				i += 2
			}
		}
		if isPlain(c) || !encoded && strings.IndexByte(separators, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func isPlain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~:[]@!&'()+,;=", c) >= 0
}

var (
	parameters = regexp.MustCompile(`;[^/]*`)
	slashes    = regexp.MustCompile(`//+`)
	here       = regexp.MustCompile(`/\.(/|$)`)
	hidden     = regexp.MustCompile(`%2[eE]|%3[bB]`)
	authority  = regexp.MustCompile(`^//+[^/]+`)
	aboveRoot  = regexp.MustCompile(`^/\.\.(/|$)`)
	dotAtEnd   = regexp.MustCompile(`/\.\.?/*$`)
	above      = regexp.MustCompile(`/[^/]*/\.\.(/|$)`)
)

// ServedPaths returns the paths that a chain of servers may serve when a client sends the path in sent. The first one
// is the sent path in normal form. See "Which requests are blocked" in docs/concepts/asking-and-blocking.md.
func ServedPaths(sent string) (paths []string) {
	path, query, _ := strings.Cut(sent, "?")
	inQuery, inPath := strings.IndexByte(query, '#'), strings.IndexByte(path, '#')
	all := served(sent)
	if inQuery >= 0 {
		all = append(all, served(path+"?"+query[:inQuery])...)
	}
	if inPath >= 0 {
		all = append(all, served(path[:inPath])...)
	}
	for _, p := range all {
		if !slices.Contains(paths, p) && len(paths) < 64 {
			paths = append(paths, p)
		}
	}
	return paths
}

func served(sent string) (paths []string) {
	name, query, asked := strings.Cut(sent, "?")
	if query = NormalPath("/?" + query)[1:]; !asked {
		query = ""
	}
	steps := []func(string) string{
		func(p string) string { return slashes.ReplaceAllString(p, "/") },
		undot,
		func(p string) string {
			bare := strings.TrimRight(undot(p), "/")
			if !dotAtEnd.MatchString(p) || bare == "" {
				return p
			}
			return bare
		},
		func(p string) string { return strings.ReplaceAll(p, "%2F", "/") },
		func(p string) string { return strings.ReplaceAll(p, "%5C", "/") },
		func(p string) string {
			if !strings.Contains(p, "%25") {
				return p
			}
			return NormalPath(strings.ReplaceAll(p, "%25", "%"))
		},
		func(p string) string { return parameters.ReplaceAllString(p, "") },
		func(p string) string {
			if after, ok := strings.CutPrefix(p, "///"); ok {
				return "/" + after // "///" begins with an empty authority
			}
			return root(authority.ReplaceAllString(p, ""))
		},
		func(p string) string { return root(authority.ReplaceAllString(p, "")) },
		func(p string) string {
			if !strings.HasPrefix(p, "//") {
				return p
			}
			return afterHost(strings.ReplaceAll(p, "%24", "$"), inNoHost+"!()*[]")
		},
	}
	raw := []string{"/" + strings.TrimPrefix(name, "/")}
	if hidden.MatchString(name) { // encoded "." and ";", which a server may leave encoded
		raw = closure(raw, steps[:3])
	}
	var names []string
	for _, p := range raw {
		for _, p := range []string{NormalPath(p), NormalPath(parameters.ReplaceAllString(p, "")), NormalPath(afterHost(p, inNoHost))} {
			if !slices.Contains(names, p) {
				names = append(names, p)
			}
		}
	}
	names = closure(names, steps)
	for _, n := range names {
		paths = append(paths, n+query)
	}
	return paths
}

// inNoHost holds the bytes that end a host for Node's url.parse.
const inNoHost = " \"%';<>^`{|}"

var hostAndRest = regexp.MustCompile(`^[/\\]{2,}((?:[^/\\#]*@)?)([^/\\#]*)(.*)$`)

// afterHost removes a host from the beginning of a path. The host ends before the first byte that is in ends. If there
// is no such byte, or the path does not begin with a host, afterHost returns the path unchanged.
func afterHost(path, ends string) string {
	m := hostAndRest.FindStringSubmatch(path)
	if m == nil {
		return path
	}
	end := strings.IndexAny(m[2], ends)
	if end < 0 {
		return path
	}
	return NormalPath(m[2][end:] + m[3])
}

// closure applies each step to each name and adds the results to names, until there are no new names. It stops at 64
// names.
func closure(names []string, steps []func(string) string) []string {
	for i := 0; i < len(names) && len(names) < 64; i++ {
		for _, step := range steps {
			if p := step(names[i]); !slices.Contains(names, p) && len(names) < 64 {
				names = append(names, p)
			}
		}
	}
	return names
}

// root returns the path, or "/" if the path is empty.
func root(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

// undot removes dot segments according to RFC 3986 section 5.2.4.
func undot(name string) string {
	for {
		before := name
		if here.MatchString(name) {
			at := here.FindStringIndex(name)
			name = name[:at[0]] + "/" + name[at[1]:]
		} else if aboveRoot.MatchString(name) {
			name = aboveRoot.ReplaceAllString(name, "/")
		} else if at := above.FindStringIndex(name); at != nil {
			name = name[:at[0]] + "/" + name[at[1]:]
		}
		if name == before {
			return name
		}
	}
}

// RemoveDotSegments implements the algorithm of RFC 3986 section 5.2.4. It does not use Go's ResolveReference, which
// loses a slash after a ".." that leads above the root.
func RemoveDotSegments(in string) (out string) {
	for in != "" {
		switch {
		case strings.HasPrefix(in, "/./"):
			in = in[2:]
		case in == "/.":
			in = "/"
		case strings.HasPrefix(in, "/../"):
			in, out = in[3:], out[:max(0, strings.LastIndexByte(out, '/'))]
		case in == "/..":
			in, out = "/", out[:max(0, strings.LastIndexByte(out, '/'))]
		default:
			end := 1 + strings.IndexByte(in[1:]+"/", '/')
			in, out = in[end:], out+in[:end]
		}
	}
	return out
}
