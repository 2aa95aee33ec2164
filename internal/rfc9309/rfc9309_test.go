// SPDX-License-Identifier: Apache-2.0

package rfc9309

import (
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
)

func TestAsk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file, agent, path string
		want                    bool
		line                    int
	}{
		{"2.2.1: its own group", "User-agent: *\nDisallow: /\n\nUser-agent: GPTBot\nDisallow: /a\n", "gptbot", "/b", true, 0},
		{"2.2.1: that of all others", "User-agent: *\nDisallow: /\n\nUser-agent: GPTBot\nDisallow: /a\n", "CCBot", "/b", false, 2},
		{"2.2.1: groups of a name are one", "User-agent: a\nDisallow: /x\n\nUser-agent: a\nDisallow: /y\n", "a", "/y", false, 5},
		{"2.2.1: several names", "User-agent: a\nUser-agent: b\nDisallow: /x\n", "a", "/x", false, 3},
		{"2.2.1: other lines end no names", "User-agent: a\nCrawl-delay: 5\nUser-agent: b\nDisallow: /x\n", "a", "/x", false, 4},
		{"2.2.1: a group without rules", "User-agent: *\nDisallow: /\nUser-agent: a\n", "a", "/x", true, 0},
		{"2.2.1: names end at the first other byte", "User-agent: Mediapartners-Google*\nDisallow: /x\n", "Mediapartners-Google", "/x", false, 2},
		{"2.2.1: all names of the catalog are read", "User-agent: archive.org_bot\nDisallow: /x\n", "archive.org_bot", "/x", false, 2},
		{"2.2.2: the longest", "User-agent: *\nAllow: /a/b\nDisallow: /a\n", "x", "/a/b/c", true, 2},
		{"2.2.2: of equal ones the allow entry", "User-agent: *\nDisallow: /a\nAllow: /a\n", "x", "/a", true, 3},
		{"2.2.2: the length is as written", "User-agent: *\nDisallow: /%7Ea\nAllow: /~ab\n", "x", "/~ab", false, 2},
		{"2.2.2: a space matches nothing", "User-agent: *\nDisallow: /a b\n", "x", "/a%20b", true, 0},
		{"2.2.2: an empty value", "User-agent: *\nDisallow:\n", "x", "/a", true, 0},
		{"2.2.2: unreserved characters are decoded", "User-agent: *\nDisallow: /%7Ea%2D\n", "x", "/~%61-", false, 2},
		{"2.2.2: reserved ones are not", "User-agent: *\nDisallow: /a%2Bb\n", "x", "/a+b", true, 0},
		{"2.2.2: digits of either case", "User-agent: *\nDisallow: /a%2bb\n", "x", "/a%2Bb", false, 2},
		{"2.2.2: beyond ASCII", "User-agent: *\nDisallow: /é\n", "x", "/%c3%a9", false, 2},
		{"2.2.2: letter case counts", "User-agent: *\nDisallow: /A\n", "x", "/a", true, 0},
		{"2.2.3: a star", "User-agent: *\nDisallow: /a*c\n", "x", "/abbc/d", false, 2},
		{"2.2.3: an end", "User-agent: *\nDisallow: /*.pdf$\n", "x", "/a.pdf", false, 2},
		{"2.2.3: an end with a query", "User-agent: *\nDisallow: /*.pdf$\n", "x", "/a.pdf?b", true, 0},
		{"2.2.3: two parts of which one ends", "User-agent: *\nDisallow: /*a*a$\n", "x", "/a", true, 0},
		{"2.2.3: a star of a path is no pattern", "User-agent: *\nDisallow: /%2A\n", "x", "/*", false, 2},
		{"2.2.3: a dollar before the end", "User-agent: *\nDisallow: /a$b\n", "x", "/a$bc", false, 2},
		{"2.2.4: nothing before a group", "Disallow: /\nUser-agent: *\nDisallow: /a\n", "x", "/b", true, 0},
		{"2.3: robots.txt itself", "User-agent: *\nDisallow: /\n", "x", "/robots.txt", true, 0},
		{"comments, CR and byte order mark", "\xef\xbb\xbfUser-agent: * # all\rDisallow: /a # b\r", "x", "/a", false, 2},
		{"a path that is none", "User-agent: *\nDisallow: wp-admin\n", "x", "/wp-admin", true, 0},
		{"misspelled keys", "User agent: *\nDisalow: /x\n", "x", "/x", false, 2},
		{"no colon", "User-agent *\nDisallow /x\n", "x", "/x", false, 2},
		{"an index page", "User-agent: *\nDisallow: /docs/\nAllow: /docs/index.html\n", "x", "/docs/", true, 3},
		{"two kinds of spaces", "User-agent:\t*\nDisallow:\xa0/x\n", "x", "/x", true, 0},
		{"a comma", "User-agent: *\nDisallow: /*,*\n", "x", "/a,b", false, 2},
		{"2.5: what is cut", "User-agent: *\nAllow: /a\n#" + strings.Repeat("x", Limit-27) + "\nDisallow: /abc\n", "x", "/abc", true, 2},
	} {
		f := Parse([]byte(c.file), func(name string) bool { return name == "archive.org_bot" })
		if got := f.Ask(Crawler{Names: []string{c.agent}}, c.path); got != (Answer{Allowed: c.want, Line: c.line}) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func TestFamilies(t *testing.T) {
	t.Parallel()
	f := Parse([]byte("User-agent: *\nDisallow: /\n\nUser-agent: Googlebot\nDisallow: /g\n"), nil)
	for _, c := range []struct {
		who  Crawler
		want bool
	}{
		{Crawler{Names: []string{"Googlebot-Image", "Googlebot"}}, true},
		{Crawler{Names: []string{"AdsBot-Google"}, IgnoresStar: true}, true},
		{Crawler{Names: []string{"AdsBot-Google"}}, false},
	} {
		if got := f.Ask(c.who, "/x").Allowed; got != c.want {
			t.Errorf("%v: %t", c.who, got)
		}
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	images := []Crawler{{Names: []string{"Googlebot-Image", "Googlebot"}}, {Names: []string{"AdsBot-Google"}, IgnoresStar: true}, {Names: []string{"Bingbot"}}}
	for _, c := range []struct {
		name, old, now string
		want           []string // crawlers, path, and what the second file says
	}{
		{"the same in other words", "User-agent: a\nUser-agent: b\nDisallow: /x\n", "User-agent: b\nDisallow: /x\n\nUser-agent: A\nDisallow: /x\n", nil},
		{"encoded letters", "User-agent: *\nDisallow: /x\n", "User-agent: *\nDisallow: /x\nDisallow: /%78\n", []string{Other + " /%78 false"}},
		{"decoded letters", "User-agent: *\nDisallow: /%78\n", "User-agent: *\nDisallow: /x\n", []string{Other + " /x false", Other + " /%78 true"}},
		{"a spelling where patterns meet", "User-agent: *\nAllow: /=%41\nDisallow: *aa\n", "User-agent: *\nAllow: /=A*aa\nDisallow: /*aa\n", []string{Other + " /=%41xaa false"}},
		{"a group that is lost", "User-agent: *\nAllow: /job/\nDisallow: /\n\nUser-agent: GPTBot\nDisallow: /\n", "User-agent: *\nAllow: /job/\nDisallow: /\n", []string{"GPTBot /job/ true"}},
		{"a crawler that ignores *", "User-agent: *\nDisallow: /\n\nUser-agent: AdsBot-Google\nDisallow: /\n", "User-agent: *\nDisallow: /\n", []string{"AdsBot-Google / true"}},
		{"a family", "User-agent: *\nDisallow: /\n\nUser-agent: Googlebot\nDisallow:\n", "User-agent: *\nDisallow: /\n\nUser-agent: Googlebot\nDisallow:\n\nUser-agent: Googlebot-Image\nDisallow: /\n", []string{"Googlebot-Image / false"}},
		{"a byte less", "User-agent: *\nDisallow: /ab\n", "User-agent: *\nDisallow: /a\n", []string{Other + " /a false"}},
		{"a byte more", "User-agent: *\nDisallow: /ab$\n", "User-agent: *\nDisallow: /ab\n", []string{Other + " /abx false"}},
		{"encoded", "User-agent: *\nDisallow: /a+b\n", "User-agent: *\nDisallow: /a+b\nDisallow: /a%2Bb\n", []string{Other + " /a%2Bb false"}},
		{"decoded", "User-agent: *\nDisallow: /a%2Bb\n", "User-agent: *\nDisallow: /a%2Bb\nDisallow: /a+b\n", []string{Other + " /a+b false"}},
	} {
		d := Compare(Parse([]byte(c.old), nil), Parse([]byte(c.now), nil), images)
		var got []string
		n := 0
		for _, x := range d.Differences {
			got = append(got, strings.Join(x.Crawlers, ",")+" "+x.Path+map[bool]string{true: " true", false: " false"}[x.New.Allowed])
			n += len(x.Asked) * len(x.Crawlers)
		}
		if !slices.Equal(got, c.want) || !d.Complete || n != d.Differ || d.Questions < 8 {
			t.Errorf("%s: %q, want %q; %+v", c.name, got, c.want, d)
		}
	}
}

// For URLs without normalization, the answers are the same as from Google's parser.
func TestAsSent(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 9))
	text := func() string {
		s := "/"
		for range 1 + r.IntN(2) {
			s += []string{"a", "%61", "~", "%7e", "é", "%C3%A9", "$"}[r.IntN(7)]
		}
		return s
	}
	closed := 0
	for range testkit.Rounds(2_000, 20_000) {
		file := "User-agent: *\n"
		for range 1 + r.IntN(4) {
			file += []string{"Allow: ", "Disallow: "}[r.IntN(2)] + []string{"", "*"}[r.IntN(2)] + text() + []string{"", "*", "$", "*b"}[r.IntN(4)] + "\n"
		}
		path := strings.ReplaceAll(text()+text(), "é", "%C3%A9")
		want := crawlertest.ReadGoogle(file).Allowed("x", path)
		if got := Parse([]byte(file), nil).of(Crawler{Names: []string{"x"}}).ask(question{path: path, sent: true}).Allowed; got != want {
			t.Fatalf("%q: %v, want %v\n%s", path, got, want, file)
		}
		if !want {
			closed++
		}
	}
	if closed < 100 {
		t.Errorf("only %d paths are disallowed", closed)
	}
}

