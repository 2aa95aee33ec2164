// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"io"

	"github.com/robotspolicy/caddy-robots-policy/metainject/deflateedit"
	"github.com/robotspolicy/caddy-robots-policy/metainject/internal/headscan"
)

// lookCoded is look for a body in a content coding. The body is held as it arrived,
// beside its text, until it is known whether that changes: a page that stays as it
// is, and a body that is not what its coding says, pass as they arrived.
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

// peekStep is how much text is unpacked before it is scanned.
const peekStep = 2 << 10

// inflateHead unpacks the held part of a deflate stream until the head is known.
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

// endsInHead handles a deflate stream that ends inside the head. If something follows,
// such as another member of gzip, some clients take it for the rest of the page and others
// do not. What the policy says is put into the part that all of them read, unless it could
// push a declaration of the encoding too far that is in the other.
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

// sendCoded is send for a body in a content coding.
func (rw *ResponseWriter) sendCoded() error {
	p := rw.page
	rw.checkHead(len(p.held) >= rw.o.MaxHead || !p.coding.whole() && len(p.raw) >= rw.o.MaxHead)
	p.edits = editsOf(p.array[:0], &p.scan, rw.o.Set, rw.o.Mode, rw.o.Fragments)
	changed := len(p.edits) > 0
	out := p.raw
	if changed && p.coding.whole() {
		out = p.repack()
	}
	p.unreserve()
	rw.commit(0, true, changed)
	if !changed || p.coding.whole() {
		_, err := rw.w.Write(out)
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

// decideCoded is decide for a body in a content coding.
func (rw *ResponseWriter) decideCoded(eof bool) error {
	p := rw.page
	switch {
	case len(p.raw) == 0: // there is no body
		p.scan.Foreign = true
	case p.coding.whole():
		if p.scan.Foreign = !p.unpack(); !p.scan.Foreign {
			head := p.held[:min(len(p.held), rw.o.MaxHead)]
			p.scan.Scan(head, len(head) == len(p.held))
		}
	case eof:
		rw.inflateHead(true)
	}
	err := rw.sendCoded()
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
