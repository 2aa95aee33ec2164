// SPDX-License-Identifier: Apache-2.0

// Package accesslog reads the access logs of web servers. It supports the JSON of Caddy and other programs, the Common
// and Combined formats, the W3C extended format, and log formats of nginx and Apache. In JSON logs, other text may
// precede the JSON on each line.
//
// [Reading.Read] reads logs. Its [Result] counts the lines and describes those that could not be read.
package accesslog

import (
	"bytes"
	"errors"
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// Record is a parsed line of an access log. Its byte slices are valid only until the next line is parsed.
type Record struct {
	Time      time.Time
	ClientIP  []byte
	Host      []byte // with the port, if the log has one; empty if the log has no host
	Target    []byte // the request target, such as /a?b
	UserAgent []byte // several User-Agents are separated by line breaks
	Bytes     int64  // bytes of the response body
	// Crawler and Identity are the crawler and its identity according to the field "robots_policy" of Caddy's log. Both
	// are empty if the log does not have this field.
	Crawler, Identity []byte
	Unsigned          bool // the log includes the request's header fields, and none of them is a signature
	Agentless         bool // the log does not include User-Agents
	File              int  // the number of the file, from 0; [Reading.Read] sets it

	inner []byte // the line within another program's line; set even if Parse returns an error
}

// Parser parses the lines of a log. It is not safe for concurrent use: each goroutine needs a separate Clone.
type Parser interface {
	// Parse parses a line without its line break, and stores the result in r. After an error, r is undefined.
	Parse(line []byte, r *Record) error
	Clone() Parser
}

var (
	errNoRequest = errors.New("the line has no request")
	errNoTime    = errors.New("the time in the line is missing or invalid")
)

// set stores a value in a field. It ignores "-", which logs write if there is no value.
func (r *Record) set(f field, v []byte) {
	if len(v) == 1 && v[0] == '-' {
		return
	}
	switch f {
	case clientIP:
		r.ClientIP = v
	case requestLine:
		if t := targetOf(v); t != nil {
			r.Target = t
		}
	case target:
		r.Target = v
	case host:
		if string(v) != "_" { // nginx writes "_" for a server without a name
			r.Host = v
		}
	case userAgent:
		r.UserAgent = v
	case crawler:
		r.Crawler = v
	case identity:
		r.Identity = v
	default: // no other field is text
	}
}

// targetOf returns the target of a request line, or nil if the client did not send HTTP.
func targetOf(value []byte) []byte {
	_, rest, _ := bytes.Cut(value, []byte(" "))
	if i := bytes.LastIndex(rest, []byte(" HTTP/")); i >= 0 {
		rest = rest[:i]
	}
	if len(rest) == 0 {
		return nil
	}
	return rest
}

// complete returns an error if the record lacks the target or the time. If the record has no host and the target is a
// complete URL, complete takes the host from the target.
func (r *Record) complete() error {
	switch {
	case r.Target == nil:
		return errNoRequest
	case r.Time.IsZero():
		return errNoTime
	}
	if r.Host == nil && len(r.Target) > 0 && r.Target[0] != '/' {
		if _, rest, ok := bytes.Cut(r.Target, []byte("://")); ok {
			if end := bytes.IndexAny(rest, "/?"); end >= 0 {
				rest = rest[:end]
			}
			r.Host = rest[bytes.LastIndexByte(rest, '@')+1:]
		}
	}
	return nil
}

// unescape appends s to b and decodes its escapes. It knows the escapes of JSON, which nginx can also write, and the
// escapes of nginx and Apache: \xHH and the escapes of C, such as \t. It keeps invalid escapes as they are.
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

// controls maps escape letters to control characters.
var controls = [256]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v'}

// hexNumber parses a number with the given number of hexadecimal digits.
func hexNumber(s []byte, digits int) (uint64, bool) {
	if len(s) < digits {
		return 0, false
	}
	v, err := strconv.ParseUint(string(s[:digits]), 16, 16)
	return v, err == nil
}

// hexRune parses s, the text after \u, which begins with four hexadecimal digits. If these digits are the first half of
// a surrogate pair, it also parses the second half, with its \u. n is the number of parsed bytes, or 0 if s does not
// begin with four digits.
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
