// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// xmlTree parses a document with encoding/xml, and returns it as a tree of x/net/html's nodes.
func xmlTree(b []byte) (*html.Node, error) {
	d := xml.NewDecoder(bytes.NewReader(b))
	doc := &html.Node{Type: html.DocumentNode}
	at := doc
	for {
		t, err := d.RawToken()
		if err == io.EOF && at == doc {
			return doc, nil
		}
		if err != nil {
			return nil, err
		}
		n := &html.Node{}
		switch t := t.(type) {
		case xml.StartElement:
			n.Type, n.Data, n.Namespace = html.ElementNode, t.Name.Local, t.Name.Space
			for _, a := range t.Attr {
				n.Attr = append(n.Attr, html.Attribute{Namespace: a.Name.Space, Key: a.Name.Local, Val: a.Value})
				if a.Name.Space == "" && a.Name.Local == "xmlns" && a.Value != "http://www.w3.org/1999/xhtml" {
					n.Namespace = "foreign"
				}
			}
			at.AppendChild(n)
			at = n
			continue
		case xml.EndElement:
			if at == doc || t.Name.Local != at.Data || t.Name.Space != at.Namespace && at.Namespace != "foreign" {
				return nil, fmt.Errorf("end tag %v in %q", t.Name, at.Data)
			}
			at = at.Parent
			continue
		case xml.CharData:
			n.Type, n.Data = html.TextNode, string(t)
		case xml.Comment:
			n.Type, n.Data = html.CommentNode, string(t)
		case xml.ProcInst:
			n.Type, n.Data = html.RawNode, t.Target+" "+string(t.Inst)
		case xml.Directive:
			n.Type, n.Data = html.DoctypeNode, string(t)
		}
		at.AppendChild(n)
	}
}

// randomXHTML returns a random well-formed page.
func randomXHTML(rnd *rand.Rand) []byte {
	pick := func(s ...string) string { return s[rnd.IntN(len(s))] }
	space := func() string {
		return pick("", " ", "\n", "<!-- <head> <meta name='robots' content='x'/> -->", "<?php <head> ?>", "<!-- a > b -->")
	}
	var b strings.Builder
	b.WriteString(pick("", `<?xml version="1.0" encoding="utf-8"?>`, bomUTF8, `<?xml version='1.0' encoding='UTF-8'?>`+"\n"))
	b.WriteString(space() + pick("", "<!DOCTYPE html>", `<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN>" 'x'>`) + space())
	b.WriteString(pick(`<html xmlns="http://www.w3.org/1999/xhtml">`, `<html lang='>' xmlns="http://www.w3.org/1999/xhtml" >`) + pick("", " ", "\n", "<!-- <head> -->"))
	b.WriteString(pick("<head>", "<head profile='a>b'>", "<head\n>"))
	for range rnd.IntN(8) {
		b.WriteString(space() + pick("<title>a &lt;b&gt;</title>", "<title/>", "<meta charset='utf-8'/>", "<script><![CDATA[ if (a<b) '</head><meta name=\"robots\" content=\"x\"/>' ]]></script>",
			"<script src='a'/>", "<style>a &gt; b {}</style>", "<noscript><meta name='robots' content='index'/></noscript>", "<meta name='robots' content='index'/>",
			"<meta name=\"robots\" content=\"noarchive\"></meta>", "<META name='robots' content='x'/>",
			"<meta xmlns='urn:x' name='robots' content='index'/>", "<meta name='robots' content='all' xmlns=\"\"></meta>", "<meta content='index' xmlns='http://www.w3.org/1999/xhtm&#108;' name='robots'/>", "<meta charset='utf-8' name='robots' content='index'></meta>", "<meta charset='utf-8' property='robots' content='all'/>", "<meta NAME='robots' content='x'/>", "<meta Name='googlebot' name='robots' content='index &lt;' Content='x'/>", "<meta content='all &amp; more' name='googlebot' />",
			"<meta property='robots' content='nofollow'><!-- in it --></meta>", "<x:meta xmlns:x='y' name='robots' content='all'/>", "<object><head/><meta name='robots' content='x'/></object>",
			"text", "<meta name='robots' content='ACAP allow-index'/>", "<meta name='robots' content=\"it's > all\"/>"))
	}
	b.WriteString(space() + "</head>" + space() + "<body><meta name='robots' content='index'/><p>a</p></body></html>\n")
	return []byte(b.String())
}

func TestRandomXHTML(t *testing.T) {
	rnd, n := random(t)
	for i := range n / 3 {
		page := randomXHTML(rnd)
		set, mode := testSet(t, testSets[i%4]...), Mode(i/4%2)
		out, es, s := rewriteHead(page, set, mode, true, false, nil)
		if s.HeadAt < 0 {
			t.Fatalf("no head in %q", page)
		}
		again, _, _ := rewriteHead(page, set, mode, true, false, func() int { return 1 + rnd.IntN(5) })
		if !bytes.Equal(out, again) {
			t.Fatalf("chunking changes the output for %q:\n%q\n%q", page, out, again)
		}
		got, err := xmlTree(bytes.TrimPrefix(out, []byte(bomUTF8)))
		if err != nil {
			t.Fatalf("%q is not well-formed: %v, edits %v", out, err, es)
		}
		want, err := xmlTree(bytes.TrimPrefix(page, []byte(bomUTF8)))
		if err != nil {
			t.Fatalf("%q: %v", page, err)
		}
		naiveEdit(want, set, mode, false, false, -1)
		if dumped(got) != dumped(want) {
			t.Fatalf("page %q\nout  %q\ntree %s\nwant %s", page, out, dumped(got), dumped(want))
		}
	}
}

