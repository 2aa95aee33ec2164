// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/quic-go/quic-go"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// request holds the bytes of a request on the wire.
type request struct {
	method, target, host, agent, mode string
	proto                             int // the version of HTTP
}

// protos lists the tested versions of HTTP, the most frequent one twice.
var protos = []int{1, 1, 2, 3}

func (r request) String() string {
	return fmt.Sprintf("%s %q Host: %q HTTP/%d (%s)", r.method, r.target, r.host, r.proto, r.mode)
}

// isOpaque reports whether the target has a scheme that no slash follows, such as http:admin.
func (r request) isOpaque() bool {
	scheme, rest, ok := strings.Cut(r.target, ":")
	return ok && r.method != http.MethodConnect && !strings.Contains(scheme, "/") && !strings.HasPrefix(rest, "/")
}

// fields returns the header of the request in HTTP/2 and HTTP/3.
func (r request) fields(scheme string) [][2]string {
	if r.method == http.MethodConnect {
		return [][2]string{{":method", r.method}, {":authority", r.host}, {"user-agent", r.agent}, {"x-mode", r.mode}}
	}
	return [][2]string{{":method", r.method}, {":scheme", scheme}, {":authority", r.host}, {":path", r.target}, {"user-agent", r.agent}, {"x-mode", r.mode}}
}

// response is an answer. Its status is 0 if the server did not accept the request.
type response struct {
	status int
	header http.Header
	body   string
}

// wire holds the connections to one server. It is not safe for concurrent use.
type wire struct {
	addr string
	quic string   // the address for HTTP/3
	conn net.Conn // connection of HTTP/1.1
	in   *bufio.Reader
	h2   *framed
	h3   *quic.Conn
}

func (w *wire) do(r request) (response, error) {
	switch r.proto {
	case 2:
		return w.two(r)
	case 3:
		return w.three(r)
	}
	return w.one(r)
}

func (w *wire) close() {
	if w.conn != nil {
		_ = w.conn.Close()
		w.conn = nil
	}
	if w.h2 != nil {
		_ = w.h2.conn.Close()
		w.h2 = nil
	}
	if w.h3 != nil {
		_ = w.h3.CloseWithError(0, "")
		w.h3 = nil
	}
}

func (w *wire) one(r request) (response, error) {
	if w.conn == nil {
		conn, err := net.Dial("tcp", w.addr)
		if err != nil {
			return response{}, err
		}
		w.conn, w.in = conn, bufio.NewReader(conn)
	}
	_ = w.conn.SetDeadline(time.Now().Add(30 * time.Second))
	_, err := fmt.Fprintf(w.conn, "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\nX-Mode: %s\r\n\r\n", r.method, r.target, r.host, r.agent, r.mode)
	if err != nil {
		return response{}, err
	}
	resp, err := http.ReadResponse(w.in, &http.Request{Method: r.method})
	if err != nil {
		return response{}, err
	}
	var body []byte
	if r.method == http.MethodConnect && resp.ContentLength >= 0 {
		body = make([]byte, resp.ContentLength) // net/http would treat the body as the data of a tunnel
		_, err = io.ReadFull(w.in, body)
	} else {
		body, err = io.ReadAll(resp.Body)
	}
	if resp.Close || r.method == http.MethodConnect {
		w.close()
	}
	return response{resp.StatusCode, resp.Header, string(body)}, err
}

// framed is an unencrypted HTTP/2 connection.
type framed struct {
	conn    net.Conn
	framer  *http2.Framer
	encoder *hpack.Encoder
	block   bytes.Buffer
	stream  uint32
}

func dialFramed(addr string) (*framed, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	f := &framed{conn: conn, framer: http2.NewFramer(conn, bufio.NewReader(conn)), stream: 1}
	f.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	f.encoder = hpack.NewEncoder(&f.block)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return nil, err
	}
	if err := f.framer.WriteSettings(); err != nil {
		return nil, err
	}
	return f, f.framer.WriteWindowUpdate(0, 1<<30)
}

// maxStreams limits the number of requests on a connection, so that they never use up the connection's flow-control
// window.
const maxStreams = 20_000

func (w *wire) two(r request) (response, error) {
	if w.h2 != nil && w.h2.stream > maxStreams {
		w.close()
	}
	if w.h2 == nil {
		h2, err := dialFramed(w.addr)
		if err != nil {
			return response{}, err
		}
		w.h2 = h2
	}
	f := w.h2
	_ = f.conn.SetDeadline(time.Now().Add(30 * time.Second))
	id := f.stream
	f.stream += 2
	f.block.Reset()
	for _, h := range r.fields("http") {
		_ = f.encoder.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
	}
	if err := f.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: f.block.Bytes(), EndHeaders: true, EndStream: true}); err != nil {
		return response{}, err
	}
	return w.answer(f, id)
}

// answer reads frames until the end of a stream.
func (w *wire) answer(f *framed, id uint32) (resp response, err error) {
	resp.header = http.Header{}
	for {
		frame, err := f.framer.ReadFrame()
		if err != nil {
			return resp, err
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				err = f.framer.WriteSettingsAck()
			}
		case *http2.PingFrame:
			err = f.framer.WritePing(true, frame.Data)
		case *http2.GoAwayFrame:
			return response{}, errReset
		case *http2.RSTStreamFrame:
			if frame.StreamID == id {
				return response{}, errReset
			}
		case *http2.MetaHeadersFrame:
			for _, h := range frame.RegularFields() {
				resp.header.Add(h.Name, h.Value)
			}
			if _, err := fmt.Sscan(frame.PseudoValue("status"), &resp.status); err != nil {
				return resp, err
			}
			if frame.StreamEnded() {
				return resp, nil
			}
		case *http2.DataFrame:
			resp.body += string(frame.Data())
			if frame.StreamEnded() {
				return resp, nil
			}
		}
		if err != nil {
			return resp, err
		}
	}
}
