// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"
)

// inHead returns the robots meta tags that a parser, with or without scripting, finds in the head of a page. Each has
// the form NAME=CONTENT.
func inHead(t *testing.T, page string, scripting bool) (found []string) {
	t.Helper()
	doc, err := html.ParseWithOptions(strings.NewReader(strings.TrimPrefix(page, bomUTF8)), html.ParseOptionEnableScripting(scripting))
	if err != nil {
		t.Fatal(err)
	}
	var walk func(n *html.Node, head bool)
	walk = func(n *html.Node, head bool) {
		if n.Type == html.ElementNode && n.Data == "meta" && head {
			var name, content string
			for _, a := range n.Attr {
				switch a.Key {
				case "name":
					name = strings.ToLower(a.Val)
				case "content":
					content = a.Val
				}
			}
			if name != "" {
				found = append(found, name+"="+content)
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c, head || n.Type == html.ElementNode && n.Data == "head")
		}
	}
	walk(doc, false)
	return found
}

// Caddy adds a rule of the policy to a page unless the page has the rule in its canonical spelling. The pages in this
// test have the rule in other spellings. Caddy adds the rule, because some engines ignore these spellings or understand
// them in another way.
func TestMisreadWords(t *testing.T) {
	for _, c := range []struct{ rules, content string }{
		{"noindex", "noindex=false"},
		{"noindex", "noindex="},
		{"noindex", "noindex:"},
		{"noindex", "noindex: nofollow"},
		{"noindex", "noindex:true"},
		{"noindex", ":noindex"},
		{"noindex", "=noindex"},
		{"noindex", `noindex:"`},
		{"none", "none=1"},
		{"noindex, nofollow", "none: x"},
		{"max-snippet:5", "max-snippet = 5"},
		{"max-snippet:5", "max-snippet=5"},
		{"max-snippet:5", "max-snippet :5"},
		{"max-snippet:5", `max-snippet:"5"`},
		{"max-snippet:5", "max-snippet:05"},
		{"max-image-preview:none", "max-image-preview=none"},
		{"max-snippet:5", "max-snippet:5, max-snippet=5"},
		{"unavailable_after: 2026-12-31T23:59:59Z", "unavailable_after=2026-12-31T23:59:59Z"},
		{"unavailable_after: 2026-12-31T23:59:59Z", "unavailable_after: 31-Dec-26 18:59:59 EST"},
		{"noindex", "noindex\x01"},
		{"noindex", "\x7fnoindex"},
	} {
		for _, mode := range []Mode{Merge, Replace} {
			page := `<!DOCTYPE html><head><meta name="robots" content="` + html.EscapeString(c.content) + `"></head>`
			got, _, _ := rewriteHead([]byte(page), testSet(t, "robots="+c.rules), mode, false, false, nil)
			want := strings.TrimSuffix(testSet(t, "robots="+c.rules).HTML(), `">`)
			if !strings.Contains(string(got), want) {
				t.Errorf("%q, rules %s: %q, want %s", c.content, c.rules, got, want)
			}
		}
	}
	// Here the page already has the policy's rules, so it is not changed.
	for _, c := range []struct{ rules, content string }{
		{"noindex", "noindex"},
		{"noindex", " NoIndex "},
		{"noindex, nosnippet", "nosnippet,noindex"},
		{"noindex", "noindex,"},
		{"noindex, nofollow", "none"},
		{"noindex, nofollow", "noindex,nofollow"},
		{"max-snippet:5", "max-snippet:5"},
		{"max-snippet:5", "max-snippet: 5"},
		{"max-snippet:-1", "max-snippet:-1"},
		{"max-image-preview:none", "Max-Image-Preview:None"},
		{"unavailable_after: 2026-12-31T23:59:59Z", "unavailable_after: 31 Dec 2026 23:59:59 GMT"},
		{"unavailable_after: 2026-12-31T23:59:59Z", "unavailable_after: Thursday, 31-Dec-26 23:59:59 GMT"},
		{"unavailable_after: 2026-12-31T23:59:59Z", "unavailable_after: 2026-12-31T23:59:59Z"},
	} {
		page := `<!DOCTYPE html><head><meta name="robots" content="` + c.content + `"></head>`
		if got, es, _ := rewriteHead([]byte(page), testSet(t, "robots="+c.rules), Merge, false, false, nil); len(es) > 0 {
			t.Errorf("%q already has %s, but becomes %q", c.content, c.rules, got)
		}
	}
}

