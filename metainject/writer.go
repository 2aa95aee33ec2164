// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"bufio"
	"io"
	"maps"
	"net"
	"net/http"
	"sync"

	"github.com/robotspolicy/caddy-robots-policy/metainject/deflateedit"
	"github.com/robotspolicy/caddy-robots-policy/metainject/internal/headscan"
)

// DefaultMaxHead is the default of Options.MaxHead.
const DefaultMaxHead = 128 << 10

// MostMaxHead is the largest value that Options.MaxHead may have.
const MostMaxHead = 16 << 20

// A HeaderHook may change the header of every response, once, just before it is sent. The status is final;
// there is no call for 101 and hijacked connections. If the handler wrote nothing the status is 200.
type HeaderHook interface {
	OnHeader(status int, h http.Header)
}

// Options control one response. The zero value leaves the response unchanged.
type Options struct {
	// Set is the elements for the page. If it is nil or empty, no body is looked at.
	Set *Set
	// Mode tells what to do with elements that the page has already.
	Mode Mode
	// ETagSuffix is appended to the entity tag of a page, before a mark for the elements and the mode.
	// It should identify the policy, such as "-rp" and a hash, in characters of RFC 9110 section 8.8.3.
	// If it is empty, changed pages have no entity tag.
	ETagSuffix string
	// MaxHead bounds the bytes of a page, and of its gzip or deflate stream, that are held while its head
	// is looked for; 0 means DefaultMaxHead. A longer head is changed as far as it has been seen.
	MaxHead int
	// Fragments also makes HTML without a DOCTYPE, html, head, body or meta tag a page. By default such
	// HTML is treated as a part that a script or a template puts into another page.
	Fragments bool
	// Header is called with the header; it may be nil.
	Header HeaderHook
	// LongHead is called when a head is longer than MaxHead, so that elements further down are not
	// merged; it may be nil.
	LongHead func(*http.Request)
}

type phase uint8

const (
	phaseOpen  phase = iota // no final header yet
	phaseHeld               // set, but held back until the head is known
	phasePass               // sent; the body passes as it is
	phaseCoded              // sent; the body goes through the page's editor
	phaseDrop               // sent, for HEAD; net/http must not count the body
	phaseOver
)

// A ResponseWriter changes the robots meta tags of the page written through it, and calls the
// HeaderHook. Everything else passes, with ReadFrom and so sendfile. It is not safe for concurrent use.
type ResponseWriter struct {
	w      http.ResponseWriter
	r      *http.Request
	o      Options
	phase  phase
	active bool // the body may be changed
	hooked bool
	sent   bool // the final header
	isPage bool // the body may have been changed
	edited bool // the body is not the handler's
	trails bool // and its header announces trailers
	status int
	later  http.Header // trailers that were set while the header was held
	page   *page       // while held
	// accepted is the client's Accept-Encoding, while it is narrowed.
	accepted string
}

// A page is the state of a response while its head is looked for, and in a coding while it is changed. A held
// header is copied: what the handler sets after WriteHeader is for trailers.
type page struct {
	scan     headscan.Scanner
	edits    []edit
	array    [4]edit
	held     []byte
	buf      [4 << 10]byte // for ReadFrom and WriteString
	header   http.Header   // as it was at WriteHeader, once it was copied
	sniff    bool          // there is no Content-Type: the first bytes decide
	flush    bool          // the handler has flushed what is held
	coding   coding
	raw      []byte // a body in a content coding as it arrived; held has its text
	editor   *deflateedit.Editor
	reserved int  // bytes of memory, in recoding or heads
	busy     bool // there were no more
}

var (
	writers = sync.Pool{New: func() any { return new(ResponseWriter) }}
	pages   = sync.Pool{New: func() any { return new(page) }}
	editors = sync.Pool{New: func() any { return new(deflateedit.Editor) }}
)

// Wrap returns a writer for the response to r. Call the handler with Request's request, then Close with its
// error, and finally Release, also after a panic.
func Wrap(w http.ResponseWriter, r *http.Request, o Options) *ResponseWriter {
	rw := writers.Get().(*ResponseWriter)
	if o.MaxHead <= 0 {
		o.MaxHead = DefaultMaxHead
	}
	o.MaxHead = min(o.MaxHead, MostMaxHead)
	rw.w, rw.r, rw.o = w, r, o
	rw.active = !o.Set.IsEmpty() && o.Mode != Off && (r.Method == http.MethodGet || r.Method == http.MethodHead)
	return rw
}

