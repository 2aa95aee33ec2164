// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
)

// Body is the body of a response of the upstream.
type Body struct {
	Type     string
	Encoding string // Content-Encoding, or ""
	Data     []byte
	Chunked  bool // sent in chunks of ChunkSize and without a length
}

// ChunkSize is the size of the chunks of a long answer, in octets.
const ChunkSize = 16 << 10

// OriginRobots is the site's own robots.txt, which bare proxies pass on. It is small, so that the comparison favors the
// bare proxy and not this module.
const OriginRobots = "User-agent: *\nAllow: /\n"

// Bodies returns a map from the first segment of a path, such as "/pages/", to the body of the response. The key
// "/robots.txt" has the body of that file. The bodies are made at the first call. A measured proxy may contain this
// package, but does not call Bodies, so it needs no memory for them. Otherwise it would collect garbage less often, and
// would seem faster.
var Bodies = sync.OnceValue(makeBodies)

// packed is the key of Bodies for the compressed page. Clients that accept gzip get this page below "/packed/".
const packed = "/packed/ gzip"

// BodyOf returns the body for a path, or nil if there is none. For "/packed/", it depends on acceptsGzip, which says
// whether the client accepts gzip.
func BodyOf(path string, acceptsGzip bool) *Body {
	kind := path
	if end := strings.IndexByte(path[min(1, len(path)):], '/'); end >= 0 {
		kind = path[:end+2]
	}
	if acceptsGzip && kind == "/packed/" {
		kind = packed
	}
	return Bodies()[kind]
}

func makeBodies() map[string]*Body {
	const html = "text/html; charset=utf-8"
	text := page(50 << 10)
	var small bytes.Buffer
	z := gzip.NewWriter(&small)
	z.Write(text) // a bytes.Buffer does not fail
	z.Close()
	return map[string]*Body{
		"/api/":       {Type: "application/json", Data: []byte(`{"items":["` + strings.Repeat("abcdefg-", 125) + `"],"ok":true}`)},
		"/pages/":     {Type: html, Data: text},
		"/packed/":    {Type: html, Data: text},
		packed:        {Type: html, Data: small.Bytes(), Encoding: "gzip"},
		"/long/":      {Type: html, Data: page(10 << 20), Chunked: true},
		"/robots.txt": {Type: "text/plain; charset=utf-8", Data: []byte(OriginRobots)},
	}
}

// page returns an HTML document of size octets without a robots meta tag. Its head has 3 KB of usual elements, and its
// text is as varied as normal text.
func page(size int) []byte {
	const headSize = 3 << 10
	r := rand.New(rand.NewPCG(2, 3))
	var b bytes.Buffer
	b.WriteString("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>The bridge reopens</title>\n" +
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")
	for i := 0; b.Len() < headSize-len("</head>")-100; i++ {
		switch i % 4 {
		case 0:
			fmt.Fprintf(&b, "<meta property=\"og:prop%d\" content=\"value %d of the page\">\n", i, r.IntN(1000))
		case 1:
			fmt.Fprintf(&b, "<link rel=\"preload\" href=\"/assets/chunk-%05d.js\" as=\"script\">\n", r.IntN(100000))
		case 2:
			fmt.Fprintf(&b, "<script>window.part%d={\"a\":%d,\"b\":\"<b>x</b>\"};</script>\n", i, r.IntN(1000))
		case 3:
			fmt.Fprintf(&b, "<style>.c%d{color:#%06x;margin:0 %dpx}</style>\n", i, r.IntN(1<<24), r.IntN(32))
		}
	}
	b.WriteString("</head>\n<body>\n")
	const end = "</body>\n</html>\n"
	words := strings.Fields("a bridge over the river was closed for repair and the council said that it would open again " +
		"in spring when the new deck is laid while ferries carry people cars bicycles letters from both banks every hour " +
		"of night day winter summer market school harbour station &amp; 2026")
	for b.Len() < size-len(end)-600 {
		fmt.Fprintf(&b, "<section id=\"s%d\"><h2>", r.IntN(1e6))
		for range 6 {
			b.WriteString(words[r.IntN(len(words))] + " ")
		}
		b.WriteString("</h2><p>")
		for range 40 {
			b.WriteString(words[r.IntN(len(words))] + " ")
		}
		fmt.Fprintf(&b, "<a href=\"/pages/section-%d/story.html\">more</a></p></section>\n", r.IntN(1e5))
	}
	b.WriteString(strings.Repeat(" ", size-len(end)-b.Len()) + end)
	return b.Bytes()
}
