// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

func patternsOf(tokens ...string) []Pattern {
	patterns := make([]Pattern, len(tokens))
	for i, t := range tokens {
		patterns[i] = Pattern{Token: t, Index: i}
	}
	return patterns
}

func TestRecognizeBoundaries(t *testing.T) {
	tokens := []string{
		"Googlebot", "Googlebot-Image", "GPTBot", "Screaming Frog SEO Spider", "Claude-User", "panscient.com",
		"iaskspider/2.0", "Spider", "AI", "LCC", "Yahoo! Slurp", "Foo", "Foo Bar", "Foo Bar Baz", "Foo Bat", "ünïbot", "2ip", "_x",
	}
	r := NewRecognizer(patternsOf(tokens...))
	tests := []struct{ name, ua, want string }{
		{"alone", "GPTBot", "GPTBot"},
		{"version", "GPTBot/1.2", "GPTBot"},
		{"letter case", "gPtBoT/1.2", "GPTBot"},
		{"comment", "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)", "GPTBot"},
		{"no space", "Mozilla/5.0 (compatible;GPTBot;+https://openai.com/gptbot)", "GPTBot"},
		{"parenthesis before and after", "(GPTBot)", "GPTBot"},
		{"plus signs for spaces", "Mozilla/5.0+(compatible;+GPTBot/1.2;++https://openai.com/gptbot)", "GPTBot"},
		{"parenthesis after", "GPTBot(x)", "GPTBot"},
		{"comma", "Foozle,GPTBot,x", "GPTBot"},
		{"tab", "Foozle\tGPTBot\tx", "GPTBot"},
		{"last", "Foozle GPTBot", "GPTBot"},
		{"hyphen after", "GPTBot-Fake/1", ""},
		{"hyphen before", "My-GPTBot/1", ""},
		{"letter before", "MyGPTBot/1", ""},
		{"letter after", "GPTBots/1", ""},
		{"underscore after", "GPTBot_/1", ""},
		{"digit after", "GPTBot2/1", ""},
		{"letter above ASCII after", "GPTBotü", "GPTBot"},
		{"letter above ASCII before", "üGPTBot", "GPTBot"},
		{"dot after", "gptbot.example.com", ""},
		{"at sign after", "bot gptbot@openai.com", ""},
		{"colon after", "GPTBot:", "GPTBot"},
		{"slash before", "x/GPTBot", "GPTBot"},
		{"dot before", "x.GPTBot", ""},
		{"equals before", "x=GPTBot", "GPTBot"},
		{"bracket before", "[GPTBot]", "GPTBot"},
		{"quoted", `"GPTBot/1.2"`, "GPTBot"},
		{"quoted, after a browser", `Mozilla/5.0 (compatible; 'GPTBot')`, "GPTBot"},
		{"bracket and version", "Mozilla/5.0 [GPTBot/1.2]", "GPTBot"},
		{"bracket and another word", "Mozilla/5.0 [GPTBot/iOS]", ""},
		{"braces", "{GPTBot}", "GPTBot"},
		{"hyphen and version", "GPTBot-1.2", "GPTBot"},
		{"hyphen and v", "GPTBot-v1", "GPTBot"},
		{"underscore and version", "(GPTBot_1.2)", "GPTBot"},
		{"two versions", "GPTBot-1-2", "GPTBot"},
		{"version of a longer token", "Googlebot-Image-1.0", "Googlebot-Image"},
		{"version after spaces inside", "Screaming Frog SEO Spider-5.1", "Screaming Frog SEO Spider"},
		{"hyphen and a word with a digit", "GPTBot-x1", ""},
		{"hyphen at the end", "GPTBot-", ""},
		{"product name and slash", "Mozilla/GPTBot", "GPTBot"},
		{"product name and slash, inside", "Mozilla/5.0 (Mozilla/GPTBot/1.2)", "GPTBot"},
		{"path", "a/b/GPTBot", ""},
		{"path from the root", "/GPTBot", ""},
		{"version and slash", "Mozilla/5.0/GPTBot", ""},
		{"colon before", "Mozilla/5.0 (compatible:GPTBot)", "GPTBot"},
		{"colon after, not of a URL", "gptbot://x", ""},
		{"mail address", "mailto:gptbot@openai.com", ""},
		{"like, quoted", `Foozle (like "Googlebot")`, ""},
		{"like and a colon", "Foozle (like:Googlebot)", ""},
		{"like and a slash", "like/Googlebot", ""},
		{"URL with scheme", "Mozilla/5.0 (compatible; Foozle; +https://openai.com/gptbot)", ""},
		{"URL whose host is the token", "Mozilla/5.0 (compatible; Foozle; http://gptbot/)", ""},
		{"URL with a query", "Foozle (http://example.com/?a=(GPTBot+GPTBot&b)", ""},
		{"URL without scheme", "Foozle (+openai.com/gptbot)", ""},
		{"URL, then the token", "Foozle (http://example.com/) GPTBot", "GPTBot"},
		{"URL up to a semicolon", "Foozle (http://example.com/;GPTBot)", "GPTBot"},
		{"URL up to a quote", `Foozle "http://example.com/" GPTBot`, "GPTBot"},
		{"URL to the end", "Foozle http://example.com/+GPTBot", ""},
		{"only scheme marks", "://GPTBot", ""},
		{"two URLs", "a http://b/(://GPTBot GPTBox", ""},
		{"colon alone", "rv: GPTBot", "GPTBot"},
		{"like", "Foozle/1.0 (like Googlebot)", ""},
		{"compatible with", "Foozle (compatible with Googlebot)", ""},
		{"following", "Foozle (Following Googlebot)", ""},
		{"like at the start", "like Googlebot", ""},
		{"not quite like", "unlike Googlebot", "Googlebot"},
		{"like and itself", "Googlebot (like Googlebot-Image)", "Googlebot"},
		{"longest wins", "Googlebot-Image/1.0 Googlebot/2.1", "Googlebot-Image"},
		{"longest wins, other order", "Googlebot/2.1 Googlebot-Image/1.0", "Googlebot-Image"},
		{"longer token is no other's prefix", "Googlebot-Imager/1.0", ""},
		{"spaces inside", "Screaming Frog SEO Spider/5.1", "Screaming Frog SEO Spider"},
		{"spaces inside, cut short", "Screaming Frog SEO", ""},
		{"part of a longer word", "Baiduspider/2.0", ""},
		{"dot inside", "panscient.com", "panscient.com"},
		{"dot inside, longer", "panscient.community", ""},
		{"slash inside", "iaskspider/2.0", "iaskspider/2.0"},
		{"slash inside, other version", "iaskspider/2.1", ""},
		{"exclamation mark inside", "Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)", "Yahoo! Slurp"},
		{"two letters", "AI", "AI"},
		{"three letters", "LCC (+http://example.com)", "LCC"},
		{"three letters within SLCC2", "Mozilla/4.0 (compatible; MSIE 8.0; SLCC2)", ""},
		{"shared first word, short", "Foo", "Foo"},
		{"shared first word, middle", "Foo Bar", "Foo Bar"},
		{"shared first word, middle then other", "Foo Bar Bat", "Foo Bar"},
		{"shared first word, long", "foo bar baz", "Foo Bar Baz"},
		{"shared first word, none longer", "Foo Bax", "Foo"},
		{"shared first word, other", "Foo Bat/", "Foo Bat"},
		{"bytes above ASCII", "x ünïbot/1", "ünïbot"},
		{"digit first", "2ip bot/1.1", "2ip"},
		{"underscore first", "(_x)", "_x"},
		{"empty", "", ""},
		{"only delimiters", " ;(,)+ ", ""},
		{"nothing", "Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 Firefox/115.0", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if i, ok := r.Recognize(tt.ua); ok {
				got = tokens[i]
			}
			if got != tt.want {
				t.Errorf("%q: got %q, want %q", tt.ua, got, tt.want)
			}
			if i, ok := naiveRecognize(patternsOf(tokens...), tt.ua); ok != (tt.want != "") || ok && tokens[i] != tt.want {
				t.Errorf("%q: the naive implementation disagrees with the table", tt.ua)
			}
		})
	}
}

