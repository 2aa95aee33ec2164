// SPDX-License-Identifier: Apache-2.0

package metainject

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/metainject/internal/headscan"
)

var testTime = time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)

// recorder is an underlying writer that records every call.
type recorder struct {
	header  http.Header
	status  []int
	body    bytes.Buffer
	flushes int
	from    int // number of calls of ReadFrom
	fail    error
}

func newRecorder() *recorder               { return &recorder{header: http.Header{}} }
func (r *recorder) Header() http.Header    { return r.header }
func (r *recorder) WriteHeader(status int) { r.status = append(r.status, status) }
func (r *recorder) FlushError() error      { r.flushes++; return nil }
func (r *recorder) Write(b []byte) (int, error) {
	if r.fail != nil {
		return 0, r.fail
	}
	return r.body.Write(b)
}

func (r *recorder) ReadFrom(src io.Reader) (int64, error) {
	r.from++
	return r.body.ReadFrom(src)
}

func wrapped(t testing.TB, r *recorder, o Options) *ResponseWriter {
	t.Helper()
	rw := Wrap(r, httptest.NewRequest("GET", "/", nil), o)
	t.Cleanup(rw.Release)
	return rw
}

func TestWithoutElements(t *testing.T) {
	for _, o := range []Options{{}, {Set: NewSet(nil, nil, 0)}, {Set: testSet(t, "robots=noindex"), Mode: Off}} {
		r, hook := newRecorder(), new(hookCount)
		o.Header = hook
		rw := wrapped(t, r, o)
		r.header.Set("Content-Type", "text/html")
		if _, err := rw.ReadFrom(struct{ io.Reader }{strings.NewReader("<!DOCTYPE html>")}); err != nil {
			t.Fatal(err)
		}
		rw.Close(nil)
		if r.from != 1 || hook.calls != 1 || len(r.status) != 1 || r.body.String() != "<!DOCTYPE html>" || rw.page != nil {
			t.Errorf("%+v, hook %d", r, hook.calls)
		}
	}
}

func TestReadFromPassesThrough(t *testing.T) {
	set := testSet(t, "robots=noindex")
	for _, tt := range []struct{ kind, want string }{
		{"image/png", "<!DOCTYPE html><head><p>" + strings.Repeat("x", 9000)},
		{"text/html", "<!DOCTYPE html><head>" + set.HTML() + "<p>" + strings.Repeat("x", 9000)},
	} {
		r := newRecorder()
		r.header.Set("Content-Type", tt.kind)
		rw := wrapped(t, r, Options{Set: set})
		n, err := io.Copy(rw, struct{ io.Reader }{strings.NewReader("<!DOCTYPE html><head><p>" + strings.Repeat("x", 9000))})
		if err != nil || n != 9024 || r.from != 1 || r.body.String() != tt.want {
			t.Errorf("%s: %d bytes, %v, %d calls of ReadFrom", tt.kind, n, err, r.from)
		}
	}
}

func TestHandlerError(t *testing.T) {
	r, hook := newRecorder(), new(hookCount)
	rw := wrapped(t, r, Options{Set: testSet(t, "robots=noindex"), Header: hook})
	r.header.Set("Content-Type", "text/html")
	r.header.Set("Etag", `"e"`)
	rw.WriteHeader(200)
	rw.Write([]byte("<!DOCTYPE html><head><title>half"))
	if rw.Committed() {
		t.Fatal("the header is out before the head's end")
	}
	if err := rw.Close(errors.New("gone")); err != nil {
		t.Fatal(err)
	}
	if rw.Committed() || len(r.status) != 0 || r.body.Len() != 0 || hook.calls != 0 || r.header.Get("Etag") != `"e"` {
		t.Errorf("something was sent: %+v", r)
	}
}

func TestNothingWritten(t *testing.T) {
	r, hook := newRecorder(), new(hookCount)
	rw := wrapped(t, r, Options{Set: testSet(t, "robots=noindex"), Header: hook})
	rw.Close(nil)
	if len(r.status) != 0 || hook.calls != 1 || hook.status != 200 || r.header.Get("X-Robots-Tag") == "" {
		t.Errorf("%v, hook %+v", r.status, hook)
	}
	r, hook = newRecorder(), new(hookCount)
	rw = wrapped(t, r, Options{Set: testSet(t, "robots=noindex"), Header: hook})
	rw.Close(errors.New("x"))
	if len(r.status) != 0 || hook.calls != 0 || len(r.header) != 0 {
		t.Errorf("%v, hook %+v", r.status, hook)
	}
}

