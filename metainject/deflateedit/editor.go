// SPDX-License-Identifier: Apache-2.0

package deflateedit

import (
	"io"
	"math"
)

// An Edit replaces the bytes from Start to End of a text with Text. The edits of a text are in order and do not
// overlap.
type Edit struct {
	Start, End int
	Text       []byte
}

// An Editor edits one stream at a time.
type Editor struct {
	in       inflater
	w        blockWriter
	dst      io.Writer
	gzip     bool // the argument of Reset
	format   Format
	header   int // the size in bytes of the container's header
	known    bool
	phase    phase
	edits    []Edit
	window   int   // the largest allowed distance of a match
	shifts   []int // for each finished edit, the bytes that all edits so far have added to the text
	next     int   // index of the next edit
	inserted bool  // the text of the next edit was written, but its old bytes are not all removed yet
	end      int   // the end of the last edit, as a position in the old text
	text     []byte
	toks     []token // tokens to write instead of the original tokens
	buf      [1 << 10]token
	until    int64     // position in the text where rewriting ends, unless the block ends earlier
	span     int64     // bytes to rewrite the next time that the block's codes lack a symbol
	at       bitReader // position in in.src before which everything has been written
	sum      sumChange
	tail     []byte // the part of the container's trailer read so far
}

type phase uint8

const (
	following phase = iota
	rewriting       // tokens are written in new blocks
	inTrailer       // reading the trailer, which follows the last block
	copyRest        // copying bytes after the trailer, or after an error in the stream
)

const (
	windowSize  = 32 << 10
	maxMatch    = 258
	firstSpan   = 256
	blockTokens = 16 << 10 // zlib's default
	maxRetained = 128 << 10
)

// Reset prepares the Editor for a new stream. gzip tells whether the stream is gzip. If not, the Editor detects
// whether it is zlib or raw deflate.
func (e *Editor) Reset(gzip bool) {
	e.in.reset()
	e.gzip, e.known = gzip, false
	e.resetOutput()
}

func (e *Editor) resetOutput() {
	e.w.out.reset()
	if cap(e.text) > maxRetained {
		e.text = nil
	}
	e.phase, e.next, e.inserted = following, 0, false
	e.toks, e.text, e.tail, e.dst, e.edits, e.shifts = e.toks[:0], e.text[:0], e.tail[:0], nil, nil, e.shifts[:0]
}

// Start begins to write the edited stream to dst. stream is the part of the old stream that has arrived. text is the
// text that Peek returned for it, and must reach the end of the last edit. There must be at least one edit. Start does
// not keep the slices stream and text.
func (e *Editor) Start(dst io.Writer, stream, text []byte, edits []Edit) error {
	e.resetOutput()
	e.dst, e.edits = dst, edits
	e.end = edits[len(edits)-1].End
	e.text = append(e.text, text[:min(len(text), e.textWanted())]...)
	e.span, e.window = firstSpan, windowSize
	if e.format == Zlib {
		e.window = 1 << (stream[0]>>4 + 8) // RFC 1950 section 2.2
	}
	e.sum = changeOfSum(text, edits, e.format == Gzip)
	e.w.out.b = append(e.w.out.b, stream[:e.header]...)
	inFirstBlock := e.in.rewind()
	e.in.src = stream[e.header:]
	e.at = e.in.bitReader
	if inFirstBlock {
		e.startBlock()
	}
	return e.runAll()
}

// textWanted returns how many bytes of the old text, beginning with its first byte, must be stored. A match that copies
// text from before the end of the last edit may have to be replaced with the copied bytes, so the Editor needs these
// bytes. They begin before the end of the last edit, so they end less than maxMatch bytes after it.
func (e *Editor) textWanted() int { return e.end + maxMatch }

