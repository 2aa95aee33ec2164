// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"io"
	"math"
)

// A splicer changes the head of a text inside its deflate stream (gzip, zlib or
// raw). It does not unpack and pack the text: it copies the stream's own bits, and
// only follows its symbols. What it puts in, and matches that reach back across a
// change, as there can be for 32 KiB, it writes with the codes of the block that
// they stand in. Where that block has no code for something, it ends there, and
// begins again behind a block that has, which takes over some of what follows too.
// Stored blocks up to the last change are written anew. The checksum at the end is
// corrected by arithmetic.
//
// A block can so come to an end before it is over. None is copied as the last
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
	window int   // the farthest that a match may reach back
	shifts []int // how much longer the new text is behind each edit that has been made
	next   int   // the first edit that has not been made
	begun  bool  // its text has been put in, bytes are being taken out
	end    int   // of the last edit
	text   []byte
	toks   []token // in place of what came
	buf    [1 << 10]token
	loaded bool      // w has the codes of the current block
	until  int64     // in the text: where rewriting ends, if the block does not end before
	span   int64     // how far to rewrite when the codes do not do
	at     bitReader // in inf.src: how far it is copied
	sum    headSum
	tail   []byte // of the stream's trailer
}

type splicePhase uint8

const (
	following splicePhase = iota
	rewriting             // a part of a block
	inTrailer
	asItCame
)

const (
	deflateWindow = 32 << 10
	maxMatch      = 258
	firstSpan     = 256
	blockTokens   = 16 << 10 // as zlib has it by default
)

// reset makes the splicer ready to look into a stream with look.
func (z *splicer) reset() {
	z.inf.reset()
	z.resetOutput()
}

func (z *splicer) resetOutput() {
	z.w.out.reset()
	z.phase, z.next, z.begun = following, 0, false
	z.toks, z.text, z.tail, z.dst, z.edits, z.shifts = z.toks[:0], z.text[:0], z.tail[:0], nil, nil, z.shifts[:0]
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
	z.resetOutput()
	z.dst, z.format, z.edits = dst, f, edits
	z.end = edits[len(edits)-1].end
	z.text = append(z.text, held[:min(len(held), z.textWanted())]...)
	z.span, z.window = firstSpan, deflateWindow
	if f == zlibFormat {
		z.window = 1 << (raw[0]>>4 + 8) // RFC 1950 §2.2
	}
	z.sum = sumHead(held, edits, f == gzipFormat)
	z.w.out.b = append(z.w.out.b, raw[:header]...)
	if z.inf.restart(raw[header:]) {
		z.startBlock()
		return z.runAll()
	}
	z.inf.reset()
	_, err := z.Write(raw[header:])
	return err
}

// textWanted is how much of the text is needed: up to the end of a match that holds
// the last change, or repeats what is around it.
func (z *splicer) textWanted() int { return z.end + maxMatch }

