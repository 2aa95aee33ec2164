// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// hostileHeads are pages that try to mislead a scanner of the head. § stands for an element that permits everything.
var hostileHeads = func() (pages []string) {
	for _, p := range []string{
		// Text that looks like elements, and elements that look like text.
		"<head><title>§</title>§", "<head><title>a</titlex>§</title>§", "<head><title></ title>§</title\f/>§", "<head><TITLE>§</tItLe a='>'>§",
		"<head><script>§</script>§", "<head><script><!--<script>§</script>§</script>§", "<head><script><!--<script></scriptx>§</script>-->§</script>§",
		"<head><script><!--<script/</script/>§</script>§", "<head><script><!----><script>§</script>§", "<head><script><!--><script>§</script>§",
		"<head><script><!---><script>§</script>§", "<head><script><!- -<script>§</script>§", "<head><script><!--<scr<script>--></script>§", "<head><script>-->§</script>§",
		"<head><script><!--<SCRIPT\t>§</sCript\n>§--></script>§", "<head><script></script </script>§", "<head><script></script a='</script>§'>§", "<head><script", "<head><script>", "<head><script><!--<script>",
		"<head><style><!-- </style>§-->", "<head><style>§</style >§", "<head><style></style<>§", "<head><style></style/§", "<head><style/>§</style>§",
		"<head><noscript>§</noscript>§", "<head><noscript><!-- </noscript>§ --></noscript>", "<head><noscript><style></noscript>§</style>", "<noscript>§</noscript><head>§",
		"<head><noframes>§</noframes>§", "<head><xmp>§</xmp>§", "<head><plaintext>§", "<head><textarea>§</textarea>", "<head><iframe>§</iframe>", "<head><noembed>§</noembed>",
		"<head><template>§</template>§", "<head><template><template>§</template>§</template>§", "<head><template><script></template></script>§</template>§", "<head></template>§",
		"<head><template></head>§</template>§", "<head><template><body>§</template>§", "<head><template><p><div></template>§", "<head><template><title></template>§</title></template>§",
		"<head><template shadowrootmode=open>§</template>§", "<template>§</template><head>§", "<head></head><template>§</template>§<p>", "<head><template><xmp></template>§</xmp></template>§",
		// Where the head ends, or begins.
		"<head><svg>§</svg>§", "<svg>§</svg><head>§", "<head><math>§", "<head><svg><title>§</title></svg>", "<svg><desc>§", "<head><p>§", "<head></p>§", "<head></br>§", "</br><head>§", "<br><head>§",
		"<frameset>§</frameset>", "<head></head><frameset>§", "<!-- --><head><!-- --></head><!-- -->§<!-- --><body>§", "<head></head><head>§", "<head><head>§</head>§", "<html><html><head><html>§",
		"<head></body>§", "<head></html>§", "</head>§", "</html>§", "</body>§", "</p>§", "</a><!DOCTYPE html><head>§", "<!DOCTYPE html><!DOCTYPE html><head>§", "<head></head></head>§<body>", "<head></head> x§",
		"<head></head><noscript>§", "<head></head><noframes>§</noframes>§", "<head></head><title>§</title>§", "<head></head><link>§<style>§</style>§<base>§<p>§", "<head></head></template>§</script>§",
		"<head>x§", "<head>\x00§", "\x00<head>§", "<head>&nbsp;§", "<head>&#0;§", "<head>&#x20;§", "<head>&#32§", "<head>&#32x§", "<head>&#12;§", "<head>&#11;§", "<head>&Tab§", "<head>&Tab;§", "<head>&tab;§",
		"<head>&#13;§", "<head>&#x;§", "<head>&#;§", "<head>&;§", "<head>&§", "<head>&#160;§", "<head>\v§", "<head>\f\r\t§", "<head>\u00a0§", "<head>\u2028§", "<head>\ufeff§", "\ufeff\ufeff<head>§", "<head>\x80§",
		"<search>§", "<head><menuitem>§", "<head><object>§</object>", "<head><isindex>§", "<head><image>§", "<head><dialog>§", "<head><base><basefont><bgsound><link>§", "<head></link></meta></base>§",
		// Markup declarations.
		"<!><head>§", "<!-><head>§", "<!--><head>§", "<!---><head>§", "<!----><head>§", "<!--- ---!><head>§", "<!--a--!><head>§", "<!--a--!-><head>§-->", "<!--a-- ><head>§-->", "<!--a->-><head>§-->", "<!--<!--><head>§", "<!--<!-->§--><head>§",
		"<!DOCTYPE><head>§", "<!DOCTYPE html \"a>b\"><head>§", "<!DOCTYPEhtml><head>§", "<!doctype html public '-//w3c//dtd html 3.2//'><head>§", "<!ELEMENT><head>§", "<![CDATA[<head>§]]>§", "<?php '>' ?><head>§", "<? >§", "</!a><head>§", "</#><head>§", "</><head>§", "</ head><head>§",
		"<!--[if IE]><head>§<![endif]--><head>§", "<![if !IE]><head>§<![endif]>", "<!--[if !IE]><!--><head>§<!--<![endif]-->", "<!", "<!-", "<!--", "<!--a", "<!d", "<!doctype", "<!doctype html", "</", "</a", "<a", "<head", "<head ", "<head a", "<head a=", "<head a='", "<head>§<", "<head>§</", "<head>§<!",
		// Attributes.
		"<head><meta name=robots name=googlebot content=all>", "<head><meta name=x name=robots content=all>", "<head><meta content=none content=all name=robots>", "<head><meta NAME=ROBOTS CONTENT=ALL>", "<head><meta\fname=robots\rcontent=all\n>",
		"<head><meta name=robots/content=all>", "<head><meta name='robots'content='all'>", "<head><meta name=\"robots\"/content=\"all\"/>", "<head><meta/name=robots/ content=all/>", "<head><meta =name=robots content=all>", "<head><meta name==robots content=all>",
		"<head><meta name=rob\x00ots content=all>", "<head><meta name\x00=robots content=all>", "<head><meta name=robots content=a\x00ll>", "<head><meta name=&#114obots content=all>", "<head><meta name=&#x72;obots content=&#105ndex>", "<head><meta name=robots content='&lt&amp;index&ampx'>",
		"<head><meta name=robots content='index&#44follow'>", "<head><meta name='robots&#32;' content=all>", "<head><meta name='&#9;robots' content=all>", "<head><meta name=robots&shy; content=all>", "<head><meta name=\u212aobots content=all>", "<head><meta name=robot\u017f content=all>",
		"<head><meta name=robots content='a>b'>§", "<head><meta name=robots content=a'b>§", "<head><meta name=robots content=\"a'b>§\">§", "<head><meta name=robots content=a<b>", "<head><meta name=robots <meta content=all>", "<head><meta name=robots content=all", "<head><meta name=robots content='all", "<head><metax name=robots content=all>", "<head><meta-x name=robots content=all>",
		"<head><meta name=robots content='all'x='y'>", "<head><meta name=robots x='\" content=all>\"'>", "<head><meta name=robots data-content=x content=all>", "<head><meta xname=robots name=robots content=all>", "<head><meta name = 'robots' content = 'all' >", "<head><meta name\n=\n\"robots\"\ncontent\n=\n\"all\">",
		"<head><meta property=robots name=description content=all>", "<head><meta property=robots name=googlebot content=all>", "<head><meta http-equiv=refresh name=robots content='0;url=x'>", "<head><meta http-equiv=x-robots-tag name=robots content=all>", "<head><meta http-equiv=' X-Robots-Tag ' content='googlebot : all'>",
		"<head><meta itemprop=robots content=all>", "<head><meta name=robots lang=en scheme=x content=all>", "<head><meta name='robots,googlebot' content=all>", "<head><meta name='robots googlebot' content=all>", "<head><meta name='' content=all>", "<head><meta content=all>",
		"<head a='<head>§'>§", "<html a='<head>'><head b=\"</head>\">§", "<head><link title='§'>§", "<head><link title=\"'\" x='\"'>§", "<head><link a='b'c=\"d\"e>§", "<head><link/>§", "<head><linkx>§", "<head><link\x00>§", "<head><link a=b'>§'>", "<head><link ='>'>§", "<head><link x=\"y\" =\"'>§'\">", "<head><link '=\">§\">", "<head><link a=\">§",
		"<head><base" + strings.Repeat(" a", 800) + ">§", "<head><link x='" + strings.Repeat("y>", 800) + "'>§", "<head><meta name=robots content='" + strings.Repeat("noai,", 300) + "'>", "<head><meta " + strings.Repeat("x", 1500) + "=1 name=robots content=all>", "<head>" + strings.Repeat("§", 40),
		// Encodings.
		bomUTF8 + "<head><meta charset=utf-16>§", "<head><meta charset=utf-16>§", "<head><meta charset=x-user-defined>§", "<head><meta charset=utf-7>§", "<head><meta charset=' utf-8 '>§", "<head><meta charset=utf-8 charset=iso-2022-jp>§", "<head><meta http-equiv=content-type content='text/html; charset=iso-2022-jp'>§",
		"<head><meta http-equiv=content-type content='text/html; charset = \"utf-8\"'>§", "<head><meta http-equiv=content-type content='charset'>§", "<head><title><meta charset=iso-2022-jp></title>§", "<head><!-- <meta charset=utf-7> -->§", "<head><meta charset=utf-8 name=robots content=all>§", "\xEF\xBB<head>§", "\xEF<head>§", "\xFE<head>§",
	} {
		pages = append(pages, strings.ReplaceAll(p, "§", `<meta name=robots content="index,all">`))
	}
	return pages
}()