func TestRecognizeEqualLengthFirst(t *testing.T) {
	r := NewRecognizer(patternsOf("BBot", "ABot"))
	if i, _ := r.Recognize("x ABot/1 BBot/2"); i != 1 {
		t.Errorf("got %d, want the one that begins first", i)
	}
}

func TestRecognizeSameToken(t *testing.T) {
	r := NewRecognizer([]Pattern{{"FooBot", 7}, {"foobot", 3}})
	if i, ok := r.Recognize("FooBot"); i != 7 || !ok {
		t.Errorf("got %d, %v; want the first pattern's", i, ok)
	}
	if got := r.RecognizeEach(nil, []string{"FooBot"}); !slices.Equal(got, []int{7}) {
		t.Errorf("got %v, want the first pattern's", got)
	}
}

func TestRecognizeEach(t *testing.T) {
	tokens := []string{"GPTBot", "Googlebot-Image", "Foo", "Foo Bar", "Bar Baz", "facebookexternalhit", "Facebot", "facebookexternalhit/1.1 Facebot"}
	r := NewRecognizer(patternsOf(tokens...))
	for _, c := range []struct {
		lines []string
		want  []int
	}{
		{nil, nil},
		{[]string{"Mozilla/5.0"}, nil},
		{[]string{"GPTBot/1.2 Googlebot-Image/1.0"}, []int{0, 1}},
		{[]string{"Googlebot-Image/1.0", "GPTBot/1.2 gptbot"}, []int{1, 0}},
		{[]string{"Foo Bar"}, []int{3}},
		{[]string{"Foo Bar Baz"}, []int{3, 4}},
		{[]string{"facebookexternalhit/1.1 Facebot"}, []int{7}},
		{[]string{"facebookexternalhit/1.1 Facebot GPTBot"}, []int{7, 0}},
		{[]string{"Facebot facebookexternalhit/1.1"}, []int{6, 5}},
	} {
		if got := r.RecognizeEach(nil, c.lines); !slices.Equal(got, c.want) {
			t.Errorf("%q: %v, want %v", c.lines, got, c.want)
		}
	}
}