// FuzzXHTML checks that the output does not depend on the sizes of the chunks, and that a well-formed page remains
// well-formed.
func FuzzXHTML(f *testing.F) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 40 {
		f.Add(randomXHTML(rnd), uint64(i))
	}
	f.Fuzz(func(t *testing.T, page []byte, n uint64) {
		if len(page) > 4096 {
			return
		}
		set, mode := testSet(t, testSets[n%4]...), Mode(n/4%2)
		out, es, _ := rewriteHead(page, set, mode, true, true, nil)
		again, _, _ := rewriteHead(page, set, mode, true, true, func() int { return 1 })
		if !bytes.Equal(out, again) {
			t.Fatalf("chunking changes the output for %q:\n%q\n%q", page, out, again)
		}
		if _, err := xmlTree(page); err == nil {
			if _, err := xmlTree(out); err != nil {
				t.Fatalf("page %q\nout  %q, edits %v: %v", page, out, es, err)
			}
		}
	})
}

func TestXHTML(t *testing.T) {
	set := testSet(t, "robots=noindex")
	const e = `<meta name="robots" content="noindex"/>`
	for _, tt := range []struct{ name, page, want string }{
		{"insert", "<html><head><title>a</title></head>", "<html><head>" + e + "<title>a</title></head>"},
		{"merge keeps the slash", "<html><head><meta name='robots' content='all' /></head>", "<html><head><meta name='robots' content=\"noindex\" /></head>"},
		{"with an end tag", "<html><head><meta property='robots' content='all'></meta></head>", "<html><head>" + e + "</head>"},
		{"end tag not seen", "<html><head><meta property='robots' content=''><!0></meta></head>", "<html><head>" + e + "<meta property='robots' content=''><!0></meta></head>"},
		{"capital letters are other elements", "<html><HEAD></HEAD>", "<html><head>" + e + "</head><HEAD></HEAD>"},
		{"prefix", "<h:html xmlns:h='x'><h:head></h:head>", ""},
		{"empty head", "<html><head/><body/></html>", "<html><head>" + e + "</head><body/></html>"},
		{"prefixed head", "<html xmlns:h='x'><h:head></h:head>", ""},
		{"prefixed head with a namespace for others", "<html xmlns:h='http://www.w3.org/1999/xhtml'><h:head xmlns='urn:x'></h:head></html>", ""},
		{"internal subset", "<!DOCTYPE html [<!ENTITY a 'b'>]><html><head></head>", ""},
		{"encoding", "<?xml version='1.0' encoding='ISO-2022-JP'?><html><head></head>", ""},
		{"known encoding", "<?xml version='1.0' encoding='iso-8859-1'?><html><head></head>", "<?xml version='1.0' encoding='iso-8859-1'?><html><head>" + e + "</head>"},
		{"no head", "<html><body><head></head></body></html>", "<html><head>" + e + "</head><body><head></head></body></html>"},
		{"foreign element", "<html><head><meta xmlns='urn:x' name='robots' content='all'/></head>", "<html><head>" + e + "<meta xmlns='urn:x' name='robots' content='all'/></head>"},
		{"own namespace", "<html xmlns='http://www.w3.org/1999/xhtml'><head><meta xmlns='http://www.w3.org/1999/xhtml' name='robots' content='all'/></head>", "<html xmlns='http://www.w3.org/1999/xhtml'><head><meta xmlns='http://www.w3.org/1999/xhtml' name='robots' content=\"noindex\"/></head>"},
		{"foreign head", "<html><head xmlns='urn:x'></head><body/></html>", "<html><head>" + e + "</head><head xmlns='urn:x'></head><body/></html>"},
		{"foreign root", "<html xmlns='urn:x'><head></head></html>", ""},
		{"declaration with rules", "<html><head><meta charset='utf-8' property='robots' content='all'></meta></head>", "<html><head><meta charset=\"utf-8\"/>" + e + "</head>"},
		{"declaration that is moved", "<html><head>" + strings.Repeat(" ", 990) + "<meta charset='utf-8'></meta></head>", "<html><head>" + e + strings.Repeat(" ", 990) + "<meta charset='utf-8'></meta></head>"},
		{"feed", "<rss><head></head></rss>", ""},
	} {
		if tt.want == "" {
			tt.want = tt.page
		}
		if got, _, _ := rewriteHead([]byte(tt.page), set, Merge, true, false, nil); string(got) != tt.want {
			t.Errorf("%s: %s\nwant %s", tt.name, got, tt.want)
		}
	}
}
