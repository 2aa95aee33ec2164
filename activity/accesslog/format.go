// SPDX-License-Identifier: Apache-2.0

package accesslog

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	commonFormat   = `$remote_addr $remote_logname $remote_user [$time_local] "$request" $status $body_bytes_sent`
	combinedFormat = commonFormat + ` "$http_referer" "$http_user_agent"`
)

// formats are the predefined formats of Apache and nginx, as nginx writes them.
var formats = map[string]string{"common": commonFormat, "combined": combinedFormat, "vhost_combined": `$server_name:$server_port ` + combinedFormat}

// ParseFormat returns the parser of caddy, common, combined, vhost_combined, or a log_format of nginx such as
//
//	$host $remote_addr [$time_local] "$request" $status $body_bytes_sent "$http_user_agent"
func ParseFormat(name string) (Parser, error) {
	switch format, known := formats[name]; {
	case name == "caddy":
		return new(caddyJSON), nil
	case known:
		return compile(name, format)
	case strings.Contains(name, "$"):
		return compile(name, name)
	}
	return nil, fmt.Errorf(`invalid format %q: must be caddy, common, combined, vhost_combined, or a log_format of nginx, such as '$remote_addr [$time_local] "$request" $status "$http_user_agent"'`, name)
}

// field is what a part of a line is read into.
type field uint8

const (
	ignored field = iota
	clientIP
	timestamp // the format of the Common Log Format, ISO 8601, or seconds since 1970
	requestLine
	target // path and query
	host
	userAgent
	size
)

// textFormat reads lines of fields with literal text between them.
type textFormat struct {
	name   string
	before string // the first field
	parts  []part
	times  timeCache
	buf    []byte
}

// part is a field and the text after it.
type part struct {
	field  field
	quoted bool // the field stands in double quotes, and may hold escapes
	after  string
}

func (f *textFormat) Clone() Parser {
	c := *f
	c.buf, c.times = nil, timeCache{}
	return &c
}

// variable is $name or ${name}.
var variable = regexp.MustCompile(`\$(?:(\w+)|\{(\w+)\})`)

func compile(name, format string) (*textFormat, error) {
	names, texts := variable.FindAllStringSubmatch(format, -1), variable.Split(format, -1)
	t := &textFormat{name: name, before: texts[0]}
	seen := map[field]bool{}
	for i, n := range names {
		if i > 0 && texts[i] == "" {
			return nil, fmt.Errorf("invalid format %q: there must be text between two fields", name)
		}
		f := nginxFields[n[1]+n[2]]
		seen[f] = true
		t.parts = append(t.parts, part{f, strings.HasSuffix(texts[i], `"`), texts[i+1]})
	}
	if strings.Contains(strings.Join(texts, ""), "$") {
		return nil, fmt.Errorf("invalid format %q: a $ must begin the name of a variable, such as $host or ${host}", name)
	}
	for need, text := range map[field]string{timestamp: "the time ($time_local)", userAgent: "the User-Agent ($http_user_agent)"} {
		if !seen[need] && (need != userAgent || name != "common") {
			return nil, fmt.Errorf("invalid format %q: it lacks %s", name, text)
		}
	}
	if !seen[requestLine] && !seen[target] {
		return nil, fmt.Errorf(`invalid format %q: it lacks the request ("$request")`, name)
	}
	return t, nil
}

var nginxFields = map[string]field{
	"remote_addr": clientIP, "realip_remote_addr": ignored, "time_local": timestamp, "time_iso8601": timestamp, "msec": timestamp,
	"request": requestLine, "request_uri": target, "uri": target, "host": host, "http_host": host, "server_name": host,
	"http_user_agent": userAgent, "body_bytes_sent": size, "bytes_sent": size,
}

func (f *textFormat) Parse(line []byte, r *Record) error {
	*r = Record{}
	f.buf = f.buf[:0]
	rest, ok := bytes.CutPrefix(line, []byte(f.before))
	if !ok {
		return fmt.Errorf("it does not begin with %q", f.before)
	}
	for i := range f.parts {
		p := &f.parts[i]
		value := rest
		if p.after == "" {
			rest = nil
		} else {
			n := p.end(rest)
			if n < 0 {
				return fmt.Errorf("it ends before field %d of the format %s", i+1, f.name)
			}
			value, rest = rest[:n], rest[n+len(p.after):]
		}
		f.set(p, value, r)
	}
	return r.complete()
}

// end finds the end of the value at the start of s. In quotes, a backslash hides a byte.
func (p *part) end(s []byte) int {
	if !p.quoted || p.after[0] != '"' {
		n := bytes.Index(s, []byte(p.after))
		if (p.field == clientIP || p.field == host || p.field == ignored) && p.after[0] == ' ' && bytes.IndexByte(s, ' ') != n {
			return -1 // a line of another format
		}
		return n
	}
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			if bytes.HasPrefix(s[i:], []byte(p.after)) {
				return i
			}
		}
	}
	return -1
}

func (f *textFormat) set(p *part, value []byte, r *Record) {
	if p.field == ignored {
		return
	}
	if p.quoted && bytes.IndexByte(value, '\\') >= 0 {
		start := len(f.buf)
		f.buf = unescape(f.buf, value)
		value = f.buf[start:len(f.buf):len(f.buf)]
	}
	if len(value) == 1 && value[0] == '-' {
		return
	}
	switch p.field {
	case clientIP:
		r.ClientIP = value
	case timestamp:
		r.Time = f.times.parse(value)
	case requestLine:
		if t := targetOf(value); t != nil {
			r.Target = t
		}
	case target:
		r.Target = value
	case host:
		r.Host = value
	case userAgent:
		r.UserAgent = value
	case size:
		r.Bytes, _ = strconv.ParseInt(string(value), 10, 64)
	case ignored:
	}
}

// targetOf returns the target of a request line, nil for a request that was no HTTP.
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

// timeCache has the last time, as neighbouring lines share their second.
type timeCache struct {
	text [32]byte
	n    int
	at   time.Time
}

func (c *timeCache) parse(value []byte) time.Time {
	if c.n > 0 && c.n == len(value) && string(c.text[:c.n]) == string(value) {
		return c.at
	}
	at, err := time.Parse("02/Jan/2006:15:04:05 -0700", string(value))
	if err != nil {
		if at, err = time.Parse(time.RFC3339, string(value)); err != nil {
			at = unixTime(value)
		}
	}
	if len(value) <= len(c.text) {
		c.n, c.at = copy(c.text[:], value), at
	}
	return at
}