// A client can name a purpose as a substring of its User-Agent (draft-illyes-rep-purpose-00).
func TestRecognizePurposes(t *testing.T) {
	r := NewRecognizer(patternsOf("ai-training", "search", "archive", "web archive"))
	tests := []struct {
		ua   string
		want []int
	}{
		{"FooBot/1.0 (search; ai-training)", []int{1, 0}},
		{"FooBot/1.0 (search; search)", []int{1}},
		{"FooBot/1.0 (web archive)", []int{3}},
		{"FooBot/1.0 (research, ai-training-set)", nil},
		{"Mozilla/5.0 (+https://example.com/search)", nil},
	}
	for _, tt := range tests {
		got := r.RecognizeEach(nil, []string{tt.ua})
		slices.Sort(got)
		want := slices.Sorted(slices.Values(tt.want))
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", tt.ua, got, want)
		}
	}
	if got := r.RecognizeEach([]int{1}, []string{"search, archive"}); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("appending to a slice with elements: %v", got)
	}
}

func TestRecognizerZeroAndOddPatterns(t *testing.T) {
	if _, ok := new(Recognizer).Recognize("GPTBot AI 1"); ok {
		t.Error("the zero value recognized a crawler")
	}
	odd := []string{"", " ", "(x", "/x", "http://x", "x ", "x\x00", strings.Repeat("x", maxPattern+1)}
	r := NewRecognizer(patternsOf(odd...))
	for _, s := range odd {
		if CheckPattern(s) == nil {
			t.Errorf("CheckPattern(%q) is nil", s)
		}
		if _, ok := r.Recognize(s); ok {
			t.Errorf("%q was found", s)
		}
	}
	longest := strings.Repeat("x", maxPattern)
	if _, ok := NewRecognizer(patternsOf(longest)).Recognize("(" + longest + ")"); !ok {
		t.Error("the longest token was not found")
	}
}

