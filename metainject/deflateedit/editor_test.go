// SPDX-License-Identifier: Apache-2.0

package deflateedit

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

// packFormat compresses text in one of the three formats, with some flushes.
func packFormat(rnd *rand.Rand, f Format, level int, text []byte) []byte {
	var out bytes.Buffer
	var w flushWriter
	switch f {
	case Gzip:
		z, _ := stdgzip.NewWriterLevel(&out, level)
		if rnd.IntN(2) == 0 {
			z.Name, z.Comment, z.Extra = "a", "b", []byte{1, 2, 3}
		}
		w = z
	case Zlib:
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

// unpackFormat returns the text, and the bytes after the stream.
func unpackFormat(f Format, b []byte) (text, rest []byte, err error) {
	src := bytes.NewReader(b)
	var r io.Reader
	switch f {
	case Gzip:
		var z *stdgzip.Reader
		if z, err = stdgzip.NewReader(src); err == nil {
			z.Multistream(false)
		}
		r = z
	case Zlib:
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

// someEdits returns random edits near the start of a text of n bytes.
func someEdits(rnd *rand.Rand, n int) (es []Edit) {
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
			es = append(es, Edit{start, end, text})
		}
		at = end + rnd.IntN(2)
		if at > n {
			break
		}
	}
	if es == nil {
		es = []Edit{{0, 0, []byte("x")}}
	}
	return es
}

func checkEdit(t testing.TB, text []byte, f Format, level int, rnd *rand.Rand) {
	t.Helper()
	raw := packFormat(rnd, f, level, text)
	behind := []byte("behind"[:rnd.IntN(2)*6])
	raw = append(raw, behind...)
	es := someEdits(rnd, len(text))
	_, header, ok := parseHeader(raw, f == Gzip)
	if !ok || header < 0 {
		t.Fatalf("header of format %d: %d, %v", f, header, ok)
	}
	var out bytes.Buffer
	z := new(Editor)
	z.Reset(f == Gzip)
	first := header + rnd.IntN(len(raw)-header+1)
	peek(t, z, raw[:first], text, rnd)
	held := bytes.Clone(raw[:first])
	if err := z.Start(&out, held, text, es); err != nil {
		t.Fatal(err)
	}
	clear(held)
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

// reset prepares an Editor for a stream of a known format.
func reset(z *Editor, f Format, header int) {
	z.Reset(f == Gzip)
	z.format, z.header, z.known = f, header, true
}

// edit applies edits to the text of a complete stream, and writes the edited stream to dst. header is the length of the
// stream's header.
func edit(dst io.Writer, f Format, header int, stream, text []byte, edits []Edit) error {
	z := new(Editor)
	reset(z, f, header)
	if err := z.Start(dst, stream, text, edits); err != nil {
		return err
	}
	return z.Close()
}

// peek calls Peek with longer and longer beginnings of stream, and returns the text so far. It may stop at a random
// place after the header.
func peek(t testing.TB, z *Editor, stream, text []byte, rnd *rand.Rand) []byte {
	t.Helper()
	var got []byte
	status := NeedInput
	for n := 0; n < len(stream) && status == NeedInput; {
		n = min(n+1+rnd.IntN(len(stream)), len(stream))
		for status = More; status == More && (rnd.IntN(50) > 0 || !z.known); {
			got, status = z.Peek(stream[:n], got, 1+rnd.IntN(2000))
		}
	}
	if text != nil && !bytes.HasPrefix(text, got) {
		t.Fatal("Peek returned another text")
	}
	return got
}

func TestEdit(t *testing.T) {
	const seed = 21
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for i, text := range texts {
		for _, f := range []Format{Raw, Gzip, Zlib} {
			for level := flate.HuffmanOnly; level <= 9; level++ {
				t.Run(fmt.Sprintf("text %d/format %d/level %d", i, f, level), func(t *testing.T) {
					checkEdit(t, text, f, level, rnd)
				})
			}
		}
	}
}

// In a corrupt stream, a match refers to bytes before the start of the text. The edited text is longer, so the match
// could become valid. The edited stream must remain corrupt.
func TestBrokenStaysBroken(t *testing.T) {
	var w blockWriter
	w.block([]token{'a', match(3, 5)})
	w.out.add(3, 3+7)
	w.out.align()
	if _, _, err := unpackFormat(Raw, w.out.b); err == nil {
		t.Fatal("the stream is not broken")
	}
	var out bytes.Buffer
	if err := edit(&out, Raw, 0, w.out.b, []byte("a"), []Edit{{0, 0, []byte("longer text")}}); err != nil {
		t.Fatal(err)
	}
	if text, _, err := unpackFormat(Raw, out.Bytes()); err == nil {
		t.Errorf("the stream became valid: %q", text)
	}
}

// An edit makes the distances of later matches longer. In this stream, the blocks' codes have no symbols for the longer
// distances. Nevertheless, the edited stream must not become much longer.
func TestBlocksOfNoUse(t *testing.T) {
	m := &streamMaker{rnd: rand.New(rand.NewPCG(1, 2))}
	head := []byte("0123456789abcdef")
	m.text = bytes.Clone(head)
	toks := make([]token, 0, 10<<10)
	for _, c := range head {
		toks = append(toks, token(c))
	}
	m.fixed(0, toks)
	toks = toks[:0]
	for len(m.text) < windowSize-1000 {
		// The matches repeat text before the edit, so the edit makes their distances longer. The codes of the block
		// have no symbols for the longer distances, or for literals that could replace the matches.
		next := token('z')
		dist := len(m.text) - 5
		for k := 18; k < len(distBase); k += 2 {
			if end := int(distBase[k]); dist < end && dist+600 >= end {
				next = match(3, dist)
			}
		}
		m.text = appendToken(m.text, next)
		toks = append(toks, next)
	}
	m.dynamic(1, toks)
	m.out.align()
	edits := []Edit{{16, 16, bytes.Repeat([]byte("<meta>"), 100)}}
	var out bytes.Buffer
	if err := edit(&out, Raw, 0, m.out.b, m.text, edits); err != nil {
		t.Fatal(err)
	}
	got, _, err := unpackFormat(Raw, out.Bytes())
	if err != nil || !bytes.Equal(got, applyEdits(m.text, edits)) {
		t.Fatalf("%v, %d bytes", err, len(got))
	}
	if grown := out.Len() - len(m.out.b); grown > 4<<10 {
		t.Errorf("%d bytes of stream became %d, for %d of text", len(m.out.b), out.Len(), len(m.text))
	}
	t.Logf("%d bytes of stream became %d, for %d of text", len(m.out.b), out.Len(), len(m.text))
}

// FuzzEdit edits texts inside their streams, and compares the unpacked result with the edited text.
func FuzzEdit(f *testing.F) {
	for i := range 20 {
		f.Add([]byte("<head><title>some text some text</title>"), uint64(i))
	}
	f.Fuzz(checkSomeEdit)
}

func TestRandomEdits(t *testing.T) {
	rnd, n := random(t)
	for range n / 60 {
		text := texts[1]
		text = text[rnd.IntN(len(text)/2):]
		checkSomeEdit(t, text[:rnd.IntN(4<<10)], rnd.Uint64())
	}
}

func checkSomeEdit(t *testing.T, text []byte, seed uint64) {
	if len(text) > 4<<10 {
		return
	}
	rnd := rand.New(rand.NewPCG(seed, 8))
	if n := rnd.IntN(8); n < len(texts) && rnd.IntN(6) == 0 {
		from := texts[n]
		text = append(bytes.Clone(text), from[:rnd.IntN(len(from))]...)
	}
	checkEdit(t, text, Format(rnd.IntN(3)), rnd.IntN(12)-2, rnd)
}

// FuzzPeek reads any bytes as a deflate stream, in any chunks. Peek must return the same text as compress/flate, and
// must agree on whether the text is complete.
func FuzzPeek(f *testing.F) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for level := -2; level <= 9; level++ {
		f.Add(packFormat(rnd, Raw, level, []byte("<head><title>some text some text</title>")), uint64(level))
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
		z := new(Editor)
		reset(z, Raw, 0)
		var got []byte
		status := NeedInput
		for n := 0; status == NeedInput && n < len(raw); {
			n = min(n+1+rnd.IntN(len(raw)), len(raw))
			for status = More; status == More; {
				got, status = z.Peek(raw[:n], got, 1+rnd.IntN(1000))
			}
		}
		if (status == End) != (err == nil) || !bytes.Equal(got, want) {
			t.Fatalf("status %d, %q\ncompress/flate %v, %q", status, got, err, want)
		}
	})
}

func TestChecksumsOfChangedTexts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	for range 2000 {
		text := texts[rnd.IntN(len(texts))]
		text = text[:rnd.IntN(len(text))]
		es := someEdits(rnd, len(text))
		want := applyEdits(text, es)
		s := changeOfSum(text, es, true)
		if got := s.crc32(crc32.ChecksumIEEE(text), int64(len(text))); got != crc32.ChecksumIEEE(want) || s.delta != len(want)-len(text) {
			t.Fatalf("CRC-32 %x for %x, delta %d, edits %v", got, crc32.ChecksumIEEE(want), s.delta, es)
		}
		s = changeOfSum(text, es, false)
		if got := s.adler32(adler32.Checksum(text), int64(len(text))); got != adler32.Checksum(want) {
			t.Fatalf("Adler-32 %x for %x, edits %v", got, adler32.Checksum(want), es)
		}
	}
}
