// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"io"
	"maps"
	"net/http"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/ascii"
	"github.com/robotspolicy/caddy-robots-policy/metainject/deflateedit"
	"github.com/robotspolicy/caddy-robots-policy/metainject/internal/headscan"
)

// hold stores the next bytes of a page whose header has not been sent yet. It releases the page's buffers only after it
// has read b, because b may be a part of such a buffer.
func (rw *ResponseWriter) hold(b []byte) (n int, err error) {
	n, err = rw.look(b)
	if rw.phase != phaseHeld && rw.phase != phaseCoded {
		rw.dropPage()
	}
	return n, err
}

func (rw *ResponseWriter) look(b []byte) (int, error) {
	p := rw.page
	if len(b) == 0 {
		return 0, nil
	}
	if p.sniff {
		if p.held = append(p.held, b[:min(len(b), sniffLen)]...); len(p.held) < sniffLen {
			rw.keepHeader()
			return len(b), nil
		}
		had := len(p.held) - min(len(b), sniffLen)
		if !rw.sniffed() {
			if _, err := rw.Write(p.held[:had]); err != nil {
				return 0, err
			}
			return rw.Write(b)
		}
		p.held = p.held[:had]
	}
	if p.coding != identity {
		return rw.lookCoded(b)
	}
	had := len(p.held)
	window := b[:min(len(b), max(0, rw.o.MaxHead-had))]
	if had > 0 {
		p.held = append(p.held, window...)
		window = p.held
	}
	if !p.scan.Scan(window, false) && len(window) < rw.o.MaxHead && (!p.scan.Done || !p.flush) {
		if had == 0 {
			p.held = append(p.held, b...)
		}
		if p.hold() {
			rw.keepHeader()
			return len(b), nil
		}
	}
	if had == 0 {
		return rw.send(b)
	}
	rest := b[len(p.held)-had:]
	if n, err := rw.send(p.held); err != nil {
		return max(0, n-had), err
	}
	if len(rest) == 0 {
		return len(b), nil
	}
	n, err := rw.w.Write(rest)
	return len(b) - len(rest) + n, err
}

// sniffLen is the number of bytes net/http looks at to detect a body's type.
const sniffLen = 512

// sniffed detects the type of a body without a Content-Type, in the same way as net/http. If the body is not a page, or
// the request is HEAD, sniffed sends the header and returns false. It returns true if the body is a page whose head
// must be scanned.
func (rw *ResponseWriter) sniffed() bool {
	p := rw.page
	p.sniff = false
	kind := http.DetectContentType(p.held)
	if mediaOf(kind).kind == noPage {
		rw.commit(0, false, false)
		return false
	}
	rw.keepHeader() // set the type in a copy, so that the handler's header does not change if the handler fails
	p.header["Content-Type"] = []string{kind}
	if rw.r.Method == http.MethodHead {
		rw.commit(0, true, true)
		return false
	}
	p.scan.Reset(rw.o.Set, false)
	return true
}

// keepHeader copies the header. Fields that the handler sets after this call are trailers.
func (rw *ResponseWriter) keepHeader() {
	if rw.page.header == nil {
		rw.page.header = maps.Clone(rw.w.Header())
	}
}

// send edits b and writes the result. It is called when the end of the head is known or no more bytes may be held. It
// returns how many bytes of b it wrote.
func (rw *ResponseWriter) send(b []byte) (n int, err error) {
	p := rw.page
	rw.checkHead(len(b) >= rw.o.MaxHead)
	p.edits = editsOf(p.array[:0], &p.scan, rw.o.Set, rw.o.Mode, rw.o.Fragments)
	delta := 0
	for _, e := range p.edits {
		delta += len(e.Text) - (e.End - e.Start)
	}
	rw.commit(delta, true, len(p.edits) > 0)
	if n, err = writeEdited(rw.w, b, p.edits); err != nil {
		return n, err
	}
	return n, rw.flushed(nil)
}

// checkHead calls Options.LongHead if full is true and the head has not ended. full means that the writer holds MaxHead
// bytes of the page, or of its compressed stream.
func (rw *ResponseWriter) checkHead(full bool) {
	if full && rw.o.LongHead != nil && !rw.page.scan.BehindHead() && !rw.page.scan.Foreign {
		rw.o.LongHead(rw.r)
	}
}

// flushHeld handles the handler's flush while bytes are held. It sends a page whose head has ended, and a body that is
// not a page. Otherwise, the flush happens later, when the end of the head is known.
func (rw *ResponseWriter) flushHeld() error {
	p := rw.page
	if p.sniff && len(p.held) > 0 && rw.sniffed() {
		p.scan.Scan(p.held, false)
	}
	if rw.phase != phaseHeld {
		defer rw.dropPage()
		_, err := rw.Write(p.held)
		return err
	}
	if p.sniff || p.scan.Done || p.scan.BehindHead() {
		return rw.decide(false)
	}
	p.flush = true
	return nil
}

func (rw *ResponseWriter) decide(eof bool) error {
	p := rw.page
	p.flush = false
	if p.coding != identity {
		return rw.decideCoded(eof)
	}
	defer rw.dropPage()
	if p.sniff && (len(p.held) == 0 || !rw.sniffed()) {
		if rw.phase == phaseHeld {
			rw.commit(0, false, false)
		}
		_, err := rw.Write(p.held)
		return err
	}
	p.scan.Scan(p.held, eof)
	_, err := rw.send(p.held)
	return err
}

// coding is a content coding (RFC 9110 §8.4.1).
type coding uint8

const (
	identity coding = iota
	gzipCoding
	deflateCoding // zlib; some servers send raw deflate under this name
	zstdCoding
	brotliCoding
	unknownCoding
)