func TestRecognizeDoesNotAllocate(t *testing.T) {
	patterns := tokensForBench(t, 1500)
	r := NewRecognizer(patterns)
	ua := "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot) Googlebot/2.1"
	lines := []string{ua, "Bingbot"}
	dst := make([]int, 0, 8)
	if n := testing.AllocsPerRun(100, func() {
		r.Recognize(ua)
		if dst = r.RecognizeEach(dst[:0], lines); len(dst) != 3 {
			t.Fatalf("%v", dst)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// randomHeader returns a random header of pieces that the recognizer treats specially.
func randomHeader(rng *rand.Rand, tokens []string) string {
	pieces := []string{
		" ", "  ", ";", "; ", "(", ")", ",", "+", "/", "://", "http://", ":", ".", "-", "_", "x", "1", "ü", "\xff", "!",
		"\"", "<", ">", "'", "like ", "with ", "Following ", "like", "Mozilla/5.0", "\t", "=", "@", "[", "]", "{", "}", "-1", "_v2", "like:",
		"*", "like=", "\u200b", "\u00ad", "\u00a0", "\uff1c", "\uff41", "\u0430", "\u0441", "\u2010", "\u02cd", "a\u00adb", "G\u043e\u043eglebot", " CFNetwork/", " Darwin/",
	}
	var b strings.Builder
	for range rng.IntN(14) {
		switch rng.IntN(3) {
		case 0:
			t := tokens[rng.IntN(len(tokens))]
			if rng.IntN(4) == 0 {
				t = t[:rng.IntN(len(t)+1)]
			}
			if rng.IntN(2) == 0 {
				t = strings.ToUpper(t)
			}
			b.WriteString(t)
		default:
			b.WriteString(pieces[rng.IntN(len(pieces))])
		}
	}
	return b.String()
}

func TestRecognizeAgainstNaive(t *testing.T) {
	testkit.SkipRace(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	tokens := []string{
		"a", "ab", "abc", "abcd", "abcdefgh", "abcdefghi", "a b", "a bc", "a b c", "ab/c", "abc.d", "abcd-e", "x", "X1", "xx x", "x!", "ü", "_", "-",
		"like", "Like x", "http", "Googlebot", "Googlebot-Image", "abcd abcd", "abcd abce", "abcd", "1",
		"abcd-*", "a.*", "ab_*", "x!x-*", "a b-*", "-*", "abcd.*", "Googlebot-*",
	}
	rounds := 3_000
	if testkit.Long() {
		rounds *= 10
	}
	for range rounds {
		n := 1 + rng.IntN(len(tokens))
		patterns := make([]Pattern, n)
		for i := range patterns {
			patterns[i] = Pattern{tokens[rng.IntN(len(tokens))], rng.IntN(6)}
		}
		checkAgainstNaive(t, patterns, randomHeader(rng, tokens))
		if t.Failed() {
			return
		}
	}
}

// A pattern with a star matches only longer names that begin with the name before the star.
func TestRecognizeDerivedNames(t *testing.T) {
	t.Parallel()
	patterns := []string{"SemrushBot", "SemrushBot-*", "SemrushBot-BA", "AhrefsBot.*", "Sogou web-*", "Y!J-*"}
	for ua, want := range map[string]string{
		"SemrushBot/7":                      "SemrushBot",
		"SemrushBot-7":                      "SemrushBot-*", // this match is longer than SemrushBot with the version -7
		"SemrushBot-BA":                     "SemrushBot-BA",
		"SemrushBot-BAX":                    "SemrushBot-*",
		"Mozilla/5.0 (semrushbot-coub/0.1)": "SemrushBot-*",
		"SemrushBot-":                       "",
		"SemrushBotXY":                      "",
		"MySemrushBot-XY":                   "",
		"AhrefsBot.Feeds v0.1":              "AhrefsBot.*",
		"AhrefsBot. Hello":                  "",
		"AhrefsBot":                         "",
		"Sogou web-test":                    "Sogou web-*",
		"Y!J-BRJ/YATS":                      "Y!J-*",
		"(like SemrushBot-XY)":              "",
	} {
		i, ok := NewRecognizer(patternsOf(patterns...)).Recognize(ua)
		if ok != (want != "") || ok && patterns[i] != want {
			t.Errorf("%q: got %v %v, want %q", ua, i, ok, want)
		}
		checkAgainstNaive(t, patternsOf(patterns...), ua)
	}
}

func checkAgainstNaive(t *testing.T, patterns []Pattern, ua string) {
	t.Helper()
	r := NewRecognizer(patterns)
	i, ok := r.Recognize(ua)
	wantI, wantOK := naiveRecognize(patterns, ua)
	if i != wantI || ok != wantOK {
		t.Errorf("Recognize(%q) with %v: got %d %v, want %d %v", ua, patterns, i, ok, wantI, wantOK)
	}
	each := r.RecognizeEach(nil, []string{ua})
	slices.Sort(each)
	if want := naiveEach(patterns, ua); !slices.Equal(each, want) {
		t.Errorf("RecognizeEach(%q) with %v: got %v, want %v", ua, patterns, each, want)
	}
}

func FuzzRecognize(f *testing.F) {
	f.Add("GPTBot\nGooglebot\nGooglebot-Image", "Mozilla/5.0 (compatible; Googlebot-Image/1.0; +http://www.google.com/bot.html)")
	f.Add("Foo\nFoo Bar\nAI\nx", "Foo Bar/1 http://x/(AI) like Foo AI;x")
	f.Add("Foo\nFoo-*\nFoo.*\nFoo-Bar", "Foo-Baz Foo-Bar Foo.x-Foo Foo-1 Foo-")
	f.Add("a\nb/c\nd.e", "a://b/c b/c, d.e(\"")
	f.Fuzz(func(t *testing.T, tokens, ua string) {
		if len(tokens) > 200 || len(ua) > 400 {
			return
		}
		checkAgainstNaive(t, patternsOf(strings.Split(tokens, "\n")...), ua)
	})
}
