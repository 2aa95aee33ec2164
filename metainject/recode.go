// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"bytes"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// Pages in zstd and br are held, unpacked, changed and packed as a whole. While they take recodingBudget
// bytes, further ones pass as they are. Few arrive, because gzip is asked for first (narrowCodings).
//
// Of other pages only the head is held. While slow heads take headsBudget bytes, further ones are changed as
// far as they have been seen.
var recoding, heads atomic.Int64

const (
	recodingBudget = 40 << 20
	headsBudget    = 64 << 20
	// editorCost is the memory of an editor, which a page in gzip or deflate has.
	editorCost = 64 << 10
	// maxPacked and maxText are the longest page that is changed.
	maxPacked = 2 << 20
	maxText   = 16 << 20
	// The text may have bombBase bytes, and bombRatio for each byte of the body. No
	// page comes near that; it bounds the work that a few bytes can cause.
	bombBase  = 1 << 20
	bombRatio = 1024
	// coderCost is the memory of an unpacker and a packer, without the window.
	coderCost = 1 << 20
	// textStep is by how much the room for text grows at least.
	textStep = 64 << 10
	// maxWindow is the largest window that zstd in HTTP may ask a reader to have (RFC 9659).
	maxWindow = 8 << 20
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
	if err := rw.sendCoded(); err != nil {
		return 0, err
	}
	return rw.w.Write(b)
}

// unpack puts the text of a page in zstd or br into held. It returns false for a page that must pass as it is:
// damaged, cut short, followed by something else, or too long.
func (p *page) unpack() bool {
	if !p.reserve(coderCost) {
		p.busy = true
		return false
	}
	u := unpackers[p.coding].Get().(unpacker)
	err := u.Reset(bytes.NewReader(p.raw))
	for limit := min(maxText, bombBase+bombRatio*len(p.raw)); err == nil; {
		if len(p.held) == cap(p.held) {
			more := max(textStep, len(p.held))
			if p.busy = !p.reserve(2 * more); p.busy || len(p.held) > limit { // the window grows with the text
				return false
			}
			p.held = slices.Grow(p.held, more)
		}
		var n int
		n, err = u.Read(p.held[len(p.held):cap(p.held)])
		p.held = p.held[:len(p.held)+n]
	}
	if len(p.held) <= bombBase { // with a small window
		_ = u.Reset(nil) // it only drops the reader
		unpackers[p.coding].Put(u)
	}
	return err == io.EOF
}

// repack returns the changed page in its coding.
func (p *page) repack() []byte {
	var out bytes.Buffer // to which nothing fails to be written
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

func (p *page) unreserve() {
	if p.coding.whole() {
		recoding.Add(int64(-p.reserved))
	} else if p.reserved != 0 {
		heads.Add(int64(-p.reserved))
	}
	p.reserved = 0
}