func TestHostileHeads(t *testing.T) {
	testkit.SkipRace(t)
	for i, p := range hostileHeads {
		for j, elements := range testSets {
			if len(p) > 1000 && j > 0 {
				continue // these take long
			}
			for _, mode := range []Mode{Merge, Replace} {
				checkHead(t, []byte(p), testSet(t, elements...), mode, uint64(i))
				checkHead(t, []byte("<!DOCTYPE html>"+p), testSet(t, elements...), mode, uint64(i))
			}
		}
	}
}

// No more than MaxHead bytes of a page are held. The changed part of the page ends at the same place for all sizes of
// chunks.
func TestTooLongToHold(t *testing.T) {
	set := testSet(t, "robots=noindex")
	long := strings.Repeat("noai, x>'", 10<<10)
	for _, page := range []string{
		`<!DOCTYPE html><head><meta name=robots content="` + long + `"><meta name=robots content=index><p>`, `<!DOCTYPE html><head a="` + long + `"><meta name=robots content=index><p>`,
		"<!DOCTYPE html><head><script><!--<script>" + long + "</script>-->" + long, "<!DOCTYPE html><!--" + long + "--><head>", "<!DOCTYPE " + long, "<html" + long + "><head><p>",
	} {
		want := boundedRewrite([]byte(page), set, DefaultMaxHead, false)
		for _, n := range []int{1, 4 << 10, len(page)} {
			r := newRecorder()
			r.header.Set("Content-Type", "text/html")
			rw := wrapped(t, r, Options{Set: set, Fragments: true})
			for rest := []byte(page); len(rest) > 0; rest = rest[min(n, len(rest)):] {
				rw.Write(rest[:min(n, len(rest))])
				if rw.page != nil && len(rw.page.held) > DefaultMaxHead {
					t.Fatalf("%d bytes held", len(rw.page.held))
				}
			}
			rw.Close(nil)
			if !bytes.Equal(r.body.Bytes(), want) {
				t.Errorf("%.60s by %d: %d bytes, want %d: %.120q", page, n, r.body.Len(), len(want), r.body.Bytes())
			}
		}
	}
}

