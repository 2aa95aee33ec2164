// SPDX-License-Identifier: Apache-2.0

package metainject

import "io"

// A splicer changes the head of a text inside its deflate stream (gzip, zlib or
// raw). It does not unpack and pack the text: it reads the stream's own literals
// and matches, puts in and takes out what changes, corrects the distances that
// reach across a change, and writes them with new Huffman codes. Soon behind the
// last change it copies the stream's bits, and only follows the symbols: to a
// distance that reaches back across a change, as there can be for 32 KiB, where
// it rewrites for a while again; and to the end, where the checksum is corrected
// by arithmetic.
//
// A block that is copied can so have to be cut off. None is copied as the last
// one, therefore; an empty one is put behind it.
//
// A stream that is broken is broken at the same place when it comes out; what
// follows is copied.
type splicer struct {
	inf    inflater
	w      blockWriter
	dst    io.Writer
	format format
	phase  splicePhase
	edits  []edit
	next   int   // the first edit that has not been made
	begun  bool  // its text has been put in, bytes are being taken out
	shift  int   // how much longer the new text is so far
	end    int   // of the last edit
	pos    int64 // in the text as it came
	text   []byte
	toks   []token
	buf    [1 << 10]token
	until  int64     // in the text: where to begin to copy, once all edits are made
	span   int64     // how far to rewrite when a copied block was cut off
	at     bitReader // in inf.src: how far it is copied
	dirty  bool      // something was written since the last sync
	sum    headSum
	tail   []byte // of the stream's trailer
}

type splicePhase uint8

const (
	rewriting splicePhase = iota
	copying
	inTrailer
	asItCame
)

const (
	deflateWindow = 32 << 10
	maxMatch      = 258
	blockTokens   = 16 << 10 // as zlib has it by default

	firstSpan = 1 << 10
)

// reset makes the splicer ready to look into a stream with look.
func (z *splicer) reset() {
	z.inf.reset()
	z.w.out.reset()
	z.phase, z.next, z.begun, z.shift, z.pos = rewriting, 0, false, 0, 0
	z.toks, z.text, z.tail, z.dst, z.edits = z.toks[:0], z.text[:0], z.tail[:0], nil, nil
	z.dirty = false
}

// look unpacks the next part of the text behind what is in held, which is the
// text from its beginning.
func (z *splicer) look(held []byte, limit int) ([]byte, event) {
	n, ev := z.inf.step(z.buf[:], limit)
	for _, t := range z.buf[:n] {
		held = appendToken(held, t)
	}
	return held, ev
}

func appendToken(text []byte, t token) []byte {
	if t&isMatch == 0 {
		return append(text, byte(t))
	}
	from, n := len(text)-t.dist(), t.length()
	if t.dist() >= n {
		return append(text, text[from:from+n]...)
	}
	for i := range n {
		text = append(text, text[from+i])
	}
	return text
}

// splice begins to write the changed stream to dst. raw is the stream as far as
// it has come, held the text in it, at least up to the last edit; its wrapping
// takes header bytes.
func (z *splicer) splice(dst io.Writer, f format, raw []byte, header int, held []byte, edits []edit) error {
	z.reset()
	z.dst, z.format, z.edits = dst, f, edits
	z.end = edits[len(edits)-1].end
	z.until, z.span = int64(z.end)+firstSpan, 4*firstSpan
	z.sum = sumHead(held, edits, f == gzipFormat)
	z.w.out.b = append(z.w.out.b, raw[:header]...)
	_, err := z.Write(raw[header:])
	return err
}

// Write takes the next bytes of the stream.
func (z *splicer) Write(b []byte) (int, error) {
	if z.phase == asItCame {
		return z.dst.Write(b)
	}
	z.inf.push(b)
	z.at = z.inf.bitReader
	for z.run() {
		if len(z.w.out.b) >= deflateWindow {
			if err := z.emit(); err != nil {
				return 0, err
			}
		}
	}
	if err := z.emit(); err != nil {
		return 0, err
	}
	return len(b), nil
}

// emit writes the whole bytes that there are.
func (z *splicer) emit() error {
	z.w.out.settle()
	if len(z.w.out.b) == 0 {
		return nil
	}
	_, err := z.dst.Write(z.w.out.b)
	z.w.out.b = z.w.out.b[:0]
	return err
}

