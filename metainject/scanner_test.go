// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/robotspolicy/caddy-robots-policy/metainject/internal/headscan"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

var testTokens = map[string]struct{}{"googlebot": {}, "bingbot": {}, "examplebot": {}}

func testSet(t testing.TB, elements ...string) *Set {
	t.Helper()
	var list []Element
	for _, e := range elements {
		name, rules, ok := strings.Cut(e, "=")
		if !ok {
			t.Fatalf("element %q", e)
		}
		list = append(list, Element{Name: name, Rules: robotsrule.Parse(rules)})
	}
	return NewSet(list, testTokens, 0)
}

// rewriteHead changes a complete page in memory. If xml is true, the page is XHTML. If fragments is true, it also
// changes HTML that may be only a part of a page. cut returns the sizes of the chunks. If cut is nil, there is only one
// chunk.
func rewriteHead(page []byte, set *Set, mode Mode, xml, fragments bool, cut func() int) ([]byte, []edit, *headscan.Scanner) {
	var s headscan.Scanner
	s.Reset(set, xml)
	if cut != nil {
		for n := 0; ; {
			n = min(n+cut(), len(page))
			// This is a copy, so that reading beyond the end is detected.
			if s.Scan(slices.Clip(bytes.Clone(page[:n])), false) || n == len(page) {
				break
			}
		}
	}
	s.Scan(page, true)
	es := editsOf(nil, &s, set, mode, fragments)
	return applyEdits(page, es), es, &s
}

func applyEdits(page []byte, es []edit) []byte {
	var out []byte
	at := 0
	for _, e := range es {
		out = append(out, page[at:e.Start]...)
		out = append(out, e.Text...)
		at = e.End
	}
	return append(out, page[at:]...)
}

const bomUTF8 = "\xEF\xBB\xBF"

func parseTree(page []byte) (*html.Node, error) {
	return html.Parse(bytes.NewReader(bytes.TrimPrefix(page, []byte(bomUTF8))))
}

func child(n *html.Node, name string) *html.Node {
	for c := range n.ChildNodes() {
		if c.Type == html.ElementNode && c.Data == name && c.Namespace == "" {
			return c
		}
	}
	return nil
}

func firstAttr(n *html.Node, key string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val, true
		}
	}
	return "", false
}

// naiveAudience returns the audience and the rules of a meta tag in the parsed tree. audience is "" if the tag is not a
// robots meta tag. carrier reports whether other rules for this audience can be written into the tag.
func naiveAudience(n *html.Node, set *Set) (audience, content string, carrier bool) {
	content, ok := firstAttr(n, "content")
	if !ok {
		return "", "", false
	}
	trim := func(s string) string { return strings.ToLower(strings.TrimFunc(s, isHTMLSpace)) }
	names := map[string]bool{Everyone: true, yandex: true}
	for k := range set.tokens {
		names[k] = true
	}
	for _, e := range set.elements {
		names[e.lower] = true
	}
	defer func() {
		if !ruleWord.MatchString(content) && !slices.ContainsFunc(strings.FieldsFunc(strings.ToLower(content), func(c rune) bool {
			return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789_-", c)
		}), func(word string) bool { return word == "noindex" || word == "none" }) {
			audience = ""
		}
	}()
	if v, _ := firstAttr(n, "name"); names[trim(v)] {
		return trim(v), content, len(v) == len(trim(v))
	}
	if v, _ := firstAttr(n, "property"); names[trim(v)] {
		return trim(v), content, false
	}
	if v, _ := firstAttr(n, "http-equiv"); strings.EqualFold(strings.TrimSpace(v), "x-robots-tag") {
		if before, after, ok := strings.Cut(content, ":"); ok && names[trim(before)] {
			return trim(before), after, false
		}
		return Everyone, content, false
	}
	return "", "", false
}

func isHTMLSpace(r rune) bool { return strings.ContainsRune(" \t\r\n\f", r) }

func metaNode(name, content string) *html.Node {
	return &html.Node{Type: html.ElementNode, Data: "meta", Attr: []html.Attribute{{Key: "name", Val: name}, {Key: "content", Val: content}}}
}

