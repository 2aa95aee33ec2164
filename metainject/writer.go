// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"bufio"
	"io"
	"maps"
	"net"
	"net/http"
	"sync"
)

// DefaultMaxHead is how many bytes of a page are held at most, if Options says
// nothing else.
const DefaultMaxHead = 64 << 10

// mostMaxHead bounds Options.MaxHead.
const mostMaxHead = 16 << 20

// A HeaderHook is told of every response's header once, just before it goes
// out, and may change it. The status is final, never 1xx; 101 and hijacked
// connections have no such header. A response of which the handler wrote
// nothing at all counts as 200, which is what net/http makes of it.
type HeaderHook interface {
	OnHeader(status int, h http.Header)
}

// Options say what is done with one response. The zero value does nothing.
type Options struct {
	// Set is the elements for the page; nil or empty: no body is looked at.
	Set *Set
	// Mode is what becomes of elements that the page has already.
	Mode Mode
	// ETagSuffix is put at the end of the entity tag of a changed page, inside
	// its quotes, since the tag has to change when the policy does: it should
	// name the policy's content, for example "-rp" and a hash, and consist of
	// characters that RFC 9110 allows there. Empty: a changed page has no ETag.
	ETagSuffix string
	// MaxHead is how many bytes of a page may be held while its head is looked
	// for, and, where it is compressed, how many of the compressed page; 0 means
	// DefaultMaxHead, and more than 16 MiB is 16 MiB. Of a page in zstd at least
	// one block is held, up to 128 KiB. A longer head is changed as
	// far as it has been seen.
	MaxHead int
	// Statuses are the final status codes besides 200 whose pages are changed.
	// Engines index no others, so pages of other codes need no elements. Codes
	// that have no body of their own, and 206, never count.
	Statuses []int
	// Fragments says that also HTML without a DOCTYPE, html, head, body or meta
	// tag is a page. Without it such HTML is taken for a part that a script or a
	// template puts into some page, which our elements would then speak for.
	Fragments bool
	// Header is told of the header; it may be nil.
	Header HeaderHook
}

type phase uint8

const (
	phaseOpen  phase = iota // no final header yet
	phaseHeld               // given, but held back until the head is known
	phasePass               // sent; the body passes as it is
	phaseCoded              // sent; the body goes through the page's coder
	phaseDrop               // sent, for HEAD; net/http is not to count the body
	phaseOver
)

// A ResponseWriter changes the robots meta elements of the page that is written
// through it, and gives the HeaderHook its turn. It is a pass-through, with
// ReadFrom and so sendfile, for everything that is no page to change. Like any
// http.ResponseWriter it must not be used from two goroutines at a time.
type ResponseWriter struct {
	w      http.ResponseWriter
	r      *http.Request
	o      Options
	phase  phase
	active bool // the body may be changed
	hooked bool
	sent   bool // the final header
	edited bool // the body is not the handler's
	trails bool // and its header announces trailers
	status int
	later  http.Header  // trailers that were set while the header was held
	page   *page        // while held
	below  errorFlusher // of w, once there was a flush
}

type errorFlusher interface{ FlushError() error }

// A page is what is kept of a response while its head is looked for, and, in a
// content coding, while it is changed. Header values that a handler sets after
// its WriteHeader are for trailers, so a header held back for long is copied.
type page struct {
	scan    scanner
	edits   []edit
	array   [4]edit
	held    []byte
	buf     [4 << 10]byte // for ReadFrom and WriteString
	header  http.Header   // as it was at WriteHeader, once it was copied
	sniff   bool          // there is no Content-Type: the first bytes tell
	flush   bool          // the handler has flushed what is held
	coding  coding
	raw     []byte // a body in a content coding, as it came; held has its text
	recoder *recoder
	splicer *splicer
	format  format // of a deflate stream
	wrap    int    // bytes of its wrapping
	coder   coder  // one of the two, once the page is changed
}

// A coder takes the rest of a body in a content coding, as it comes.
type coder interface {
	io.WriteCloser
	Flush() error
}

var (
	writers  = sync.Pool{New: func() any { return new(ResponseWriter) }}
	pages    = sync.Pool{New: func() any { return new(page) }}
	recoders = sync.Pool{New: func() any { return new(recoder) }}
	splicers = sync.Pool{New: func() any { return new(splicer) }}
)