// Write takes the next bytes of the stream. They are taken in parts, so that the
// buffers stay small.
func (z *splicer) Write(b []byte) (n int, err error) {
	for n < len(b) {
		if z.phase == asItCame {
			k, err := z.dst.Write(b[n:])
			return n + k, err
		}
		part := b[n:min(len(b), n+deflateWindow)]
		z.inf.push(part)
		z.at = z.inf.bitReader
		if err := z.runAll(); err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

// runAll goes on as far as what has come allows.
func (z *splicer) runAll() error {
	for z.run() {
		if len(z.w.out.b) >= deflateWindow {
			if err := z.emit(); err != nil {
				return err
			}
		}
	}
	return z.emit()
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
	case following:
		return z.follow()
	case rewriting:
		return z.rewrite()
	case inTrailer:
		return z.trailer()
	}
	z.w.out.b = append(z.w.out.b, z.inf.src[z.inf.pos:]...)
	z.inf.pos = len(z.inf.src)
	return false
}

// follow goes on to where the stream needs a change, or a block begins or ends.
func (z *splicer) follow() bool {
	d := &z.inf
	var ev event
	switch d.state {
	case atHeader:
		from := d.bitReader
		if _, ev = d.step(nil, 0); ev == gotBlock {
			z.copyTo(from)
			z.startBlock()
		}
	case inStored:
		ev = d.skipStored()
	default:
		limit, back := int64(math.MaxInt64), int64(0)
		if z.next < len(z.edits) {
			limit = int64(z.edits[z.next].start)
		}
		if len(z.text) < z.textWanted() {
			limit = min(limit, int64(len(z.text)))
		}
		if z.next > 0 {
			back = int64(z.edits[z.next-1].end)
		}
		if d.text < limit-maxSkip {
			ev = d.skip(back, limit-maxSkip)
		} else {
			ev = reaches
		}
		if ev == reaches {
			ev = z.single()
		}
	}
	switch ev {
	case endBlock:
		z.endBlock()
	case badStream:
		z.broken()
	case needMore:
		z.copyTo(d.bitReader)
		return false
	}
	return true
}

// single looks at one symbol closely.
func (z *splicer) single() event {
	d := &z.inf
	from, pos := d.bitReader, int(d.text)
	n, ev := d.symbols(z.buf[:1], 1)
	if n == 1 && z.token(z.buf[0], pos) {
		z.copyTo(from)
		z.at = d.bitReader
		z.replace()
	}
	return ev
}

// replace writes toks in the current block, or begins to rewrite if that has no
// codes for them. Each time that is for longer: a block can be made so that
// nothing in it is of use.
func (z *splicer) replace() {
	d := &z.inf
	if !z.loaded {
		z.w.use(d)
		z.loaded = true
	}
	if z.w.has(z.toks) {
		z.w.tokens(z.toks)
		z.toks = z.toks[:0]
		return
	}
	z.w.endBlock()
	z.phase, z.until = rewriting, d.text+z.span
	z.span *= 2
}

// block writes toks as a block.
func (z *splicer) block() {
	if len(z.toks) > 0 {
		z.w.block(z.toks)
		z.toks, z.loaded = z.toks[:0], false
	}
}

// startBlock copies a header that was read.
func (z *splicer) startBlock() {
	d, out := &z.inf, &z.w.out
	z.at, z.loaded = d.bitReader, false
	switch {
	case d.state == inSymbols:
		out.addBits(&d.head)
	case d.stored > 0 && (z.next < len(z.edits) || len(z.text) < z.textWanted()):
		z.phase, z.until = rewriting, math.MaxInt64
	default:
		out.add(0, 3)
		out.align()
		out.b = append(out.b, byte(d.stored), byte(d.stored>>8), ^byte(d.stored), ^byte(d.stored>>8))
	}
}

// endBlock goes on behind a block.
func (z *splicer) endBlock() {
	d, out := &z.inf, &z.w.out
	if !d.final {
		d.state = atHeader
		return
	}
	z.copyTo(d.bitReader)
	d.state = streamOver
	d.hold, d.nbits = 0, 0 // the rest of the byte is padding
	z.remaining()
	z.block()
	out.add(3, 3+7)
	out.align()
	z.phase = inTrailer
}

// broken sees to it that what is wrong here stays so: it could be right behind a
// longer text, but a block of the kind that does not exist is not.
func (z *splicer) broken() {
	d, out := &z.inf, &z.w.out
	z.copyTo(d.bitReader)
	if z.phase == following && d.state == inSymbols {
		out.add(uint64(d.lit.endCode), uint(d.lit.endLen))
	}
	out.add(7, 3)
	out.align()
	z.phase = asItCame
}

// rewrite writes all that comes in blocks of its own, up to a place in the current
// block, or to its end.
func (z *splicer) rewrite() bool {
	d := &z.inf
	ev := gotSome
	for ev == gotSome && d.text < z.until && len(z.toks) < blockTokens {
		var n int
		pos := int(d.text)
		n, ev = d.step(z.buf[:], int(min(z.until-d.text, deflateWindow)))
		for _, t := range z.buf[:n] {
			if !z.token(t, pos) {
				z.toks = append(z.toks, t)
			}
			pos += t.size()
		}
	}
	z.block()
	z.at = d.bitReader
	switch {
	case ev == needMore:
		return false
	case ev == badStream:
		z.broken()
	case ev != gotSome:
		z.phase = following
		z.endBlock()
	case d.text >= z.until:
		z.phase = following
		z.w.out.addBits(&d.head)
	}
	return true
}

// copyTo copies the stream's bits up to that place.
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
	out.addBytes(z.inf.src[at.pos:end])
	if to.nbits > 0 {
		n := 8 - to.nbits
		out.add(uint64(z.inf.src[end])&(1<<n-1), n)
	}
}

// Flush makes all that has come readable at the other end.
func (z *splicer) Flush() error {
	if z.w.out.settle(); z.phase == rewriting && z.w.out.n > 0 {
		z.w.sync()
	}
	return z.emit()
}

// Close is the end of what comes. A stream that has not come to its end stays
// without one.
func (z *splicer) Close() error {
	if z.phase == inTrailer {
		z.w.out.b = append(z.w.out.b, z.tail...)
	}
	return z.emit()
}