// noscriptEndsHead reports whether the noscript element n of the head ends the head for a parser without scripting.
func noscriptEndsHead(n *html.Node) bool {
	if n.FirstChild == nil || n.FirstChild.Type != html.TextNode { // in XHTML, a noscript element contains elements
		return false
	}
	text := n.FirstChild.Data
	doc, err := html.ParseWithOptions(strings.NewReader("<!DOCTYPE html><head><noscript>"+text+"</noscript><link id=after>"), html.ParseOptionEnableScripting(false))
	if err != nil {
		return true
	}
	head := child(child(doc, "html"), "head")
	return head.LastChild.Data != "link" || head.FirstChild.NextSibling != head.LastChild
}

// naiveEdit makes the intended change in the parsed tree. If late is true, the new elements are after the element that
// declares the encoding. lateToo also moves existing elements there. If ends is not negative, it is the index of a
// noscript element. This element ends the head for parsers without scripting, whatever it contains, because the scanner
// may treat even a harmless noscript element as such an end.
func naiveEdit(doc *html.Node, set *Set, mode Mode, late, lateToo bool, ends int) bool {
	head := child(child(doc, "html"), "head")
	var charset *html.Node
	type member struct {
		n       *html.Node
		content string
		carrier bool
		early   bool
		shaded  bool   // without scripting, this element is not in the head
		label   string // the label of the encoding that it declares
	}
	shaded := false
	groups := map[string][]member{}
	var order []string
	for n := range head.ChildNodes() {
		if n.Type == html.ElementNode && n.Data == "noscript" {
			shaded = shaded || ends == 0 || noscriptEndsHead(n)
			ends--
		}
		if n.Type != html.ElementNode || n.Data != "meta" || n.Namespace != "" {
			continue
		}
		label, hasCharset := firstAttr(n, "charset")
		equiv, _ := firstAttr(n, "http-equiv")
		content, _ := firstAttr(n, "content")
		inContent := !hasCharset && strings.EqualFold(strings.TrimSpace(equiv), "content-type") && strings.Contains(strings.ToLower(content), "charset")
		if inContent {
			_, label, _ = strings.Cut(strings.ToLower(content), "charset")
			label = strings.Trim(label, " \t\r\n\f=\"'")
		}
		if charset == nil && (hasCharset || inContent) {
			charset = n
		}
		if end := strings.IndexAny(label, "; \t\r\n\f\"'"); end >= 0 {
			label = label[:end]
		}
		if a, c, carrier := naiveAudience(n, set); a != "" {
			if groups[a] == nil {
				order = append(order, a)
			}
			groups[a] = append(groups[a], member{n, c, carrier && !inContent, charset == nil || charset == n, shaded, label})
		}
	}
	if late && charset == nil {
		return false
	}
	place := &html.Node{Type: html.CommentNode} // the place for new elements
	if late {
		head.InsertBefore(place, charset.NextSibling)
	} else {
		head.InsertBefore(place, head.FirstChild)
	}
	var fresh []*html.Node
	for _, a := range order {
		g := groups[a]
		var contents []string
		for _, m := range g {
			contents = append(contents, m.content)
		}
		joined := strings.Join(contents, ",")
		el := set.find(a)
		name := a
		if el != nil {
			name = el.Name
		}
		want, keep := combine(robotsrule.Parse(joined), joined, el, set.deniedTo(a), mode)
		if keep && (el == nil || len(g) == 1 && g[0].carrier && !g[0].shaded) {
			continue
		}
		for i, m := range g {
			remove := func() {
				if m.label != "" {
					head.InsertBefore(&html.Node{Type: html.ElementNode, Data: "meta", Attr: []html.Attribute{{Key: "charset", Val: m.label}}}, m.n)
				}
				head.RemoveChild(m.n)
			}
			switch {
			case i > 0 || want.IsEmpty():
				remove()
			case lateToo && m.early, m.shaded:
				remove()
				fresh = append(fresh, metaNode(name, want.Meta()))
			case m.carrier:
				for j := range m.n.Attr {
					if m.n.Attr[j].Key == "content" {
						m.n.Attr[j].Val = want.Meta()
						break
					}
				}
			default:
				head.InsertBefore(metaNode(name, want.Meta()), m.n.NextSibling)
				remove()
			}
		}
	}
	for _, e := range set.elements {
		if groups[e.lower] == nil {
			fresh = append(fresh, metaNode(e.Name, e.Rules.Meta()))
		}
	}
	for _, n := range fresh {
		head.InsertBefore(n, place)
	}
	head.RemoveChild(place)
	return true
}