func gzipped(parts ...string) (b []byte) {
	var out bytes.Buffer
	for _, p := range parts {
		w := gzip.NewWriter(&out)
		w.Write([]byte(p))
		w.Close()
	}
	return out.Bytes()
}

// sendPacked sends raw in chunks of n bytes, and returns the recorded response. kind is the media type.
func sendPacked(t *testing.T, coding, kind string, raw []byte, n int) *recorder {
	t.Helper()
	return sendWith(t, Options{Set: testSet(t, "robots=noindex"), ETagSuffix: testSuffix}, coding, kind, raw, n)
}

func sendWith(t *testing.T, o Options, coding, kind string, raw []byte, n int) *recorder {
	t.Helper()
	r := newRecorder()
	r.header.Set("Content-Type", kind)
	r.header.Set("Content-Encoding", coding)
	rw := wrapped(t, r, o)
	for rest := raw; len(rest) > 0; {
		k := min(n, len(rest))
		if _, err := rw.Write(rest[:k]); err != nil {
			t.Fatalf("%s by %d: %v", coding, n, err)
		}
		rest = rest[k:]
	}
	if err := rw.Close(nil); err != nil {
		t.Fatalf("%s by %d: %v", coding, n, err)
	}
	return r
}

// A gzip page with several members is changed if the first member contains the complete head. The other pages are sent
// unchanged, because a later member could declare their encoding, and some clients do not read later members.
func TestGzipMembers(t *testing.T) {
	const e = `<meta name="robots" content="noindex">`
	for _, tt := range []struct {
		name  string
		parts []string
		want  string // "" if the body is sent unchanged
	}{
		{"head in the first", []string{"<!DOCTYPE html><head></head><p>a", "<p>b"}, "<!DOCTYPE html><head>" + e + "</head><p>a<p>b"},
		{"head in the second", []string{"<!DOCTYPE html>", "<html lang=en><head id=a><meta name=robots content=index></head><p>"}, ""},
		{"empty first", []string{"", "<!DOCTYPE html><head></head><p>a"}, ""},
		{"head in both", []string{"<!DOCTYPE html><head><title>a", "</title><meta name=robots content=index></head><p>a"}, ""},
		{"head that never ends, alone", []string{"<!DOCTYPE html><head><title>a"}, "<!DOCTYPE html><head>" + e + "<title>a"},
		{"empty, alone", []string{""}, ""},
	} {
		raw := gzipped(tt.parts...)
		for _, n := range []int{1, 7, 25, len(raw)} {
			r := sendPacked(t, "gzip", "text/html", raw, n)
			if tt.want == "" {
				if !bytes.Equal(r.body.Bytes(), raw) {
					t.Errorf("%s by %d: the bytes were changed", tt.name, n)
				}
				continue
			}
			z, err := gzip.NewReader(&r.body)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(z); string(got) != tt.want || err != nil {
				t.Errorf("%s by %d: %q, %v", tt.name, n, got, err)
			}
		}
	}
}

