// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"encoding/binary"

	"github.com/klauspost/compress/zstd"
)

// zstdFrames follows the frames of a zstd body (RFC 8878 section 3), to find out
// where the last one ends: the unpacker takes everything for a further frame.
type zstdFrames struct {
	state  zstdState
	head   []byte // of a frame or block, as far as it has arrived
	ready  []byte // headers that may be passed on
	left   uint64 // bytes of the current part that may be passed on
	next   zstdState
	frames int
	summed bool // the frame has a checksum
	ended  bool // what is in head, and all that follows, is not of a frame
}

type zstdState uint8

const (
	zstdFrame zstdState = iota // a frame header is next
	zstdBlock                  // a block header is next
	zstdBody                   // left bytes are passed on
)

// maxFrameHeader is the longest frame header, and blockHeader the size of a block's.
const (
	maxFrameHeader = 18
	blockHeader    = 3
)

// read copies into b what belongs to frames, and takes it from in.
func (z *zstdFrames) read(b []byte, in *[]byte) (n int) {
	for {
		k := copy(b[n:], z.ready)
		n, z.ready = n+k, z.ready[k:]
		if n == len(b) || len(*in) == 0 || z.ended {
			return n
		}
		switch z.state {
		case zstdBody:
			k := copy(b[n:], (*in)[:min(uint64(len(*in)), z.left)])
			n += k
			*in = (*in)[k:]
			if z.left -= uint64(k); z.left == 0 {
				z.state = z.next
			}
		case zstdFrame:
			z.frame(in)
		case zstdBlock:
			z.block(in)
		}
	}
}

// frame reads a frame's header, which is passed on when it is complete.
func (z *zstdFrames) frame(in *[]byte) {
	for len(*in) > 0 {
		z.head = append(z.head, (*in)[0])
		*in = (*in)[1:]
		var h zstd.Header
		if err := h.Decode(z.head); err != nil && len(z.head) < maxFrameHeader && mayBeFrame(z.head) {
			continue
		} else if err != nil {
			if z.frames > 0 {
				z.ended = true
				return
			}
			// Not zstd at all: the unpacker finds the words for it.
			z.state, z.next, z.left = zstdBody, zstdBody, 1<<62
			z.pass()
			return
		}
		z.frames++
		if z.summed = h.HasCheckSum; h.Skippable {
			z.state, z.next, z.left = zstdBody, zstdFrame, uint64(h.SkippableSize)
			if z.left == 0 {
				z.state = zstdFrame
			}
		} else {
			z.state = zstdBlock
		}
		z.pass()
		return
	}
}

// mayBeFrame reports whether b begins with the magic number of a frame, as far as it
// goes.
func mayBeFrame(b []byte) bool {
	var magic [4]byte
	binary.LittleEndian.PutUint32(magic[:], 0xFD2FB528)
	skippable := [4]byte{0x50, 0x2A, 0x4D, 0x18}
	frame, skip := true, true
	for i := range min(len(b), 4) {
		frame = frame && b[i] == magic[i]
		c := b[i]
		if i == 0 {
			c &= 0xF0
		}
		skip = skip && c == skippable[i]
	}
	return frame || skip
}

// block reads a block's header.
func (z *zstdFrames) block(in *[]byte) {
	for len(z.head) < blockHeader && len(*in) > 0 {
		z.head = append(z.head, (*in)[0])
		*in = (*in)[1:]
	}
	if len(z.head) < blockHeader {
		return
	}
	v := uint32(z.head[0]) | uint32(z.head[1])<<8 | uint32(z.head[2])<<16
	z.left, z.state, z.next = uint64(v>>3), zstdBody, zstdBlock
	if v>>1&3 == 1 { // a byte that is repeated
		z.left = 1
	}
	if v&1 != 0 { // the last block
		z.next = zstdFrame
		if z.summed {
			z.left += 4
		}
	}
	if z.left == 0 {
		z.state = z.next
	}
	z.pass()
}

func (z *zstdFrames) pass() {
	z.ready = append(z.ready[:0], z.head...)
	z.head = z.head[:0]
}
