// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// chunkSizes are the sizes of the pieces in which tests send a body.
var chunkSizes = []int{1, 7, 64, 700, 4096, 1 << 30}

// inEveryCoding sends a page uncompressed and in every coding, in chunks of every size. It reports the first result
// that differs from want.
func inEveryCoding(t *testing.T, o Options, kind, page, want string) {
	t.Helper()
	for i := range len(testCodings) + 1 {
		name, raw, unpack := "", []byte(page), func(b []byte) ([]byte, error) { return b, nil }
		if i > 0 {
			c := testCodings[i-1]
			name, raw, unpack = c.name, c.pack([]byte(page), 7, 0), c.unpack
		}
		for _, size := range chunkSizes {
			r := newRecorder()
			r.header["Content-Type"] = []string{kind}
			if name != "" {
				r.header.Set("Content-Encoding", name)
			}
			rw := wrapped(t, r, o)
			for part := range slices.Chunk(raw, size) {
				if _, err := rw.Write(part); err != nil {
					t.Fatal(err)
				}
			}
			if err := rw.Close(nil); err != nil {
				t.Fatal(err)
			}
			got, err := unpack(r.body.Bytes())
			if err != nil || string(got) != want {
				t.Errorf("coding %q by %d: %q, %v\nwant %q", name, size, got, err, want)
				return
			}
			if page == want && !bytes.Equal(raw, r.body.Bytes()) {
				t.Errorf("coding %q by %d: it was packed again", name, size)
			}
		}
	}
}

// verifications are meta tags that site owners use to prove their ownership to a service. Some of them have the name of
// a crawler, but contain no rules.
const verifications = `<meta name="google-site-verification" content="Xy_9-none,all"><meta name="sentry" content="environment=production">` +
	`<meta name="mastodon" content="@a@b.example"><meta name="whatsapp" content="all"><meta name=feedly content="x">` +
	`<meta name="googlebot" content="Xy_9-noneall"><meta name="robots" content="ACAP allow-index">`

// A meta tag is a robots element only if crawlers read its name and its content has a rule. A meta tag that uses such a
// name for another purpose is not changed.
func TestOtherUses(t *testing.T) {
	for _, mode := range []Mode{Merge, Replace} {
		set := testSet(t, "robots=noarchive", "googlebot=noindex")
		inEveryCoding(t, Options{Set: set, Mode: mode}, "text/html",
			"<!DOCTYPE html><head>"+verifications+"</head><p>x", "<!DOCTYPE html><head>"+set.HTML()+verifications+"</head><p>x")
	}
	inEveryCoding(t, Options{Set: testSet(t, "robots=noarchive")}, "text/html",
		`<!DOCTYPE html><head><meta name=robots content="X, NoIndex"></head>`, `<!DOCTYPE html><head><meta name=robots content="noindex, noarchive, x"></head>`)
}

// JSON with the media type of HTML is not treated as a page, whatever strings it contains.
func TestJSON(t *testing.T) {
	o := Options{Set: testSet(t, "robots=noindex")}
	for _, body := range []string{`{"a":"<!DOCTYPE html><head></head><body>"}`, " \n[\"<body>\"]", bomUTF8 + `"<html><head>"`, "{", ")]}',\n[\"<head><body>\"]", `["<meta name=robots content=all>"]`} {
		inEveryCoding(t, o, "text/html; charset=utf-8", body, body)
		inEveryCoding(t, o, "text/html", body, body)
	}
	inEveryCoding(t, o, "text/html", "x{<html><head></head>", o.Set.HTML()+"x{<html><head></head>")
}

// A thousand documents like the ones in tests of HTML parsers are sent one byte at a time, in different codings. Each
// result must equal the result for the document in one piece. To read the documents of html5lib's tests too, name a
// folder with its *.dat files:
//
//	ROBOTSPOLICY_HTML5LIB=$(go list -m -f {{.Dir}} golang.org/x/net)/html/testdata/html5lib-tests/tree-construction go test ./metainject -run ByteByByte
func TestDocumentsByteByByte(t *testing.T) {
	testkit.SkipRace(t)
	rnd := rand.New(rand.NewPCG(*randomSeed, 34))
	var documents []string
	for i := range 1000 {
		choice := make([]byte, 3+rnd.IntN(20))
		for j := range choice {
			choice[j] = byte(rnd.IntN(256))
		}
		document := string(fromPieces(choice))
		if i%3 > 0 {
			document = "<!DOCTYPE html><head>" + document
		}
		documents = append(documents, document)
	}
	files, err := filepath.Glob(filepath.Join(os.Getenv("ROBOTSPOLICY_HTML5LIB"), "*.dat"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for test := range strings.SplitSeq("\n"+string(text), "\n#data\n") {
			if document, _, ok := strings.Cut(test, "\n#errors"); ok {
				documents = append(documents, document)
			}
		}
	}
	changed := 0
	for i, page := range documents {
		set, mode := testSet(t, testSets[i%4]...), Mode(i/4%2)
		checkHead(t, []byte(page), set, mode, uint64(i))
		want, edits, _ := rewriteHead([]byte(page), set, mode, false, false, nil)
		changed += min(len(edits), 1)
		c := testCodings[i%len(testCodings)]
		r := sendWith(t, Options{Set: set, Mode: mode}, c.name, "text/html", c.pack([]byte(page), i, 0), 1)
		if got, err := c.unpack(r.body.Bytes()); err != nil || string(got) != string(want) {
			t.Fatalf("%s: %q becomes %q, %v, want %q", c.name, page, got, err, want)
		}
	}
	t.Logf("%d documents, %d of them from %d files; %d changed", len(documents), len(documents)-1000, len(files), changed)
}
