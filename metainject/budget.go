// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
)

// Unpacking zstd and br takes the window that the body asks for, which may be
// megabytes, for as long as the body takes to arrive. The memory of all of them is
// bounded: while recoding has recodingBudget bytes, further pages pass as they are.
var recoding atomic.Int64

const (
	recodingBudget = 40 << 20
	// pooledCost is the size up to which an unpacker is used again.
	pooledCost = 2 << 20

	brotliCost  = 1792 << 10 // unpacker, packer and buffers, for a text of brotliShort bytes
	brotliShort = 300 << 10
	zstdCost    = 900 << 10 // without the window
)

// costOf estimates the memory that a body takes.
func costOf(k coding, stream []byte) int64 {
	if k == brotliCoding {
		return brotliCost
	}
	var h zstd.Header
	if h.Decode(stream) != nil {
		return zstdCost
	}
	window := h.WindowSize
	if h.SingleSegment {
		window = h.FrameContentSize
	}
	return zstdCost + int64(min(window, maxWindow))
}

func (c *recoder) reserve(n int64) bool {
	if recoding.Add(n) > recodingBudget {
		recoding.Add(-n)
		return false
	}
	c.reserved = n
	return true
}

// grow accounts for the text of a br body, whose unpacker grows with it. A body that
// has begun is not refused any more.
func (c *recoder) grow(text int64) {
	if c.coding != brotliCoding {
		return
	}
	if n := brotliCost + 2*(min(text, maxBrotliWindow)-brotliShort); n > c.reserved && c.running {
		recoding.Add(n - c.reserved)
		c.reserved = n
	}
}

func (c *recoder) unreserve() {
	recoding.Add(-c.reserved)
	c.reserved = 0
}

// A freeList keeps a few unused coders. Unlike a sync.Pool it never holds more of
// them than it has room for.
type freeList struct {
	free chan any
	make func() any
}

func newFreeList(make func() any) *freeList { return &freeList{newFree(), make} }

func newFree() chan any { return make(chan any, 4) }

func (l *freeList) get() any {
	select {
	case v := <-l.free:
		return v
	default:
		return l.make()
	}
}

func (l *freeList) put(v any) {
	select {
	case l.free <- v:
	default:
	}
}