// The names of meta tags that engines document are recognized in upper and lower case.
func TestDocumentedNames(t *testing.T) {
	set := NewSet([]Element{{Name: Everyone, Rules: testSet(t, "robots=noindex").everyone}}, map[string]struct{}{"googlebot": {}, "googlebot-news": {}}, 0)
	for _, name := range []string{"googlebot", "yandex", "Yandex", "GoogleBot-News"} {
		page := `<!DOCTYPE html><head><meta name="` + name + `" content="all"></head>`
		got, _, _ := rewriteHead([]byte(page), set, Merge, false, false, nil)
		if strings.Contains(string(got), "all") {
			t.Errorf("%s: the allow entry stays beside noindex: %q", name, got)
		}
		if got, _, _ = rewriteHead([]byte(page), set, Replace, false, false, nil); string(got) != `<!DOCTYPE html><head><meta name="robots" content="noindex"></head>` {
			t.Errorf("%s: not replaced: %q", name, got)
		}
	}
	// Yandex reads the meta tag named yandex, so a rule for one of its crawlers also applies to this tag.
	set = testSet(t, "YandexBot=noindex")
	page := `<!DOCTYPE html><head><meta name="yandex" content="index, follow"></head>`
	if got, _, _ := rewriteHead([]byte(page), set, Merge, false, false, nil); strings.Contains(string(got), `"index`) {
		t.Errorf("the allow entry for yandex stays beside YandexBot's noindex: %q", got)
	}
}

// A tracking pixel in a noscript element ends the head for parsers without scripting. The elements that these parsers
// must read are before this noscript element.
func TestNoscriptInHead(t *testing.T) {
	for _, noscript := range []string{
		`<noscript><img height="1" src="//pixel/x.gif"></noscript>`, `<noscript><iframe src="//tags/ns.html"></iframe></noscript>`, "<NOSCRIPT>\n<p>x</p></NOSCRIPT>",
		`<noscript>text</noscript>`, `<noscript><link rel=x><div></div></noscript>`, `<noscript><!-- a --><style>x</style>b</noscript>`, `<noscript></br></noscript>`,
	} {
		for _, page := range []string{
			`<!DOCTYPE html><html><head><title>t</title>` + noscript + `<meta name="robots" content="nosnippet"></head><body>x`,
			`<!DOCTYPE html><html><head>` + noscript + `<meta name="robots" content="noindex, nosnippet"></head><body>x`,
			`<!DOCTYPE html><html><head>` + noscript + `<meta name="robots" content="noindex"><meta name="googlebot" content="index, nosnippet"></head><body>x`,
			`<!DOCTYPE html><html><head>` + noscript + strings.Repeat(" ", 800) + `<meta charset="utf-8"></head><body>x`,
			`<!DOCTYPE html><html><head><!--` + strings.Repeat(" ", 900) + `-->` + noscript + `<meta charset="utf-8"><meta name="robots" content="nosnippet"></head><body>x`,
			`<!DOCTYPE html><title>t</title>` + noscript + `<meta name="robots" content="nosnippet">x`,
		} {
			for _, mode := range []Mode{Merge, Replace} {
				out, _, _ := rewriteHead([]byte(page), testSet(t, "robots=noindex"), mode, false, false, nil)
				for _, scripting := range []bool{true, false} {
					found := inHead(t, string(out), scripting)
					if len(found) == 0 || !strings.HasPrefix(found[0], "robots=noindex") || strings.Contains(strings.Join(found, " "), "index, ") && mode == Replace {
						t.Errorf("scripting %v, mode %d: the head of %q has %q", scripting, mode, out, found)
					}
				}
				if with, without := inHead(t, string(out), true), inHead(t, string(out), false); strings.Join(with, " ") != strings.Join(without, " ") {
					t.Errorf("%q: %q with scripting, %q without", out, with, without)
				}
			}
		}
	}
	for _, noscript := range []string{`<noscript></noscript>`, "<noscript>\n<link rel=stylesheet href=x><style>a{}</style><meta name=x><!-- p --></noscript>"} {
		page := `<!DOCTYPE html><html><head>` + noscript + `<meta name="robots" content="noindex"></head><body>x`
		if out, es, _ := rewriteHead([]byte(page), testSet(t, "robots=noindex"), Merge, false, false, nil); len(es) > 0 {
			t.Errorf("%q leaves nothing to do, but becomes %q", page, out)
		}
	}
}