// run goes one step on; it returns false when bytes are needed.
func (z *splicer) run() bool {
	switch z.phase {
	case rewriting:
		return z.rewrite()
	case copying:
		return z.follow()
	case inTrailer:
		return z.trailer()
	}
	z.copyAll()
	z.inf.pos = len(z.inf.src)
	return false
}

// follow copies the stream as far as it needs no change.
func (z *splicer) follow() bool {
	d, out := &z.inf, &z.w.out
	from := d.bitReader
	ev := d.follow(int64(z.end))
	switch ev {
	case gotBlock:
		if d.final {
			z.copyTo(from)
			out.add(0, 1) // it is not the last one
			d.bitReader, from = from, d.bitReader
			d.need(1)
			d.take(1)
			z.at, d.bitReader = d.bitReader, from
		}
	case reaches:
		z.copyTo(d.bitReader)
		out.add(uint64(d.lit.endCode), uint(d.lit.endLen))
		z.phase, z.dirty, z.pos = rewriting, true, d.text
		z.until = z.pos + z.span
		z.span *= 2
	case endStream:
		z.copyTo(d.bitReader)
		d.hold, d.nbits = 0, 0 // the rest of the byte is padding
		out.add(3, 3+7)
		out.align()
		z.phase = inTrailer
	case badStream:
		z.copyTo(d.bitReader)
		z.phase = asItCame
	case needMore:
		z.copyTo(d.bitReader)
		return false
	}
	return true
}

// copyTo copies the stream's bits up to that place. They have the same places in
// their bytes as in the stream.
func (z *splicer) copyTo(to bitReader) {
	at, out := z.at, &z.w.out
	z.at = to
	if to.pos == at.pos {
		n := at.nbits - to.nbits
		out.add(at.hold&(1<<n-1), n)
		return
	}
	end := to.pos
	if to.nbits > 0 {
		end--
	}
	out.add(at.hold, at.nbits)
	out.settle()
	out.b = append(out.b, z.inf.src[at.pos:end]...)
	if to.nbits > 0 {
		n := 8 - to.nbits
		out.add(uint64(z.inf.src[end])&(1<<n-1), n)
	}
}

// copyAll copies all that has come, read or not.
func (z *splicer) copyAll() {
	out := &z.w.out
	out.add(z.at.hold, z.at.nbits)
	out.settle()
	out.b = append(out.b, z.inf.src[z.at.pos:]...)
	z.at = bitReader{pos: len(z.inf.src)}
}

func (z *splicer) rewrite() bool {
	limit := z.until - z.pos
	if limit <= 0 {
		z.copyRest(copying)
		return true
	}
	n, ev := z.inf.step(z.buf[:], int(limit))
	if z.next == len(z.edits) && len(z.text) >= z.end+2*maxMatch {
		z.behind(z.buf[:n])
	} else {
		for _, t := range z.buf[:n] {
			z.token(t)
		}
	}
	if len(z.toks) >= blockTokens {
		z.block(false)
	}
	switch ev {
	case endBlock:
		if len(z.toks) > 0 {
			z.block(false)
		}
		if n == 0 && z.inf.head.bits() == 0 { // an empty stored block: a flush
			z.w.sync()
			z.dirty = false
		}
	case endStream:
		z.remaining()
		z.block(true)
		z.w.out.align()
		z.phase = inTrailer
	case badStream:
		// What is wrong here could be right behind a longer text: a block of
		// the kind that does not exist keeps it wrong.
		if len(z.toks) > 0 {
			z.block(false)
		}
		z.w.out.add(7, 3)
		z.w.out.align()
		z.at, z.phase = bitReader{pos: z.inf.pos}, asItCame
	case needMore:
		return false
	}
	return true
}

func (z *splicer) block(final bool) {
	z.w.block(z.toks, final)
	z.toks = z.toks[:0]
	z.dirty = true
}

