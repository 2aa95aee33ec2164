// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"

	"github.com/robotspolicy/caddy-robots-policy/bench/internal/workload"
)

// originTag is the entity tag of all responses of the origin.
const originTag = `"origin"`

// origin is the upstream of all proxies. It does as little work as possible, so that the proxies can use the CPU. It
// supports only GET, and reads only the path, Accept-Encoding and If-None-Match of a request.
type origin struct {
	net.Listener
	answers map[*workload.Body][]byte
}

func startOrigin() (*origin, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	o := &origin{Listener: l, answers: map[*workload.Body][]byte{}}
	for _, b := range workload.Bodies() {
		o.answers[b] = encode(b)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // the listener is closed
			}
			go o.serve(c)
		}
	}()
	return o, nil
}

// encode returns the bytes of a complete response whose body is b.
func encode(b *workload.Body) []byte {
	var w bytes.Buffer
	fmt.Fprintf(&w, "HTTP/1.1 200 OK\r\nServer: origin\r\nContent-Type: %s\r\nETag: %s\r\n", b.Type, originTag)
	if b.Encoding != "" {
		fmt.Fprintf(&w, "Content-Encoding: %s\r\nVary: Accept-Encoding\r\n", b.Encoding)
	}
	if !b.Chunked {
		fmt.Fprintf(&w, "Content-Length: %d\r\n\r\n", len(b.Data))
		w.Write(b.Data)
		return w.Bytes()
	}
	w.WriteString("Transfer-Encoding: chunked\r\n\r\n")
	for data := b.Data; len(data) > 0; {
		n := min(workload.ChunkSize, len(data))
		fmt.Fprintf(&w, "%x\r\n%s\r\n", n, data[:n])
		data = data[n:]
	}
	w.WriteString("0\r\n\r\n")
	return w.Bytes()
}

var (
	notFound    = []byte("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
	notModified = []byte("HTTP/1.1 304 Not Modified\r\nETag: " + originTag + "\r\n\r\n")
)

func (o *origin) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		answer, err := o.answer(r)
		if err != nil {
			return
		}
		// The answer is sent in chunks, like the answer of a server that computes a page.
		for len(answer) > 0 {
			n := min(workload.ChunkSize, len(answer))
			if len(answer) <= 64<<10 {
				n = len(answer)
			}
			if _, err := c.Write(answer[:n]); err != nil {
				return
			}
			answer = answer[n:]
		}
	}
}

// answer reads a request and returns the bytes of the answer.
func (o *origin) answer(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	_, rest, _ := bytes.Cut(line, []byte(" "))
	path, _, _ := bytes.Cut(rest, []byte(" "))
	target := string(path)
	gzip, known := false, false
	for {
		h, err := r.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		if len(h) <= 2 {
			break
		}
		if name, value, _ := bytes.Cut(h, []byte(":")); bytes.EqualFold(name, []byte("Accept-Encoding")) {
			gzip = bytes.Contains(value, []byte("gzip"))
		} else if bytes.EqualFold(name, []byte("If-None-Match")) {
			known = bytes.Contains(value, []byte(originTag))
		}
	}
	b := workload.BodyOf(target, gzip)
	switch {
	case b == nil:
		return notFound, nil
	case known:
		return notModified, nil
	}
	return o.answers[b], nil
}
