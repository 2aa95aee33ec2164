// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"bytes"
	stdgzip "compress/gzip"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// The head of a page has a template, followed by a robots element. That element is merged, and elements inside the
// template are not changed.
func TestTemplatesAreSkipped(t *testing.T) {
	o := Options{Set: testSet(t, "robots=noindex")}
	const inside = `<meta name="robots" content="all">`
	for _, content := range []string{
		"<table><tr><td>" + inside + "</table>", "<tr><td>a</td></tr>" + inside, "<caption>c</caption><colgroup><col></colgroup>", "<thead></thead><tbody></tbody><tfoot></tfoot><th>",
		"<select><option>a</select>" + inside, `<svg viewBox="0 0 1 1"><title>a</title><path d="M0"/></svg>` + inside, "<math><mi>x</mi></math>" + inside,
		"<svg><style>a{}</style><foreignObject><p>" + inside + "</foreignObject></svg>", "<svg></div></svg><p>", "<frameset></frameset>" + inside,
		"<template><table></template></template><template>" + inside, "<table><tr><td><template>" + inside + "</template></table>",
		"<svg><g/></svg><script>var a = 1</script><style>b{}</style>", "<table><style>a<b</style></table>", "<svg><!-- </template> --></svg>",
	} {
		head := "<!DOCTYPE html><head><template>" + content + "</template><title>t</title>"
		inEveryCoding(t, o, "text/html", head+`<meta name=robots content="nosnippet"></head><body>x`, head+`<meta name=robots content="noindex, nosnippet"></head><body>x`)
	}
	// Parsers disagree about where a template with one of these contents ends, or must build a tree to find its end.
	// So the scan treats the start of the template as the end of the head.
	for _, content := range []string{
		"<plaintext>", "<svg><template></template></svg>", "<svg><![CDATA[</template>]]></svg>", "<svg><style>a<b></style></svg>", "<svg><title/></svg>", "<select><textarea></select>",
		"<col><noscript>", "<math><iframe></math>",
	} {
		head := "<!DOCTYPE html><head>"
		rest := "<template>" + content + `</template><meta name=robots content="nosnippet"></head><body>x`
		inEveryCoding(t, o, "text/html", head+rest, head+o.Set.HTML()+rest)
	}
}

// Browsers also find a declaration of the encoding outside the head. If the new elements would push it beyond the first
// 1,024 bytes, it is repeated in the head.
func TestCharsetInTheBody(t *testing.T) {
	o := Options{Set: testSet(t, "robots=noindex, max-snippet:50", "googlebot=nosnippet")}
	for _, at := range []int{940, 960, 1000} {
		head, rest := "<!DOCTYPE html><head>", "<title>t</title></head><body>"
		body := head + rest + strings.Repeat("x", at-len(head+rest)) + `<meta charset="koi8-r"><p>y`
		want := strings.Replace(body, head, head+`<meta charset="koi8-r">`+o.Set.HTML(), 1)
		inEveryCoding(t, o, "text/html", body, want)
	}
}

// If a page has output before the doctype, such as a PHP warning, the result is the same whether the page arrives in
// one chunk or in many chunks.
func TestOutputBeforeTheDoctype(t *testing.T) {
	o := Options{Set: testSet(t, "robots=noindex")}
	page := "<br />\n<b>Warning</b>: x in <b>/a.php</b> on line <b>3</b><br />\n<!DOCTYPE html><html><head><title>t</title></head><body>y"
	inEveryCoding(t, o, "text/html", page, o.Set.HTML()+page)
}

// An XHTML page whose head is empty or missing gets a head.
func TestXHTMLWithoutHead(t *testing.T) {
	o := Options{Set: testSet(t, "robots=noindex")}
	const root = `<html xmlns="http://www.w3.org/1999/xhtml">`
	elements := "<head>" + `<meta name="robots" content="noindex"/>` + "</head>"
	for page, want := range map[string]string{
		root + "<head/><body/></html>":           root + elements + "<body/></html>",
		root + "<head />\n<body>x</body></html>": root + "<head >" + elements[len("<head>"):] + "\n<body>x</body></html>",
		root + "<body>x</body></html>":           root + elements + "<body>x</body></html>",
		root + "\n <!-- c --><body/></html>":     root + "\n <!-- c -->" + elements + "<body/></html>",
		root + "<h:head/><body/></html>":         root + "<h:head/><body/></html>",
		root + "</html>":                         root + "</html>",
	} {
		inEveryCoding(t, o, "application/xhtml+xml", page, want)
	}
}

