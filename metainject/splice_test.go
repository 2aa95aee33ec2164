// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"bytes"
	"compress/flate"
	stdgzip "compress/gzip"
	"compress/zlib"
	"fmt"
	"hash/adler32"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"testing"
)

// spliceTexts are texts with few, many and long matches.
var spliceTexts = [][]byte{
	benchPage(50<<10, ""), fuzzText,
	bytes.Repeat([]byte("abcdefgh"), 12<<10),
	func() []byte { // nothing to match
		rnd := rand.New(rand.NewPCG(1, 2))
		b := make([]byte, 80<<10)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return b
	}(),
	func() []byte { // matches as far back as they can be
		rnd := rand.New(rand.NewPCG(3, 4))
		b := make([]byte, 100<<10)
		for i := range b {
			if b[i] = byte(rnd.Uint32()); i >= 32<<10 {
				b[i] = b[i-32<<10]
			}
		}
		return b
	}(),
}

// packFormat packs text, flushing now and then, in one of the three formats.
func packFormat(rnd *rand.Rand, f format, level int, text []byte) []byte {
	var out bytes.Buffer
	var w flushWriter
	switch f {
	case gzipFormat:
		z, _ := stdgzip.NewWriterLevel(&out, level)
		if rnd.IntN(2) == 0 {
			z.Name, z.Comment, z.Extra = "a", "b", []byte{1, 2, 3}
		}
		w = z
	case zlibFormat:
		w, _ = zlib.NewWriterLevel(&out, level)
	default:
		w, _ = flate.NewWriter(&out, level)
	}
	for len(text) > 0 {
		n := len(text)
		if rnd.IntN(3) == 0 {
			n = 1 + rnd.IntN(n)
		}
		w.Write(text[:n])
		if text = text[n:]; len(text) > 0 {
			w.Flush()
		}
	}
	w.Close()
	return out.Bytes()
}

// unpackFormat gives the text and what follows the stream.
func unpackFormat(f format, b []byte) (text, rest []byte, err error) {
	src := bytes.NewReader(b)
	var r io.Reader
	switch f {
	case gzipFormat:
		var z *stdgzip.Reader
		if z, err = stdgzip.NewReader(src); err == nil {
			z.Multistream(false)
		}
		r = z
	case zlibFormat:
		r, err = zlib.NewReader(src)
	default:
		r = flate.NewReader(src)
	}
	if err != nil {
		return nil, nil, err
	}
	text, err = io.ReadAll(r)
	rest, _ = io.ReadAll(src)
	return text, rest, err
}

// someEdits makes edits within the first bytes of a text of n bytes.
func someEdits(rnd *rand.Rand, n int) (es []edit) {
	at := 0
	for range 1 + rnd.IntN(4) {
		start := at + rnd.IntN(1+min(n-at, 1+rnd.IntN(3000)))
		end := start
		if rnd.IntN(2) == 0 {
			end += rnd.IntN(1 + min(n-start, 1+rnd.IntN(300)))
		}
		text := make([]byte, rnd.IntN(4)*rnd.IntN(60))
		for i := range text {
			text[i] = "<meta name=robots>é\x00"[rnd.IntN(20)]
		}
		if len(text) > 0 || end > start {
			es = append(es, edit{start, end, text})
		}
		at = end + rnd.IntN(2)
		if at > n {
			break
		}
	}
	if es == nil {
		es = []edit{{0, 0, []byte("x")}}
	}
	return es
}

