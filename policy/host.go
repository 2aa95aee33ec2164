// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Host is a host of a rule, in A-labels and lower case: an exact name, an IPv6 address in brackets, or "*." and a name
// for all names below it.
type Host string

// Wildcard reports whether the host stands for the names below it.
func (h Host) Wildcard() bool { return strings.HasPrefix(string(h), "*.") }

// Covers reports whether the host stands for a name, or for a host, as NormalizeHost returns it.
func (h Host) Covers(name string) bool {
	return string(h) == name || h.Wildcard() && strings.HasSuffix(name, string(h[1:]))
}

// Example returns a name that the host covers and that narrower rules are unlikely to name.
func (h Host) Example() string {
	if h.Wildcard() {
		return "a-name-that-no-rule-has" + string(h[1:])
	}
	return string(h)
}

var (
	errHostName = errors.New("not a valid host name")
	errHostLong = errors.New("a host name has at most 253 characters, and 63 between two dots")
	errHostPort = errors.New("a host has no port, because rules apply to every port; leave out the colon and what follows it")
)

const (
	maxHost  = 253 // bytes of a name (RFC 1035 section 2.3.4, without the root)
	maxLabel = 63
)

// ParseHost reads a host of a rule. A port is an error, because rules apply to every port. Unicode becomes A-labels
// (RFC 5891); what IDNA rejects is an error. ASCII names may have underscores, because servers answer for them.
func ParseHost(s string) (Host, error) {
	if s == "" {
		return "", errors.New("the host is empty")
	}
	if strings.ContainsAny(s, "/@") {
		return "", errors.New("a host is only a name, such as www.example.com, without https:// and without a path")
	}
	name, wild := strings.CutPrefix(s, "*.")
	if strings.Contains(name, "*") {
		return "", errors.New(`"*" can only stand for the first labels of a host, as in *.example.com`)
	}
	literal := strings.HasPrefix(name, "[")
	if literal {
		inner, port, ok := strings.Cut(name[1:], "]")
		addr, err := netip.ParseAddr(inner)
		if !ok || wild || err != nil || !addr.Is6() {
			return "", errHostName
		}
		if port != "" {
			return "", errHostPort
		}
		return Host(NormalizeHost(name)), nil
	}
	switch strings.Count(name, ":") {
	case 0:
	case 1:
		return "", errHostPort
	default:
		return "", errHostName
	}
	name = strings.TrimSuffix(name, ".")
	if name == "" || strings.HasSuffix(name, ".") || strings.ContainsAny(name, " \t\"'<>\\^`{|}#?%,;=[]") {
		return "", errHostName
	}
	name = NormalizeHost(name)
	if len(name) > maxHost {
		return "", errHostLong
	}
	for label := range strings.SplitSeq(name, ".") {
		switch {
		case label == "":
			return "", errHostName
		case len(label) > maxLabel:
			return "", errHostLong
		case label[0] == '-' || label[len(label)-1] == '-':
			return "", errors.New("no part of a host name may start or end with a hyphen")
		}
	}
	if strings.ContainsFunc(name, func(c rune) bool { return c > unicode.MaxASCII }) {
		return "", errors.New("a host name with letters beyond a to z may have only letters, digits and hyphens between its dots") // NormalizeHost leaves what IDNA rejects
	}
	if wild {
		name = "*." + name
	}
	return Host(name), nil
}

// WithoutPort returns the host of a request or of a URL without its port. An IPv6 address keeps its brackets.
func WithoutPort(host string) string {
	u := url.URL{Host: host}
	return strings.TrimSuffix(host, ":"+u.Port())
}

// NormalizeHost returns the name in the host of a request: in lower case and A-labels, without brackets, ports, and
// the final dot of a fully qualified name. IPv6 addresses are in brackets and in the form of RFC 5952. It does not
// allocate for a name that is in that form already.
//
// Caddy does not normalize hosts: for Caddy, "www.example.com." is a different host. See matchedHost.
func NormalizeHost(s string) string {
	if inner, ok := strings.CutPrefix(s, "["); ok {
		inner, _, _ = strings.Cut(inner, "]")
		if addr, err := netip.ParseAddr(inner); err == nil && addr.Is6() {
			return "[" + addr.String() + "]"
		}
		s = inner
	}
	if i := strings.IndexByte(s, ':'); i >= 0 {
		if addr, err := netip.ParseAddr(s); err == nil && addr.Is6() {
			return "[" + addr.String() + "]"
		}
		s = s[:i]
	}
	s = strings.Trim(s, "[]")
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			if a, err := idna.Lookup.ToASCII(s); err == nil {
				s = a
			}
			break
		}
	}
	return strings.ToLower(strings.TrimRight(s, "[]."))
}

// matchedHost returns the part of a request's host that Caddy's host matcher compares with the names of sites, letter
// case aside. It is the part that net.SplitHostPort finds before the port, or else the host without one pair of
// brackets.
func matchedHost(s string) string {
	colon := strings.LastIndexByte(s, ':')
	if colon >= 0 {
		host := s[:colon]
		if inner, ok := strings.CutPrefix(host, "["); ok {
			inner, ok = strings.CutSuffix(inner, "]")
			if ok && !strings.ContainsAny(inner, "[]") && !strings.ContainsAny(s[colon:], "[]") {
				return inner
			}
		} else if !strings.ContainsAny(s, "[]") && strings.IndexByte(s, ':') == colon {
			return host
		}
	}
	return strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")
}

