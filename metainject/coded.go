// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"io"

	"github.com/robotspolicy/caddy-robots-policy/metainject/deflateedit"
)

// lookCoded is look for a body in a content coding. The body is held as it arrived,
// beside its text, until it is known whether that changes: a page that stays as it
// is, and a body that is not what its coding says, pass as they arrived.
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

// packedLimit is how many bytes of a page in a content coding may be held, as they
// arrived. zstd gives no text before a whole block is there.
func (rw *ResponseWriter) packedLimit() int {
	if rw.page.coding == zstdCoding {
		return max(rw.o.MaxHead, maxZstdBlock)
	}
	return rw.o.MaxHead
}

// unpackHead unpacks b, the next part of the body, until the head is known. tail is
// what was unpacked beyond what may be held.
func (rw *ResponseWriter) unpackHead(b []byte) (tail []byte, known bool) {
	p := rw.page
	if p.coding == gzipCoding || p.coding == deflateCoding {
		return nil, rw.inflateHead(b == nil)
	}
	if p.recoder == nil {
		p.recoder = recoders.Get().(*recoder)
		if !p.recoder.start(p.coding, p.raw) {
			p.scan.Foreign, p.busy = true, true
			return nil, true
		}
	}
	p.recoder.push(b, b == nil)
	for {
		text, more, over := p.recoder.unpack()
		if over {
			if p.recoder.err == nil {
				p.scan.Scan(p.held, true)
			} else {
				p.scan.Foreign = true // pass it as it came
			}
			return nil, true
		}
		if !more {
			return nil, false
		}
		n := min(len(text), rw.o.MaxHead-len(p.held))
		p.held = append(p.held, text[:n]...)
		if p.scan.Scan(p.held, false) || len(p.held) == rw.o.MaxHead {
			return text[n:], true
		}
	}
}

// peekStep is how much text is unpacked before it is scanned.
const peekStep = 2 << 10

// inflateHead is unpackHead for deflate streams.
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

// endsInHead handles a deflate stream that ends inside the head. If something
// follows, such as another member of gzip, some clients take it for the rest of
// the page and others do not: no change is right for both.
func (rw *ResponseWriter) endsInHead(eof bool) (known bool) {
	p := rw.page
	switch {
	case p.editor.Trailing() > 0:
		p.scan.Foreign = true
	case eof:
		p.scan.Scan(p.held, true)
	default:
		return false
	}
	return true
}

// sendCoded is send for a body in a content coding, of which tail is the text
// after what is held.
func (rw *ResponseWriter) sendCoded(tail []byte) error {
	p := rw.page
	rw.checkHead(len(p.held) >= rw.o.MaxHead || len(p.raw) >= rw.packedLimit())
	p.edits = editsOf(p.array[:0], &p.scan, rw.o.Set, rw.o.Mode, rw.o.Fragments)
	changed := len(p.edits) > 0
	if changed && p.editor == nil && !rw.recodeHeld(tail) {
		changed = false
	}
	rw.commit(0, true, changed)
	if !changed {
		_, err := rw.w.Write(p.raw)
		return rw.flushed(err)
	}
	rw.phase = phaseCoded
	if p.editor != nil {
		p.coder = p.editor
		if err := p.editor.Start(rw.w, p.raw, p.held, p.edits); err != nil {
			return err
		}
	} else {
		p.coder = p.recoder
		if p.recoder.out.Len() >= holdOut || p.recoder.finished {
			if err := p.recoder.emit(); err != nil {
				return err
			}
		}
	}
	p.raw, p.held = p.raw[:0], p.held[:0]
	if !p.flush {
		return nil
	}
	return rw.FlushError()
}

// recodeHeld packs the changed text that has arrived. It returns false if the body
// turns out to be broken or a bomb, while it can still pass as it came.
func (rw *ResponseWriter) recodeHeld(tail []byte) bool {
	p := rw.page
	c := p.recoder
	c.pack(rw.w)
	if _, err := writeEdited(c.packer, p.held, p.edits); err != nil {
		return false
	}
	if _, err := c.packer.Write(tail); err != nil {
		return false
	}
	return c.drain() == nil
}

// decideCoded is decide for a body in a content coding.
func (rw *ResponseWriter) decideCoded(eof bool) error {
	p := rw.page
	var tail []byte
	if len(p.raw) == 0 { // there is no body
		p.scan.Foreign = true
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
