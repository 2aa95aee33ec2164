// SPDX-License-Identifier: Apache-2.0

package crawlertest

import "strings"

// Google reads robots.txt like Google's parser (github.com/google/robotstxt). It imitates the observed behavior of that
// parser, and shares no code with it. TestGoogleIsFaithful compares the two. Unlike RobotsTxt, Google accepts the same
// mistakes as that parser, and does not convert paths to the normal form of RFC 9309.
type Google struct{ lines []googleLine }

type googleLine struct{ key, value, pattern string }

// ReadGoogle reads the text of a robots.txt like Google's parser.
func ReadGoogle(body string) *Google {
	g := &Google{}
	for _, mark := range []string{"\xef", "\xbb", "\xbf"} {
		if !strings.HasPrefix(body, mark) {
			break
		}
		body = body[1:]
	}
	for line := range strings.SplitSeq(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(body), "\n") {
		line, _, _ = strings.Cut(line, "\x00")
		line, _, _ = strings.Cut(line, "#")
		line = strings.Trim(line, " \t\v\f")
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			words := strings.FieldsFunc(line, func(c rune) bool { return c == ' ' || c == '\t' })
			if len(words) != 2 {
				continue
			}
			key, value = words[0], words[1]
		}
		key = strings.ToLower(strings.Trim(key, " \t\v\f"))
		value = strings.Trim(value, " \t\v\f")
		for _, k := range [][]string{
			{"user-agent", "user-agent", "useragent", "user agent"},
			{"allow", "allow"},
			{"disallow", "disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"},
		} {
			for _, prefix := range k[1:] {
				if strings.HasPrefix(key, prefix) {
					g.lines = append(g.lines, googleLine{k[0], value, googleEscaped(value)})
				}
			}
		}
	}
	return g
}

// Allowed reports whether an agent may fetch a path. The path must be written as a client sends it.
func (g *Google) Allowed(agent, path string) bool {
	specific, global, ever, separator := false, false, false, false
	best := map[string]int{} // the keys are "allow" and "disallow", or "*allow" and "*disallow" for the group of "*"
	for _, l := range g.lines {
		if l.key == "user-agent" {
			if separator {
				specific, global, separator = false, false, false
			}
			if l.value == "*" || strings.HasPrefix(l.value, "* ") || strings.HasPrefix(l.value, "*\t") {
				global = true
			} else if end := len(l.value) - len(strings.TrimLeft(l.value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_")); strings.EqualFold(l.value[:end], agent) {
				specific, ever = true, true
			}
			continue
		}
		if !specific && !global {
			continue
		}
		separator = true
		key := l.key
		if !specific {
			key = "*" + key
		}
		pattern := l.pattern
		size := len(pattern)
		if !googleMatch(pattern, path) {
			i := strings.LastIndexByte(pattern, '/')
			if l.key != "allow" || i < 0 || !strings.HasPrefix(pattern[i:], "/index.htm") || !googleMatch(pattern[:i+1]+"$", path) {
				continue
			}
			size = i + 2
		}
		best[key] = max(best[key], size)
	}
	switch {
	case best["allow"] > 0 || best["disallow"] > 0:
		return best["allow"] >= best["disallow"]
	case ever:
		return true
	}
	return best["*allow"] >= best["*disallow"]
}

// googleEscaped returns a text in the form that Google's parser compares: bytes beyond ASCII are encoded, and the
// digits after "%" are in upper case.
func googleEscaped(s string) string {
	const hex = "0123456789ABCDEF"
	isHex := func(c byte) bool { return strings.IndexByte(hex+"abcdef", c) >= 0 }
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			b.WriteString(strings.ToUpper(s[i : i+3]))
			i += 2
		case c >= 0x80:
			b.WriteString("%" + hex[c>>4:c>>4+1] + hex[c&15:c&15+1])
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// googleMatch reports whether a pattern, which may contain "*" and end in "$", matches a path.
func googleMatch(pattern, path string) bool {
	start, _, wild := strings.Cut(pattern, "*")
	if !wild {
		open, anchored := strings.CutSuffix(pattern, "$")
		return anchored && path == open || !anchored && strings.HasPrefix(path, pattern)
	}
	if !strings.HasPrefix(path, start) {
		return false
	}
	at := map[int]bool{0: true}
	for i := range len(pattern) {
		if pattern[i] == '$' && i+1 == len(pattern) {
			return at[len(path)]
		}
		next := map[int]bool{}
		for p := range at {
			if pattern[i] == '*' {
				for q := p; q <= len(path); q++ {
					next[q] = true
				}
			} else if p < len(path) && path[p] == pattern[i] {
				next[p+1] = true
			}
		}
		if at = next; len(at) == 0 {
			return false
		}
	}
	return true
}
