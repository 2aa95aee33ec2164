// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"regexp"
	"strings"
	"sync"
)

var (
	mu       sync.Mutex
	compiled = map[string]*regexp.Regexp{}
	inside   = map[[2]string]bool{}
)

// matchesPath reports whether a pattern in normal form matches a path. It converts the pattern to a regular
// expression.
func matchesPath(pattern, path string) bool {
	mu.Lock()
	re := compiled[pattern]
	if re == nil {
		body, anchored := strings.CutSuffix(pattern, "$")
		text := "^(?s:" + strings.ReplaceAll(regexp.QuoteMeta(body), `\*`, ".*") + ")"
		if anchored {
			text += "$"
		}
		re = regexp.MustCompile(text)
		compiled[pattern] = re
	}
	mu.Unlock()
	return re.MatchString(path)
}

// contained reports whether outer matches every path that inner matches.
func contained(inner, outer string) bool {
	key := [2]string{inner, outer}
	mu.Lock()
	defer mu.Unlock()
	in, ok := inside[key]
	if !ok {
		in = !escapes(automaton(inner), automaton(outer))
		inside[key] = in
	}
	return in
}

// automaton returns a pattern in a form that matches whole paths: it removes a "$" at the end or, if there is none,
// appends a "*".
func automaton(pattern string) string {
	if body, anchored := strings.CutSuffix(pattern, "$"); anchored {
		return body
	}
	return pattern + "*"
}

// escapes reports whether inner matches a path beginning with "/" that outer does not match. It builds possible paths
// byte by byte. For each beginning of a path, it keeps a place in inner and the set of all possible places in outer. A
// place is an index of a pattern: the part of the pattern before the index matches the beginning of the path.
func escapes(inner, outer string) bool {
	alphabet := "/\x01"
	for _, c := range []byte(inner + outer) {
		if c != '*' && strings.IndexByte(alphabet, c) < 0 {
			alphabet += string(rune(c))
		}
	}
	type state struct {
		begun  bool
		at     int
		places string
	}
	start := state{false, 0, closure(outer, "\x00\x00")}
	seen, todo := map[state]bool{start: true}, []state{start}
	for len(todo) > 0 {
		s := todo[0]
		todo = todo[1:]
		if s.begun && strings.Trim(inner[s.at:], "*") == "" && !strings.Contains(s.places, place(len(outer))) {
			return true
		}
		visit := func(begun bool, at int, places string) {
			if next := (state{begun, at, places}); !seen[next] {
				seen[next] = true
				todo = append(todo, next)
			}
		}
		if s.at == len(inner) {
			continue
		}
		if inner[s.at] == '*' {
			visit(s.begun, s.at+1, s.places)
		}
		for _, c := range []byte(alphabet) {
			if !s.begun && c != '/' {
				break // a path begins with "/", which is the first byte of the alphabet
			}
			switch inner[s.at] {
			case '*':
				visit(true, s.at, step(outer, s.places, c))
			case c:
				visit(true, s.at+1, step(outer, s.places, c))
			}
		}
	}
	return false
}

// place returns a place in a pattern as two bytes.
func place(i int) string { return string([]byte{byte(i >> 8), byte(i)}) }

// step returns the possible places in a pattern (see escapes) after the byte c of a path. places are the possible
// places before c.
func step(pattern, places string, c byte) string {
	var next strings.Builder
	for i := 0; i < len(places); i += 2 {
		at := int(places[i])<<8 | int(places[i+1])
		switch {
		case at == len(pattern):
		case pattern[at] == '*':
			next.WriteString(place(at))
		case pattern[at] == c:
			next.WriteString(place(at + 1))
		}
	}
	return closure(pattern, next.String())
}

// closure returns the given places, and further places that are possible before the next byte. If a place is at a "*",
// the place after this "*" is also possible, because a "*" may match the empty string.
func closure(pattern, places string) string {
	have := map[int]bool{}
	for i := 0; i < len(places); i += 2 {
		at := int(places[i])<<8 | int(places[i+1])
		have[at] = true
		for at < len(pattern) && pattern[at] == '*' {
			at++
			have[at] = true
		}
	}
	var all strings.Builder
	for at := range len(pattern) + 1 {
		if have[at] {
			all.WriteString(place(at))
		}
	}
	return all.String()
}
