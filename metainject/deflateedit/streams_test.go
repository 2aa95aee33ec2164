// SPDX-License-Identifier: Apache-2.0

package deflateedit

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/adler32"
	"io"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
)

// A streamMaker writes valid deflate streams that no compressor would write. They have all kinds of blocks, codes of
// the maximum length, codes that lack symbols or have unused symbols, and both valid symbols for length 258.
type streamMaker struct {
	rnd    *rand.Rand
	out    bitString
	text   []byte
	ends   [][2]int // after each symbol: the length of the stream in bits, and of the text in bytes
	bounds []int    // the starts of the blocks, in bytes of the text
	marks  [][2]int // after each empty stored block: the length of the stream and of the text in bytes
}

func makeStream(rnd *rand.Rand) *streamMaker {
	m := &streamMaker{rnd: rnd}
	for blocks := 1 + rnd.IntN(12); blocks > 0; blocks-- {
		final := uint64(0)
		if blocks == 1 {
			final = 1
		}
		switch rnd.IntN(8) {
		case 0:
			m.stored(final, rnd.IntN(1<<rnd.IntN(17)))
		case 1:
			for range rnd.IntN(30) {
				m.stored(0, 0)
			}
			m.stored(final, rnd.IntN(3))
		case 2, 3:
			m.fixed(final, m.tokens())
		default:
			m.dynamic(final, m.tokens())
		}
		m.bounds = append(m.bounds, len(m.text))
		if final == 0 && rnd.IntN(3) == 0 {
			m.stored(0, 0)
		}
	}
	m.out.align()
	return m
}

// came records the present length of the stream, together with the number of bytes of the text that the stream contains
// so far.
func (m *streamMaker) came(text int) {
	m.ends = append(m.ends, [2]int{len(m.out.b)*8 + int(m.out.n), text})
}

// textIn returns how many bytes of the text are in the first n bytes of the stream.
func (m *streamMaker) textIn(n int) int {
	i := sort.Search(len(m.ends), func(i int) bool { return m.ends[i][0] > n*8 })
	if i == 0 {
		return 0
	}
	return m.ends[i-1][1]
}

func (m *streamMaker) stored(final uint64, n int) {
	m.out.add(final, 3)
	m.out.align()
	m.out.b = append(m.out.b, byte(n), byte(n>>8), ^byte(n), ^byte(n>>8))
	for range n {
		c := byte(m.rnd.IntN(256))
		m.out.b = append(m.out.b, c)
		m.text = append(m.text, c)
		m.came(len(m.text))
	}
	if n == 0 {
		m.marks = append(m.marks, [2]int{len(m.out.b), len(m.text)})
	}
}

// tokens returns random tokens.
func (m *streamMaker) tokens() (toks []token) {
	rnd := m.rnd
	letters, matches := 1+rnd.IntN(256), rnd.IntN(10)
	for range rnd.IntN(1 << rnd.IntN(10)) {
		t := token(rnd.IntN(letters))
		if most := min(len(m.text), windowSize); most > 0 && rnd.IntN(10) < matches {
			dist := 1 + rnd.IntN(most)
			switch rnd.IntN(4) {
			case 0:
				dist = 1 + rnd.IntN(min(most, 8))
			case 1:
				dist = most - rnd.IntN(min(most, 4))
			}
			t = match([...]int{3 + rnd.IntN(8), 3 + rnd.IntN(256), 258}[rnd.IntN(3)], dist)
		}
		toks = append(toks, t)
		m.text = appendToken(m.text, t)
	}
	return toks
}

func (m *streamMaker) fixed(final uint64, toks []token) {
	m.out.add(final|1<<1, 3)
	m.symbols(symbolsOf(m.rnd, toks), fixedLitLen, fixedDistLen)
}

// A coded holds the symbols of a token and their extra bits. For a match of length 258, either of two symbols is valid.
type coded struct {
	size, lit, dist   int
	litMore, distMore uint64
	litBits, distBits uint
}