// Wrap gives a writer for the response to r. The handler's request is
// Request's. When the handler has returned, Close must be called with its
// error, and at last Release, also after a panic.
func Wrap(w http.ResponseWriter, r *http.Request, o Options) *ResponseWriter {
	rw := writers.Get().(*ResponseWriter)
	if o.MaxHead <= 0 {
		o.MaxHead = DefaultMaxHead
	}
	o.MaxHead = min(o.MaxHead, mostMaxHead)
	rw.w, rw.r, rw.o = w, r, o
	rw.active = !o.Set.IsEmpty() && o.Mode != Off && (r.Method == http.MethodGet || r.Method == http.MethodHead)
	return rw
}

// Release makes the writer usable for another response; it must not be touched
// afterwards. What was held and not sent is dropped.
func (rw *ResponseWriter) Release() {
	rw.dropPage()
	*rw = ResponseWriter{}
	writers.Put(rw)
}

func (rw *ResponseWriter) dropPage() {
	p := rw.page
	if p == nil {
		return
	}
	rw.page = nil
	if p.recoder != nil {
		p.recoder.release()
		recoders.Put(p.recoder)
	}
	if p.splicer != nil && max(cap(p.held), cap(p.raw)) <= 2*DefaultMaxHead { // so are its buffers
		p.splicer.reset()
		splicers.Put(p.splicer)
	}
	p.recoder, p.splicer, p.coder = nil, nil, nil
	p.scan.reset(nil, false)
	clear(p.array[:])
	p.edits, p.header, p.sniff, p.flush = nil, nil, false, false
	for _, b := range [...]*[]byte{&p.held, &p.raw} {
		if *b = (*b)[:0]; cap(*b) > 2*DefaultMaxHead {
			*b = nil
		}
	}
	pages.Put(p)
}

// Header is the header of the response below.
func (rw *ResponseWriter) Header() http.Header { return rw.w.Header() }

// Unwrap gives the writer below, for http.ResponseController.
func (rw *ResponseWriter) Unwrap() http.ResponseWriter { return rw.w }

// WriteHeader passes 1xx at once. A page's final header is held back until its
// head is known; a second final header is ignored.
func (rw *ResponseWriter) WriteHeader(status int) {
	if rw.phase != phaseOpen {
		return
	}
	if status < 200 {
		rw.w.WriteHeader(status)
		if status == http.StatusSwitchingProtocols {
			rw.phase, rw.sent = phaseOver, true
		}
		return
	}
	rw.status = status
	if rw.active {
		rw.consider()
	} else {
		rw.commit(0, false)
	}
}

// commit sends the header. changed says that the body will be another than the
// handler's, longer by delta.
func (rw *ResponseWriter) commit(delta int, changed bool) {
	h := rw.w.Header()
	var later http.Header
	if p := rw.page; p != nil && p.header != nil {
		later = maps.Clone(h)
		clear(h)
		maps.Copy(h, p.header)
	}
	if changed {
		rw.changeHeader(h, delta)
		rw.trails = len(h["Trailer"]) > 0
	}
	rw.hook(h)
	rw.phase, rw.sent, rw.edited = phasePass, true, changed
	if changed && rw.r.Method == http.MethodHead {
		rw.phase = phaseDrop
	}
	rw.w.WriteHeader(rw.status)
	for k, v := range later {
		if _, before := rw.page.header[k]; !before {
			if rw.later == nil {
				rw.later = make(http.Header)
			}
			rw.later[k] = v
		}
	}
}

func (rw *ResponseWriter) hook(h http.Header) {
	if rw.hooked {
		return
	}
	rw.hooked = true
	if rw.o.Header != nil {
		rw.o.Header.OnHeader(rw.status, h)
	}
}

// Write holds the bytes of a page until its head is known, and then passes them
// with what changes.
func (rw *ResponseWriter) Write(b []byte) (int, error) {
	if rw.phase == phasePass {
		return rw.w.Write(b)
	}
	if rw.phase == phaseOpen {
		rw.WriteHeader(http.StatusOK)
	}
	switch rw.phase {
	case phaseHeld:
		return rw.hold(b)
	case phaseCoded:
		return rw.page.coder.Write(b)
	case phaseDrop:
		return len(b), nil
	}
	return rw.w.Write(b)
}

// WriteString is Write for a string.
func (rw *ResponseWriter) WriteString(s string) (n int, err error) {
	if rw.phase == phaseOpen {
		rw.WriteHeader(http.StatusOK)
	}
	for rw.phase == phaseHeld || rw.phase == phaseCoded {
		k, err := rw.Write(rw.page.buf[:copy(rw.page.buf[:], s[n:])])
		if n += k; err != nil || n == len(s) {
			return n, err
		}
	}
	if rw.phase == phaseDrop {
		return len(s), nil
	}
	k, err := io.WriteString(rw.w, s[n:])
	return n + k, err
}