func TestFlush(t *testing.T) {
	set := testSet(t, "robots=noindex")
	r := newRecorder()
	r.header.Set("Content-Type", "text/html")
	rw := wrapped(t, r, Options{Set: set})
	step := func(s string, sent string, flushes int) {
		t.Helper()
		rw.Write([]byte(s))
		if err := http.NewResponseController(rw).Flush(); err != nil {
			t.Fatal(err)
		}
		if r.body.String() != sent || r.flushes != flushes {
			t.Fatalf("after %q: sent %q, %d flushes", s, r.body.String(), r.flushes)
		}
	}
	step("<!DOCTYPE html><head><title>a</ti", "", 0)
	step("tle>", "", 0)
	full := "<!DOCTYPE html><head>" + set.HTML() + "<title>a</title></head>"
	step("</head>", full, 1)
	step("<meta name=robots content=index><p>", full+"<meta name=robots content=index><p>", 2)

	// If the handler flushes inside the head, the flush is done when the head is sent.
	r = newRecorder()
	r.header.Set("Content-Type", "text/html")
	rw = wrapped(t, r, Options{Set: set})
	step("<!DOCTYPE html><head>", "", 0)
	rw.Write([]byte("<p>"))
	if r.flushes != 1 || r.body.Len() == 0 {
		t.Errorf("%d flushes, %q", r.flushes, r.body.String())
	}

	// A flush before the first write sends status 200. Without a Content-Type, the response is not treated as a page.
	r, hook := newRecorder(), new(hookCount)
	rw = wrapped(t, r, Options{Set: set, Header: hook})
	rw.Flush()
	if fmt.Sprint(r.status) != "[200]" || r.flushes != 1 || hook.calls != 1 {
		t.Errorf("%v, %d flushes, hook %+v", r.status, r.flushes, hook)
	}
}

func TestMaxHead(t *testing.T) {
	set := testSet(t, "robots=noindex")
	tests := []struct{ name, page, want string }{
		{
			"long head", "<!DOCTYPE html><head><title>" + strings.Repeat("x", 200) + "</title><meta name=robots content=all><p>",
			"<!DOCTYPE html><head>" + set.HTML() + "<title>" + strings.Repeat("x", 200) + "</title><meta name=robots content=all><p>",
		},
		{
			"head not begun", "<!DOCTYPE html><!--" + strings.Repeat("x", 200) + "--><head><p>",
			"<!DOCTYPE html><!--" + strings.Repeat("x", 200) + "--><head><p>",
		},
		{"just the bound", "<!DOCTYPE html><head><title>" + strings.Repeat("x", 36) + "", "<!DOCTYPE html><head>" + set.HTML() + "<title>" + strings.Repeat("x", 36)},
	}
	for _, tt := range tests {
		for _, n := range []int{1, 7, 64, 65, 1000} {
			r := newRecorder()
			r.header.Set("Content-Type", "text/html")
			rw := wrapped(t, r, Options{Set: set, MaxHead: 64})
			for i := 0; i < len(tt.page); i += n {
				b := tt.page[i:min(i+n, len(tt.page))]
				if k, err := rw.Write([]byte(b)); k != len(b) || err != nil {
					t.Fatal(k, err)
				}
				if rw.page != nil && len(rw.page.held) > 64 {
					t.Fatalf("%d bytes held", len(rw.page.held))
				}
			}
			rw.Close(nil)
			if r.body.String() != tt.want {
				t.Errorf("%s by %d: %q\nwant %q", tt.name, n, r.body.String(), tt.want)
			}
		}
	}
}