func symbolsOf(rnd *rand.Rand, toks []token) (s []coded) {
	for _, t := range toks {
		if t&isMatch == 0 {
			s = append(s, coded{size: 1, lit: int(t), dist: -1})
			continue
		}
		l, d := int(lengthSymbol[t.length()]), distSymbol(t.dist())
		if t.length() == 258 && rnd.IntN(2) == 0 {
			l = 27
		}
		s = append(s, coded{t.length(), 257 + l, d, uint64(t.length()) - uint64(lengthBase[l]), uint64(t.dist()) - uint64(distBase[d]), uint(lengthExtra[l]), uint(distExtra[d])})
	}
	return append(s, coded{lit: endOfBlock, dist: -1})
}

func (m *streamMaker) symbols(s []coded, lit, dist []uint8) {
	text := len(m.text)
	for _, c := range s {
		text -= c.size
	}
	litCodes, distCodes := make([]uint16, len(lit)), make([]uint16, len(dist))
	canonical(lit, litCodes)
	canonical(dist, distCodes)
	for _, c := range s {
		m.out.add(uint64(litCodes[c.lit]), uint(lit[c.lit]))
		if c.dist >= 0 {
			m.out.add(c.litMore, c.litBits)
			m.out.add(uint64(distCodes[c.dist]), uint(dist[c.dist]))
			m.out.add(c.distMore, c.distBits)
		}
		text += c.size
		m.came(text)
	}
}

func (m *streamMaker) dynamic(final uint64, toks []token) {
	s := symbolsOf(m.rnd, toks)
	lit, dist := make([]uint8, numLit), make([]uint8, numDist)
	for _, c := range s {
		lit[c.lit] = 1
		if c.dist >= 0 {
			dist[c.dist] = 1
		}
	}
	lit, dist = m.codeLengths(lit, 257), m.codeLengths(dist, 1)
	lengths := slices.Concat(lit, dist)
	// The code lengths are themselves Huffman-coded. This code has 13 symbols of 4 bits and 6 symbols of 5 bits.
	var l [19]uint8
	var codes [19]uint16
	for i := range l {
		l[i] = 4
	}
	for _, i := range m.rnd.Perm(19)[:6] {
		l[i] = 5
	}
	canonical(l[:], codes[:])
	m.out.add(final|2<<1, 3)
	m.out.add(uint64(len(lit)-257)|uint64(len(dist)-1)<<5|15<<10, 14)
	for _, c := range codeOrder {
		m.out.add(uint64(l[c]), 3)
	}
	for i := 0; i < len(lengths); {
		v, n := lengths[i], 1
		for i+n < len(lengths) && lengths[i+n] == v {
			n++
		}
		sym, extra, from := int(v), uint(0), 1
		switch n = 1 + m.rnd.IntN(n); {
		case v == 0 && n >= 11:
			n = min(n, 138)
			sym, extra, from = 18, 7, 11
		case v == 0 && n >= 3:
			sym, extra, from = 17, 3, 3
		case n >= 3 && i > 0 && lengths[i-1] == v:
			n = min(n, 6)
			sym, extra, from = 16, 2, 3
		default:
			n = 1
		}
		m.out.add(uint64(codes[sym]), uint(l[sym]))
		m.out.add(uint64(n-from), extra)
		i += n
	}
	m.symbols(s, lit, dist)
}

