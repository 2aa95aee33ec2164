// SPDX-License-Identifier: Apache-2.0

// Package accesslog reads the access logs of web servers: Caddy's JSON, the Common
// and Combined formats of Apache and nginx, and log formats of nginx.
package accesslog

import (
	"errors"
	"time"
)

// Record is what a line of an access log says of a request. Its byte slices are
// parts of the line, or of a buffer of the parser's, and are valid until the next
// line is parsed.
type Record struct {
	Time      time.Time
	ClientIP  []byte
	Host      []byte // with the port, if the log has it; empty if the format has no host
	Target    []byte // the request target, such as /a?b
	UserAgent []byte // where the request had several, one a line
	Bytes     int64  // of the body as sent
	// Crawler and Identity are the crawler that this server took the client for, and what
	// its verification had found, where Caddy's log has the field robots_policy; otherwise
	// empty.
	Crawler, Identity []byte
	// Unsigned: the log has the header of the request, and there is no signature in it.
	Unsigned bool
}

// Parser reads lines of one format. It is not safe for concurrent use: Clone makes
// another for another goroutine.
type Parser interface {
	// Parse reads a line without its line end into r. An error says what the line
	// lacks; r is then undefined.
	Parse(line []byte, r *Record) error
	Clone() Parser
}

var (
	errNoRequest = errors.New("it has no request")
	errNoTime    = errors.New("its time is missing or invalid")
)