// A body that does not match its type or coding is sent unchanged.
func TestMislabeled(t *testing.T) {
	page := string(benchPage(9000, ""))
	raw := gzipped(page)
	for _, tt := range []struct{ coding, kind string }{
		{"gzip, br", "text/html"},
		{"br, gzip", "text/html"},
		{"gzip,gzip", "text/html"},
		{"GZIP;q=1", "text/html"},
		{"identity, gzip", "text/html"},
		{"zstd", "text/html"},
		{"br", "text/html"},
		{"deflate", "text/html"},
		{"identity", "text/html"},
		{"", "text/html"},
		{"gzip", "text/html; charset=utf-16le"},
		{"gzip", "text/html, text/plain"},
		{"gzip", ""},
	} {
		for _, n := range []int{1, 100, len(raw)} {
			if r := sendPacked(t, tt.coding, tt.kind, raw, n); !bytes.Equal(r.body.Bytes(), raw) {
				t.Errorf("%q, %q by %d: the bytes were changed", tt.coding, tt.kind, n)
			}
		}
	}
}

// countingWriter counts the bytes of the body, and discards them.
type countingWriter struct {
	*recorder
	n int64
}

func (c *countingWriter) Write(b []byte) (int, error) { c.n += int64(len(b)); return len(b), nil }

// TestBomb sends small bodies that unpack to very long texts. The writer must not hold more than it is allowed to, and
// a gzip body must be sent nearly unchanged.
func TestBomb(t *testing.T) {
	testkit.Slow(t)
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	const size = 64 << 20
	for _, head := range []string{"<!DOCTYPE html><head>", "<!DOCTYPE html><head></head>", "<!DOCTYPE html><!--", "<!DOCTYPE html><head><link x='"} {
		for _, c := range testCodings {
			if c.name == "deflate" {
				continue // the same code as for gzip
			}
			raw := c.pack(append([]byte(head), bytes.Repeat([]byte(" "), size)...), 2, 0)
			r := &countingWriter{recorder: newRecorder()}
			r.header.Set("Content-Type", "text/html")
			r.header.Set("Content-Encoding", c.name)
			rw := Wrap(r, wrapped(t, newRecorder(), Options{}).r, Options{Set: testSet(t, "robots=noindex"), MaxHead: 32 << 10})
			for rest := raw; len(rest) > 0; {
				n := min(1000, len(rest))
				if _, err := rw.Write(rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
				if p := rw.page; p != nil {
					held := cap(p.held) + cap(p.raw)
					if held > 400<<10 {
						t.Fatalf("%s, %q: %d KiB held", c.name, head, held>>10)
					}
				}
			}
			if err := rw.Close(nil); err != nil {
				t.Fatal(err)
			}
			rw.Release()
			if c.name == "gzip" && r.n > int64(len(raw))+4<<10 {
				t.Errorf("%s, %q: %d bytes came and %d went", c.name, head, len(raw), r.n)
			}
		}
	}
}

// The handler sets a Content-Length that differs from the length of the body. The header is corrected as far as
// possible, and no byte of the body is lost or added.
func TestWrongContentLength(t *testing.T) {
	set := testSet(t, "robots=noindex")
	page := benchPage(9000, "")
	want, _, _ := rewriteHead(page, set, Merge, false, false, nil)
	for length, corrected := range map[string]string{
		"0": fmt.Sprint(len(want) - len(page)), "9100": fmt.Sprint(9100 + len(want) - len(page)), "-1": "", "x": "", "99999999999999999999": "", "9223372036854775807": "",
	} {
		r := newRecorder()
		r.header.Set("Content-Type", "text/html")
		r.header.Set("Content-Length", length)
		rw := wrapped(t, r, Options{Set: set})
		rw.Write(page)
		rw.Close(nil)
		if got := r.header.Get("Content-Length"); got != corrected || !bytes.Equal(r.body.Bytes(), want) {
			t.Errorf("Content-Length %s became %q, want %q", length, got, corrected)
		}
	}
}
