// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"maps"
	"net/http"
)

// hold takes the next bytes of a page whose header is held back. The page's
// buffers are given back only at the end, since b may lie in one.
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
	if !p.scan.scan(window, false) && len(window) < rw.o.MaxHead {
		if had == 0 {
			p.held = append(p.held, b...)
		}
		rw.keepHeader()
		return len(b), nil
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

// sniffLen is how much net/http looks at to find a body's type.
const sniffLen = 512

// sniffed finds out, as net/http would, what the body without a Content-Type is
// whose beginning is held. It reports whether that is a page; if not, or for
// HEAD, the header is sent.
func (rw *ResponseWriter) sniffed() bool {
	p := rw.page
	p.sniff = false
	kind := http.DetectContentType(p.held)
	if mediaOf(kind).kind == noPage {
		rw.commit(0, false)
		return false
	}
	rw.keepHeader() // the handler's own stays without, in case that fails
	p.header["Content-Type"] = []string{kind}
	if rw.r.Method == http.MethodHead {
		rw.commit(0, true)
		return false
	}
	p.scan.reset(rw.o.Set, false)
	return true
}

// keepHeader copies the header: the handler goes on, and what it sets from now
// on is not meant for the header.
func (rw *ResponseWriter) keepHeader() {
	if rw.page.header == nil {
		rw.page.header = maps.Clone(rw.w.Header())
	}
}

// send decides about a page whose head is known, or of which no more may be
// held, and writes b, the page so far. It returns how much of b was written.
func (rw *ResponseWriter) send(b []byte) (n int, err error) {
	p := rw.page
	p.edits = p.scan.edits(p.array[:0], rw.o.Mode, rw.o.Fragments)
	delta := 0
	for _, e := range p.edits {
		delta += len(e.text) - (e.end - e.start)
	}
	rw.commit(delta, len(p.edits) > 0)
	if n, err = writeEdited(rw.w, b, p.edits); err != nil {
		return n, err
	}
	return n, rw.flushed(nil)
}

// flushHeld is a flush while a page is held. It settles the page behind the
// head's end tag, and a body that turns out to be no page.
func (rw *ResponseWriter) flushHeld() error {
	p := rw.page
	if p.sniff && len(p.held) > 0 && rw.sniffed() {
		p.scan.scan(p.held, false)
	}
	if rw.phase != phaseHeld {
		defer rw.dropPage()
		_, err := rw.Write(p.held)
		return err
	}
	if p.sniff || p.scan.done || p.scan.mode == modeAfterHead && p.scan.state == stateData {
		return rw.decide(false)
	}
	p.flush = true
	return nil
}

// decide settles what is held: at the page's end, or before.
func (rw *ResponseWriter) decide(eof bool) error {
	p := rw.page
	p.flush = false
	if p.coding != identity {
		return rw.decideCoded(eof)
	}
	defer rw.dropPage()
	if p.sniff && (len(p.held) == 0 || !rw.sniffed()) {
		if rw.phase == phaseHeld {
			rw.commit(0, false)
		}
		_, err := rw.Write(p.held)
		return err
	}
	p.scan.scan(p.held, eof)
	_, err := rw.send(p.held)
	return err
}
