// SPDX-License-Identifier: Apache-2.0

package caddytest

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// Zone holds the data of a DNS server. The keys are names in lower case with the final dot. The address 20.0.0.1, for
// example, has the name 1.0.0.20.in-addr.arpa.
type Zone map[string]Name

// Name holds a Zone's data for a name.
type Name struct {
	PTR []string // host names of an address
	A   string   // address of a host name
	// Broken selects a fault instead of an answer: hang (no response), garbage, servfail, or another (a response with
	// another ID).
	Broken string
}

// ServeUDP answers queries until conn is closed.
func (z Zone) ServeUDP(conn net.PacketConn) {
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

// ServeTCP answers queries of all connections until l is closed.
func (z Zone) ServeTCP(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go z.ServeConn(conn)
	}
}

// ServeConn answers queries in the format for TCP (RFC 1035 section 4.2.2). If the Zone says that a query gets no
// response, ServeConn returns.
func (z Zone) ServeConn(conn net.Conn) {
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
}

// truncated returns the header of an answer that is too long for UDP.
func truncated(answer []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(answer) != nil {
		return nil
	}
	m.Truncated, m.Answers = true, nil
	short, _ := m.Pack()
	return short
}

// answer returns the answer to a query, or nil if the query must not be answered.
func (z Zone) answer(query []byte) []byte {
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
	case e.Broken == "hang":
		return nil
	case e.Broken == "garbage":
		return append(query[:2:2], []byte(strings.Repeat("\xc0\x0c\xff", 100))...)
	case e.Broken == "servfail":
		m.RCode = dnsmessage.RCodeServerFailure
	case e.Broken == "another":
		m.ID ^= 0x5555
	case !known:
		m.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypePTR:
		for _, name := range e.PTR {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.PTRResource{PTR: dnsmessage.MustNewName(name)}})
		}
	case q.Type == dnsmessage.TypeA && e.A != "":
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: netip.MustParseAddr(e.A).As4()}})
	}
	answer, err := m.Pack()
	if err != nil {
		return nil
	}
	return answer
}
