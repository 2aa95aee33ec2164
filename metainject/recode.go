// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"bytes"
	"io"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// Pages in zstd and br are held, unpacked, changed and packed as a whole. While they take recodingBudget
// bytes, further ones pass as they are. That counts what they unpack to, what unpacking takes, and what a slow
// client has not yet read. Few arrive, because gzip is asked for first (narrowCodings).
//
// Only the head of other pages is held. While slow heads take headsBudget bytes, further ones are changed as
// far as they have been seen.
var recoding, heads atomic.Int64

const (
	recodingBudget = 40 << 20
	headsBudget    = 64 << 20
	// editorCost is the memory of an editor, which a page in gzip or deflate has.
	editorCost = 64 << 10
	// maxPacked and maxText limit the length of pages that are changed.
	maxPacked = 2 << 20
	maxText   = 16 << 20
	// The text may have bombBase bytes, and bombRatio for each byte of the body. No
	// page comes near that; it bounds the work that a few bytes can cause.
	bombBase  = 1 << 20
	bombRatio = 1024
	// coderCost is the memory of an unpacker and a packer, without the window. In br each code table takes
	// treeCost; three kinds of block have at most 256 of them, and one takes at least 12 bits of the body.
	coderCost = 1 << 20
	treeCost  = 4320
	maxTrees  = 3 * 256
	// maxUnpacking is the number of pages that are unpacked at once, on as many processors.
	maxUnpacking = 4
	// textStep is by how much the room for text grows at least.
	textStep = 64 << 10
	// maxWindow is the largest window that zstd in HTTP may ask a reader to have (RFC 9659).
	maxWindow = 8 << 20
	// minWindow is the smallest that zstd knows, and maxPooledWindow the largest of an unpacker that is kept.
	minWindow       = 1 << 10
	windowByte      = 5 // behind the magic number and a byte of flags
	maxPooledWindow = 4 << 20
	// packWindow keeps the memory of a packer low.
	packWindow  = 64 << 10
	packBits    = 16 // the same for br
	brotliLevel = 1
)

// An unpacker reads one body in a coding.
type unpacker interface {
	io.Reader
	Reset(io.Reader) error
}

// A packer writes one body in a coding.
type packer interface {
	io.WriteCloser
	Reset(io.Writer)
}

var unpackers = map[coding]*sync.Pool{
	zstdCoding: {New: func() any {
		// Without concurrency it decodes in the goroutine that reads from it.
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			panic(err) // constant options
		}
		return d
	}},
	brotliCoding: {New: func() any { return brotli.NewReader(nil) }},
}

var packers = map[coding]*sync.Pool{
	zstdCoding: {New: func() any {
		w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(packWindow))
		if err != nil {
			panic(err)
		}
		return w
	}},
	brotliCoding: {New: func() any {
		return brotli.NewWriterOptions(nil, brotli.WriterOptions{Quality: brotliLevel, LGWin: packBits})
	}},
}

// gather holds the next bytes of a page in zstd or br, or passes it as it is if there is no memory.
func (rw *ResponseWriter) gather(b []byte) (int, error) {
	p := rw.page
	if len(p.raw)+len(b) <= maxPacked && p.reserve(len(b)) {
		p.raw = append(p.raw, b...)
		rw.keepHeader()
		return len(b), nil
	}
	p.scan.Foreign, p.busy = true, true
	if err := rw.sendWhole(); err != nil {
		return 0, err
	}
	return rw.w.Write(b)
}

// sendWhole sends a page in zstd or br, changed if that can be.
func (rw *ResponseWriter) sendWhole() error {
	out, full := rw.recode()
	rw.checkHead(full)
	rw.commit(0, true, len(rw.page.edits) > 0)
	_, err := rw.w.Write(out)
	return rw.flushed(err)
}

// unpacking bounds how many pages are unpacked at once. It is held for work of the processor only, so that waiting
// for it takes no longer than sharing the processors does.
var unpacking = make(chan struct{}, min(maxUnpacking, runtime.GOMAXPROCS(0)))

// recode returns what is sent for a held page, and whether its head may fill the buffer. It lets go of all memory but
// that and small buffers.
func (rw *ResponseWriter) recode() (out []byte, full bool) {
	p := rw.page
	out = p.raw
	if p.scan.Foreign || len(p.raw) == 0 {
		return out, false
	}
	unpacking <- struct{}{}
	defer func() { <-unpacking }()
	if p.scan.Foreign = !p.unpack(); !p.scan.Foreign {
		head := p.held[:min(len(p.held), rw.o.MaxHead)]
		p.scan.Scan(head, len(head) == len(p.held))
	}
	full = len(p.held) >= rw.o.MaxHead
	kept := cap(p.raw)
	if p.edits = editsOf(p.array[:0], &p.scan, rw.o.Set, rw.o.Mode, rw.o.Fragments); len(p.edits) > 0 {
		out = p.repack()
		kept += cap(out)
	}
	if cap(p.held) > 2*DefaultMaxHead {
		p.held = nil
	}
	p.release(p.reserved - kept - cap(p.held))
	return out, full
}

