// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// zone is what a name server on loopback knows, by name with its final dot. Names of
// addresses are under in-addr.arpa.
type zone map[string]dnsEntry

type dnsEntry struct {
	names  []string // of a PTR record
	addr   string   // of an A record
	broken string   // hang, garbage, servfail, another: instead of an answer
}

// resolverAddr is the name server that this process asks, nil for the machine's own.
var resolverAddr atomic.Pointer[string]

// useTestResolver has the process ask what startResolver runs. It is called before
// anything looks a name up, for what still does so when a test is over would read
// the resolver while it changes.
func useTestResolver() {
	var dialer net.Dialer
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if ours := resolverAddr.Load(); ours != nil {
			addr = *ours
		}
		return dialer.DialContext(ctx, network, addr)
	}}
}

// startResolver runs a name server on loopback, over UDP and TCP, and has the
// process ask it and nobody else, until the test ends.
func startResolver(t *testing.T, z zone) {
	t.Helper()
	addr := freeAddr(t)
	udp, err := net.ListenPacket("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	go z.serveUDP(udp)
	go z.serveTCP(tcp)
	resolverAddr.Store(&addr)
	t.Cleanup(func() {
		resolverAddr.Store(nil)
		_ = udp.Close()
		_ = tcp.Close()
	})
}

func (z zone) serveUDP(conn net.PacketConn) {
	query := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(query)
		if err != nil {
			return
		}
		answer := z.answer(query[:n])
		if len(answer) > 512 {
			answer = truncated(answer)
		}
		if answer != nil {
			_, _ = conn.WriteTo(answer, from)
		}
	}
}

func (z zone) serveTCP(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			var size [2]byte
			for {
				if _, err := io.ReadFull(conn, size[:]); err != nil {
					return
				}
				query := make([]byte, binary.BigEndian.Uint16(size[:]))
				if _, err := io.ReadFull(conn, query); err != nil {
					return
				}
				answer := z.answer(query)
				if answer == nil {
					return
				}
				if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
					return
				}
			}
		}()
	}
}

// truncated is the head of an answer, which says that it is longer than UDP carries.
func truncated(answer []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(answer) != nil {
		return nil
	}
	m.Truncated, m.Answers = true, nil
	short, _ := m.Pack()
	return short
}

// answer answers a query, or is nil for one that is never answered.
func (z zone) answer(query []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(query) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	m.Additionals = nil
	m.Response, m.RecursionAvailable = true, true
	e, known := z[strings.ToLower(q.Name.String())]
	header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: dnsmessage.ClassINET, TTL: 60}
	switch {
	case e.broken == "hang":
		return nil
	case e.broken == "garbage":
		return append(query[:2:2], []byte(strings.Repeat("\xc0\x0c\xff", 100))...)
	case e.broken == "servfail":
		m.RCode = dnsmessage.RCodeServerFailure
	case e.broken == "another":
		m.ID ^= 0x5555
	case !known:
		m.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypePTR:
		for _, name := range e.names {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.PTRResource{PTR: dnsmessage.MustNewName(name)}})
		}
	case q.Type == dnsmessage.TypeA && e.addr != "":
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: netip.MustParseAddr(e.addr).As4()}})
	}
	answer, err := m.Pack()
	if err != nil {
		return nil
	}
	return answer
}
