// SPDX-License-Identifier: Apache-2.0

// Package accesslog reads the access logs of web servers: Caddy's JSON, the Common
// and Combined formats of Apache and nginx, and log formats of nginx.
package accesslog

import (
	"bytes"
	"errors"
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// Record is a line of an access log. Its byte slices are valid until the next line is parsed.
type Record struct {
	Time      time.Time
	ClientIP  []byte
	Host      []byte // with the port, if the log has it; empty if the format has no host
	Target    []byte // the request target, such as /a?b
	UserAgent []byte // where the request had several, one a line
	Bytes     int64  // of the body as sent
	// Crawler and Identity are what the server had found, from the field robots_policy of Caddy's log, or empty.
	Crawler, Identity []byte
	Unsigned          bool // the log has the header of the request, and there is no signature in it
}

// Parser reads lines of one format. It is not safe for concurrent use: Clone it.
type Parser interface {
	// Parse reads a line without its end into r. After an error, r is undefined.
	Parse(line []byte, r *Record) error
	Clone() Parser
}

var (
	errNoRequest = errors.New("it has no request")
	errNoTime    = errors.New("its time is missing or invalid")
)

// complete reports what a line must have and did not.
func (r *Record) complete() error {
	switch {
	case r.Target == nil:
		return errNoRequest
	case r.Time.IsZero():
		return errNoTime
	}
	return nil
}

// detect finds the format of a log that reads most of its first lines.
func detect(start []byte) (Parser, error) {
	lines := bytes.Split(start, []byte("\n"))
	if len(lines) > 1 {
		lines = lines[:len(lines)-1] // the last one may have been cut
	}
	var best Parser
	most := 0
	for _, name := range []string{"caddy", "combined", "vhost_combined", "common"} {
		p, err := ParseFormat(name)
		if err != nil {
			return nil, err
		}
		var r Record
		n := 0
		for _, l := range lines {
			if p.Parse(bytes.TrimSuffix(l, []byte("\r")), &r) == nil {
				n++
			}
		}
		if n > most {
			best, most = p, n
		}
	}
	if best == nil {
		return nil, errors.New("unknown log format: must be Caddy's JSON, Common or Combined; for another one, write --format")
	}
	return best, nil
}

// unescape appends to b what a text stands for, with the escapes of JSON, which nginx can write too, and those of
// nginx and Apache: \xHH and the letters of C. A damaged escape stays as it is.
func unescape(b, s []byte) []byte {
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b = append(b, s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case '"', '\\', '/':
			b = append(b, c)
		case 'b', 'f', 'n', 'r', 't', 'v':
			b = append(b, controls[c])
		case 'u':
			r, n := hexRune(s[i+1:])
			if n == 0 {
				b = append(b, '\\', 'u')
				continue
			}
			i += n
			b = utf8.AppendRune(b, r)
		case 'x':
			v, ok := hexNumber(s[i+1:], 2)
			if !ok {
				b = append(b, '\\', 'x')
				continue
			}
			i += 2
			b = append(b, byte(v))
		default:
			b = append(b, '\\', c)
		}
	}
	return b
}

// controls are the control characters that letters stand for.
var controls = [256]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v'}

// hexNumber reads a number of so many digits.
func hexNumber(s []byte, digits int) (uint64, bool) {
	if len(s) < digits {
		return 0, false
	}
	v, err := strconv.ParseUint(string(s[:digits]), 16, 16)
	return v, err == nil
}

// hexRune reads the four digits after \u, and the second half of a surrogate pair.
func hexRune(s []byte) (r rune, n int) {
	v, ok := hexNumber(s, 4)
	if !ok {
		return 0, 0
	}
	r = rune(v)
	if !utf16.IsSurrogate(r) {
		return r, 4
	}
	if len(s) >= 6 && s[4] == '\\' && s[5] == 'u' {
		if low, ok := hexNumber(s[6:], 4); ok {
			if pair := utf16.DecodeRune(r, rune(low)); pair != utf8.RuneError {
				return pair, 10
			}
		}
	}
	return utf8.RuneError, 4
}