// dump writes a tree as a text, so that different trees have different texts. White space directly in html or head is
// written as one space, because removing an element between CR and LF turns them into one line break.
func dump(b *strings.Builder, n *html.Node) {
	loose := n.Type == html.ElementNode && n.Namespace == "" && (n.Data == "html" || n.Data == "head")
	fmt.Fprintf(b, "(%d %q %q", n.Type, n.Namespace, n.Data)
	for _, a := range n.Attr {
		fmt.Fprintf(b, " %q:%q=%q", a.Namespace, a.Key, a.Val)
	}
	var text strings.Builder
	flush := func() {
		if text.Len() == 0 {
			return
		}
		t := text.String()
		if loose && strings.Trim(t, " \t\r\n\f") == "" {
			t = " "
		}
		fmt.Fprintf(b, " %q", t)
		text.Reset()
	}
	for c := range n.ChildNodes() {
		if c.Type == html.TextNode {
			text.WriteString(c.Data)
			continue
		}
		flush()
		dump(b, c)
	}
	flush()
	b.WriteString(")")
}

func dumped(n *html.Node) string {
	var b strings.Builder
	dump(&b, n)
	return b.String()
}

var (
	ruleWord        = regexp.MustCompile(`(?i)(^|,)[\x00-\x20\x7f:=]*(all|index|follow|none|noindex|nofollow|noarchive|nosnippet|archive|noai|max-[a-z-]*)[\x00-\x20\x7f]*([,:=]|$)`)
	complexTemplate = regexp.MustCompile(`(?is)<template.*<(plaintext|(col|math|select|svg)[\s/>].*<(template|textarea|xmp|iframe|noembed|noframes|noscript|script|style|title|!\[))`)
	// In a comment in a script, x/net/html ends the comment at a '<' without a letter or '/' after it. According to the
	// standard (13.2.5.23), the comment continues.
	lessInScript  = regexp.MustCompile(`(?is)<script.*<!--.*<[^/a-z]`)
	longReference = regexp.MustCompile(`(?i)&#x?[0-9a-f]{60}`)
)

// checkHead parses the page and the changed page with x/net/html. The trees must differ only by the intended change.
func checkHead(t testing.TB, page []byte, set *Set, mode Mode, seed uint64) {
	t.Helper()
	out, es, s := rewriteHead(page, set, mode, false, true, nil)
	for i, e := range es {
		if e.Start > e.End || e.End > len(page) || i > 0 && e.Start < es[i-1].End {
			t.Fatalf("edits %v overlap in %q", es, page)
		}
	}
	rnd := rand.New(rand.NewPCG(seed, 1))
	for _, cut := range []func() int{func() int { return 1 }, func() int { return 1 + rnd.IntN(9) }} {
		again, _, _ := rewriteHead(page, set, mode, false, true, cut)
		if !bytes.Equal(out, again) {
			t.Fatalf("chunking changes the output for %q:\n%q\n%q", page, out, again)
		}
	}
	if s.Foreign || s.HeadAt < 0 || complexTemplate.Match(page) || longReference.Match(page) || lessInScript.Match(page) {
		if s.HeadAt < 0 && len(es) > 0 {
			t.Fatalf("edits %v without a head in %q", es, page)
		}
		return
	}
	if _, err := parseTree(page); err != nil {
		return // nested too deep for x/net/html
	}
	outTree, err := parseTree(out)
	if err != nil {
		t.Fatalf("the output of %q does not parse: %v", page, err)
	}
	if repeats := slices.ContainsFunc(es, func(e edit) bool { return e.Start == e.End && bytes.HasPrefix(e.Text, []byte("<meta charset=")) }); repeats {
		head := child(child(outTree, "html"), "head")
		first := head.FirstChild
		if got, _ := firstAttr(first, "charset"); s.Charset == "" || got != s.Charset {
			t.Fatalf("page %q\nout  %q\nrepeats the encoding %q as %q", page, out, s.Charset, got)
		}
		head.RemoveChild(first)
	}
	checkAMP(t, page, outTree)
	got := dumped(outTree)
	may := []int{-1}
	if s.NoscriptAt >= 0 {
		for i := range bytes.Count(bytes.ToLower(page), []byte("<noscript")) {
			may = append(may, i)
		}
	}
	intended := func() bool {
		for _, ends := range may {
			for _, v := range [][2]bool{{false, false}, {true, false}, {true, true}} {
				if in, _ := parseTree(page); naiveEdit(in, set, mode, v[0], v[1], ends) && dumped(in) == got {
					return true
				}
			}
		}
		return false
	}
	if !intended() {
		in, _ := parseTree(page)
		naiveEdit(in, set, mode, false, false, -1)
		t.Fatalf("page %q\nout  %q\ntree %s\nwant %s", page, out, got, dumped(in))
	}
	if mode == Merge {
		if twice, es, _ := rewriteHead(out, set, mode, false, true, nil); len(es) > 0 {
			t.Fatalf("page %q\nonce  %q\ntwice %q", page, out, twice)
		}
	}
}