// Release returns the writer to its pool and drops what was held. It must not be used afterwards.
func (rw *ResponseWriter) Release() {
	rw.restoreCodings()
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
	p.unreserve()
	if p.editor != nil {
		p.editor.Reset(false) // lets go of what it holds
		editors.Put(p.editor)
	}
	p.editor = nil
	p.scan.Reset(nil, false)
	clear(p.array[:])
	p.edits, p.header, p.sniff, p.flush, p.busy = nil, nil, false, false, false
	for _, b := range [...]*[]byte{&p.held, &p.raw} {
		if *b = (*b)[:0]; cap(*b) > 2*DefaultMaxHead {
			*b = nil
		}
	}
	pages.Put(p)
}

// Header returns the header of the underlying response.
func (rw *ResponseWriter) Header() http.Header { return rw.w.Header() }

// Unwrap returns the underlying writer, for http.ResponseController.
func (rw *ResponseWriter) Unwrap() http.ResponseWriter { return rw.w }

// WriteHeader passes 1xx at once. A page's final header is held until its head is known; a second is ignored.
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
		rw.commit(0, false, false)
	}
}

// commit sends the header. page means that the page may have been changed, changed that it was, by delta bytes.
func (rw *ResponseWriter) commit(delta int, page, changed bool) {
	h := rw.w.Header()
	var later http.Header
	if p := rw.page; p != nil && p.header != nil {
		later = maps.Clone(h)
		clear(h)
		maps.Copy(h, p.header)
	}
	signed := signaturesOf(h)
	if page {
		rw.changeHeader(h, delta, changed)
		if p := rw.page; p != nil && p.busy {
			delete(h, "Etag") // it would be another page's
		}
		rw.isPage, rw.trails = true, len(h["Trailer"]) > 0
	}
	rw.hook(h)
	signed.drop(h, changed)
	rw.phase, rw.sent, rw.edited = phasePass, true, changed
	if changed && rw.r.Method == http.MethodHead {
		rw.phase = phaseDrop
	}
	rw.w.WriteHeader(rw.status)
	for k, v := range later { // what the handler has set since is for trailers
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

// Write holds the bytes of a page until its head is known.
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
		return rw.page.editor.Write(b)
	case phaseDrop:
		return len(b), nil
	case phaseOpen, phasePass, phaseOver:
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

// ReadFrom copies from r, and lets the underlying writer do so, perhaps by sendfile, where it can.
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
	dst := io.Writer(rw.w)
	if rw.phase == phaseDrop {
		dst = io.Discard
	}
	k, err := io.Copy(dst, r)
	return n + k, err
}

// Hijack takes over the connection, as http.Hijacker.
func (rw *ResponseWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, b, err := http.NewResponseController(rw.w).Hijack()
	if err == nil {
		rw.phase, rw.sent = phaseOver, true
	}
	return c, b, err
}

// Push implements http.Pusher.
func (rw *ResponseWriter) Push(target string, o *http.PushOptions) error {
	if p, ok := rw.w.(http.Pusher); ok {
		return p.Push(target, o)
	}
	return http.ErrNotSupported
}

// Close ends the response. If err, the handler's, is not nil, what is held is dropped, so that the caller can
// send another response if Committed is false. It returns errors of writing, never err.
func (rw *ResponseWriter) Close(err error) error {
	defer func() { rw.phase = phaseOver }()
	rw.restoreCodings()
	if err != nil {
		return nil
	}
	switch rw.phase {
	case phaseOpen:
		rw.status = http.StatusOK
		h := rw.w.Header()
		signed := signaturesOf(h)
		if rw.active {
			if v, _ := rw.evaluate(h); v == ours {
				rw.changeHeader(h, 0, rw.r.Method == http.MethodHead)
			}
		}
		rw.hook(h)
		signed.drop(h, false)
	case phaseHeld:
		err = rw.decide(true)
	case phasePass, phaseCoded, phaseDrop, phaseOver:
	}
	if rw.phase == phaseCoded && err == nil {
		err = rw.page.editor.Close()
	}
	for k, v := range rw.later { // the writer below may have sent the header only with the body
		if h := rw.w.Header(); h[k] == nil {
			h[k] = v
		}
	}
	if rw.isPage {
		rw.dropTrailers(rw.w.Header())
	}
	return err
}

// Committed reports whether a final header has been sent, or the connection hijacked.
func (rw *ResponseWriter) Committed() bool { return rw.sent }
