// SPDX-License-Identifier: Apache-2.0

package accesslog

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strconv"
	"time"
)

// caddyJSON reads Caddy's access log, one JSON object a line. It skips what a Record lacks without decoding, which makes
// it several times as fast as encoding/json.
type caddyJSON struct {
	buf []byte // strings with escapes
}

func (*caddyJSON) Clone() Parser { return new(caddyJSON) }

var errJSON = errors.New("it is not a JSON object")

func (p *caddyJSON) Parse(line []byte, r *Record) error {
	*r = Record{}
	p.buf = p.buf[:0]
	s := scanner{b: line, p: p}
	if !s.object(func(key []byte) { s.top(key, r) }) {
		return errJSON
	}
	if s.space(); s.i < len(s.b) {
		return errJSON
	}
	return r.complete()
}

// top reads the value of a field of the log line.
func (s *scanner) top(key []byte, r *Record) {
	switch string(key) {
	case "ts":
		r.Time = s.time()
	case "request":
		s.object(func(key []byte) { s.request(key, r) })
	case "size":
		r.Bytes = s.number()
	case "robots_policy":
		s.object(func(key []byte) {
			switch string(key) {
			case "crawler":
				r.Crawler = s.text()
			case "verified":
				r.Identity = s.text()
			default:
				s.skip()
			}
		})
	default:
		s.skip()
	}
}

func (s *scanner) request(key []byte, r *Record) {
	switch string(key) {
	case "client_ip":
		r.ClientIP = s.text()
	case "remote_ip":
		if v := s.text(); r.ClientIP == nil {
			r.ClientIP = v // logs of older versions have no client_ip
		}
	case "host":
		r.Host = s.text()
	case "uri":
		r.Target = s.text()
	case "headers":
		r.Unsigned = true
		s.object(func(key []byte) {
			switch string(key) {
			case "User-Agent":
				r.UserAgent = s.lines()
			case "Signature-Input":
				r.Unsigned = false
				s.skip()
			default:
				s.skip()
			}
		})
	default:
		s.skip()
	}
}

// scanner walks over JSON. After an error, bad is set and i is at the end, so that every loop ends.
type scanner struct {
	b   []byte
	i   int
	p   *caddyJSON
	bad bool
}

func (s *scanner) fail() { s.bad, s.i = true, len(s.b) }

func (s *scanner) space() {
	for s.i < len(s.b) && (s.b[s.i] == ' ' || s.b[s.i] == '\t' || s.b[s.i] == '\r' || s.b[s.i] == '\n') {
		s.i++
	}
}

// peek is the next byte that is not white space, or 0 at the end.
func (s *scanner) peek() byte {
	if s.space(); s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

func (s *scanner) next(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.i++
	return true
}

// object calls field for each key to read its value, and reports whether the object is well-formed. Other values are
// skipped.
func (s *scanner) object(field func(key []byte)) bool {
	if s.peek() != '{' {
		s.skip()
		return false
	}
	s.i++
	if s.next('}') {
		return true
	}
	for s.peek() == '"' {
		key := s.text()
		if !s.next(':') {
			break
		}
		field(key)
		if s.next('}') {
			return true
		}
		if !s.next(',') {
			break
		}
	}
	s.fail()
	return false
}

// lines are the strings of an array, one a line, or a string.
func (s *scanner) lines() []byte {
	if s.peek() != '[' {
		return s.text()
	}
	s.i++
	if s.next(']') {
		return nil
	}
	v := s.text()
	for s.next(',') {
		v = append(append(slices.Clip(v), '\n'), s.text()...)
	}
	if !s.next(']') {
		s.fail()
	}
	return v
}

// text is a string's value, nil for a value of another kind.
func (s *scanner) text() []byte {
	if s.peek() != '"' {
		s.skip()
		return nil
	}
	start := s.i + 1
	if s.skipString(); s.bad {
		return nil
	}
	raw := s.b[start : s.i-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	begin := len(s.p.buf)
	s.p.buf = unescape(s.p.buf, raw)
	return s.p.buf[begin:len(s.p.buf):len(s.p.buf)]
}

// number is a number's whole part, 0 for anything else.
func (s *scanner) number() int64 {
	s.space()
	start := s.i
	s.skip()
	f, err := strconv.ParseFloat(string(s.b[start:s.i]), 64)
	if err != nil || math.Abs(f) >= 1<<63 {
		return 0
	}
	return int64(f)
}

// time reads a time as Caddy's encoders write it: a number of seconds, or a layout of its time_format.
func (s *scanner) time() time.Time {
	if s.peek() != '"' {
		start := s.i
		s.skip()
		return unixTime(s.b[start:s.i])
	}
	v := string(s.text())
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.000Z0700", "2006/01/02 15:04:05.000", "2006/01/02 15:04:05", "02/Jan/2006:15:04:05 -0700"} {
		if t, err := time.Parse(layout, v); err == nil {
			return t
		}
	}
	return unixTime([]byte(v))
}

// unixTime reads seconds, milliseconds or nanoseconds since 1970, to the microsecond.
func unixTime(b []byte) time.Time {
	f, err := strconv.ParseFloat(string(b), 64)
	switch {
	case err != nil || f < 1 || f >= 1<<63:
		return time.Time{}
	case f > 1e17:
		f /= 1e3
	case f > 1e11:
		f *= 1e3
	default:
		f *= 1e6
	}
	return time.UnixMicro(int64(math.Round(f)))
}

func (s *scanner) skip() {
	switch s.peek() {
	case '"':
		s.skipString()
	case '{', '[':
		s.skipNested()
	case 0, '}', ']', ',', ':':
		s.fail()
	default:
		for s.i < len(s.b) && !ends[s.b[s.i]] {
			s.i++
		}
	}
}

// skipString skips a string. An odd number of backslashes escapes a byte, so one search for each quote is enough.
func (s *scanner) skipString() {
	start := s.i + 1
	for i := start; ; {
		n := bytes.IndexByte(s.b[i:], '"')
		if n < 0 {
			s.fail()
			return
		}
		i += n + 1
		slashes := 0
		for k := i - 2; k >= start && s.b[k] == '\\'; k-- {
			slashes++
		}
		if slashes%2 == 0 {
			s.i = i
			return
		}
	}
}

// skipNested skips an object or an array, looking at strings and brackets only.
func (s *scanner) skipNested() {
	depth := 0
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case '"':
			s.skipString()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		s.i++
		if depth == 0 {
			return
		}
	}
	s.fail()
}

// ends are the bytes that end a number, true, false or null.
var ends = [256]bool{',': true, '}': true, ']': true, ' ': true, '\t': true, '\r': true, '\n': true, '"': true, ':': true, '{': true, '[': true}