var ampPage = regexp.MustCompile(`(?is)^(?:\s*<!doctype[^<>]*>)?\s*<html(?:\s[a-z]+=[a-z]+)*\s+(?:amp|⚡|⚡4email)[\s>]`)

// checkAMP checks a requirement of AMP: the declaration of the encoding must remain the first child of the head.
func checkAMP(t testing.TB, page []byte, out *html.Node) {
	t.Helper()
	in, _ := parseTree(page)
	first := func(doc *html.Node) *html.Node {
		n := child(child(doc, "html"), "head").FirstChild
		for n != nil && (n.Type == html.TextNode || n.Type == html.CommentNode) {
			n = n.NextSibling
		}
		return n
	}
	amp := ampPage.Match(page)
	before, after := first(in), first(out)
	if !amp || before == nil || before.Data != "meta" {
		return
	}
	if label, ok := firstAttr(before, "charset"); ok && label != "" {
		if got, _ := firstAttr(after, "charset"); got != label {
			t.Fatalf("AMP page %q: the encoding is not declared first, but %v", page, after)
		}
	}
}

var headSeeds = []string{
	"<html amp><head><meta charset=utf-8><title>a</title>", "<!doctype html><html ⚡ lang=en><head><meta charset=utf-8><meta name=robots content=index><title>a", "<html lang=en ⚡4email><head> <meta charset=utf-8 name=robots content=all>",
	"<html amp><meta charset=utf-8 property=robots content=all><noscript><p>", "<html amp><noscript><p></noscript><meta charset=utf-8>", "<html class=amp data-amp><head><meta charset=utf-8>",
	"<head><meta charset=utf-8 name=robots content=index><meta name=robots content=all charset=latin1>", "<head><meta name=googlebot content=all><meta charset=utf-8 name=googlebot content=index>",
	"<head><meta http-equiv=content-type name=robots content='index, text/html; charset=utf-8'><meta name=robots content='noarchive, charset=x' http-equiv=Content-Type>",
	"<head><meta name=robots content=index charset=''><meta name=robots content=all charset=bogus property=x>",
	"", " ", "x", "<", "</", "<!", "<p>", "</p>", "</br>", "<!DOCTYPE html><html><head><title>a</title></head><body>b</body></html>",
	"<!doctype html>\n<HTML lang=en>\n<HEAD profile='a>b'>\n<META CHARSET=utf-8><TITLE><meta name=robots content=index></TITLE>\n</HEAD>\n<BODY>",
	bomUTF8 + "<!DOCTYPE html><head>", "\xFE\xFF\x00<", "\xFF\xFE<\x00",
	"<!-- <head> --><!--><!---><!-- a -- > --!><html><!-- <head> --> <head>",
	"<meta name=robots content=index><meta name=robots content='noarchive'> <p>",
	"<title>a</title><html lang=en><head><meta name=robots content=index>",
	"<head><meta name=\"robots\" content=\"ACAP allow-index\"><meta name=robots content=index,follow>",
	"<head><meta property=robots content=noindex><meta http-equiv=X-Robots-Tag content='googlebot: nosnippet'>",
	"<head><meta name=googlebot content='max-snippet:50, index'/><meta name=ROBOTS content=none>",
	"<head><meta content=&quot;nosnippet&quot; name=&#114;obots><meta name=robots><meta content=x>",
	"<head><script>if (a < b) document.write('<meta name=robots content=index>')</script><style></styl </style>",
	"<head><script><!-- <script> </script> <meta name=robots content=all> --></script><meta name=robots content=all>",
	"<head><script><!--</script><meta name=robots content=all>",
	"<head><noscript><meta name=robots content=all></noscript><noframes><meta name=robots></noframes>",
	"<head><template><meta name=robots content=all><template></template></template><meta name=robots content=all>",
	"<head><template><table><meta name=robots content=all></template>",
	"<head>&#32;&Tab;&NewLine;&#x0000a;<meta name=robots content=all>&nbsp;",
	"<head></head> <!-- c --> <meta name=robots content=all><title>late</title><p><meta name=robots content=index>",
	"<head></head><noscript><p></noscript>", "<html><frameset><frame>", "<body><head><meta name=robots content=index>",
	"<!--[if IE]><html><head><![endif]--><!--[if !IE]><!--><html><head><!--<![endif]--><meta name=robots content=index>",
	"<head a=1 b='>' c=\">\" d=/ /e=f =g= h = 'i'j><meta =name=robots name=robots content=index name=googlebot>",
	"<head><meta http-equiv='Content-Type' content='text/html; charset=utf-8'>" + strings.Repeat(" ", 900) + "<meta charset=utf-8>",
	"<head><meta name=robots content=index>" + strings.Repeat(" ", 950) + "<meta charset=utf-8>",
	"<head>" + strings.Repeat(" ", 980) + "<meta charset=utf-8><title>x",
	"<?xml version='1.0'?><!DOCTYPE html><html xmlns='http://www.w3.org/1999/xhtml'><head><meta name='robots' content='index' /></head>",
	"<html></head><meta name=robots content=all></template></html><p>", "<head></p></title><meta name=robots content=all",
	"<html><h", "<html><!-- a", "<html></", "<head><title>a", "<head>\x00<meta name=robots content=all>",
	"<![CDATA[x>]]><!ELEMENT a><? php ?></ a></><head><meta name=robots content='noindex, index'>",
	"<head><meta name=robots content><meta name=robots content=>", "<metA nAme=roBots Content >", "<meta name=googlebot content='\vindeX'>", "<meta name=robots content=ACAP\x180>", "<meta name=robots content='index,=acap x'>",
	"<head><meta name=robots content=inde" + strings.Repeat(" ", 965) + "<meta charset=utf-8>", "<head><meta charset=utf-8 property=robots content=index>",
	"<head></head><noscript><meta name=robots content=all></noscript><meta name=robots content=all>",
	"<head><meta http-equiv=X-Robots-Tag content='googlebot: '>",
	"<metA nAme=\"roBots\"Content=ACAP=>", "<meta name=robots content='index, acap:'>",
	"<noscript><noscript></noscript><meta property=robots content=noarchive>", "<noscript></p></noscript><noscript><!--></noscript><meta name=robots content=all>",
	"<noscript>" + strings.Repeat("<link rel=stylesheet href=/a>", 33) + "<meta charset=utf-8>",
	"<title>" + strings.Repeat("x", 970) + "<meta charset=utf-8></title><meta name=robots content=all>",
	"<base href=/><basefont><bgsound><link rel=x><command><meta name=robots content=all>",
}