func TestWriteErrors(t *testing.T) {
	gone := errors.New("gone")
	for _, n := range []int{1, 10, 1000} {
		r := newRecorder()
		r.header.Set("Content-Type", "text/html; charset=utf-8")
		r.fail = gone
		rw := wrapped(t, r, Options{Set: testSet(t, "robots=noindex")})
		page := []byte("<!DOCTYPE html><head><title>a</title><p>b")
		var err error
		var sent int
		for i := 0; i < len(page) && err == nil; i += n {
			var k int
			b := page[i:min(i+n, len(page))]
			if k, err = rw.Write(b); k > len(b) || err == nil && k < len(b) {
				t.Fatalf("Write returned %d of %d, %v", k, len(b), err)
			}
			sent += k
		}
		if !errors.Is(err, gone) || sent >= len(page) {
			t.Errorf("by %d: %d, %v", n, sent, err)
		}
	}
}

func TestTrailersAndEarlyHints(t *testing.T) {
	set := testSet(t, "robots=noindex")
	s := serve(t, Options{Set: set}, func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(103)
		h.Set("Content-Type", "text/html")
		h.Set("Trailer", "X-Sum, Content-Digest")
		w.WriteHeader(200)
		h.Set("X-Sum", "early")
		io.WriteString(w, "<!DOCTYPE html><head>")
		h.Set("X-Late", "not a header any more")
		h.Set("X-Sum", "42")
		h.Set("Content-Digest", "sha-256=:eA==:")
		h.Set(http.TrailerPrefix+"X-More", "7")
		h.Set(http.TrailerPrefix+"Repr-Digest", "sha-256=:eA==:")
	})
	hints := 0
	trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		if hints++; code != 103 || h.Get("Link") == "" || h.Get("X-Robots-Tag") != "" {
			t.Errorf("%d %v", code, h)
		}
		return nil
	}}
	req, _ := http.NewRequestWithContext(httptrace.WithClientTrace(context.Background(), trace), "GET", s.URL, nil)
	res, err := rawClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || string(b) != "<!DOCTYPE html><head>"+set.HTML() || hints != 1 {
		t.Errorf("%q, %v, %d hints", b, err, hints)
	}
	for _, k := range []string{"X-Sum", "X-Late", "Content-Digest"} {
		if v := res.Header.Get(k); v != "" {
			t.Errorf("%s: %s stands in the header", k, v)
		}
	}
	if tr := res.Trailer; tr.Get("X-Sum") != "42" || tr.Get("X-More") != "7" || tr.Get("Content-Digest") != "" || tr.Get("Repr-Digest") != "" {
		t.Errorf("trailer %v", tr)
	}
}

func TestSwitchingProtocols(t *testing.T) {
	hook := new(hookCount)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rw := Wrap(w, r, Options{Set: testSet(t, "robots=noindex"), Header: hook})
		defer rw.Release()
		defer rw.Close(nil)
		rc := http.NewResponseController(rw)
		if err := rc.EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		if err := rc.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Error(err)
		}
		rw.Header().Set("Connection", "Upgrade")
		rw.Header().Set("Upgrade", "echo")
		rw.WriteHeader(101)
		c, buf, err := rc.Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		line, _ := buf.ReadString('\n')
		fmt.Fprint(c, line)
	}))
	defer s.Close()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	br := bufio.NewReader(c)
	res, err := http.ReadResponse(br, nil)
	if err != nil || res.StatusCode != 101 {
		t.Fatal(res, err)
	}
	fmt.Fprint(c, "<html><head>\n")
	if line, err := br.ReadString('\n'); line != "<html><head>\n" || hook.calls != 0 {
		t.Errorf("%q, %v, hook %d", line, err, hook.calls)
	}
}

// FuzzWriter writes a page in pieces, with flushes, through any of the writer's methods. The output must equal the
// result for the complete page, Content-Length must be correct, and the writer must not hold more than MaxHead bytes.
func FuzzWriter(f *testing.F) {
	for i := range pieces {
		f.Add([]byte{18, 28, byte(i), byte(i * 7)}, uint64(i))
	}
	f.Fuzz(checkWriter)
}

func TestRandomWriters(t *testing.T) {
	rnd, n := random(t)
	for range n / 6 {
		choice := make([]byte, 1+rnd.IntN(16))
		for j := range choice {
			choice[j] = byte(rnd.IntN(len(pieces)))
		}
		checkWriter(t, choice, rnd.Uint64())
	}
}