// unpack puts the text of a page in zstd or br into held. It returns false for a page that must pass as it is:
// damaged, cut short, followed by something else, or too long, or if there is no memory.
func (p *page) unpack() bool {
	limit := min(maxText, bombBase+bombRatio*len(p.raw))
	at, narrow, window := narrowed(p.coding, p.raw, bits.Len(uint(limit+16))) // br cannot reach the last 16 bytes of its window
	if window == 0 {
		return false
	}
	was := p.raw[at]
	p.raw[at] = narrow
	defer func() { p.raw[at] = was }()
	cost := coderCost + window + 2*len(p.raw) + cap(p.held) // the changed page can be longer
	if p.coding == brotliCoding {
		cost += min(maxTrees, len(p.raw)*8/12) * treeCost
	}
	if p.busy = !p.reserve(cost); p.busy {
		return false
	}
	u := unpackers[p.coding].Get().(unpacker)
	var err error
	if d, ok := u.(*zstd.Decoder); ok { // a further frame may ask for more
		err = d.ResetWithOptions(bytes.NewReader(p.raw), zstd.WithDecoderMaxWindow(uint64(window)))
	} else {
		err = u.Reset(bytes.NewReader(p.raw))
	}
	for err == nil && len(p.held) <= limit {
		if len(p.held) == cap(p.held) && !p.grow() {
			return false
		}
		var n int
		n, err = u.Read(p.held[len(p.held):cap(p.held)])
		p.held = p.held[:len(p.held)+n]
	}
	if window <= maxPooledWindow {
		_ = u.Reset(nil) // it only drops the reader
		unpackers[p.coding].Put(u)
	}
	return err == io.EOF && len(p.held) <= limit
}

// grow makes room for more text. While it is copied, it is there twice.
func (p *page) grow() bool {
	had := cap(p.held)
	more := max(textStep, had)
	if p.busy = !p.reserve(had + more); p.busy {
		return false
	}
	p.held = append(make([]byte, 0, had+more), p.held...)
	p.release(had)
	return true
}

// narrowed returns the window of a body, which is the memory that unpacking needs for text that may be repeated, or 0
// if raw is not a compressed body. One byte of the body declares the window (RFC 7932 section 9.1, RFC 8878 section
// 3.1.1.1). narrowed returns that byte with its place, changed so that the window is no larger than a text of the
// given bits needs. A text of that length unpacks to the same bytes.
func narrowed(c coding, raw []byte, need int) (at int, narrow byte, window int) {
	first := raw[0]
	if c == brotliCoding {
		n := int(first >> 1 & 7)
		switch {
		case first&1 == 0:
			return 0, first, 1 << 16
		case n == 0 && first>>4&7 == 0:
			return 0, first, 1 << 17
		case n == 0:
			return 0, first, 1 << (8 + first>>4&7)
		}
		n = min(n, max(need-17, 1))
		return 0, first&^0xE | byte(n<<1), 1 << (17 + n)
	}
	var h zstd.Header
	if err := h.Decode(raw); err != nil {
		return 0, first, 0
	}
	switch size := int(min(h.WindowSize, maxWindow+1)); {
	case h.Skippable:
		return 0, first, maxWindow
	case h.SingleSegment:
		return 0, first, int(min(max(h.FrameContentSize, minWindow), maxWindow))
	case size > 1<<need:
		return windowByte, byte((need - 10) << 3), 1 << need
	default:
		return 0, first, min(max(size, minWindow), maxWindow)
	}
}

// repack returns the changed page in its coding.
func (p *page) repack() []byte {
	var out bytes.Buffer // writing to it never fails
	out.Grow(len(p.raw) + len(p.raw)/8)
	w := packers[p.coding].Get().(packer)
	w.Reset(&out)
	_, _ = writeEdited(w, p.held, p.edits)
	_ = w.Close()
	w.Reset(nil)
	packers[p.coding].Put(w)
	return out.Bytes()
}

func (p *page) reserve(n int) bool {
	used, budget := &heads, int64(headsBudget)
	if p.coding.whole() {
		used, budget = &recoding, recodingBudget
	}
	if used.Add(int64(n)) > budget {
		used.Add(int64(-n))
		return false
	}
	p.reserved += n
	return true
}

// hold reserves memory for a page's buffers. Without, no more is held, and the page gets no entity tag, which
// would be of the page as it is otherwise.
func (p *page) hold() bool {
	n := len(p.raw) + len(p.held) - p.reserved
	if p.editor != nil {
		n += editorCost
	}
	p.busy = !p.reserve(n)
	return !p.busy
}

// release gives back reserved memory.
func (p *page) release(n int) {
	if p.coding.whole() {
		recoding.Add(int64(-n))
	} else if n != 0 {
		heads.Add(int64(-n))
	}
	p.reserved -= n
}

func (p *page) unreserve() { p.release(p.reserved) }
