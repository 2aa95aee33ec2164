// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"strings"
	"testing"

	"github.com/temoto/robotstxt"
)

func TestDecide(t *testing.T) {
	const file = `User-agent: *
Disallow: /private/
Allow: /private/open
Disallow: /*.pdf$

User-agent: GPTBot
User-agent: CCBot
Disallow: /

user-agent: gptbot
Allow: /news/
`
	f := readRobots([]byte(file), nil)
	for name, tt := range map[string]struct {
		names       []string
		ignoresStar bool
		path        string
		want        bool
	}{
		"2.2.1 everyone":              {[]string{"SomeBot"}, false, "/private/x", false},
		"2.2.1 ignores *":             {[]string{"SomeBot"}, true, "/private/x", true},
		"2.2.1 groups united":         {[]string{"GPTBot"}, false, "/news/x", true},
		"2.2.1 own group":             {[]string{"CCBot"}, false, "/news/x", false},
		"2.2.1 family":                {[]string{"GPTBot-Image", "GPTBot"}, false, "/news/x", true},
		"2.2.2 longest":               {nil, false, "/private/open/x", true},
		"2.2.3 end":                   {nil, false, "/a/b.pdf", false},
		"2.2.3 end, more":             {nil, false, "/a/b.pdf?x", true},
		"2.2.2 robots.txt is allowed": {[]string{"CCBot"}, false, "/robots.txt", true},
		"2.2.2 encoded":               {nil, false, "/%70rivate/x", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := f.decide(reader{names: tt.names, ignoresStar: tt.ignoresStar}, tt.path).Allowed; got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

// FuzzReadRobots compares the audit's parser with an independent parser, for files that are simple enough for both to
// agree.
func FuzzReadRobots(f *testing.F) {
	f.Add("User-agent: *\nDisallow: /a\nAllow: /a/b\n", "/a/b")
	f.Add("User-agent: x\nUser-agent: bot\nDisallow: /*?q\n\n\nAllow: /\n", "/a?q")
	f.Add("\ufeffUser-agent: *\rDisallow: /\r", "/")
	f.Fuzz(func(t *testing.T, text, path string) {
		got := readRobots([]byte(text), nil)
		if !strings.HasPrefix(path, "/") || len(path) > 200 {
			return
		}
		v := got.decide(reader{names: []string{"bot"}}, path)
		if v.Line > 0 && v.Line > 1+strings.Count(text, "\n")+strings.Count(text, "\r") {
			t.Errorf("%+v", v)
		}
		for _, p := range append(got.problems, got.unusual...) {
			if p.number < 1 || p.line == "" || p.why == "" {
				t.Errorf("%+v", p)
			}
		}
		if !plainRobots(text) || strings.ContainsAny(path, "%$*") {
			return
		}
		other, err := robotstxt.FromString(text)
		if err != nil {
			return
		}
		if want := other.TestAgent(path, "bot"); want != v.Allowed {
			t.Errorf("%q of\n%s\n%v, want %v", path, text, v.Allowed, want)
		}
	})
}

// plainRobots reports whether all parsers agree about a file, because it has only one group, for everyone, with plain
// paths.
func plainRobots(text string) bool {
	head, rest, _ := strings.Cut(text, "\n")
	if head != "User-agent: *" {
		return false
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(rest, "\n"), "\n") {
		path, ok := strings.CutPrefix(line, "Disallow: /")
		if !ok {
			path, ok = strings.CutPrefix(line, "Allow: /")
		}
		if !ok || strings.ContainsFunc(path, func(r rune) bool { return r < 'a' || r > 'z' }) {
			return false
		}
	}
	return true
}

func TestUsageForPath(t *testing.T) {
	for name, tt := range map[string]struct{ value, path, want string }{
		"everywhere":   {"train-ai=n, search=y", "/x", "train-ai=n, search=y"},
		"for the path": {"/news/ train-ai=y", "/news/a", "train-ai=y"},
		"elsewhere":    {"/news/ train-ai=y", "/a", ""},
		"not a value":  {"train-ai", "/", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := usageForPath(tt.value, tt.path).String(); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
