// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"maps"
	"net/http"
)

// hold takes the next bytes of a page whose header is held back. The page's buffers
// are released only at the end, since b may be in one.
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

// sniffLen is how much net/http looks at to detect a body's type.
const sniffLen = 512

// sniffed detects, as net/http would, the type of a body without a Content-Type from
// the bytes that are held. It reports whether it is a page; if not, or for HEAD, the
// header is sent.
func (rw *ResponseWriter) sniffed() bool {
	p := rw.page
	p.sniff = false
	kind := http.DetectContentType(p.held)
	if mediaOf(kind).kind == noPage {
		rw.commit(0, false, false)
		return false
	}
	rw.keepHeader() // the handler's own stays without, in case that fails
	p.header["Content-Type"] = []string{kind}
	if rw.r.Method == http.MethodHead {
		rw.commit(0, true, true)
		return false
	}
	p.scan.Reset(rw.o.Set, false)
	return true
}

// keepHeader copies the header: the handler goes on, and what it sets from now on is
// not for the header.
func (rw *ResponseWriter) keepHeader() {
	if rw.page.header == nil {
		rw.page.header = maps.Clone(rw.w.Header())
	}
}

// send changes a page whose head is known, or of which no more may be held, and
// writes b, the page so far. It returns how much of b was written.
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

// checkHead reports a head that is longer than what may be held, which full says.
func (rw *ResponseWriter) checkHead(full bool) {
	if full && rw.o.LongHead != nil && !rw.page.scan.BehindHead() && !rw.page.scan.Foreign {
		rw.o.LongHead(rw.r)
	}
}

// flushHeld is a flush while a page is held. It sends the page if the head's end tag
// has been read, and a body that turns out not to be a page.
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

// decide sends what is held: at the page's end, or before.
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