// The first member of a gzip body ends inside the head. Clients differ on whether the next member belongs to the page.
// The policy's elements must be where all clients find them.
func TestSeveralMembers(t *testing.T) {
	o := Options{Set: testSet(t, "robots=noindex")}
	for _, parts := range [][2]string{
		{"<!DOCTYPE html><head><meta charset=utf-8><title>t</title>", `<meta name=robots content=nosnippet></head><body>x`},
		{"<!DOCTYPE html><head><meta charset=utf-8><meta name=robots content=nosnippet><ti", "tle>t</title></head><body>x"},
	} {
		var raw bytes.Buffer
		for _, part := range parts {
			w := stdgzip.NewWriter(&raw)
			w.Write([]byte(part))
			w.Close()
		}
		for _, size := range chunkSizes {
			r := newRecorder()
			r.header.Set("Content-Type", "text/html; charset=utf-8")
			r.header.Set("Content-Encoding", "gzip")
			rw := wrapped(t, r, o)
			for part := range slices.Chunk(raw.Bytes(), size) {
				if _, err := rw.Write(part); err != nil {
					t.Fatal(err)
				}
			}
			if err := rw.Close(nil); err != nil {
				t.Fatal(err)
			}
			text, err := testCodings[0].unpack(r.body.Bytes())
			if err != nil || !strings.HasSuffix(string(text), parts[1]) {
				t.Errorf("by %d: %q, %v", size, text, err)
			}
			for _, page := range []string{string(text), strings.TrimSuffix(string(text), parts[1])} {
				if found := strings.Join(inHead(t, page, true), " "); !strings.Contains(found, "noindex") {
					t.Errorf("by %d: the head of %q has %q", size, page, found)
				}
			}
		}
	}
}

// If a page is incomplete, the client can still unpack as much of its text as without the change.
func TestDamagedPages(t *testing.T) {
	page := naturalPage(60<<10, "", 8)
	for _, c := range testCodings {
		raw := c.pack(page, 7, 0)
		raw = raw[:len(raw)*9/10]
		in, err := c.unpack(raw)
		if err == nil {
			t.Fatal(c.name)
		}
		for _, size := range chunkSizes {
			r := newRecorder()
			r.header.Set("Content-Type", "text/html")
			r.header.Set("Content-Encoding", c.name)
			rw := wrapped(t, r, Options{Set: testSet(t, "robots=noindex")})
			for part := range slices.Chunk(raw, size) {
				if _, err := rw.Write(part); err != nil {
					t.Fatal(err)
				}
			}
			_ = rw.Close(nil)
			if c.name == "zstd" || c.name == "br" {
				if !bytes.Equal(r.body.Bytes(), raw) {
					t.Errorf("%s by %d: %d bytes were sent, %d came", c.name, size, len(raw), r.body.Len())
				}
			} else if out, err := c.unpack(r.body.Bytes()); err == nil || !bytes.Contains(out, in[len(in)-2000:len(in)-100]) {
				t.Errorf("%s by %d: %d bytes of text where %d were sent, %v", c.name, size, len(out), len(in), err)
			}
		}
	}
}

// An entity tag in a trailer belongs to the unchanged page, so it is removed.
func TestETagInATrailer(t *testing.T) {
	for _, page := range []string{"<!DOCTYPE html><head></head><body>x", "<p>a fragment" + strings.Repeat(" ", 5000)} {
		for _, announced := range []bool{true, false} {
			s := serve(t, Options{Set: testSet(t, "robots=noindex"), ETagSuffix: testSuffix}, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				key := http.TrailerPrefix + "Etag"
				if announced {
					w.Header().Set("Trailer", "X-A, ETag")
					key = "Etag"
				}
				w.(http.Flusher).Flush()
				io.WriteString(w, page)
				w.Header().Set(key, `"e"`)
				w.Header().Set(http.TrailerPrefix+"X-A", "a")
			})
			res, _ := do(t, "GET", s.URL)
			if tag := res.Trailer.Get("Etag") + res.Header.Get("Etag"); tag != "" || res.Trailer.Get("X-A") != "a" {
				t.Errorf("%.20s, announced %v: ETag %s, trailers %v", page, announced, tag, res.Trailer)
			}
		}
	}
}
