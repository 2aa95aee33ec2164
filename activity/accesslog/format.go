// SPDX-License-Identifier: Apache-2.0

package accesslog

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"
)

const (
	commonFormat   = `$remote_addr $remote_logname $remote_user [$time_local] "$request" $status $body_bytes_sent`
	combinedFormat = commonFormat + ` "$http_referer" "$http_user_agent"`
)

// formats are the predefined formats of Apache, nginx and AWS in nginx's syntax.
var formats = map[string]string{
	"common": commonFormat, "combined": combinedFormat, "vhost_combined": `$server_name:$server_port ` + combinedFormat,
	"alb": `$type $time_iso8601 $elb $remote_addr $target $t1 $t2 $t3 $status $target_status $received_bytes $bytes_sent "$request" "$http_user_agent" $tls`,
}

// ParseFormat returns the parser for a format. name is json, common, combined, vhost_combined, alb, a log_format of
// nginx or a LogFormat of Apache, for example
//
//	$host $remote_addr [$time_local] "$request" $status $body_bytes_sent "$http_user_agent"
//	%v %h %t "%r" %>s %b "%{User-Agent}i"
func ParseFormat(name string) (Parser, error) {
	switch format, known := formats[name]; {
	case name == "json" || name == "caddy":
		return NewJSON(nil)
	case known:
		return compile(name, format)
	case strings.Contains(name, "$"):
		return compile(name, name)
	case strings.Contains(name, "%"):
		return compile(name, fromApache(name))
	}
	return nil, fmt.Errorf(`invalid format %q: must be json, common, combined, vhost_combined, alb, a LogFormat of Apache, or a log_format of nginx, such as '$remote_addr [$time_local] "$request" $status "$http_user_agent"'`, name)
}

// fromApache converts a LogFormat of Apache to nginx's syntax.
func fromApache(format string) string {
	return directive.ReplaceAllStringFunc(format, func(d string) string {
		m := directive.FindStringSubmatch(d)
		variable := apacheFields[m[2]]
		switch {
		case strings.EqualFold(m[1], "User-Agent") && m[2] == "i":
			variable = "$http_user_agent"
		case strings.EqualFold(m[1], "Host") && m[2] == "i":
			variable = "$host"
		case m[2] == "t" && m[1] != "":
			variable = "$msec" // right for %{sec}t, %{msec}t and %{usec}t; times in other layouts cannot be parsed
		case m[1] != "":
			variable = ""
		}
		return cmp.Or(variable, "$ignored")
	})
}

var (
	directive    = regexp.MustCompile(`%[<>!0-9,]*(?:\{([^}]*)\})?(\^?[a-zA-Z]+?)`)
	apacheFields = map[string]string{
		"h": "$remote_addr", "a": "$remote_addr", "t": "[$time_local]", "r": "$request", "v": "$host", "V": "$host",
		"U": "$request_uri", "b": "$body_bytes_sent", "B": "$body_bytes_sent", "O": "$bytes_sent",
	}
)

// textFormat is the parser for lines whose fields are separated by fixed text.
type textFormat struct {
	name   string
	before string // text before the first field
	parts  []part
	silent bool // the format has no User-Agent
	times  timeCache
	buf    []byte
}

// part is a field together with the fixed text after it.
type part struct {
	field  field
	quoted bool // the field is in double quotes, and may have escapes
	after  string
}

func (f *textFormat) Clone() Parser {
	c := *f
	c.buf, c.times = nil, timeCache{}
	return &c
}

// variable matches $name and ${name}.
var variable = regexp.MustCompile(`\$(?:(\w+)|\{(\w+)\})`)