// ReadFrom copies from r; what need not be looked at is left to the writer
// below, which may use sendfile.
func (rw *ResponseWriter) ReadFrom(r io.Reader) (n int64, err error) {
	if rw.phase == phaseOpen {
		rw.WriteHeader(http.StatusOK)
	}
	for rw.phase == phaseHeld || rw.phase == phaseCoded {
		k, rerr := r.Read(rw.page.buf[:])
		if k > 0 {
			w, err := rw.Write(rw.page.buf[:k])
			if n += int64(w); err != nil {
				return n, err
			}
		}
		if rerr == io.EOF {
			return n, nil
		}
		if rerr != nil {
			return n, rerr
		}
	}
	var k int64
	if rw.phase == phaseDrop {
		k, err = io.Copy(io.Discard, r)
	} else if rf, ok := rw.w.(io.ReaderFrom); ok {
		k, err = rf.ReadFrom(r)
	} else {
		k, err = io.Copy(writerOnly{rw.w}, r)
	}
	return n + k, err
}

type writerOnly struct{ io.Writer }

// FlushError passes what can be passed. While the head is being looked for that
// is nothing, except behind the head's end tag: what could still belong to the
// head there is not waited for.
func (rw *ResponseWriter) FlushError() error {
	if rw.phase == phasePass {
		return rw.flushBelow()
	}
	if rw.phase == phaseOpen {
		rw.WriteHeader(http.StatusOK)
	}
	if rw.phase == phaseHeld {
		if err := rw.flushHeld(); err != nil || rw.phase == phaseHeld {
			return err
		}
	}
	if rw.phase == phaseCoded {
		if err := rw.page.coder.Flush(); err != nil {
			return err
		}
	}
	return rw.flushBelow()
}

// flushBelow is http.ResponseController's Flush of the writer below, which it
// looks for only once: streams flush with every write.
func (rw *ResponseWriter) flushBelow() error {
	if rw.below == nil {
		rw.below = flusherOf(rw.w)
	}
	return rw.below.FlushError()
}

func flusherOf(w http.ResponseWriter) errorFlusher {
	for below := w; ; {
		switch f := below.(type) {
		case errorFlusher:
			return f
		case http.Flusher:
			return withoutError{f}
		case interface{ Unwrap() http.ResponseWriter }:
			below = f.Unwrap()
		default:
			return unflushable{w}
		}
	}
}

type withoutError struct{ http.Flusher }

func (f withoutError) FlushError() error { f.Flush(); return nil }

// unflushable gives the error that http.ResponseController has for it.
type unflushable struct{ w http.ResponseWriter }

func (u unflushable) FlushError() error { return http.NewResponseController(u.w).Flush() }

// Flush is FlushError for handlers that ask for an http.Flusher.
func (rw *ResponseWriter) Flush() { _ = rw.FlushError() }

// Hijack takes over the connection, as http.Hijacker.
func (rw *ResponseWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, b, err := http.NewResponseController(rw.w).Hijack()
	if err == nil {
		rw.phase, rw.sent = phaseOver, true
	}
	return c, b, err
}

// Push is http.Pusher's; http.ErrNotSupported if the writer below has none.
func (rw *ResponseWriter) Push(target string, o *http.PushOptions) error {
	if p, ok := rw.w.(http.Pusher); ok {
		return p.Push(target, o)
	}
	return http.ErrNotSupported
}

// Close ends the response. err is the handler's: if it is not nil, what is held
// is dropped and nothing is sent, so that the caller may still answer otherwise
// if Committed is false. Close returns an error of writing what was held; it
// never returns err.
func (rw *ResponseWriter) Close(err error) error {
	defer func() { rw.phase = phaseOver }()
	if err != nil {
		return nil
	}
	switch rw.phase {
	case phaseOpen:
		rw.status = http.StatusOK
		h := rw.w.Header()
		if rw.active && rw.r.Method == http.MethodHead {
			if v, _ := rw.judge(h); v == ours {
				rw.changeHeader(h, 0)
			}
		}
		rw.hook(h)
	case phaseHeld:
		err = rw.decide(true)
	}
	if rw.phase == phaseCoded && err == nil {
		err = rw.page.coder.Close()
	}
	for k, v := range rw.later { // the writer below may have sent the header only with the body
		if h := rw.w.Header(); h[k] == nil {
			h[k] = v
		}
	}
	if rw.edited {
		dropDigestTrailers(rw.w.Header(), rw.trails)
	}
	return err
}

// Committed tells whether a final header has been sent, or the connection
// hijacked.
func (rw *ResponseWriter) Committed() bool { return rw.sent }