func checkSplice(t testing.TB, text []byte, f format, level int, rnd *rand.Rand) {
	t.Helper()
	raw := packFormat(rnd, f, level, text)
	behind := []byte("behind"[:rnd.IntN(2)*6])
	raw = append(raw, behind...)
	es := someEdits(rnd, len(text))
	_, header, ok := headerOf(raw, f == gzipFormat)
	if f == rawFormat {
		header = 0
	}
	if !ok || header < 0 {
		t.Fatalf("header of format %d: %d, %v", f, header, ok)
	}
	var out bytes.Buffer
	z := splicers.Get().(*splicer)
	defer splicers.Put(z)
	first := header + rnd.IntN(len(raw)-header+1)
	z.reset()
	if rnd.IntN(2) == 0 { // as it is when the head has been looked for
		var looked []byte
		for from, ev := header, needMore; from < first && ev == needMore; {
			n := 1 + rnd.IntN(first-from)
			z.inf.push(raw[from : from+n])
			from += n
			for ev = gotSome; (ev == gotSome || ev == gotBlock || ev == endBlock) && rnd.IntN(50) > 0; {
				looked, ev = z.look(looked, 1+rnd.IntN(2000))
			}
		}
	}
	if err := z.splice(&out, f, raw[:first], header, text, es); err != nil {
		t.Fatal(err)
	}
	size := 1 + rnd.IntN(3000)
	for rest := raw[first:]; len(rest) > 0; {
		n := min(1+rnd.IntN(size), len(rest))
		z.Write(bytes.Clone(rest[:n]))
		rest = rest[n:]
		if rnd.IntN(5) == 0 {
			z.Flush()
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	want := applyEdits(text, es)
	got, rest, err := unpackFormat(f, out.Bytes())
	if err != nil || !bytes.Equal(got, want) || !bytes.Equal(rest, behind) {
		i := 0
		for i < min(len(got), len(want)) && got[i] == want[i] {
			i++
		}
		t.Fatalf("format %d, level %d, %d bytes of text, edits %v: %v, %d for %d bytes, differing at %d, rest %q", f, level, len(text), es, err, len(got), len(want), i, rest)
	}
}

func TestSplice(t *testing.T) {
	const seed = 21
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for i, text := range spliceTexts {
		for _, f := range []format{rawFormat, gzipFormat, zlibFormat} {
			for level := flate.HuffmanOnly; level <= 9; level++ {
				t.Run(fmt.Sprintf("text %d/format %d/level %d", i, f, level), func(t *testing.T) {
					checkSplice(t, text, f, level, rnd)
				})
			}
		}
	}
}

// TestBrokenStaysBroken: a distance that reaches before the text's beginning
// must not come to lie inside a longer one.
func TestBrokenStaysBroken(t *testing.T) {
	var w blockWriter
	w.block([]token{'a', match(3, 5)})
	w.out.add(3, 3+7)
	w.out.align()
	if _, _, err := unpackFormat(rawFormat, w.out.b); err == nil {
		t.Fatal("the stream is not broken")
	}
	var out bytes.Buffer
	z := new(splicer)
	if err := z.splice(&out, rawFormat, w.out.b, 0, []byte("a"), []edit{{0, 0, []byte("longer text")}}); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if text, _, err := unpackFormat(rawFormat, out.Bytes()); err == nil {
		t.Errorf("it was made whole: %q", text)
	}
}

// TestBlocksOfNoUse: where no match that reaches across the change can be written
// with the block's own codes, the stream does not get much longer.
func TestBlocksOfNoUse(t *testing.T) {
	var w blockWriter
	head := []byte("0123456789abcdef")
	text := bytes.Clone(head)
	toks := make([]token, 0, 10<<10)
	for _, c := range head {
		toks = append(toks, token(c))
	}
	w.block(toks)
	toks = toks[:0]
	for len(text) < deflateWindow-1000 {
		// Matches that repeat what stands before the change, with distances whose codes
		// do not reach as far as is needed, and literals of no use for them.
		next := token('z')
		dist := len(text) - 5
		for k := 18; k < len(distBase); k += 2 {
			if end := int(distBase[k]); dist < end && dist+600 >= end {
				next = match(3, dist)
			}
		}
		text = appendToken(text, next)
		toks = append(toks, next)
	}
	w.block(toks)
	w.out.add(3, 3+7)
	w.out.align()
	edits := []edit{{16, 16, bytes.Repeat([]byte("<meta>"), 100)}}
	var out bytes.Buffer
	z := new(splicer)
	if err := z.splice(&out, rawFormat, w.out.b, 0, text, edits); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	got, _, err := unpackFormat(rawFormat, out.Bytes())
	if err != nil || !bytes.Equal(got, applyEdits(text, edits)) {
		t.Fatalf("%v, %d bytes", err, len(got))
	}
	if grown := out.Len() - len(w.out.b); grown > 4<<10 {
		t.Errorf("%d bytes of stream became %d, for %d of text", len(w.out.b), out.Len(), len(text))
	}
	t.Logf("%d bytes of stream became %d, for %d of text", len(w.out.b), out.Len(), len(text))
}

// FuzzSplice edits texts inside their streams.
func FuzzSplice(f *testing.F) {
	for i := range 20 {
		f.Add([]byte("<head><title>some text some text</title>"), uint64(i))
	}
	f.Fuzz(checkSomeSplice)
}

func TestRandomSplices(t *testing.T) {
	rnd, n := random(t)
	for range n / 60 {
		text := fuzzText[rnd.IntN(len(fuzzText)/2):]
		checkSomeSplice(t, text[:rnd.IntN(4<<10)], rnd.Uint64())
	}
}

func checkSomeSplice(t *testing.T, text []byte, seed uint64) {
	if len(text) > 4<<10 {
		return
	}
	rnd := rand.New(rand.NewPCG(seed, 8))
	if n := rnd.IntN(8); n < len(spliceTexts) && rnd.IntN(6) == 0 {
		from := spliceTexts[n]
		text = append(bytes.Clone(text), from[:rnd.IntN(len(from))]...)
	}
	checkSplice(t, text, format(rnd.IntN(3)), rnd.IntN(12)-2, rnd)
}

// FuzzInflate reads any bytes as a deflate stream: the text, and whether it is
// whole, are those of compress/flate, in any chunks.
func FuzzInflate(f *testing.F) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for level := -2; level <= 9; level++ {
		f.Add(packFormat(rnd, rawFormat, level, []byte("<head><title>some text some text</title>")), uint64(level))
	}
	f.Fuzz(func(t *testing.T, raw []byte, seed uint64) {
		if len(raw) > 4<<10 {
			return
		}
		const most = 1 << 20
		want, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(raw)), most))
		if len(want) == most {
			return
		}
		rnd := rand.New(rand.NewPCG(seed, 8))
		z := splicers.Get().(*splicer)
		defer splicers.Put(z)
		z.reset()
		var got []byte
		ev := needMore
		for rest := raw; ev == needMore && len(rest) > 0; {
			n := 1 + rnd.IntN(len(rest))
			z.inf.push(rest[:n])
			rest = rest[n:]
			for ev = gotSome; ev == gotSome || ev == gotBlock || ev == endBlock; {
				got, ev = z.look(got, 1+rnd.IntN(1000))
			}
		}
		if (ev == endStream) != (err == nil) || !bytes.Equal(got, want) {
			t.Fatalf("event %d, %q\ncompress/flate %v, %q", ev, got, err, want)
		}
	})
}

func TestChecksumsOfChangedTexts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	for range 2000 {
		text := spliceTexts[rnd.IntN(len(spliceTexts))]
		text = text[:rnd.IntN(len(text))]
		es := someEdits(rnd, len(text))
		want := applyEdits(text, es)
		s := sumHead(text, es, true)
		if got := s.crc32(crc32.ChecksumIEEE(text), int64(len(text))); got != crc32.ChecksumIEEE(want) || s.delta != len(want)-len(text) {
			t.Fatalf("CRC-32 %x for %x, delta %d, edits %v", got, crc32.ChecksumIEEE(want), s.delta, es)
		}
		s = sumHead(text, es, false)
		if got := s.adler32(adler32.Checksum(text), int64(len(text))); got != adler32.Checksum(want) {
			t.Fatalf("Adler-32 %x for %x, edits %v", got, adler32.Checksum(want), es)
		}
	}
}
