// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"bufio"
	"errors"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/robotspolicy/caddy-robots-policy/metainject/internal/ascii"
)

// coding is a content coding (RFC 9110 §8.4.1).
type coding uint8

const (
	identity coding = iota
	gzipCoding
	deflateCoding // zlib, or, as some servers mean it, raw deflate
	zstdCoding
	brotliCoding
	codings // how many are understood
	unknownCoding
)

// codingOf reads a Content-Encoding field. More than one coding is unknown.
func codingOf(values []string) coding {
	if len(values) == 0 {
		return identity
	}
	if len(values) > 1 {
		return unknownCoding
	}
	switch v := strings.Trim(values[0], " \t"); {
	case v == "", ascii.EqualFold(v, "identity"):
		return identity
	case ascii.EqualFold(v, "gzip"), ascii.EqualFold(v, "x-gzip"):
		return gzipCoding
	case ascii.EqualFold(v, "deflate"):
		return deflateCoding
	case ascii.EqualFold(v, "zstd"):
		return zstdCoding
	case ascii.EqualFold(v, "br"):
		return brotliCoding
	}
	return unknownCoding
}

// An unpacker reads one body in a coding.
type unpacker interface {
	io.Reader
	Reset(io.Reader) error
}

// A packer writes one body in a coding.
type packer interface {
	io.WriteCloser
	Flush() error
	Reset(io.Writer)
}

const (
	// maxWindow is the largest window that zstd in HTTP may ask a reader to
	// have (RFC 9659).
	maxWindow = 8 << 20
	// maxBrotliWindow is the largest window of br (RFC 7932 section 9.1).
	maxBrotliWindow = 16 << 20
	// packWindow keeps the memory of a zstd packer low.
	packWindow = 32 << 10
	// brotliBlock is how much text a br packer gets at once: it packs each Write by
	// itself.
	brotliBlock = 32 << 10
	brotliLevel = 1
)

// unpackers and packers are for the codings that have to be unpacked and packed
// again.
var unpackers = [codings]*freeList{
	zstdCoding: newFreeList(func() any {
		// Without concurrency it decodes in the goroutine that reads from it.
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			panic(err) // constant options
		}
		return d
	}),
	brotliCoding: newFreeList(func() any { return brotli.NewReader(nil) }),
}

var packers = [codings]*freeList{
	zstdCoding: newFreeList(func() any {
		w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(packWindow))
		if err != nil {
			panic(err)
		}
		return w
	}),
	brotliCoding: newFreeList(func() any {
		w := brotli.NewWriterOptions(nil, brotli.WriterOptions{Quality: brotliLevel, LGWin: 16})
		return &brotliPacker{w, bufio.NewWriterSize(w, brotliBlock)}
	}),
}

// A brotliPacker gives its writer the text in blocks.
type brotliPacker struct {
	w     *brotli.Writer
	block *bufio.Writer
}

func (p *brotliPacker) Write(b []byte) (int, error) { return p.block.Write(b) }

func (p *brotliPacker) Flush() error { return errors.Join(p.block.Flush(), p.w.Flush()) }

func (p *brotliPacker) Close() error { return errors.Join(p.block.Flush(), p.w.Close()) }

func (p *brotliPacker) Reset(w io.Writer) {
	p.w.Reset(w)
	p.block.Reset(p.w)
}
