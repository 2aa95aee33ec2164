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

// Host is a host in a rule. It is an exact name, an IPv6 address in brackets, or a wildcard: "*." and a name, which
// includes all names below that name. Names are in lower case and, if they are international, in A-labels (punycode).
type Host string

// Wildcard reports whether the host is a wildcard, such as *.example.com.
func (h Host) Wildcard() bool { return strings.HasPrefix(string(h), "*.") }

// Covers reports whether the host is name or a wildcard that includes name. name is a result of NormalizeHost or
// another Host.
func (h Host) Covers(name string) bool {
	return string(h) == name || h.Wildcard() && strings.HasSuffix(name, string(h[1:]))
}

// Example returns a name that the host covers. For a wildcard, it is a name that hardly any rule can contain.
func (h Host) Example() string {
	if h.Wildcard() {
		return "a-name-that-no-rule-has" + string(h[1:])
	}
	return string(h)
}

var (
	errHostName = errors.New("not a valid host name")
	errHostLong = errors.New("a host name can have at most 253 characters, and each part between dots at most 63")
	errHostPort = errors.New("a host has no port, because rules apply to every port; leave out the colon and what follows it")
)

const (
	maxHost  = 253 // the maximum length of a name in bytes (RFC 1035 section 2.3.4), without the final dot
	maxLabel = 63
)

// ParseHost parses the host of a rule. It returns an error for a port, because rules apply to every port. It converts
// Unicode names to A-labels (RFC 5891) and returns an error for names that IDNA rejects. ASCII names may have
// underscores, because such names are in use.
func ParseHost(s string) (Host, error) {
	if s == "" {
		return "", errors.New("the host is empty")
	}
	if strings.ContainsAny(s, "/@") {
		return "", errors.New("a host is only a name, such as www.example.com, without https:// and without a path")
	}
	name, wild := strings.CutPrefix(s, "*.")
	if strings.Contains(name, "*") {
		return "", errors.New(`"*" is only possible at the beginning of a host name, before a dot, as in *.example.com`)
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
		return "", errors.New("besides letters, a host name with a letter such as ä can have only digits, hyphens and dots") // IDNA rejected it
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

// NormalizeHost returns the name in the host of a request, in lower case and A-labels. It removes brackets, ports,
// and the final dot of a fully qualified name. It writes IPv6 addresses in brackets and as RFC 5952 prescribes.
// NormalizeHost does not allocate memory for a name that is already normalized.
//
// Caddy does not normalize hosts. For Caddy, "www.example.com." and "www.example.com" are different hosts. See
// matchedHost.
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

// matchedHost returns the part of a request's host that Caddy's host matcher compares with the names of sites. Caddy's
// comparison ignores letter case. The part is the host that net.SplitHostPort returns. If net.SplitHostPort returns an
// error, the part is the whole host without one pair of brackets.
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

// OtherHost returns another host that a request may be for. Decide only uses the host that Caddy's host matcher
// compares. To the matcher, "www.example.com." and "www.example.com:80:80" differ from "www.example.com". But a site
// that serves every host may treat them as www.example.com, and OtherHost returns this name. Nearly every request can
// be for one host only. In that case ok is false, and OtherHost does not allocate memory.
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

// noHost is the number that rules without hosts have in place of a host's number.
const noHost int32 = 0

// exactRank is the rank of an exact host (see Applied.Host). The rank of a wildcard is the length of its suffix. Rules
// without hosts have the rank 0.
const exactRank = 1 << 16

// hostIndex finds the hosts of rules that cover a request's host.
type hostIndex struct {
	ids   map[Host]int32
	ranks []int32               // the rank of each host, see Applied.Host; the index is the number of the host
	exact map[string]*hostClass // the key is a name, or an address without brackets
	wild  map[string]*hostClass // the key is a wildcard without "*."
	none  hostClass
}

// hostClass represents all hosts that the same rules name.
type hostClass struct {
	key   int     // see Policy.HostKey
	hosts []int32 // the hosts of rules that cover the class, the narrowest first; the last element is noHost
}

// intern returns the number of a host that rules name. For a new host, it also creates the hostClass of this name or,
// for a wildcard, of the names below it.
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

// rank returns how narrowly rules name a host, as a number. See Applied.Host.
func (x *hostIndex) rank(id int32) int32 {
	if id == noHost {
		return 0
	}
	return x.ranks[id]
}

// link adds to every hostClass the wildcards that cover its host, and sets the key of every hostClass. It must be
// called after intern has been called for all hosts in rules. ruleHosts has the hosts of each rule.
func (x *hostIndex) link(ruleHosts [][]int32) {
	x.none.hosts = []int32{noHost}
	rules := make([][]byte, len(x.ranks)) // for each host, the rules that name it
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
	set := make([]uint64, len(rules)) // a number for each host; it is equal for hosts that the same rules name
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

// HostKey returns a number for a host. Two hosts have the same number if the same rules name them in the same order
// of narrowness. All channels have the same content for such hosts. The number is 0 for hosts that rules do not name.
// It is never greater than the number of hosts in rules.
func (p *Policy) HostKey(host string) int { return p.hosts.class(host).key }

// above appends to ids the wildcards that cover a name, the longest first.
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

// class returns the class of a request's host. It compares the host in the same way as Caddy's host matcher. class
// reads at most 510 bytes of the name and does not allocate memory.
func (x *hostIndex) class(host string) *hostClass {
	if len(x.ids) == 0 {
		return &x.none
	}
	host = matchedHost(host)
	// A wildcard of a rule may cover a host that is itself too long for a rule, because Caddy's wildcards match labels of
	// any length.
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