// Write edits the next bytes of the stream.
func (e *Editor) Write(b []byte) (n int, err error) {
	for n < len(b) {
		if e.phase == copyRest {
			k, err := e.dst.Write(b[n:])
			return n + k, err
		}
		part := b[n:min(len(b), n+windowSize)] // in parts, so that the buffers stay small
		e.in.push(part)
		e.at = e.in.bitReader
		if err := e.runAll(); err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

// runAll processes as much input as possible, and stores the rest.
func (e *Editor) runAll() error {
	for e.run() {
		if len(e.w.out.b) >= windowSize {
			if err := e.emit(); err != nil {
				return err
			}
		}
	}
	e.in.push(nil)
	return e.emit()
}

func (e *Editor) emit() error {
	e.w.out.settle()
	if len(e.w.out.b) == 0 {
		return nil
	}
	_, err := e.dst.Write(e.w.out.b)
	e.w.out.b = e.w.out.b[:0]
	return err
}

// run does one step of the current phase. It returns false if it needs more input.
func (e *Editor) run() bool {
	switch e.phase {
	case following:
		return e.follow()
	case rewriting:
		return e.rewrite()
	case inTrailer:
		return e.trailer()
	case copyRest:
	}
	e.w.out.b = append(e.w.out.b, e.in.src[e.in.pos:]...)
	e.in.pos = len(e.in.src)
	return false
}

// follow copies tokens until a change is needed, or a block begins or ends.
func (e *Editor) follow() bool {
	d := &e.in
	var ev event
	switch d.state {
	case atHeader:
		from := d.bitReader
		if _, ev = d.step(nil, 0); ev == gotBlock {
			e.copyTo(from)
			e.startBlock()
		}
	case inStored:
		ev = d.skipStored()
	case inSymbols, streamOver:
		limit, back := int64(math.MaxInt64), int64(0)
		if e.next < len(e.edits) {
			limit = int64(e.edits[e.next].Start)
		}
		if len(e.text) < e.textWanted() {
			limit = min(limit, int64(len(e.text)))
		}
		if e.next > 0 {
			back = int64(e.edits[e.next-1].End)
		}
		if d.text < limit-maxSkip {
			ev = d.skip(back, limit-maxSkip)
		} else {
			ev = reaches
		}
		if ev == reaches {
			ev = e.single()
		}
	}
	switch ev {
	case endBlock:
		e.endBlock()
	case badStream:
		e.corrupt()
	case needMore:
		e.copyTo(d.bitReader)
		return false
	case gotSome, gotBlock, endStream, reaches:
	}
	return true
}

// single reads one token, and replaces it if needed.
func (e *Editor) single() event {
	d := &e.in
	from, pos := d.bitReader, int(d.text)
	n, ev := d.symbols(e.buf[:1], 1)
	if n == 1 && e.token(e.buf[0], pos) {
		e.copyTo(from)
		e.at = d.bitReader
		e.replace()
	}
	return ev
}

// replace writes toks with the codes of the current block. If these codes lack a symbol, it ends the block and writes
// the next tokens in new blocks. The symbol may be missing in all following blocks, too. So each time this happens, the
// Editor rewrites twice as many bytes as before, to limit the number of new blocks.
func (e *Editor) replace() {
	d := &e.in
	e.w.lit, e.w.dist = d.lit, d.dist
	if e.w.has(e.toks) {
		e.w.tokens(e.toks)
		e.toks = e.toks[:0]
		return
	}
	e.w.endBlock()
	e.phase, e.until = rewriting, d.text+e.span
	e.span *= 2
}

func (e *Editor) block() {
	if len(e.toks) > 0 {
		e.w.block(e.toks)
		e.toks = e.toks[:0]
	}
}

// startBlock writes the header of the block that begins in the old stream.
func (e *Editor) startBlock() {
	d, out := &e.in, &e.w.out
	e.at = d.bitReader
	switch {
	case d.state == inSymbols:
		out.addBits(&d.head)
	case d.stored > 0 && (e.next < len(e.edits) || len(e.text) < e.textWanted()):
		e.phase, e.until = rewriting, math.MaxInt64
	default:
		out.add(0, 3)
		out.align()
		out.b = append(out.b, byte(d.stored), byte(d.stored>>8), ^byte(d.stored), ^byte(d.stored>>8))
	}
}

func (e *Editor) endBlock() {
	d, out := &e.in, &e.w.out
	if !d.final {
		d.state = atHeader
		return
	}
	e.copyTo(d.bitReader)
	d.state = streamOver
	d.hold, d.nbits = 0, 0 // the rest of the byte is padding
	e.remainingEdits()
	e.block()
	out.add(3, 3+7) // the final block: empty, with fixed codes
	out.align()
	e.phase = inTrailer
}

// corrupt writes a block of the reserved type, so that the new stream is corrupt at the same place as the old stream.
// Copying the invalid bits would not be enough, because a distance that is too large for the old text may be valid in
// the new text.
func (e *Editor) corrupt() {
	d, out := &e.in, &e.w.out
	e.copyTo(d.bitReader)
	if e.phase == following && d.state == inSymbols {
		out.add(uint64(d.lit.code[endOfBlock]), uint(d.lit.length[endOfBlock]))
	}
	out.add(7, 3)
	out.align()
	e.phase = copyRest
}

// rewrite writes tokens in new blocks, up to the position e.until or the end of the current block.
func (e *Editor) rewrite() bool {
	d := &e.in
	ev := gotSome
	for ev == gotSome && d.text < e.until && len(e.toks) < blockTokens {
		var n int
		pos := int(d.text)
		n, ev = d.step(e.buf[:], int(min(e.until-d.text, windowSize)))
		for _, t := range e.buf[:n] {
			if !e.token(t, pos) {
				e.toks = append(e.toks, t)
			}
			pos += t.size()
		}
	}
	e.block()
	e.at = d.bitReader
	switch {
	case ev == needMore:
		return false
	case ev == badStream:
		e.corrupt()
	case ev != gotSome:
		e.phase = following
		e.endBlock()
	case d.text >= e.until:
		e.phase = following
		e.w.out.addBits(&d.head) // the block continues after a copy of its header
	}
	return true
}

func (e *Editor) copyTo(to bitReader) {
	at, out := e.at, &e.w.out
	e.at = to
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
	out.addBytes(e.in.src[at.pos:end])
	if to.nbits > 0 {
		n := 8 - to.nbits
		out.add(uint64(e.in.src[end])&(1<<n-1), n)
	}
}

// Flush writes enough for a reader to unpack all text that has arrived.
func (e *Editor) Flush() error {
	if e.w.out.settle(); e.phase == rewriting && e.w.out.n > 0 {
		e.w.sync()
	}
	return e.emit()
}

// Close ends the input. If the old stream is incomplete, the new stream is incomplete as well.
func (e *Editor) Close() error {
	if e.phase == inTrailer {
		e.w.out.b = append(e.w.out.b, e.tail...)
	}
	return e.emit()
}
