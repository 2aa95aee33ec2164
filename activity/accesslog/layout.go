// SPDX-License-Identifier: Apache-2.0

package accesslog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

// field identifies a part of a line that becomes a field of a Record. It is an alias of uint8, so that linters do not
// require each switch to cover all fields.
type field = uint8

const (
	ignored = iota
	clientIP
	timestamp
	requestLine
	target // path and query
	query
	host
	userAgent
	size
	crawler
	identity
	headers   // the object with the request's header fields
	signature // the header field Signature, which only signed requests have
	embedded  // the line of another program, within the line of the program that collected it
	date      // the date, if the timestamp is only a time of day
	fields
)

// known maps fields to their names in JSON logs, preferred names first. In a name such as request.host, the dot
// separates an object from a field of the object. Caddy, Cloudflare Logpush, Traefik and nginx's variables use these
// names. The names for embedded are from Docker's json-file and from journald, which store a complete line of another
// program in this field.
var known = map[field]string{
	timestamp: "ts StartUTC EdgeStartTimestamp time_iso8601 time_local msec @timestamp timestamp time datetime date",
	clientIP:  "request.client_ip ClientIP ClientHost remote_addr request.remote_ip request.remote_addr ClientAddr",
	host:      "request.host ClientRequestHost RequestHost host http_host server_name RequestAddr",
	target:    "request.uri ClientRequestURI RequestPath request_uri ClientRequestPath uri",
	userAgent: "request.headers.User-Agent ClientRequestUserAgent request_User-Agent http_user_agent",
	size:      "size EdgeResponseBytes DownstreamContentSize body_bytes_sent bytes_sent",

	requestLine: "request",
	crawler:     "robots_policy.crawler",
	identity:    "robots_policy.identity",
	signature:   "request.headers.Signature-Input",
	embedded:    "log MESSAGE message",
}

// node describes a field that the parser looks for in a JSON object.
type node struct {
	field field   // the value is stored in this field; if several nodes have the same field, the lowest rank wins
	as    field   // how the value is parsed: like field, or as a requestLine that contains the target
	rank  uint8   // 0 if the value of the node itself is not stored
	kids  [][]kid // fields of the nested object, indexed by the length of their names
}

type kid struct {
	name string
	*node
}

func (n *node) child(name []byte) *node {
	if len(name) > 0 && len(name) < len(n.kids) {
		for i := range n.kids[len(name)] {
			if k := &n.kids[len(name)][i]; k.name[0] == name[0] && k.name == string(name) {
				return k.node
			}
		}
	}
	return nil
}

func (n *node) add(name string) *node {
	if c := n.child([]byte(name)); c != nil {
		return c
	}
	for len(n.kids) <= len(name) {
		n.kids = append(n.kids, nil)
	}
	c := new(node)
	n.kids[len(name)] = append(n.kids[len(name)], kid{name, c})
	return c
}

// take makes the parser store the JSON field with the given name in the field f of the record. If an object has several
// fields for f, the name with the lowest rank wins. A dot in name may separate an object from its field, or belong to
// the field's own name. take covers both cases.
func (n *node) take(f field, name string, rank uint8) {
	of := f
	if f == requestLine {
		of = target
	}
	for at := 0; ; at++ {
		next := strings.IndexByte(name[at:], '.')
		if next < 0 {
			break
		}
		at += next
		n.add(name[:at]).take(f, name[at+1:], rank)
	}
	if c := n.add(name); c.rank == 0 {
		c.field, c.as, c.rank = of, f, rank
	}
}

// mapped lists the keys that the parameter names of NewJSON may have, each with the field of a Record that it means.
var mapped = map[string]field{"time": timestamp, "ip": clientIP, "host": host, "uri": target, "request": requestLine, "agent": userAgent, "size": size}

// NewJSON returns the parser for logs with one JSON object on each line. The keys of names are time, ip, host, uri,
// request (such as "GET / HTTP/1.1"), agent and size; the values are the names of these fields in the log. For keys
// that are missing in names, the parser uses the field names of Caddy, nginx, Traefik and Logpush.
func NewJSON(names map[string]string) (Parser, error) {
	root := new(node)
	for _, key := range slices.Sorted(maps.Keys(names)) {
		f, ok := mapped[key]
		if !ok || names[key] == "" {
			return nil, fmt.Errorf("invalid map %s=%s: before the =, write %s; after it, the name of a field in the log", key, names[key], english.List(slices.Sorted(maps.Keys(mapped)), "or"))
		}
		root.take(f, names[key], 1)
	}
	for f, all := range known {
		for i, name := range strings.Fields(all) {
			root.take(f, name, uint8(i+2))
		}
	}
	if n := root.add("request").add("headers"); n.rank == 0 {
		n.field = headers
	}
	return newJSON(root), nil
}
