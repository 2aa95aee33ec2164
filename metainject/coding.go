// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"io"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
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
	case v == "", equalFold(v, "identity"):
		return identity
	case equalFold(v, "gzip"), equalFold(v, "x-gzip"):
		return gzipCoding
	case equalFold(v, "deflate"):
		return deflateCoding
	case equalFold(v, "zstd"):
		return zstdCoding
	case equalFold(v, "br"):
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
	// packWindow keeps a zstd packer's memory at some hundred KiB.
	packWindow  = 256 << 10
	brotliLevel = 1
)

// unpackers and packers are for the codings that have to be unpacked and packed
// again.
var unpackers = [codings]sync.Pool{
	zstdCoding: {New: func() any {
		// Without concurrency it decodes in the goroutine that reads from it.
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			panic(err) // options that are constant
		}
		return d
	}},
	brotliCoding: {New: func() any { return brotli.NewReader(nil) }},
}

var packers = [codings]sync.Pool{
	zstdCoding: {New: func() any {
		w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(packWindow))
		if err != nil {
			panic(err)
		}
		return w
	}},
	brotliCoding: {New: func() any { return brotli.NewWriterLevel(nil, brotliLevel) }},
}