func checkWriter(t *testing.T, choice []byte, seed uint64) {
	if len(choice) > 60 || len(choice) == 0 {
		return
	}
	page := fromPieces(choice)
	set := testSet(t, testSets[seed%4]...)
	rnd := rand.New(rand.NewPCG(seed, 3))
	bound := 1 + rnd.IntN(200)
	decided := rnd.IntN(2) == 0 // if true, the encoding is known, so a flush does not wait for its declaration
	want := boundedRewrite(page, set, bound, decided)
	r := newRecorder()
	r.header.Set("Content-Type", "text/html")
	if decided {
		r.header.Set("Content-Type", "text/html; charset=utf-8")
	}
	r.header.Set("Content-Length", fmt.Sprint(len(page)))
	rw := Wrap(r, httptest.NewRequest("GET", "/", nil), Options{Set: set, MaxHead: bound, Fragments: true})
	defer rw.Release()
	for rest := page; len(rest) > 0; {
		n := min(1+rnd.IntN(1+rnd.IntN(80)), len(rest))
		writeSome(t, rw, rest[:n], decided, rnd)
		rest = rest[n:]
		if rw.page != nil && len(rw.page.held) > bound {
			t.Fatalf("%d bytes held, bound %d", len(rw.page.held), bound)
		}
	}
	if err := rw.Close(nil); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(r.body.Bytes(), want) {
		t.Fatalf("page %q\ngot  %q\nwant %q", page, r.body.Bytes(), want)
	}
	if l := r.header.Get("Content-Length"); l != fmt.Sprint(len(want)) || len(r.status) != 1 {
		t.Fatalf("Content-Length %s, body %d, statuses %v", l, len(want), r.status)
	}
}

func writeSome(t *testing.T, rw *ResponseWriter, b []byte, flush bool, rnd *rand.Rand) {
	var n int
	var err error
	switch rnd.IntN(4) {
	case 0:
		n, err = rw.WriteString(string(b))
	case 1:
		var k int64
		k, err = rw.ReadFrom(bytes.NewReader(b))
		n = int(k)
	default:
		c := bytes.Clone(b)
		n, err = rw.Write(c)
		clear(c) // the caller may change its buffer after Write
	}
	if n != len(b) || err != nil {
		t.Fatalf("%d of %d, %v", n, len(b), err)
	}
	if flush && rnd.IntN(4) == 0 && (rw.page == nil || !rw.page.scan.BehindHead()) {
		if err := rw.FlushError(); err != nil {
			t.Fatal(err)
		}
	}
}

// boundedRewrite returns the changed page if only its first bound bytes may be held. decided is the value of the
// scanner's field Decided.
func boundedRewrite(page []byte, set *Set, bound int, decided bool) []byte {
	var s headscan.Scanner
	s.Reset(set, false)
	s.Decided = decided
	if len(page) >= bound {
		s.Scan(page[:bound], false)
	} else {
		s.Scan(page, true)
	}
	return applyEdits(page, editsOf(nil, &s, set, Merge, true))
}

// Options.LongHead is called for a page whose head is longer than MaxHead.
func TestLongHead(t *testing.T) {
	head := "<!DOCTYPE html><head><title>" + strings.Repeat("x", 5000) + "</title><meta name=robots content=all>"
	for name, c := range map[string]struct {
		page    string
		maxHead int
		reports int
	}{
		"longer":   {head + "</head><body>", 4096, 1},
		"not":      {head + "</head><body>", 0, 0},
		"body":     {"<!DOCTYPE html><head></head><body>" + strings.Repeat("x", 5000), 4096, 0},
		"fragment": {"<p>" + strings.Repeat("x", 5000), 4096, 0},
	} {
		for _, coding := range testCodings {
			for _, packed := range []bool{false, true} {
				reports := 0
				r := newRecorder()
				r.header.Set("Content-Type", "text/html; charset=utf-8")
				body := []byte(c.page)
				if packed {
					r.header.Set("Content-Encoding", coding.name)
					body = coding.pack(body, 7, 0)
				}
				rw := wrapped(t, r, Options{Set: testSet(t, "robots=noindex"), MaxHead: c.maxHead, LongHead: func(*http.Request) { reports++ }})
				rw.Write(body)
				rw.Close(nil)
				if reports != c.reports {
					t.Errorf("%s, packed in %s: %v: reported %d times", name, coding.name, packed, reports)
				}
			}
		}
	}
}
