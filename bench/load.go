// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// answer holds the checked parts of a response.
type answer struct {
	status int
	size   int // length of the body in octets, without the framing of chunks
}

// load holds the clients of one proxy. Each client sends its next request as soon as it has received an answer.
type load struct {
	clients  []*client
	done     sync.WaitGroup
	stopping atomic.Bool
	timing   atomic.Bool // true while latencies are recorded
}

// client is one connection. It allocates no memory while it sends requests, so that no garbage is collected during the
// measurement.
type client struct {
	conn      net.Conn
	r         *bufio.Reader
	requests  [][]byte
	want      answer
	answers   atomic.Int64
	octets    atomic.Int64
	latencies []time.Duration
	err       error
}

// startLoad opens connections and sends the requests repeatedly. Each connection begins with a different request. If an
// answer differs from want, the load ends with an error.
func startLoad(addr string, requests [][]byte, conns int, want answer) (*load, error) {
	l := &load{}
	for i := range conns {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			l.stop()
			return nil, err
		}
		from := i * len(requests) / conns
		c := &client{
			conn: conn, r: bufio.NewReaderSize(conn, 64<<10), want: want,
			requests: append(append([][]byte(nil), requests[from:]...), requests[:from]...),
		}
		l.clients = append(l.clients, c)
		l.done.Go(func() { c.run(l) })
	}
	return l, nil
}

func (c *client) run(l *load) {
	defer c.conn.Close()
	began := time.Now()
	for i := 0; !l.stopping.Load(); i++ {
		if _, c.err = c.conn.Write(c.requests[i%len(c.requests)]); c.err != nil {
			break
		}
		var got answer
		if got, c.err = c.read(); c.err != nil {
			break
		}
		if got != c.want {
			c.err = fmt.Errorf("the answer has status %d and %d octets, before it had status %d and %d", got.status, got.size, c.want.status, c.want.size)
			return
		}
		c.answers.Add(1)
		now := time.Now()
		if l.timing.Load() {
			c.latencies = append(c.latencies, now.Sub(began))
		}
		began = now
	}
	if l.stopping.Load() {
		c.err = nil // the error is only that stop has closed the connection
	}
}

var errAnswer = errors.New("an answer that is not understood")

// read reads one answer to a request of this client, and counts its body.
func (c *client) read() (a answer, err error) {
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return a, err
	}
	if len(line) < len("HTTP/1.1 200") {
		return a, errAnswer
	}
	a.status = number(line[len("HTTP/1.1 "):][:3], 10)
	length, chunked := 0, false
	for {
		h, err := c.r.ReadSlice('\n')
		if err != nil {
			return a, err
		}
		if len(h) <= 2 {
			break
		}
		if value, ok := field(h, "Content-Length:"); ok {
			length = number(value, 10)
		} else if _, ok := field(h, "Transfer-Encoding:"); ok {
			chunked = true
		}
	}
	switch {
	case a.status == 304:
		return a, nil
	case !chunked:
		a.size = length
		return a, c.discard(length)
	}
	for {
		if line, err = c.r.ReadSlice('\n'); err != nil {
			return a, err
		}
		n := number(bytes.TrimSpace(line), 16)
		if n < 0 {
			return a, errAnswer
		}
		if err := c.discard(n); err != nil {
			return a, err
		}
		if _, err := c.r.Discard(len("\r\n")); err != nil {
			return a, err
		}
		if n == 0 {
			return a, nil
		}
		a.size += n
	}
}

// discard reads and counts the bytes of a body in pieces, so that a long body is counted while it arrives.
func (c *client) discard(n int) error {
	for n > 0 {
		k, err := c.r.Discard(min(n, 32<<10))
		c.octets.Add(int64(k))
		if n -= k; err != nil {
			return err
		}
	}
	return nil
}

func field(line []byte, name string) ([]byte, bool) {
	if len(line) < len(name) || !bytes.EqualFold(line[:len(name)], []byte(name)) {
		return nil, false
	}
	return bytes.TrimSpace(line[len(name):]), true
}

// number parses a number. It returns -1 if b is not a number.
func number(b []byte, base int) int {
	n, err := strconv.ParseUint(string(b), base, 31)
	if err != nil {
		return -1
	}
	return int(n)
}

// count returns the number of answers so far. If stream is true, it adds the received fraction of each unfinished body,
// such as 0.5 for half of a body.
func (l *load) count(stream bool) float64 {
	n := 0.0
	for _, c := range l.clients {
		if stream {
			n += float64(c.octets.Load()) / float64(c.want.size)
		} else {
			n += float64(c.answers.Load())
		}
	}
	return n
}

// stop ends the clients, and returns the first error. Further calls return the same error.
func (l *load) stop() error {
	l.stopping.Store(true)
	for _, c := range l.clients {
		c.conn.SetDeadline(time.Now().Add(20 * time.Millisecond))
	}
	l.done.Wait()
	var errs []error
	for _, c := range l.clients {
		errs = append(errs, c.err)
	}
	return errors.Join(errs...)
}

// latencies returns the latencies that all clients recorded while timing was true.
func (l *load) latencies() (all []time.Duration) {
	for _, c := range l.clients {
		all = append(all, c.latencies...)
	}
	return all
}