// OtherHost returns a second host that a request may be for. Decide uses the host that Caddy's host matcher sees,
// but a site that answers for every host may treat "www.example.com." or "www.example.com:80:80" as
// www.example.com. Nearly all hosts have one meaning; then ok is false, and OtherHost does not allocate.
func OtherHost(host string) (name string, ok bool) {
	matched := matchedHost(host)
	if isPlainHost(matched) {
		return "", false
	}
	name = NormalizeHost(host)
	if strings.EqualFold(strings.Trim(name, "[]"), matched) {
		return "", false
	}
	return name, true
}

// isPlainHost reports whether a host without port is a bare name or IPv4 address, without brackets or a final dot.
func isPlainHost(s string) bool {
	if s == "" || s[len(s)-1] == '.' {
		return s == ""
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

// appendFolded appends s in lower case. Caddy's comparison treats "ſ" and the Kelvin sign as s and k, so
// appendFolded replaces them.
func appendFolded(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		case c < utf8.RuneSelf:
		case strings.HasPrefix(s[i:], "\u017f"):
			c, i = 's', i+1
		case strings.HasPrefix(s[i:], "\u212a"):
			c, i = 'k', i+2
		}
		b = append(b, c)
	}
	return b
}

const noHost int32 = 0 // the "host" of rules without hosts

// exactRank is the rank of an exact host. The rank of a wildcard is the length of its suffix,
// and 0 is the rank of rules without hosts.
const exactRank = 1 << 16

// hostIndex finds the hosts of rules that cover a request's host.
type hostIndex struct {
	ids   map[Host]int32
	ranks []int32               // by number, see Applied.Host
	exact map[string]*hostClass // by name, or address without brackets
	wild  map[string]*hostClass // by the name below which the hosts lie
	none  hostClass
}

// hostClass represents all hosts that the same rules name.
type hostClass struct {
	key   int     // tells classes apart
	hosts []int32 // by which rules name them, the narrowest first; the last is noHost
}

// intern returns the number of a host that rules name. It also creates the class of the names below a wildcard.
func (x *hostIndex) intern(h Host) int32 {
	if id, ok := x.ids[h]; ok {
		return id
	}
	if x.ids == nil {
		x.ids = map[Host]int32{}
		x.exact = map[string]*hostClass{}
		x.wild = map[string]*hostClass{}
		x.ranks = []int32{noHost: 0}
	}
	id := int32(len(x.ranks))
	x.ids[h] = id
	if !h.Wildcard() {
		x.exact[strings.Trim(string(h), "[]")] = &hostClass{hosts: []int32{id}}
		x.ranks = append(x.ranks, exactRank)
	} else {
		x.wild[string(h[2:])] = &hostClass{hosts: []int32{id}}
		x.ranks = append(x.ranks, int32(len(h)-1))
	}
	return id
}

// rank returns how narrowly a rule names a host; see Applied.Host.
func (x *hostIndex) rank(id int32) int32 {
	if id == noHost {
		return 0
	}
	return x.ranks[id]
}

// link gives every class the wildcards above its hosts, and its key, once all hosts are known. ruleHosts are by rule.
func (x *hostIndex) link(ruleHosts [][]int32) {
	x.none.hosts = []int32{noHost}
	rules := make([][]byte, len(x.ranks)) // that name each host
	for rule, hosts := range ruleHosts {
		for _, h := range hosts {
			rules[h] = binary.AppendUvarint(rules[h], uint64(rule))
		}
	}
	numbers := map[string]uint64{}
	number := func(text []byte) uint64 {
		n, ok := numbers[string(text)]
		if !ok {
			n = uint64(len(numbers)) + 1
			numbers[string(text)] = n
		}
		return n
	}
	set := make([]uint64, len(rules)) // equal for hosts that the same rules name
	for h := range rules {
		set[h] = number(rules[h])
	}
	clear(numbers)
	for _, classes := range []map[string]*hostClass{x.wild, x.exact} {
		for name, c := range classes {
			c.hosts = append(x.above(c.hosts[:1:1], name), noHost)
			var key []byte
			for _, h := range c.hosts {
				key = binary.AppendUvarint(key, set[h])
			}
			c.key = int(number(key))
		}
	}
}

// HasHosts reports whether any rule names a host.
func (p *Policy) HasHosts() bool { return len(p.hosts.ids) > 0 }

// HostKey returns the same number for hosts that the same rules name in the same order of narrowness. Hosts with
// the same number get the same answers in every channel. It is 0 for hosts that rules do not name, and at most the
// number of named hosts.
func (p *Policy) HostKey(host string) int { return p.hosts.class(host).key }

// above appends the wildcards above a name, the longest first.
func (x *hostIndex) above(ids []int32, name string) []int32 {
	for i := range len(name) {
		if name[i] != '.' {
			continue
		}
		if c := x.wild[name[i+1:]]; c != nil {
			ids = append(ids, c.hosts[0])
		}
	}
	return ids
}

// class returns the class of a request's host as Caddy's host matcher sees it. It reads a bounded part of the name
// and does not allocate.
func (x *hostIndex) class(host string) *hostClass {
	if len(x.ids) == 0 {
		return &x.none
	}
	host = matchedHost(host)
	// A host that is too long for a rule may lie below one that is not: Caddy's wildcards take labels of any length.
	const enough = maxHost + 2
	long := len(host) > 2*enough
	if long {
		host = host[len(host)-2*enough:]
	}
	var buf [2 * enough]byte
	name := appendFolded(buf[:0], host)
	if c := x.exact[string(name)]; c != nil && !long {
		return c
	}
	if len(x.wild) == 0 {
		return &x.none
	}
	for i, c := range name {
		if c != '.' {
			continue
		}
		if c := x.wild[string(name[i+1:])]; c != nil {
			return c
		}
	}
	return &x.none
}
