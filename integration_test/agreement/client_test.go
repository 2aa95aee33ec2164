// SPDX-License-Identifier: Apache-2.0

package agreement

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/net/http2"
)

// answer is a response as received, except that the content coding of its body is decoded.
type answer struct {
	status  int
	header  http.Header
	body    string
	dropped bool // the connection was closed, or the stream was reset, without an answer
}

// answerTimeout is the maximum time for one answer.
const answerTimeout = 20 * time.Second

// get requests the path of a question. It sends the path exactly as the question has it.
func (s *running) get(q question) (answer, error) { return s.ask(http.MethodGet, q) }

// ask requests the path of a question, with additional header fields. It sends the path byte for byte as in q.path, and
// keeps the connection open for later requests.
func (s *running) ask(method string, q question, fields ...[2]string) (answer, error) {
	fields = append([][2]string{
		{"User-Agent", q.agent}, {"Accept-Encoding", q.coding}, {"X-Page", strconv.Itoa(q.page)}, {"X-Forwarded-Host", s.taken},
	}, fields...)
	if q.client.address != "" {
		fields = append(fields, [2]string{"X-Forwarded-For", q.client.address})
	}
	if q.http2 {
		return s.ask2(method, q, fields)
	}
	return s.ask1(method, q, fields)
}

// ask1 does the work of ask over HTTP/1.1.
func (s *running) ask1(method string, q question, fields [][2]string) (answer, error) {
	request := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\n", method, q.path, q.host)
	for _, f := range fields {
		request += f[0] + ": " + f[1] + "\r\n"
	}
	for {
		kept := s.conn != nil
		a, err := s.send(method, request+"\r\n")
		if err == nil {
			return a, nil
		}
		s.hangUp()
		hungUp := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
		switch {
		case !hungUp:
			return answer{}, err
		case !kept:
			return answer{dropped: true}, nil
		}
		// The server may have closed the connection since the last request, so try once more.
	}
}

func (s *running) send(method, request string) (answer, error) {
	if s.conn == nil {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			return answer{}, err
		}
		s.conn, s.in = conn, bufio.NewReader(conn)
	}
	_ = s.conn.SetDeadline(time.Now().Add(answerTimeout))
	if _, err := io.WriteString(s.conn, request); err != nil {
		return answer{}, err
	}
	resp, err := http.ReadResponse(s.in, &http.Request{Method: method})
	if err != nil {
		return answer{}, err
	}
	a, err := read(resp)
	if resp.Close {
		s.hangUp()
	}
	return a, err
}

func (s *running) hangUp() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

// ask2 does the work of ask over unencrypted HTTP/2 with prior knowledge (RFC 9113 section 3.3).
func (s *running) ask2(method string, q question, fields [][2]string) (answer, error) {
	if s.h2 == nil {
		s.h2 = &http.Transport{DisableCompression: true, Protocols: new(http.Protocols)}
		s.h2.Protocols.SetUnencryptedHTTP2(true)
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	r := (&http.Request{
		Method: method, Host: q.host, Header: http.Header{},
		URL: &url.URL{Scheme: "http", Host: s.addr, Opaque: "//" + q.host + q.path}, // the path is sent unchanged
	}).WithContext(ctx)
	for _, f := range fields {
		r.Header[f[0]] = []string{f[1]}
	}
	resp, err := s.h2.RoundTrip(r)
	var reset http2.StreamError
	if errors.As(err, &reset) {
		return answer{dropped: true}, nil
	}
	if err != nil {
		return answer{}, err
	}
	if resp.ProtoMajor != 2 {
		return answer{}, fmt.Errorf("the answer is in %s", resp.Proto)
	}
	return read(resp)
}

// read converts a response to an answer, and decodes its content coding.
func read(resp *http.Response) (answer, error) {
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode, header: resp.Header}
	body, err := io.ReadAll(resp.Body)
	if err == nil && len(body) > 0 {
		coding := resp.Header.Get("Content-Encoding")
		if body, err = decoded(coding, body); err != nil {
			err = fmt.Errorf("no %s: %w", coding, err)
		}
	}
	a.body = string(body)
	return a, err
}

// decoded decodes a body with a content coding.
func decoded(coding string, body []byte) (_ []byte, err error) {
	var from io.Reader = bytes.NewReader(body)
	switch coding {
	case "gzip":
		from, err = gzip.NewReader(from)
	case "deflate":
		from, err = zlib.NewReader(from)
	case "br":
		from = brotli.NewReader(from)
	case "zstd":
		var z *zstd.Decoder
		if z, err = zstd.NewReader(from, zstd.WithDecoderConcurrency(1)); err == nil {
			defer z.Close()
			from = z
		}
	case "":
	default:
		err = errors.New("no coding that was asked for")
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(from)
}

// encoded returns a body in a content coding, or nil if the coding is unknown.
func encoded(coding string, body string) []byte {
	var b bytes.Buffer
	var to io.WriteCloser
	switch coding {
	case "gzip":
		to = gzip.NewWriter(&b)
	case "deflate": // RFC 9110 section 8.4.1.2
		to = zlib.NewWriter(&b)
	case "br":
		to = brotli.NewWriter(&b)
	case "zstd":
		z, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
		if err != nil {
			panic(err) // the options are constants
		}
		to = z
	default:
		return nil
	}
	_, err := io.WriteString(to, body)
	if err = errors.Join(err, to.Close()); err != nil {
		panic(err) // writing to memory does not fail
	}
	return slices.Clone(b.Bytes())
}