var testSets = [][]string{
	{"robots=noindex"},
	{"robots=noindex, nosnippet", "googlebot=noarchive"},
	{"ExampleBot=noindex, max-snippet:20"},
	{"robots=max-snippet:20", "googlebot=nosnippet", "x\"<&'y=noai"},
}

func TestHeadSeeds(t *testing.T) {
	for _, elements := range testSets {
		set := testSet(t, elements...)
		for _, page := range headSeeds {
			for _, mode := range []Mode{Merge, Replace} {
				checkHead(t, []byte(page), set, mode, 1)
			}
		}
	}
}

func FuzzHead(f *testing.F) {
	for _, s := range slices.Concat(headSeeds, hostileHeads) {
		for i := range testSets {
			f.Add([]byte(s), uint64(i))
		}
	}
	f.Fuzz(func(t *testing.T, page []byte, n uint64) {
		if len(page) > 4096 {
			return
		}
		checkHead(t, page, testSet(t, testSets[n%4]...), Mode(n/4%2), n)
	})
}

// Random pages consist of pieces. Each byte of the fuzzed input chooses a piece.
var pieces = []string{
	"<", ">", "/", "!", "-", "\"", "'", "=", " ", "\n", "\r\n", "a", "&", "&#32;", "&Tab;", "&#x41;", "\x00", "é",
	"<!DOCTYPE html>", "<!doctype", "<!--", "-->", "--!>", "<!-->", "<![CDATA[", "]]>", "<?xml ?>",
	"<html>", "<html lang=en>", "</html>", "<head>", "<HEAD a='>'>", "</head>", "<body>", "</body>", "<body class='a'>", "<p>", "</p>", "<br>", "</br>",
	"<title>", "</title>", "<script>", "</script>", "<script", "</script ", "<style>", "</style>", "<noscript>", "</noscript>", "<noframes>", "</noframes>",
	"<template>", "</template>", "<template/>", "<link rel=x>", "<base>", "<textarea>", "</textarea>", "<iframe>", "</iframe>", "<div>", "</div>", "<frameset>", "<svg>", "</svg>", "<svg/>", "<math>", "<table>", "</table>", "<tr>", "<td>", "<col>", "<select>", "</select>",
	"<meta charset=utf-8>", "<meta http-equiv=content-type content='text/html;charset=utf-8'>", "<meta charset=iso-2022-jp>", "<meta property=og:title content=a>",
	"<meta name=robots content=index>", "<META NAME=\"Robots\" CONTENT='noindex'/>", "<meta name=' robots' content=nofollow>",
	"<meta name=googlebot content='all'>", "<meta content=none name=bingbot>", "<meta property=robots content=noarchive>",
	"<meta http-equiv=x-robots-tag content='googlebot: noindex'>", "<meta name=robots content='ACAP allow-index'>",
	"<meta name=&#114;obots content=&quot;index&quot;>", "<meta ", "name=robots ", "content=\"", "content='all' ",
	strings.Repeat(" ", 300), strings.Repeat("<link rel=stylesheet href=/a>", 11),
	"<html amp>", "<html ⚡>", "<meta charset=utf-8 name=robots content=index>", "<meta name=robots http-equiv=content-type content='all, charset=utf-8'>", "charset=utf-8 ", "http-equiv=content-type ",
}