// codeLengths assigns a code length to every symbol in use, and to some unused symbols. The resulting code is complete,
// or consists of a single symbol of one bit, or has no symbols. The returned slice has at least atLeast elements.
func (m *streamMaker) codeLengths(used []uint8, atLeast int) []uint8 {
	rnd := m.rnd
	n := 0
	extra := rnd.IntN(2) * rnd.IntN(8)
	for _, i := range rnd.Perm(len(used)) {
		if used[i] == 0 && extra > 0 {
			used[i] = 1
			extra--
		}
		n += int(used[i])
	}
	if n > 1 {
		depths := []uint8{1, 1}
		deep := rnd.IntN(2)
		for len(depths) < n {
			i := rnd.IntN(len(depths))
			if deep > 0 && rnd.IntN(3) > 0 {
				i = len(depths) - 1
			}
			if depths[i] < 15 {
				depths[i]++
				depths = append(depths, depths[i])
			}
		}
		rnd.Shuffle(n, func(i, j int) { depths[i], depths[j] = depths[j], depths[i] })
		for i := range used {
			if used[i] != 0 {
				used[i], depths = depths[0], depths[1:]
			}
		}
	}
	n = len(used)
	for n > atLeast && used[n-1] == 0 {
		n--
	}
	return used[:n]
}

// editsAt returns edits within the first n bytes of a text. Many of them are where a token or a block begins or ends.
func (m *streamMaker) editsAt(n int) []Edit {
	rnd := m.rnd
	place := func(from int) int {
		switch at := m.bounds[rnd.IntN(len(m.bounds))]; rnd.IntN(4) {
		case 0:
			return from
		case 1:
			return n
		case 2:
			if at >= from && at <= n {
				return at
			}
		}
		return from + rnd.IntN(n-from+1)
	}
	var es []Edit
	at := 0
	for range 1 + rnd.IntN(5) {
		start := place(at)
		end := start
		if rnd.IntN(2) == 0 {
			end = min(place(start), start+rnd.IntN(500))
		}
		text := make([]byte, rnd.IntN(3)*rnd.IntN(300))
		for i := range text {
			text[i] = byte(rnd.IntN(256))
		}
		es = append(es, Edit{start, end, text})
		if at = end + 1; at > n {
			break
		}
	}
	return es
}

func inflated(b []byte) ([]byte, error) {
	return io.ReadAll(flate.NewReader(bytes.NewReader(b)))
}

// editedUpTo returns the part of the edited text that must be available when text, the beginning of the original text,
// has arrived.
func editedUpTo(text []byte, es []Edit) []byte {
	var out []byte
	at := 0
	for _, e := range es {
		if e.Start >= len(text) {
			break
		}
		out = append(append(out, text[at:e.Start]...), e.Text...)
		at = min(e.End, len(text))
	}
	return append(out, text[at:]...)
}

// FuzzUnusualStreams edits texts inside streams that no compressor would write: complete streams, incomplete streams,
// and streams with one wrong bit.
func FuzzUnusualStreams(f *testing.F) {
	for i := range 20 {
		f.Add(uint64(i), uint64(i))
	}
	f.Fuzz(checkUnusual)
}

func TestUnusualStreams(t *testing.T) {
	rnd, n := random(t)
	for range n / 120 {
		checkUnusual(t, rnd.Uint64(), rnd.Uint64())
	}
}