// copyRest turns from rewriting to copying, at any place of the stream: the
// current block's header is written once more, at such a bit that what follows
// has the same place in its byte as in the stream.
func (z *splicer) copyRest(phase splicePhase) {
	if len(z.toks) > 0 {
		z.block(false)
	}
	d, out := &z.inf, &z.w.out
	switch {
	case d.state == inStored:
		out.add(0, 3)
		out.align()
		out.b = append(out.b, byte(d.stored), byte(d.stored>>8), ^byte(d.stored), ^byte(d.stored>>8))
	case d.state == inSymbols:
		z.w.pad(64 - int(d.nbits) - d.head.bits()&7)
		out.addBits(&d.head)
	default:
		z.w.pad(64 - int(d.nbits))
	}
	z.at, z.phase = d.bitReader, phase
}

// Flush makes all that has come readable at the other end.
func (z *splicer) Flush() error {
	if z.phase == rewriting && (len(z.toks) > 0 || z.dirty) {
		if len(z.toks) > 0 {
			z.block(false)
		}
		z.w.sync()
		z.dirty = false
	}
	return z.emit()
}

// Close is the end of what comes. A stream that has not come to its end stays
// without one.
func (z *splicer) Close() error {
	switch z.phase {
	case rewriting:
		z.copyRest(asItCame)
		z.copyAll()
	case copying:
		z.copyAll()
	case inTrailer:
		z.w.out.settle()
		z.w.out.b = append(z.w.out.b, z.tail...)
	}
	return z.emit()
}

// token takes a token of the text as it came.
func (z *splicer) token(t token) {
	n := 1
	if t&isMatch != 0 {
		n = t.length()
	}
	pos := int(z.pos)
	if len(z.text) < z.end+2*maxMatch {
		z.text = appendToken(z.text, t)
	}
	z.pos += int64(n)
	switch {
	case z.next < len(z.edits) && z.edits[z.next].start < pos+n:
		for i := pos; i < pos+n; i++ {
			z.changed(i)
		}
	case t&isMatch != 0 && z.next > 0 && pos-t.dist() < z.edits[z.next-1].end:
		z.moved(t, pos)
	default:
		z.toks = append(z.toks, t)
	}
}

// behind is token for many, when all changes have been made.
func (z *splicer) behind(toks []token) {
	pos, out := int(z.pos), z.toks
	for _, t := range toks {
		if t&isMatch == 0 {
			out = append(out, t)
			pos++
			continue
		}
		if pos-t.dist() >= z.end {
			out = append(out, t)
		} else {
			z.toks = out
			z.moved(t, pos)
			out = z.toks
		}
		pos += t.length()
	}
	z.toks, z.pos = out, int64(pos)
}

// changed puts in what belongs before the text's byte i, and the byte itself,
// unless it is to be taken out.
func (z *splicer) changed(i int) {
	for z.next < len(z.edits) && z.edits[z.next].start <= i {
		e := &z.edits[z.next]
		if !z.begun {
			z.insert(e.text)
			z.begun = true
		}
		if i < e.end {
			return
		}
		z.made(e)
	}
	z.toks = append(z.toks, token(z.text[i]))
}

func (z *splicer) insert(text []byte) {
	for _, c := range text {
		z.toks = append(z.toks, token(c))
	}
}

func (z *splicer) made(e *edit) {
	z.shift += len(e.text) - (e.end - e.start)
	z.next++
	z.begun = false
}

// remaining makes the edits at the very end of the text.
func (z *splicer) remaining() {
	for z.next < len(z.edits) {
		e := &z.edits[z.next]
		if !z.begun {
			z.insert(e.text)
		}
		z.made(e)
	}
}

// moved takes a match that reaches back across a change, or into one. A match
// that repeats its own beginning is whole only if nothing changed in between.
func (z *splicer) moved(t token, pos int) {
	n, dist := t.length(), t.dist()
	from := pos - dist
	to := from + min(n, dist)
	shift, whole := 0, true
	for _, e := range z.edits[:z.next] {
		if e.end <= from {
			shift += len(e.text) - (e.end - e.start)
		} else if e.start < to {
			whole = false
		}
	}
	if d := dist + z.shift - shift; whole && d <= deflateWindow {
		z.toks = append(z.toks, match(n, d))
		return
	}
	for i := range n {
		z.toks = append(z.toks, token(z.text[from+i%dist]))
	}
}
