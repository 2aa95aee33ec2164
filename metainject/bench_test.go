// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/robotspolicy/caddy-robots-policy/metainject/internal/headscan"
)

// benchPage returns a page of size bytes. Its head has 3 KB and contains the HTML in extra.
func benchPage(size int, extra string) []byte {
	var b bytes.Buffer
	b.WriteString("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Bench page</title>\n" + extra)
	for i := 0; b.Len() < 3<<10-120; i++ {
		switch i % 4 {
		case 0:
			fmt.Fprintf(&b, "<meta property=\"og:prop%d\" content=\"value number %d of the page\">\n", i, i*7)
		case 1:
			fmt.Fprintf(&b, "<link rel=\"preload\" href=\"/assets/chunk-%05d.js\" as=\"script\">\n", i*31)
		case 2:
			fmt.Fprintf(&b, "<script>window.cfg%d={\"a\":%d,\"b\":\"<b>x</b>\"};</script>\n", i, i)
		case 3:
			fmt.Fprintf(&b, "<style>.c%d{color:#%06x;margin:0 %dpx}</style>\n", i, i*9973%0xffffff, i%32)
		}
	}
	b.WriteString("</head>\n<body class=\"home\">\n")
	for i := 0; b.Len() < size-260; i++ {
		fmt.Fprintf(&b, "<div class=\"row c%d\"><h2 id=\"s%d\">the crawler asked</h2><p>for a page and the server sent it with a policy that said what may be kept &amp; for how long <a href=\"/p/%d\">more</a></p></div>\n", i%97, i, i)
	}
	b.WriteString(strings.Repeat(" ", max(0, size-b.Len()-17)) + "\n</body>\n</html>\n")
	return b.Bytes()
}

const benchMeta = "<meta name=\"robots\" content=\"index, follow, max-image-preview:large\">\n"

// tokenizeHead finds the end of the start tag <body> with the tokenizer of x/net/html. The benchmark compares its time
// with the time of this package's scanner.
func tokenizeHead(page []byte) (at int) {
	z := html.NewTokenizer(bytes.NewReader(page))
	for {
		t := z.Next()
		if t == html.ErrorToken {
			return at
		}
		at += len(z.Raw())
		if t != html.StartTagToken && t != html.SelfClosingTagToken {
			continue
		}
		name, more := z.TagName()
		if string(name) == "body" {
			return at
		}
		for string(name) == "meta" && more {
			_, _, more = z.TagAttr()
		}
	}
}

func BenchmarkScan(b *testing.B) {
	set := testSet(b, "robots=noindex, nosnippet")
	page, merge := benchPage(50<<10, ""), benchPage(50<<10, benchMeta)
	b.Run("bytes.Index", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			//lint:ignore S1003 the benchmark measures bytes.Index, and not bytes.Contains
			if bytes.Index(page, []byte("</head>")) < 0 {
				b.Fatal("no head")
			}
		}
	})
	b.Run("x-net-tokenizer", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			tokenizeHead(page)
		}
	})
	run := func(name string, page []byte) {
		b.Run(name, func(b *testing.B) {
			var s headscan.Scanner
			var es [8]edit
			b.ReportAllocs()
			for b.Loop() {
				s.Reset(set, false)
				if !s.Scan(page, false) || len(editsOf(es[:0], &s, set, Merge, false)) != 1 {
					b.Fatal("not decided")
				}
			}
		})
	}
	run("scan", page)
	run("scan-merge", merge)
	b.Run("scan-by-bytes", func(b *testing.B) {
		var s headscan.Scanner
		b.ReportAllocs()
		for b.Loop() {
			s.Reset(set, false)
			for n := 1; !s.Scan(page[:n], false); n++ {
			}
		}
	})
}
