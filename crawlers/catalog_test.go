// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"slices"
	"strings"
	"testing"
)

func defaultCatalog(t testing.TB) *Catalog {
	t.Helper()
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func tokensOf(list []*Crawler) []string {
	tokens := make([]string, len(list))
	for i, c := range list {
		tokens[i] = c.Token
	}
	return tokens
}

// Each example header is recognized as the crawler that sends it. A similar header of another client is not recognized
// as this crawler.
func TestExamples(t *testing.T) {
	c := defaultCatalog(t)
	r := NewRecognizer(c.Patterns())
	for _, cr := range c.All() {
		for _, ua := range cr.Examples {
			if i, ok := r.Recognize(ua); !ok || c.At(i) != cr {
				t.Errorf("%s: %q is not recognized (%v %v)", cr.Token, ua, i, ok)
			}
		}
		for _, ua := range cr.LookAlikes {
			if i, ok := r.Recognize(ua); ok && c.At(i) == cr {
				t.Errorf("%s: %q is recognized", cr.Token, ua)
			}
		}
	}
}

func TestDefaultSize(t *testing.T) {
	c := defaultCatalog(t)
	if c.Len() < 150 {
		t.Errorf("only %d crawlers", c.Len())
	}
	examples := 0
	for _, cr := range c.All() {
		examples += len(cr.Examples)
	}
	for _, k := range Categories() {
		if len(c.OfCategory(k)) == 0 {
			t.Errorf("no crawler of category %s", k)
		}
		t.Logf("%-14s %3d primary, %3d in all", k, len(c.OfCategory(k)), len(c.Search(string(k))))
	}
	t.Logf("%d crawlers of %d operators, %d examples", c.Len(), len(c.Operators()), examples)
}

// A rule for category:ai-training applies to exactly the crawlers in want. Add a crawler to want only if its operator
// says, or many sources document, that the crawler collects data for training.
func TestAITrainingIsDeliberate(t *testing.T) {
	want := []string{
		"AI2Bot", "Ai2Bot-Dolma", "Amazonbot", "anthropic-ai", "Applebot-Extended", "Bytespider", "CCBot", "ChatGLM-Spider", "ClaudeBot",
		"cohere-training-data-crawler", "Cotoyogi", "DeepSeekBot", "FacebookBot", "FriendlyCrawler", "Google-Extended", "GPTBot",
		"ICC-Crawler", "img2dataset", "Kangaroo Bot", "KimiBot", "laion-huggingface-processor", "LAIONDownloader", "meta-externalagent",
		"MistralAI-Training", "omgili", "PanguBot", "SBIntuitionsBot", "TikTokSpider", "VelenPublicWebCrawler", "webzio-extended",
	}
	if got := tokensOf(defaultCatalog(t).OfCategory(CategoryAITraining)); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// Users' policies rely on some facts in the catalog, such as the categories of the large search engines. This test
// checks these facts.
func TestDefaultFacts(t *testing.T) {
	c := defaultCatalog(t)
	get := func(token string) *Crawler {
		t.Helper()
		cr, ok := c.Lookup(token)
		if !ok {
			t.Fatalf("%s is missing", token)
		}
		return cr
	}
	for token, category := range map[string]Category{
		"Googlebot": CategorySearch, "Bingbot": CategorySearch, "Applebot": CategorySearch,
		"Timpibot": CategorySearch, "Diffbot": CategoryAIInput,
	} {
		if cr := get(token); cr.Category != category || !cr.Is(CategoryAITraining) {
			t.Errorf("%s: primary category %s, further %s", token, cr.Category, cr.Further)
		}
	}
	if get("GoogleOther").Category != CategoryNone || get("facebookexternalhit").Category != CategoryPreview {
		t.Error("GoogleOther or facebookexternalhit has wrong facts")
	}
	for _, token := range []string{"Google-Extended", "Applebot-Extended", "Googlebot-News", "Yandex"} {
		if cr := get(token); !cr.RobotsOnly || len(cr.Patterns()) != 0 {
			t.Errorf("%s is not marked as a control token", token)
		}
	}
	for _, token := range []string{
		"AdsBot-Google", "AdsBot-Google-Mobile", "Mediapartners-Google", "APIs-Google", "Google-Safety",
		"ChatGPT-User", "YandexDirect",
	} {
		if want := token != "ChatGPT-User"; get(token).IgnoresStar != want {
			t.Errorf("%s: ignores-star is not %v", token, want)
		}
	}
	for token, want := range map[string]string{
		"Googlebot-Image": "Googlebot", "Applebot": "Googlebot", "GoogleOther-Video": "GoogleOther",
		"YandexBot": "Yandex", "Baiduspider-image": "Baiduspider",
	} {
		if got := get(token).Follows; !slices.Equal(got, []string{want}) {
			t.Errorf("%s follows %v", token, got)
		}
	}
}

// The catalog does not recognize a crawler by a word that other software uses as its name, or that occurs in the
// headers of browsers.
func TestNoGenericWords(t *testing.T) {
	for _, cr := range defaultCatalog(t).All() {
		for _, p := range append(cr.Patterns(), cr.Token) {
			switch strings.ToLower(p) {
			case "code", "cursor", "spider", "operator", "silk", "lcc", "yak", "bot", "crawler", "mozilla", "compatible",
				"chrome", "safari", "gecko", "khtml", "version", "mobile", "linux", "android", "windows", "java", "trae",
				"opencode", "buck", "nutch", "fetch", "newsai", "slurp", "devin":
				if p != cr.Token || slices.Contains(cr.Patterns(), p) {
					t.Errorf("%s is recognized by the common word %q", cr.Token, p)
				}
			}
		}
		for _, p := range cr.Patterns() {
			if len(p) < 4 {
				t.Errorf("%s: %q is very short", cr.Token, p)
			}
		}
	}
}

func TestLookup(t *testing.T) {
	c := defaultCatalog(t)
	for _, token := range []string{"GPTBot", "gptbot", "GPTBOT"} {
		if cr, ok := c.Lookup(token); !ok || cr.Token != "GPTBot" {
			t.Errorf("Lookup(%s): %v %v", token, cr, ok)
		}
		if i, ok := c.Index(token); !ok || c.At(i).Token != "GPTBot" {
			t.Errorf("Index(%s): %v %v", token, i, ok)
		}
	}
	for _, token := range []string{"", "NoSuchBot", "GPTBot "} {
		if _, ok := c.Lookup(token); ok {
			t.Errorf("Lookup(%q) found something", token)
		}
	}
	var zero Catalog
	if _, ok := zero.Lookup("GPTBot"); ok || zero.Len() != 0 || len(zero.All()) != 0 || len(zero.Patterns()) != 0 {
		t.Error("the zero catalog is not empty")
	}
}

func TestOperatorsAndKinds(t *testing.T) {
	c := defaultCatalog(t)
	if ops := c.Operators(); !slices.Contains(ops, "OpenAI") || len(slices.Compact(slices.Clone(ops))) != len(ops) {
		t.Errorf("Operators: %q", ops)
	}
	for _, tt := range []struct {
		name string
		want []string
	}{
		{"gptbot", []string{"GPTBot"}},
		{"openai", []string{"ChatGPT-User", "GPTBot", "OAI-AdsBot", "OAI-SearchBot"}},
		{"claude", []string{"Claude-SearchBot", "Claude-User", "Claude-Web", "ClaudeBot"}},
		{"ai-agent", tokensOf(c.filter(func(cr *Crawler) bool { return cr.Is(CategoryAIAgent) }))},
		{"PingdomTMS", []string{"PingdomPageSpeed"}},
		{"no such thing", nil},
	} {
		if got := tokensOf(c.Search(tt.name)); !slices.Equal(got, tt.want) {
			t.Errorf("Search(%s): got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// A parser that strictly follows RFC 9309 section 2.2.1 reads a token only up to the first character that is not a
// letter, "_" or "-".
func TestReadAs(t *testing.T) {
	for token, want := range map[string]string{
		"GPTBot": "GPTBot", "Claude-User": "Claude-User", "Mail_Bot": "Mail_Bot", "AI2Bot": "AI", "MJ12bot": "MJ",
		"archive.org_bot": "archive", "Kangaroo Bot": "Kangaroo", "360Spider": "", "": "", "ünibot": "",
	} {
		if got := ReadAs(token); got != want {
			t.Errorf("ReadAs(%q) = %q, want %q", token, got, want)
		}
		if valid := token != "" && want == token; ValidToken(token) != valid {
			t.Errorf("ValidToken(%q) = %v", token, !valid)
		}
	}
	invalid := 0
	for _, cr := range defaultCatalog(t).All() {
		if !ValidToken(cr.Token) {
			invalid++
		}
	}
	t.Logf("%d tokens of the catalog are not valid product tokens according to RFC 9309", invalid)
}

func TestKinds(t *testing.T) {
	categories := Categories()
	if len(categories) != 13 {
		t.Errorf("%d kinds", len(categories))
	}
	for _, k := range categories {
		if !k.Valid() || k.Description() == "" {
			t.Errorf("%s", k)
		}
	}
	categories[0] = "changed"
	if Categories()[0] != CategorySearch {
		t.Error("a caller can change the kinds")
	}
	if Category("").Valid() || Category("Search").Valid() || Honors("").Valid() || !HonorsPartly.Valid() {
		t.Error("validity")
	}
}