func TestSpellings(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string][]string{
		"/a+b":      {"/a+b", "/a%2Bb"},
		"/a%2bb":    {"/a%2bb", "/a+b", "/a%2Bb"},
		"/100%/":    {"/100%/", "/100%25/"},
		"/100%25/":  {"/100%25/", "/100%/"},
		"/%25a%25a": {"/%25a%25a", "/%a%a"},
		"/%2541":    {"/%2541"}, // "%41" would be "A"
	} {
		if got := Spellings(pattern); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
}

// This package checks the packages that read and write robots.txt, so it must not import them.
func TestIndependence(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range strings.FieldsSeq(string(out)) {
		if strings.Contains(pkg, "robotspolicy") && !strings.HasSuffix(pkg, "/internal/rfc9309") || strings.Contains(pkg, "temoto") {
			t.Errorf("it imports %s", pkg)
		}
	}
}

// FuzzAsk compares the answers with those from a simple parser that converts patterns to regular expressions. It also
// checks that Compare does not find a difference between a file and the same file.
func FuzzAsk(f *testing.F) {
	f.Add("/a*b$", "/ab", "/aab", true)
	f.Add("/*a*a$", "/%61", "/a/a", false)
	f.Add("*", "/x?", "/x", true)
	f.Fuzz(func(t *testing.T, one, two, path string, allow bool) {
		text := "User-agent: *\nDisallow: " + one + "\n" + map[bool]string{true: "Allow: ", false: "Disallow: "}[allow] + two + "\n"
		file := Parse([]byte(text), nil)
		if d := Compare(file, file, nil); d.Differ != 0 || d.Questions == 0 {
			t.Errorf("%+v", d)
		}
		for _, s := range []string{one, two, path} {
			if strings.Trim(s, "/abcdef*$.?=-_") != "" || s == "" || strings.Count(s, "$") > 0 && !strings.HasSuffix(s, "$") || strings.Count(s, "$") > 1 || strings.Contains(s, "index") {
				return
			}
		}
		if path[0] != '/' || strings.ContainsAny(path, "*$") {
			return
		}
		if got, want := file.Ask(Crawler{Names: []string{"x"}}, path).Allowed, crawlertest.ReadRobotsTxt(text).Allowed("x", path); got != want {
			t.Errorf("%q: %t, want %t\n%s", path, got, want, text)
		}
	})
}

// Compare asks about a catalog name with a space even if a version follows the name. It does not ask about
// "purpose-a.b": a name that begins with "purpose-" is not the name of a crawler, but of a group for a purpose.
func TestNamesToAskAbout(t *testing.T) {
	t.Parallel()
	whole := func(name string) bool { return name == "Offline Explorer" }
	old := Parse([]byte("User-agent: Offline Explorer/1.2\nDisallow: /\n"), whole)
	now := Parse([]byte("User-agent: Offline Explorer\nDisallow: /\n\nUser-agent: purpose-a.b\nDisallow: /p/\n"), whole)
	if c := Compare(old, now, nil); c.Differ > 0 || c.Crawlers != 2 {
		t.Errorf("%+v", c)
	}
}
