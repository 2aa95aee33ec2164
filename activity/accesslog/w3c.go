// SPDX-License-Identifier: Apache-2.0

package accesslog

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"time"
)

// w3cFields maps the fields of the W3C extended format, in lower case, to the fields of a Record. IIS and
// CloudFront write this format.
var w3cFields = map[string]field{
	"date": date, "time": timestamp, "c-ip": clientIP, "cs-host": host, "cs(host)": host, "x-host-header": host,
	"cs-uri": target, "cs-uri-stem": target, "cs-uri-query": query, "cs(user-agent)": userAgent, "sc-bytes": size,
}

// w3cFormat parses the lines that follow a #Fields line, according to that line.
type w3cFormat struct {
	fields []field
	silent bool // the format has no User-Agent
	times  timeCache
	buf    []byte
}

// newW3C returns the format that a #Fields line describes.
func newW3C(line []byte) *w3cFormat {
	f := &w3cFormat{}
	names := strings.Fields(strings.ToLower(string(line)))[1:]
	proxied := slices.Contains(names, "x-host-header")
	for _, name := range names {
		as := w3cFields[name]
		if name == "cs(host)" && proxied {
			as = ignored // this field has CloudFront's own host name
		}
		f.fields = append(f.fields, as)
	}
	f.silent = !slices.Contains(f.fields, userAgent)
	return f
}

// forWorker returns a copy with its own buffers, or nil for nil.
func (f *w3cFormat) forWorker() *w3cFormat {
	if f == nil {
		return nil
	}
	return &w3cFormat{fields: f.fields, silent: f.silent}
}

var errColumns = errors.New("the line does not have as many fields as the #Fields line")

func (f *w3cFormat) Parse(line []byte, r *Record) error {
	*r = Record{Agentless: f.silent}
	f.buf = f.buf[:0]
	tabs := bytes.IndexByte(line, '\t') >= 0
	separator := byte(' ')
	if tabs {
		separator = '\t'
	}
	var day, clock, search []byte
	more := true
	for _, as := range f.fields {
		if !more {
			return errColumns
		}
		var value []byte
		value, line, more = cutField(line, separator)
		switch as {
		case date:
			day = value
		case timestamp:
			clock = value
		case query:
			search = value
		case size:
			r.Bytes, _ = wholeNumber(value)
		case userAgent:
			r.set(as, f.decode(value, tabs))
		default:
			r.set(as, value)
		}
	}
	if more {
		return errColumns
	}
	start := len(f.buf)
	f.buf = append(append(append(f.buf, day...), ' '), clock...)
	r.Time = f.times.parseIn(time.DateTime, f.buf[start:])
	if len(search) > 0 && string(search) != "-" && r.Target != nil {
		start = len(f.buf)
		f.buf = append(append(append(f.buf, r.Target...), '?'), search...)
		r.Target = f.buf[start:]
	}
	return r.complete()
}

// cutField splits off the first value of a line. A quoted value may contain spaces.
func cutField(line []byte, separator byte) (value, rest []byte, more bool) {
	if len(line) > 0 && line[0] == '"' {
		if end := bytes.IndexByte(line[1:], '"'); end >= 0 {
			value, rest = line[1:1+end], line[2+end:]
			if len(rest) == 0 {
				return value, nil, false
			}
			if rest[0] == separator {
				return value, rest[1:], true
			}
		}
	}
	return bytes.Cut(line, []byte{separator})
}

// decode decodes a value. Where the fields of a line are separated by tabs, percent is true, and the value may contain
// escapes such as %20, or %2520 if it was encoded twice. Where they are separated by spaces, percent is false, and a
// plus sign in the value is a space.
func (f *w3cFormat) decode(value []byte, percent bool) []byte {
	start := len(f.buf)
	if !percent {
		f.buf = append(f.buf, bytes.ReplaceAll(value, []byte("+"), []byte(" "))...)
		return f.buf[start:]
	}
	value = bytes.ReplaceAll(value, []byte("%25"), []byte("%"))
	for i := 0; i < len(value); i++ {
		c := value[i]
		if c == '%' {
			if v, ok := hexNumber(value[i+1:], 2); ok {
				c, i = byte(v), i+2
			}
		}
		f.buf = append(f.buf, c)
	}
	return f.buf[start:]
}
