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

// A HeaderHook may change the header of every response. It is called once, just before the header is sent, with the
// final status (200 if the handler wrote nothing). It is not called for status 101 and hijacked connections.
type HeaderHook interface {
	OnHeader(status int, h http.Header)
}

// Options control one response. The zero value leaves the response unchanged.
type Options struct {
	// Set holds the elements for the page. If it is nil or empty, the body is not examined.
	Set *Set
	// Mode decides how these elements are combined with the robots elements of the page itself.
	Mode Mode
	// ETagSuffix is appended to a page's entity tag, followed by a mark for the elements and the mode. It should
	// identify the policy, for example as "-rp" and a hash. It must consist of characters that RFC 9110 section
	// 8.8.3 allows. If it is empty, changed pages have no entity tag.
	ETagSuffix string
	// MaxHead is the maximum number of bytes of a page, and of its gzip or deflate stream, that are held while the writer
	// looks for the end of the head. 0 means DefaultMaxHead. If the head is longer, only these bytes are changed.
	MaxHead int
	// Fragments makes the writer change HTML without a DOCTYPE, html, head, body or meta tag as well. By default
	// the writer does not change such HTML, because it is probably a fragment that a script or template inserts
	// into another page.
	Fragments bool
	// Header is called with the response's header before it is sent. It may be nil.
	Header HeaderHook
	// LongHead is called when a head is longer than MaxHead. The elements after MaxHead bytes are not merged in this
	// case. It may be nil.
	LongHead func(*http.Request)
}

type phase uint8

const (
	phaseOpen  phase = iota // no final header yet
	phaseHeld               // the handler set the header, which waits until the head is known
	phasePass               // the header was sent, and the body is not changed
	phaseCoded              // the header was sent, and the body goes through the page's editor
	phaseDrop               // HEAD: the header was sent, and the body is dropped, so that it sets no Content-Length
	phaseOver
)

// A ResponseWriter changes the robots meta tags of the page written through it, and calls the HeaderHook. It passes
// everything else through, including ReadFrom, and therefore sendfile. It is not safe for concurrent use.
type ResponseWriter struct {
	w      http.ResponseWriter
	r      *http.Request
	o      Options
	phase  phase
	active bool // changing the body is still possible
	hooked bool
	sent   bool // the final header was sent
	isPage bool // the body may have been changed
	edited bool // the body differs from the handler's body
	trails bool // the header announces trailers
	status int
	later  http.Header // trailers that were set while the header was held
	page   *page       // nil unless bytes are held
	// accepted is the client's Accept-Encoding. It is stored here while the request has the value that narrowCodings
	// sets.
	accepted string
}

// A page is the state of a response while the writer looks for the end of the head. If the body has a content coding,
// the state is kept until the whole body has been sent. A held header is copied, because fields that the handler sets
// after WriteHeader are trailers.
type page struct {
	scan     headscan.Scanner
	edits    []edit
	array    [4]edit
	held     []byte
	buf      [4 << 10]byte // a buffer for ReadFrom and WriteString
	header   http.Header   // copy of the header at WriteHeader
	sniff    bool          // there is no Content-Type, so the first bytes of the body determine the type
	flush    bool          // the handler flushed while bytes were held
	coding   coding
	raw      []byte // the unchanged bytes of a coded body, whose text is in held
	editor   *deflateedit.Editor
	reserved int  // the number of bytes that the page has added to recoding or heads
	busy     bool // the memory limit was reached, so the page could not be stored
}

var (
	writers = sync.Pool{New: func() any { return new(ResponseWriter) }}
	pages   = sync.Pool{New: func() any { return new(page) }}
	editors = sync.Pool{New: func() any { return new(deflateedit.Editor) }}
)

// Wrap returns a writer for the response to r. Call the handler with the result of Request, then call Close with
// the handler's error. Finally, call Release, even after a panic.
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

// Release returns the writer to its pool and discards held bytes. The writer must not be used afterwards.
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
		p.editor.Reset(false) // releases its buffers
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

// WriteHeader sends a status of 1xx immediately. It holds a page's final header until the end of the head is known.
// It ignores a second final status.
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

// commit sends the header. page means that the response is a page, so its body may have been changed. changed means
// that the body was changed. delta is the number of bytes that the change adds to the body.
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
			delete(h, "Etag") // the tag would identify the page with its usual changes
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
	for k, v := range later { // fields set after WriteHeader are trailers
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

// Write writes the next bytes of the body. It holds the bytes of a page until the end of the head is known.
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

// WriteString is like Write for a string.
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

// ReadFrom copies the bytes of r to the response. If possible, it calls ReadFrom of the underlying writer, which may
// use sendfile.
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

// Hijack takes over the connection. It implements http.Hijacker.
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

// Close ends the response. err is the error of the handler, or nil. If err is not nil, Close discards held bytes, so
// that the caller can send another response if Committed is false. Close returns errors of writing, but never err.
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
	for k, v := range rw.later { // set only now, because the underlying writer may send the header as late as the body
		if h := rw.w.Header(); h[k] == nil {
			h[k] = v
		}
	}
	if rw.isPage {
		rw.dropTrailers(rw.w.Header())
	}
	return err
}

// Committed reports whether a final header was sent or the connection was hijacked.
func (rw *ResponseWriter) Committed() bool { return rw.sent }