// Text before the doctype opens the body. The parser creates an implied head before this text. In the changed page, the
// policy's elements are in this head.
func TestBeforeTheDoctype(t *testing.T) {
	for _, before := range []string{
		"x", "<br>", "<br />\n<b>Warning</b>:  Undefined variable $x in <b>/srv/a.php</b> on line <b>3</b><br />\n", bomUTF8 + bomUTF8, "&nbsp;", "</br>",
		"<p>a <!-- <html> --> </p>", "<script>'<!doctype html><html><head>'</script>x", strings.Repeat("<br /><b>Warning</b>: x\n", 150),
	} {
		for _, document := range []string{"<!DOCTYPE html><html><head><title>t</title></head><body>x", "<html><body>x", "<head></head>x", "<body>x"} {
			page := before + document
			out, es, _ := rewriteHead([]byte(page), testSet(t, "robots=noindex"), Merge, false, false, nil)
			if found := inHead(t, string(out), true); len(found) != 1 || found[0] != "robots=noindex" || len(es) != 1 {
				t.Errorf("%q becomes %q, with %q in its head", page, out, found)
			}
			for _, n := range []int{1, 3, 17} {
				if again, _, _ := rewriteHead([]byte(page), testSet(t, "robots=noindex"), Merge, false, false, func() int { return n }); string(again) != string(out) {
					t.Errorf("in chunks of %d, %q becomes %q", n, page, again)
				}
			}
		}
		for _, fragment := range []string{"", "<p>x</p>", "<!-- <html> -->", "<script>document.write('<html><body>')</script>", "<textarea><html></textarea>", "<svg><title><!--"} {
			page := before + "<div>" + fragment
			if out, es, _ := rewriteHead([]byte(page), testSet(t, "robots=noindex"), Merge, false, false, nil); len(es) > 0 {
				t.Errorf("the fragment %q becomes %q", page, out)
			}
		}
	}
}

// Browsers look for a declaration of the encoding in the first 1,024 bytes, even outside the head. In the changed page,
// they must still find it there.
func TestCharsetOutsideHead(t *testing.T) {
	pad := "<!--" + strings.Repeat(" ", 850) + "-->"
	for _, c := range []struct{ page, encoding string }{
		{"<!DOCTYPE html><html><head>" + pad + "</head><body><meta charset=\"iso-8859-2\">\xB1", "iso-8859-2"},
		{"<!DOCTYPE html><html><head>" + pad + "<noscript><meta charset=windows-1251></noscript></head><body>\xB1", "windows-1251"},
		{"<!DOCTYPE html><html><head>" + pad + "</head><body><META http-equiv='Content-Type' content='text/html; charset=windows-1251'>\xB1", "windows-1251"},
		{"<!DOCTYPE html><html><head>" + pad + "<template><meta charset=windows-1251></template></head><body>\xB1", "windows-1251"},
		{"<!DOCTYPE html><html><head><title>" + strings.Repeat("x", 850) + "<meta charset=windows-1251></title></head><body>\xB1", "windows-1251"},
		{"<!DOCTYPE html><html><head>" + pad + "<meta name=robots content=nosnippet></head><body><meta charset=\"iso-8859-2\">\xB1", "iso-8859-2"},
		{"<!DOCTYPE html><html><head>" + pad + "<noscript><img></noscript><meta charset=koi8-r><meta name=robots content=nosnippet></head><body>\xB1", "koi8-r"},
		{"<!DOCTYPE html><html><head>" + pad + "<!-- <meta charset=koi8-u> --></head><body><p data-x='<meta charset=koi8-u>'><meta charset=bogus><meta charset=koi8-r>\xB1", "koi8-r"},
	} {
		out, _, _ := rewriteHead([]byte(c.page), testSet(t, "robots=noindex, nosnippet, noarchive", "googlebot=max-image-preview:none"), Merge, false, false, nil)
		if _, got, _ := charset.DetermineEncoding(out, ""); got != c.encoding {
			t.Errorf("the encoding of %q is %s, was %s", out, got, c.encoding)
		}
		if found := inHead(t, string(out), true); !slices.Contains(found, "robots=noindex, nosnippet, noarchive") {
			t.Errorf("%q has %q in its head", out, found)
		}
	}
}