func checkUnusual(t *testing.T, seed, seed2 uint64) {
	rnd := rand.New(rand.NewPCG(seed, seed2))
	m := makeStream(rnd)
	raw, marks := m.out.b, m.marks
	if text, err := inflated(raw); err != nil || !bytes.Equal(text, m.text) {
		t.Fatalf("seeds %d, %d: the stream is not valid: %v, %d bytes for %d", seed, seed2, err, len(text), len(m.text))
	}
	first := rnd.IntN(len(raw) + 1)
	if rnd.IntN(3) == 0 && len(marks) > 0 {
		first = marks[rnd.IntN(len(marks))][0]
	}
	broken := rnd.IntN(3)
	switch {
	case broken == 1 && first < len(raw):
		raw = raw[:first+rnd.IntN(len(raw)-first)]
		marks = nil
	case broken == 2 && first < len(raw):
		raw = bytes.Clone(raw)
		raw[first+rnd.IntN(len(raw)-first)] ^= 1 << rnd.IntN(8)
		marks = nil
	}
	z := new(Editor)
	reset(z, Raw, 0)
	var held []byte
	status := NeedInput
	for n := 0; n < first && status == NeedInput; {
		n = min(n+1+rnd.IntN(first), first)
		for status = More; status == More && rnd.IntN(60) > 0 && len(held) < 64<<10; {
			held, status = z.Peek(raw[:n], held, 1+rnd.IntN(3000))
		}
	}
	es := m.editsAt(len(held))
	var out bytes.Buffer
	if err := z.Start(&out, raw[:first], held, es); err != nil {
		t.Fatal(err)
	}
	size := 1 + rnd.IntN(1<<rnd.IntN(16))
	for at := first; ; {
		for len(marks) > 0 && marks[0][0] < at {
			marks = marks[1:]
		}
		if len(marks) > 0 && marks[0][0] == at && rnd.IntN(2) == 0 {
			z.Flush()
			got, _ := inflated(out.Bytes())
			if want := editedUpTo(m.text[:marks[0][1]], es); !bytes.HasPrefix(got, want) {
				t.Fatalf("seeds %d, %d: %d bytes are there after a flush, of %d", seed, seed2, len(got), len(want))
			}
		}
		if at == len(raw) {
			break
		}
		n := min(1+rnd.IntN(size), len(raw)-at)
		if len(marks) > 0 && marks[0][0] > at {
			n = min(n, marks[0][0]-at)
		}
		b := bytes.Clone(raw[at : at+n])
		if _, err := z.Write(b); err != nil {
			t.Fatal(err)
		}
		clear(b)
		at += n
		if rnd.IntN(5) == 0 {
			z.Flush()
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	text, werr := inflated(raw)
	if broken == 1 && werr != nil { // compress/flate may ask for more bits than it needs
		text = m.text[:m.textIn(len(raw))]
	}
	want := editedUpTo(text, es)
	if werr == nil {
		want = applyEdits(text, es)
	}
	got, err := inflated(out.Bytes())
	late := broken == 2 && werr == io.ErrUnexpectedEOF && len(got) <= len(want)+15*maxMatch && bytes.HasPrefix(got, want)
	switch {
	case (werr == nil) != (err == nil), werr == nil && !bytes.Equal(got, want), !bytes.HasPrefix(want, got) && !late:
		t.Fatalf("seeds %d, %d, broken %d: %v, %d bytes; it was %v, %d bytes; edits %v", seed, seed2, broken, err, len(got), werr, len(want), es)
	case len(want)-len(got) > 7*maxMatch:
		t.Fatalf("seeds %d, %d: %d bytes less than there were", seed, seed2, len(want)-len(got))
	}
}

// A zlib stream can declare a small window (RFC 1950 section 2.2). The matches in the edited stream must not have
// distances that exceed this window, because a reader may store no more text than this.
func TestSmallWindow(t *testing.T) {
	var w blockWriter
	var toks []token
	var text []byte
	for i := range 600 {
		x := token(i & 0xFF)
		if i > 200 && i%2 == 0 {
			x = match(3+i%9, min(512, len(text)))
		}
		toks, text = append(toks, x), appendToken(text, x)
	}
	w.block(toks)
	w.out.add(3, 3+7)
	w.out.align()
	raw := append([]byte{0x18, 0x19}, w.out.b...)
	raw = binary.BigEndian.AppendUint32(raw, adler32.Checksum(text))
	edits := []Edit{{300, 302, bytes.Repeat([]byte("<meta>"), 10)}}
	var out bytes.Buffer
	if err := edit(&out, Zlib, 2, raw, text, edits); err != nil {
		t.Fatal(err)
	}
	if got, _, err := unpackFormat(Zlib, out.Bytes()); err != nil || !bytes.Equal(got, applyEdits(text, edits)) {
		t.Fatalf("%v, %d bytes for %d", err, len(got), len(text))
	}
	var d inflater
	var buf [1000]token
	d.push(out.Bytes()[2:])
	for ev := gotSome; ev == gotSome || ev == gotBlock || ev == endBlock; {
		var n int
		n, ev = d.step(buf[:], 1000)
		for _, x := range buf[:n] {
			if x&isMatch != 0 && x.dist() > 512 {
				t.Fatalf("distance %d in a window of 512", x.dist())
			}
		}
	}
}

// A stream ends with a value that cannot be the Adler-32 checksum of any text. Editing must not turn this value into
// the correct checksum.
func TestNoChecksum(t *testing.T) {
	text := []byte{} // its checksum is 1
	raw := append([]byte{0x78, 0x9C}, 3, 0, 0, 0, 0xFF, 0xF2)
	if _, _, err := unpackFormat(Zlib, raw); err == nil {
		t.Fatal("the stream is not broken")
	}
	var out bytes.Buffer
	if err := edit(&out, Zlib, 2, raw, text, []Edit{{0, 0, []byte("text")}}); err != nil {
		t.Fatal(err)
	}
	if got, _, err := unpackFormat(Zlib, out.Bytes()); err == nil {
		t.Errorf("it was made whole: %q", got)
	}
}

// The Editor's buffers stay small even if a large stream arrives in one piece.
func TestMemoryIsBounded(t *testing.T) {
	m := &streamMaker{rnd: rand.New(rand.NewPCG(1, 1))}
	for range 20 {
		m.stored(0, 60<<10)
	}
	m.out.add(3, 3+7)
	m.out.align()
	var out bytes.Buffer
	z := new(Editor)
	edits := []Edit{{5, 5, []byte("text")}}
	reset(z, Raw, 0)
	if err := z.Start(&out, m.out.b[:100], m.text[:90], edits); err != nil {
		t.Fatal(err)
	}
	if n, err := z.Write(m.out.b[100:]); n != len(m.out.b)-100 || err != nil {
		t.Fatal(n, err)
	}
	if got, err := inflated(out.Bytes()); err != nil || !bytes.Equal(got, applyEdits(m.text, edits)) {
		t.Fatalf("%v, %d bytes", err, len(got))
	}
	if most := 3 * windowSize; cap(z.in.buf) > most || cap(z.w.out.b) > 2*most {
		t.Errorf("%d and %d bytes are retained", cap(z.in.buf), cap(z.w.out.b))
	}
}

// BenchmarkTinyBlocks edits texts in streams that have the largest possible number of blocks. The time for a block must
// be proportional to its bits.
func BenchmarkTinyBlocks(b *testing.B) {
	edits := []Edit{{9, 9, []byte("<meta name=robots>")}}
	for name, block := range map[string]func(m *streamMaker){
		"empty, fixed codes": func(m *streamMaker) { m.fixed(0, nil) },
		"one byte, stored":   func(m *streamMaker) { m.stored(0, 1) },
		"a match across": func(m *streamMaker) {
			t := match(3, len(m.text)-8)
			m.text = appendToken(m.text, t)
			m.fixed(0, []token{t})
		},
	} {
		b.Run(name, func(b *testing.B) {
			m := &streamMaker{rnd: rand.New(rand.NewPCG(1, 1))}
			m.stored(0, 12)
			for range 10_000 {
				block(m)
			}
			m.out.add(3, 3+7)
			m.out.align()
			z := new(Editor)
			b.ReportAllocs()
			b.SetBytes(int64(len(m.out.b)))
			for b.Loop() {
				reset(z, Raw, 0)
				if err := z.Start(io.Discard, m.out.b, m.text, edits); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// canonical computes the canonical codes with the given lengths. The lowest bit of a code is sent first.
func canonical(lengths []uint8, codes []uint16) {
	var count, next [17]uint16
	for _, l := range lengths {
		count[l]++
	}
	count[0] = 0
	for l := 1; l < 16; l++ {
		next[l+1] = (next[l] + count[l]) << 1
	}
	for i, l := range lengths {
		if l > 0 {
			codes[i] = bits.Reverse16(next[l]) >> (16 - l)
			next[l]++
		}
	}
}