func fromPieces(choice []byte) []byte {
	var b []byte
	for _, c := range choice {
		b = append(b, pieces[int(c)%len(pieces)]...)
	}
	return b
}

func FuzzPieces(f *testing.F) {
	for i := range pieces {
		f.Add([]byte{byte(i), byte(i * 7), byte(i * 13)}, uint64(i))
	}
	f.Fuzz(func(t *testing.T, choice []byte, n uint64) {
		if len(choice) > 60 {
			return
		}
		checkHead(t, fromPieces(choice), testSet(t, testSets[n%4]...), Mode(n/4%2), n)
	})
}

// randomPages and randomSeed set the number of random pages, and the seed of the random tests.
var (
	randomPages = flag.Int("pages", 2_000, "random pages to hold against independent parsers")
	randomSeed  = flag.Uint64("seed", 7, "for the random pages")
)

// random returns a source of random numbers, and the number of pages to test.
func random(t *testing.T) (*rand.Rand, int) {
	t.Helper()
	n := *randomPages
	if testing.Short() {
		n = min(n, 1000)
	}
	t.Logf("%d pages, seed %d", n, *randomSeed)
	return rand.New(rand.NewPCG(*randomSeed, *randomSeed)), n
}

func TestRandomPieces(t *testing.T) {
	rnd, n := random(t)
	sets := make([]*Set, len(testSets))
	for i := range sets {
		sets[i] = testSet(t, testSets[i]...)
	}
	for i := range n {
		choice := make([]byte, 1+rnd.IntN(16))
		for j := range choice {
			choice[j] = byte(rnd.IntN(len(pieces)))
		}
		page := fromPieces(choice)
		if i%2 == 0 {
			page = append([]byte("<!DOCTYPE html><html><head>"), page...)
		}
		checkHead(t, page, sets[i%4], Mode(i/4%2), uint64(i))
	}
}
