// SPDX-License-Identifier: Apache-2.0

package metainject

import "io"

// lookCoded is look for a body in a content coding. What has come is held as it
// came besides the text in it, until it is known whether that changes: a page
// that stays as it is, and a body that is not what its coding says, pass as
// they came.
func (rw *ResponseWriter) lookCoded(b []byte) (int, error) {
	p := rw.page
	limit := rw.packedLimit()
	window := b[:min(len(b), limit-len(p.raw))]
	p.raw = append(p.raw, window...)
	tail, known := rw.unpackHead(window)
	if !known && len(p.raw) < limit {
		rw.keepHeader()
		return len(b), nil
	}
	if err := rw.sendCoded(tail); err != nil {
		return 0, err
	}
	if len(b) == len(window) {
		return len(b), nil
	}
	n, err := rw.Write(b[len(window):])
	return len(window) + n, err
}

// maxZstdBlock is the longest block of a zstd frame (RFC 8878 §3.1.1.2.4), with
// room for the headers before it.
const maxZstdBlock = 128<<10 + 64

// packedLimit is how many bytes of a page in a content coding may be held, as
// they came. zstd gives no text before a whole block is there.
func (rw *ResponseWriter) packedLimit() int {
	if rw.page.coding == zstdCoding {
		return max(rw.o.MaxHead, maxZstdBlock)
	}
	return rw.o.MaxHead
}

// unpackHead collects text, of which b is the next part as it came, until the
// head is known. tail is what was unpacked beyond what may be held.
func (rw *ResponseWriter) unpackHead(b []byte) (tail []byte, known bool) {
	p := rw.page
	if p.coding == gzipCoding || p.coding == deflateCoding {
		return nil, rw.inflateHead(b)
	}
	if p.recoder == nil {
		p.recoder = recoders.Get().(*recoder)
		p.recoder.start(p.coding)
	}
	p.recoder.in, p.recoder.eof = b, b == nil
	for {
		text, more, over := p.recoder.read()
		if over {
			if p.recoder.err == nil {
				p.scan.scan(p.held, true)
			} else {
				p.scan.foreign = true // as it came
			}
			return nil, true
		}
		if !more {
			return nil, false
		}
		n := min(len(text), rw.o.MaxHead-len(p.held))
		p.held = append(p.held, text[:n]...)
		if p.scan.scan(p.held, false) || len(p.held) == rw.o.MaxHead {
			return text[n:], true
		}
	}
}

// lookStep is how much text is unpacked before it is looked at.
const lookStep = 2 << 10

// inflateHead is unpackHead for deflate streams.
func (rw *ResponseWriter) inflateHead(b []byte) (known bool) {
	p, eof := rw.page, b == nil
	if p.splicer == nil {
		f, n, ok := headerOf(p.raw, p.coding == gzipCoding)
		if !ok && !eof {
			return false
		}
		if !ok || n < 0 {
			p.scan.foreign = true
			return true
		}
		p.splicer = splicers.Get().(*splicer)
		p.splicer.reset()
		p.format, p.wrap, b = f, n, p.raw[n:]
	}
	p.splicer.inf.push(b)
	for {
		had := len(p.held)
		var ev event
		p.held, ev = p.splicer.look(p.held, min(lookStep, rw.o.MaxHead-had))
		p.held = p.held[:min(len(p.held), rw.o.MaxHead)]
		if ev == badStream || ev == needMore && eof {
			p.scan.foreign = true
			return true
		}
		if p.scan.scan(p.held, false) || len(p.held) == rw.o.MaxHead {
			return true
		}
		if ev == endStream {
			return rw.endsInHead(eof)
		}
		if ev == needMore {
			return false
		}
	}
}

// endsInHead settles a deflate stream that has come to its end before the
// head's. If something follows, such as another member of gzip, some clients take
// it for the rest of the page and others do not: there is no change that is right
// for both.
func (rw *ResponseWriter) endsInHead(eof bool) (known bool) {
	p := rw.page
	switch behind := len(p.splicer.inf.src) - p.splicer.inf.pos - trailerSize[p.format]; {
	case behind > 0:
		p.scan.foreign = true
	case eof:
		p.scan.scan(p.held, true)
	default:
		return false
	}
	return true
}

// sendCoded is send for a body in a content coding, of which tail is the text
// behind what is held.
func (rw *ResponseWriter) sendCoded(tail []byte) error {
	p := rw.page
	p.edits = p.scan.edits(p.array[:0], rw.o.Mode, rw.o.Fragments)
	rw.commit(0, len(p.edits) > 0)
	if len(p.edits) == 0 {
		_, err := rw.w.Write(p.raw)
		return rw.flushed(err)
	}
	rw.phase = phaseCoded
	if err := rw.startCoder(tail); err != nil {
		return err
	}
	p.raw, p.held = p.raw[:0], p.held[:0]
	if !p.flush {
		return nil
	}
	return rw.FlushError()
}

// startCoder passes on the changed text that has come.
func (rw *ResponseWriter) startCoder(tail []byte) error {
	p := rw.page
	if p.splicer != nil {
		p.coder = p.splicer
		return p.splicer.splice(rw.w, p.format, p.raw, p.wrap, p.held, p.edits)
	}
	p.coder = p.recoder
	p.recoder.pack(rw.w)
	if _, err := writeEdited(p.recoder.text, p.held, p.edits); err != nil {
		return err
	}
	if _, err := p.recoder.text.Write(tail); err != nil {
		return err
	}
	return p.recoder.drain()
}

// decideCoded is decide for a body in a content coding.
func (rw *ResponseWriter) decideCoded(eof bool) error {
	p := rw.page
	var tail []byte
	if len(p.raw) == 0 { // there is no body
		p.scan.foreign = true
	} else if eof {
		tail, _ = rw.unpackHead(nil)
	}
	err := rw.sendCoded(tail)
	if rw.phase != phaseCoded {
		rw.dropPage()
	}
	return err
}

// flushed makes up for a flush that had to wait.
func (rw *ResponseWriter) flushed(err error) error {
	if err != nil || !rw.page.flush {
		return err
	}
	rw.page.flush = false
	return rw.flushBelow()
}

// writeEdited writes b with its edits, and returns how much of b was written.
func writeEdited(w io.Writer, b []byte, edits []edit) (n int, err error) {
	for _, e := range edits {
		if n < e.start {
			k, err := w.Write(b[n:e.start])
			if n += k; err != nil {
				return n, err
			}
		}
		if len(e.text) > 0 {
			if _, err := w.Write(e.text); err != nil {
				return n, err
			}
		}
		n = e.end
	}
	if n < len(b) {
		k, err := w.Write(b[n:])
		if n += k; err != nil {
			return n, err
		}
	}
	return n, nil
}
