// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
)

// listen serves each connection in its own goroutine, and returns the address.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return l.Addr().String()
}

// logTargets answers each HTTP request with the exact target in its first line. Caddy's forward_auth sends the target
// in the field X-Forwarded-Uri. In this case, logTargets answers with the value of this field, and with a status that
// denies the request.
func logTargets(conn net.Conn) {
	for in := bufio.NewReader(conn); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		target := line
		if _, rest, ok := strings.Cut(line, " "); ok {
			target = rest[:max(0, strings.LastIndexByte(rest, ' '))]
		}
		status := "200 OK"
		for {
			field, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if field = strings.TrimRight(field, "\r\n"); field == "" {
				break
			}
			if name, value, _ := strings.Cut(field, ": "); strings.EqualFold(name, "X-Forwarded-Uri") {
				status, target = "401 Unauthorized", value
			}
		}
		body := target
		if strings.HasPrefix(line, "HEAD ") {
			body = ""
		}
		if _, err := fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Type: text/x-log\r\nX-Target: %s\r\nContent-Length: %d\r\n\r\n%s", status, target, len(target), body); err != nil {
			return
		}
	}
}

// Types of the records of FastCGI (FastCGI Specification 1.0, section 8).
const (
	fcgiEnd    = 3
	fcgiParams = 4
	fcgiStdin  = 5
	fcgiStdout = 6
)

// logFastCGI answers a FastCGI request with some of its parameters.
func logFastCGI(conn net.Conn) {
	in := bufio.NewReader(conn)
	var params []byte
	for {
		var h struct {
			Version, Type       uint8
			ID, Length          uint16
			Padding, Unassigned uint8
		}
		if binary.Read(in, binary.BigEndian, &h) != nil {
			return
		}
		content := make([]byte, int(h.Length)+int(h.Padding))
		if _, err := io.ReadFull(in, content); err != nil {
			return
		}
		switch content = content[:h.Length]; {
		case h.Type == fcgiParams:
			params = append(params, content...)
		case h.Type == fcgiStdin && h.Length == 0:
			p := fcgiPairs(params)
			out := "Content-Type: text/x-log\r\nX-Target: " + p["REQUEST_URI"] + "\r\nX-Path: " + (&url.URL{Path: p["DOCUMENT_URI"] + p["PATH_INFO"]}).EscapedPath() + "\r\n\r\n"
			record := func(kind byte, body string) []byte {
				b := []byte{1, kind, byte(h.ID >> 8), byte(h.ID), byte(len(body) >> 8), byte(len(body)), 0, 0}
				return append(b, body...)
			}
			_, _ = conn.Write(append(append(record(fcgiStdout, out), record(fcgiStdout, "")...), record(fcgiEnd, strings.Repeat("\x00", 8))...))
			return
		}
	}
}

// fcgiPairs parses names and values (FastCGI Specification 1.0, section 3.4).
func fcgiPairs(b []byte) map[string]string {
	length := func() (n int) {
		if len(b) >= 4 && b[0] >= 0x80 {
			n = int(binary.BigEndian.Uint32(b) &^ (1 << 31))
			b = b[4:]
		} else if len(b) > 0 {
			n, b = int(b[0]), b[1:]
		}
		return n
	}
	pairs := map[string]string{}
	for len(b) > 0 {
		name, value := length(), length()
		if name+value > len(b) {
			break
		}
		pairs[string(b[:name])], b = string(b[name:name+value]), b[name+value:]
	}
	return pairs
}
