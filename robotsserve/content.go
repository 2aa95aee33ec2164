// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// served is the rendered robots.txt of the hosts that have the same rules.
type served struct {
	drawing *drawing
	// The two parts of the drawing, each compressed separately, so that text for one host can
	// be put between them.
	head, tail []byte
	last       atomic.Pointer[filled]
}

// contents holds a file in two codings: uncompressed and as gzip.
type contents struct{ identity, gzip content }

type content struct {
	parts  [][]byte
	size   int64
	length string // the size as text
	etag   string
}

func newContent(etag string, parts ...[]byte) content {
	c := content{parts: parts, etag: etag}
	for _, p := range parts {
		c.size += int64(len(p))
	}
	c.length = strconv.FormatInt(c.size, 10)
	return c
}

func (s *site) content(srv *Server, host, scheme string) *contents {
	s.draw(srv, nil)
	if !srv.varies {
		host, scheme = "", ""
	}
	if last := s.last.Load(); last != nil && last.host == host && last.scheme == scheme {
		return last.contents
	}
	v, _ := s.drawing.vary(srv.p, host, srv.o.with(scheme))
	c := s.fill(v)
	if !srv.varies {
		c.identity.join()
		c.gzip.join()
	}
	if !srv.varies || isAuthority(host) {
		s.last.Store(&filled{strings.Clone(host), scheme, c})
	}
	return c
}

// filled caches the last answer and its host. The host is "" if all hosts get the same answer. Only one answer is
// cached, so that requests for made-up hosts do not take memory.
type filled struct {
	host, scheme string
	contents     *contents
}

func serve(d *drawing) *served {
	return &served{drawing: d, head: deflate(d.head, false), tail: deflate(d.tail, true)}
}

// memory estimates the bytes that s takes. s may be nil.
func (s *served) memory() int {
	const rest = 1 << 10
	if s == nil {
		return rest
	}
	return rest + len(s.drawing.first) + len(s.drawing.head) + len(s.drawing.tail) + len(s.head) + len(s.tail)
}

// fill returns the contents of an answer. The texts in v depend on the host, and the texts in the drawing do not. To
// save memory, fill copies only the texts in v, which are short even if the policy is large.
func (s *served) fill(v varying) *contents {
	c := &contents{}
	d := s.drawing
	parts := [][]byte{v.front, d.head, v.sitemaps, d.tail}
	c.identity = newContent(d.etag(v), parts...)
	var sum uint32
	for _, part := range parts {
		sum = crc32.Update(sum, crc32.IEEETable, part)
	}
	end := binary.LittleEndian.AppendUint32(nil, sum)
	end = binary.LittleEndian.AppendUint32(end, uint32(c.identity.size))
	c.gzip = newContent(c.identity.etag[:len(c.identity.etag)-1]+`-gz"`, gzipHeader, stored(v.front), s.head, stored(v.sitemaps), s.tail, end)
	if c.gzip.size >= c.identity.size {
		c.gzip = content{}
	}
	return c
}

// Version returns the version in the entity tag of a robots.txt. It removes the quotes, and the suffix that this
// package or Caddy's "encode" directive appends for a content coding.
func Version(etag string) string {
	version := strings.Trim(strings.TrimPrefix(etag, "W/"), `"`)
	for _, coding := range []string{"-gz", "-gzip", "-br", "-zstd"} {
		if cut, ok := strings.CutSuffix(version, coding); ok {
			return cut
		}
	}
	return version
}

// gzipHeader follows RFC 1952 section 2.3: deflate, no flags, no time, slowest compression, system unknown.
var gzipHeader = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255}

// deflate compresses data into deflate blocks (RFC 1951). If last is false, the blocks end at a byte boundary and other
// blocks have to follow.
func deflate(data []byte, last bool) []byte {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestCompression) // an error is only possible for an unknown level
	_, _ = w.Write(data)                               // writing to memory does not fail
	if last {
		_ = w.Close()
	} else {
		_ = w.Flush()
	}
	return b.Bytes()
}

// stored returns data as uncompressed deflate blocks (RFC 1951 section 3.2.4).
func stored(data []byte) []byte {
	var b []byte
	for len(data) > 0 {
		n := min(len(data), 0xffff)
		b = append(b, 0)
		b = binary.LittleEndian.AppendUint16(b, uint16(n))
		b = binary.LittleEndian.AppendUint16(b, ^uint16(n))
		b = append(b, data[:n]...)
		data = data[n:]
	}
	return b
}

func (c *content) join() {
	if len(c.parts) > 0 {
		c.parts = [][]byte{slices.Concat(c.parts...)}
	}
}

func (c *content) reader() *bytes.Reader {
	if len(c.parts) == 1 {
		return bytes.NewReader(c.parts[0])
	}
	return bytes.NewReader(slices.Concat(c.parts...))
}
