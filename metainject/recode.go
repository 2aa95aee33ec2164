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

// Pages in zstd and br are held, unpacked, changed and packed as a whole. recoding counts the bytes of memory that such
// pages take: the held bytes, the unpacked text, the unpackers' memory, and the bytes that slow clients have not read
// yet. When recoding reaches recodingBudget, further pages in zstd and br are sent unchanged. Such pages are rare,
// because narrowCodings asks the handler for gzip.
//
// For other pages only the head is held. heads counts the held bytes of all such pages. When it reaches headsBudget, no
// further bytes are held. A page whose head has not arrived completely is then sent at once, and only the part that has
// arrived is changed.
var recoding, heads atomic.Int64

const (
	recodingBudget = 40 << 20
	headsBudget    = 64 << 20
	// editorCost is the memory that the editor of a page in gzip or deflate takes.
	editorCost = 64 << 10
	// maxPacked and maxText limit the lengths of a compressed and an unpacked page in zstd or br. Longer pages are not
	// changed.
	maxPacked = 2 << 20
	maxText   = 16 << 20
	// The unpacked text may have bombBase bytes, plus bombRatio bytes for each byte of the body. Ordinary pages stay
	// far below this limit. The limit bounds the work that a small body can cause.
	bombBase  = 1 << 20
	bombRatio = 1024
	// coderCost is the memory of an unpacker and a packer, without the window. In br each code table takes treeCost
	// more. There are at most 256 tables for each of three kinds of block, and a table takes at least 12 bits of
	// the body.
	coderCost = 1 << 20
	treeCost  = 4320
	maxTrees  = 3 * 256
	// maxUnpacking limits how many pages are unpacked at the same time.
	maxUnpacking = 4
	// textStep is the smallest number of bytes that the buffer for text grows by.
	textStep = 64 << 10
	// maxWindow is the largest window that zstd in HTTP may ask a reader to have (RFC 9659).
	maxWindow = 8 << 20
	// minWindow is the smallest window that zstd allows. maxPooledWindow is the largest window of an unpacker that
	// is kept for reuse.
	minWindow       = 1 << 10
	windowByte      = 5 // index of the byte with the window size in a zstd body
	maxPooledWindow = 4 << 20
	// packWindow limits the memory of a packer.
	packWindow  = 64 << 10
	packBits    = 16 // the base-2 logarithm of packWindow, for br
	brotliLevel = 1
)

// An unpacker decompresses one body at a time.
type unpacker interface {
	io.Reader
	Reset(io.Reader) error
}

// A packer compresses one body at a time.
type packer interface {
	io.WriteCloser
	Reset(io.Writer)
}

var unpackers = map[coding]*sync.Pool{
	zstdCoding: {New: func() any {
		// Without concurrency the decoder works in the goroutine that reads from it.
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			panic(err) // cannot happen: the options are constant
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

// gather stores the next bytes of a page in zstd or br. If the page is longer than maxPacked, or the memory for such
// pages is used up (see recoding), gather sends the page unchanged.
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

// sendWhole sends a page in zstd or br, changed if possible.
func (rw *ResponseWriter) sendWhole() error {
	out, full := rw.recode()
	rw.checkHead(full)
	rw.commit(0, true, len(rw.page.edits) > 0)
	_, err := rw.w.Write(out)
	return rw.flushed(err)
}

// unpacking is a semaphore that limits how many pages are unpacked at the same time. A page holds it only while the
// page is unpacked and packed, and never while the page waits for a client.
var unpacking = make(chan struct{}, min(maxUnpacking, runtime.GOMAXPROCS(0)))

// recode returns the bytes to send for a held page. full reports whether the text has at least MaxHead bytes, so that
// the head may be longer. recode releases all memory except the returned bytes and small buffers.
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

// unpack unpacks a page in zstd or br into held. It returns false for a page that must be sent unchanged: the body
// is damaged, cut short, followed by other bytes or too long, or no memory is left.
func (p *page) unpack() bool {
	limit := min(maxText, bombBase+bombRatio*len(p.raw))
	at, narrow, window := narrowed(p.coding, p.raw, bits.Len(uint(limit+16))) // +16: br cannot use the last 16 bytes of its window
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
	if d, ok := u.(*zstd.Decoder); ok { // a later frame must not use a larger window than the reserved one
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
		_ = u.Reset(nil) // drops the reader; cannot fail
		unpackers[p.coding].Put(u)
	}
	return err == io.EOF && len(p.held) <= limit
}

// grow enlarges the buffer for text. While the text is copied, both buffers exist and are counted.
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

// narrowed returns the size of the window for unpacking a body, or 0 if raw is not a compressed body. The window is the
// memory for the text that the body may repeat. raw[at] declares its size (RFC 7932 section 9.1, RFC 8878 section
// 3.1.1.1). The caller can store narrow in raw[at] to declare a smaller window that is still large enough for a text of
// up to 1<<need bytes. If the window is not larger than needed, narrow is the present value of raw[at].
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

// hold reserves memory for a page's buffers. If it returns false, the page must not store any more bytes. The page
// then gets no entity tag, because its bytes differ from the bytes that are normally sent for this page.
func (p *page) hold() bool {
	n := len(p.raw) + len(p.held) - p.reserved
	if p.editor != nil {
		n += editorCost
	}
	p.busy = !p.reserve(n)
	return !p.busy
}

// release returns n bytes of a page's reserved memory to the budget.
func (p *page) release(n int) {
	if p.coding.whole() {
		recoding.Add(int64(-n))
	} else if n != 0 {
		heads.Add(int64(-n))
	}
	p.reserved -= n
}

func (p *page) unreserve() { p.release(p.reserved) }
