// SPDX-License-Identifier: Apache-2.0

package accesslog

import (
	"bytes"
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// jsonFormat parses logs in which each line is a JSON object, possibly after other text. It skips values that a Record
// does not need, which makes it several times as fast as encoding/json.
type jsonFormat struct {
	root  *node
	buf   []byte        // buffer for decoding strings with escapes
	ranks [fields]uint8 // for each field, the rank of the node whose value the record has; 0 if none
	inner *anyFormat    // parses a line within the line of another program
	line  []byte        // the inner line
}

func newJSON(root *node) *jsonFormat { return &jsonFormat{root: root} }

func (p *jsonFormat) Clone() Parser { return newJSON(p.root) }

var errJSON = errors.New("its JSON is cut or damaged")

// prefixTime finds the time that Caddy's log format "console" writes before the JSON.
var prefixTime = regexp.MustCompile(`\d{4}[-/]\d\d[-/]\d\d[ T][0-9:.]+(?:Z|[+-]\d\d:?\d\d)?`)

func (p *jsonFormat) Parse(line []byte, r *Record) error {
	*r = Record{}
	p.buf, p.ranks, p.line = p.buf[:0], [fields]uint8{}, nil
	start := bytes.IndexByte(line, '{')
	if start < 0 {
		return errNoJSON
	}
	s := scanner{b: line[start:], p: p}
	if !s.object(p.root, r) {
		return errJSON
	}
	if s.space(); s.i < len(s.b) {
		return errJSON
	}
	if r.Target == nil && p.line != nil {
		if p.inner == nil {
			p.inner = newAnyFormat(p.root)
		}
		inner := bytes.TrimRight(p.line, "\r\n")
		err := p.inner.Parse(inner, r)
		if r.inner == nil {
			r.inner = inner
		}
		return err
	}
	if r.Time.IsZero() && start > 0 {
		if all := prefixTime.FindAll(line[:start], -1); all != nil {
			r.Time = parseTime(string(all[len(all)-1]))
		}
	}
	return r.complete()
}

// value scans a JSON value, and stores it in the field of the record that n describes. It skips the value if n is nil
// or has no rank. It also skips the value if the record already has a value for this field from a JSON field with a
// lower rank, which is a preferred name.
func (s *scanner) value(n *node, r *Record) {
	if n == nil {
		s.skip()
		return
	}
	if n.kids != nil && s.peek() == '{' {
		if n.field == headers {
			r.Unsigned = true
		}
		s.object(n, r)
		return
	}
	if have := s.p.ranks[n.field]; n.rank == 0 || have > 0 && have < n.rank {
		s.skip()
		return
	}
	s.p.ranks[n.field] = n.rank
	switch n.field {
	case timestamp:
		r.Time = s.time()
	case size:
		r.Bytes = s.number()
	case userAgent:
		r.UserAgent = s.lines()
	case signature:
		r.Unsigned = false
		s.skip()
	case embedded:
		s.p.line = s.text()
	default:
		r.set(n.as, s.text())
	}
}

// scanner scans JSON. After an error, bad is set and i is at the end, so that every loop ends.
type scanner struct {
	b   []byte
	i   int
	p   *jsonFormat
	bad bool
}

func (s *scanner) fail() { s.bad, s.i = true, len(s.b) }

func (s *scanner) space() {
	for s.i < len(s.b) && s.b[s.i] <= ' ' && white[s.b[s.i]] {
		s.i++
	}
}

// peek returns the next byte that is not white space, or 0 at the end.
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

// object scans an object. It stores the values of the fields that n has as children, and skips all other fields. It
// reports whether the object is well-formed.
func (s *scanner) object(n *node, r *Record) bool {
	s.i++
	if s.next('}') {
		return true
	}
	for s.peek() == '"' {
		key := s.text()
		if !s.next(':') {
			break
		}
		s.value(n.child(key), r)
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

// lines returns the value of a string. For an array of strings, it returns the strings joined by line breaks.
func (s *scanner) lines() []byte {
	if s.peek() != '[' {
		return s.text()
	}
	s.i++
	if s.next(']') {
		return nil
	}
	v := slices.Clip(s.text()) // clipped, so that append does not overwrite the line
	for s.next(',') {
		v = append(append(v, '\n'), s.text()...)
	}
	if !s.next(']') {
		s.fail()
	}
	return v
}

// text returns the text of a string. For any other JSON value, it returns nil.
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

// number returns the integer part of a number, or 0 for any other value.
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

// time reads a time, which may be a number of seconds or a text.
func (s *scanner) time() time.Time {
	if s.peek() != '"' {
		start := s.i
		s.skip()
		return unixTime(s.b[start:s.i])
	}
	return parseTime(string(s.text()))
}

// layouts are the layouts of times in RFC 3339 and RFC 1123, in the time_format of Caddy's encoders, and in the Common
// Log Format.
var layouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.000Z0700", "2006/01/02 15:04:05.000", "2006/01/02 15:04:05",
	"2006-01-02 15:04:05.999999999", "02/Jan/2006:15:04:05 -0700", time.RFC1123, time.RFC1123Z,
}

// parseTime parses a time, in UTC if it has no offset. It returns the zero time if v is not a time.
func parseTime(v string) time.Time {
	for _, layout := range layouts {
		if t, err := time.Parse(layout, v); err == nil {
			return t
		}
	}
	return unixTime([]byte(v))
}

// unixTime parses seconds, milliseconds, microseconds or nanoseconds since 1970. It drops anything below a
// microsecond.
func unixTime(b []byte) time.Time {
	f, err := strconv.ParseFloat(string(b), 64)
	switch {
	case err != nil || f < 1 || f >= 1<<63:
		return time.Time{}
	case f > 1e17:
		f /= 1e3
	case f > 1e14:
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

// skipString skips a string. It searches for quotes. A quote ends the string if the number of backslashes before the
// quote is even.
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

// skipNested skips an object or array. It only examines strings and brackets.
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

// ends are the bytes that end a number, true, false or null, even if the JSON is not valid there.
var ends = [256]bool{',': true, '}': true, ']': true, ' ': true, '\t': true, '\r': true, '\n': true, '"': true, ':': true, '{': true, '[': true}

var white = [256]bool{' ': true, '\t': true, '\r': true, '\n': true}