// whole reports whether a stream in the coding cannot be edited in place. Such a stream must be unpacked, changed and
// packed again as a whole.
func (c coding) whole() bool { return c == zstdCoding || c == brotliCoding }

// codingOf reads a Content-Encoding field. It returns unknownCoding if the field names several codings, or a coding
// that is not in codings.
func codingOf(values []string) coding {
	if len(values) == 0 {
		return identity
	}
	c, ok := codings[ascii.Lower(strings.Trim(values[0], " \t"))]
	if !ok || len(values) > 1 {
		return unknownCoding
	}
	return c
}

var codings = map[string]coding{
	"": identity, "identity": identity, "gzip": gzipCoding, "x-gzip": gzipCoding, "deflate": deflateCoding, "zstd": zstdCoding, "br": brotliCoding,
}

// lookCoded is the variant of the method look for bodies with a content coding. It stores both the bytes of the body
// and the unpacked text. If the page needs no change, or the body cannot be unpacked, the stored bytes are sent
// unchanged.
func (rw *ResponseWriter) lookCoded(b []byte) (int, error) {
	p := rw.page
	if p.coding.whole() {
		return rw.gather(b)
	}
	window := b[:min(len(b), rw.o.MaxHead-len(p.raw))]
	p.raw = append(p.raw, window...)
	if !rw.inflateHead(false) && len(p.raw) < rw.o.MaxHead && p.hold() {
		rw.keepHeader()
		return len(b), nil
	}
	if err := rw.sendCoded(); err != nil {
		return 0, err
	}
	if len(b) == len(window) {
		return len(b), nil
	}
	n, err := rw.Write(b[len(window):])
	return len(window) + n, err
}

// peekStep is the number of bytes to unpack before the text is scanned again.
const peekStep = 2 << 10

// inflateHead unpacks the held part of a deflate stream until the end of the head is found. known is false if more of
// the stream must be held.
func (rw *ResponseWriter) inflateHead(eof bool) (known bool) {
	p := rw.page
	if p.editor == nil {
		p.editor = editors.Get().(*deflateedit.Editor)
		p.editor.Reset(p.coding == gzipCoding)
	}
	for {
		var status deflateedit.Status
		p.held, status = p.editor.Peek(p.raw, p.held, min(peekStep, rw.o.MaxHead-len(p.held)))
		p.held = p.held[:min(len(p.held), rw.o.MaxHead)]
		if status == deflateedit.Corrupt || status == deflateedit.NeedInput && eof {
			p.scan.Foreign = true
			return true
		}
		if p.scan.Scan(p.held, false) || len(p.held) == rw.o.MaxHead {
			return true
		}
		if status == deflateedit.End {
			return p.scan.Done && p.scan.Scan(p.held, true) || rw.endsInHead(eof)
		}
		if status == deflateedit.NeedInput {
			return false
		}
	}
}

// endsInHead handles a deflate stream that ends inside the head. More bytes may follow the stream, such as another
// member of gzip. Some clients treat these bytes as part of the page, and others do not. So the new elements are
// inserted into the first stream, which all clients read. The later bytes may declare the encoding of the page. The new
// elements are left out if they could move this declaration beyond the bytes in which browsers look for it.
func (rw *ResponseWriter) endsInHead(eof bool) (known bool) {
	p := rw.page
	switch {
	case p.editor.Trailing() > 0:
		if p.scan.HeadAt < 0 || !p.scan.Decided && p.scan.CharsetEnd == 0 && len(p.held) < headscan.CharsetLimit {
			p.scan.Foreign = true
		}
	case eof:
		p.scan.Scan(p.held, true)
	default:
		return false
	}
	return true
}

func (rw *ResponseWriter) sendCoded() error {
	p := rw.page
	rw.checkHead(len(p.held) >= rw.o.MaxHead || len(p.raw) >= rw.o.MaxHead)
	p.edits = editsOf(p.array[:0], &p.scan, rw.o.Set, rw.o.Mode, rw.o.Fragments)
	p.unreserve()
	rw.commit(0, true, len(p.edits) > 0)
	if len(p.edits) == 0 {
		_, err := rw.w.Write(p.raw)
		return rw.flushed(err)
	}
	rw.phase = phaseCoded
	if err := p.editor.Start(rw.w, p.raw, p.held, p.edits); err != nil {
		return err
	}
	p.raw, p.held = p.raw[:0], p.held[:0]
	if !p.flush {
		return nil
	}
	return rw.FlushError()
}

func (rw *ResponseWriter) decideCoded(eof bool) (err error) {
	p := rw.page
	switch {
	case p.coding.whole():
		err = rw.sendWhole()
	case len(p.raw) == 0: // there is no body
		p.scan.Foreign = true
		err = rw.sendCoded()
	default:
		if eof {
			rw.inflateHead(true)
		}
		err = rw.sendCoded()
	}
	if rw.phase != phaseCoded {
		rw.dropPage()
	}
	return err
}

// flushed flushes the response if the handler's flush had to wait for the end of the head. It does nothing if err is
// not nil.
func (rw *ResponseWriter) flushed(err error) error {
	if err != nil || !rw.page.flush {
		return err
	}
	rw.page.flush = false
	return rw.flushBelow()
}

// writeEdited writes b with its edits, and returns how many bytes of b it wrote.
func writeEdited(w io.Writer, b []byte, edits []edit) (n int, err error) {
	for _, e := range edits {
		if n < e.Start {
			k, err := w.Write(b[n:e.Start])
			if n += k; err != nil {
				return n, err
			}
		}
		if len(e.Text) > 0 {
			if _, err := w.Write(e.Text); err != nil {
				return n, err
			}
		}
		n = e.End
	}
	if n < len(b) {
		k, err := w.Write(b[n:])
		if n += k; err != nil {
			return n, err
		}
	}
	return n, nil
}