func compile(name, format string) (*textFormat, error) {
	format = strings.ReplaceAll(format, `\t`, "\t") // in a log_format of nginx, too, \t is a tab
	names, texts := variable.FindAllStringSubmatch(format, -1), variable.Split(format, -1)
	t := &textFormat{name: name, before: texts[0]}
	seen := map[field]bool{}
	for i, n := range names {
		if i > 0 && texts[i] == "" {
			return nil, fmt.Errorf("invalid format %q: write text between any two fields", name)
		}
		f := nginxFields[n[1]+n[2]]
		seen[f] = true
		t.parts = append(t.parts, part{f, strings.HasSuffix(texts[i], `"`), texts[i+1]})
	}
	if strings.Contains(strings.Join(texts, ""), "$") {
		return nil, fmt.Errorf("invalid format %q: a $ must be followed by the name of a variable, such as $host or ${host}", name)
	}
	if !seen[timestamp] {
		return nil, fmt.Errorf("invalid format %q: it lacks the time ($time_local in nginx, %%t in Apache)", name)
	}
	t.silent = !seen[userAgent]
	if !seen[requestLine] && !seen[target] {
		return nil, fmt.Errorf(`invalid format %q: it lacks the request ("$request" in nginx, "%%r" in Apache)`, name)
	}
	return t, nil
}

var nginxFields = map[string]field{
	"remote_addr": clientIP, "realip_remote_addr": ignored, "time_local": timestamp, "time_iso8601": timestamp, "msec": timestamp,
	"request": requestLine, "request_uri": target, "uri": target, "host": host, "http_host": host, "server_name": host,
	"http_user_agent": userAgent, "body_bytes_sent": size, "bytes_sent": size,
}

func (f *textFormat) Parse(line []byte, r *Record) error {
	*r = Record{Agentless: f.silent}
	f.buf = f.buf[:0]
	rest, ok := bytes.CutPrefix(line, []byte(f.before))
	if !ok {
		return fmt.Errorf("the line does not begin with %q", f.before)
	}
	for i := range f.parts {
		p := &f.parts[i]
		value := rest
		if p.after == "" {
			rest = nil
		} else {
			n := p.end(rest)
			if n < 0 {
				return fmt.Errorf("the line ends before field %d of the format %s", i+1, f.name)
			}
			value, rest = rest[:n], rest[n+len(p.after):]
		}
		if !f.set(p, value, r) {
			return fmt.Errorf("field %d of the format %s is %q", i+1, f.name, value[:min(len(value), 40)])
		}
	}
	return r.complete()
}

// end returns the length of the value at the start of s: the index of the text p.after, which follows the value. It
// returns -1 if s does not have this text. In a quoted value, a backslash escapes the next byte.
func (p *part) end(s []byte) int {
	if !p.quoted || p.after[0] != '"' {
		n := bytes.Index(s, []byte(p.after))
		if (p.field == clientIP || p.field == host || p.field == ignored) && p.after[0] == ' ' && bytes.IndexByte(s, ' ') != n {
			return -1 // values of these fields have no spaces, so the line is in another format
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

// set stores a value in the record. ok is false if the value is not valid for its field.
func (f *textFormat) set(p *part, value []byte, r *Record) (ok bool) {
	if p.field == ignored {
		return true
	}
	if p.quoted && bytes.IndexByte(value, '\\') >= 0 {
		start := len(f.buf)
		f.buf = unescape(f.buf, value)
		value = f.buf[start:len(f.buf):len(f.buf)]
	}
	switch p.field {
	case timestamp:
		r.Time = f.times.parse(value)
	case size:
		if r.Bytes, ok = wholeNumber(value); !ok {
			return false
		}
	default:
		r.set(p.field, value)
	}
	return true
}

// wholeNumber parses digits. For "-", which logs write if there is no number, n is 0 and ok is true.
func wholeNumber(value []byte) (n int64, ok bool) {
	for _, c := range value {
		if c < '0' || c > '9' {
			return 0, len(value) == 1 && c == '-'
		}
		n = n*10 + int64(c-'0')
	}
	return n, len(value) > 0
}

// timeCache caches the result for the last parsed text, because neighboring lines often have the same time.
type timeCache struct {
	text [32]byte
	n    int
	at   time.Time
}

func (c *timeCache) parse(value []byte) time.Time {
	return c.parseIn("02/Jan/2006:15:04:05 -0700", value)
}

// parseIn parses a time. It first tries the given layout, because most times have this layout, and then all other known
// layouts.
func (c *timeCache) parseIn(layout string, value []byte) time.Time {
	if c.n > 0 && c.n == len(value) && string(c.text[:c.n]) == string(value) {
		return c.at
	}
	at, err := time.Parse(layout, string(value))
	if err != nil {
		at = parseTime(string(value))
	}
	if len(value) <= len(c.text) {
		c.n, c.at = copy(c.text[:], value), at
	}
	return at
}
