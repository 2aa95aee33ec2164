// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
)

// Host is a host that a rule is for, in A-labels and lower case: an exact name,
// or "*." and a name for every name below that one, however many labels below.
type Host string

// Wildcard reports whether the host stands for the names below it.
func (h Host) Wildcard() bool { return strings.HasPrefix(string(h), "*.") }

var (
	errHostEmpty  = errors.New("the host is empty")
	errHostScheme = errors.New("a host is only a name, such as www.example.com, without https:// and without a path")
	errHostWild   = errors.New(`"*" can only stand for the first labels of a host, as in *.example.com`)
	errHostName   = errors.New("this is no host name")
	errHostPort   = errors.New("after the colon of a host stands a port, which is a number; ports do not matter here, so leave it out")
	errHostHyphen = errors.New("no part of a host name starts or ends with a hyphen")
	errHostIDNA   = errors.New("a host name with letters beyond a to z has only letters, digits and hyphens between its dots")
)

// ParseHost reads a host of a rule. A port is dropped, as hosts are compared
// without; names in Unicode become A-labels (RFC 5891), and what IDNA refuses is an
// error. An underscore may stand in a name without other letters than a to z, as
// servers answer for such names.
func ParseHost(s string) (Host, error) {
	if s == "" {
		return "", errHostEmpty
	}
	if strings.ContainsAny(s, "/@") {
		return "", errHostScheme
	}
	name, wild := strings.CutPrefix(s, "*.")
	if strings.Contains(name, "*") {
		return "", errHostWild
	}
	if port := name[len(trimPort(name)):]; port != "" && !isPort(port[1:]) {
		return "", errHostPort
	}
	name = NormalizeHost(name)
	if name == "" || strings.ContainsAny(name, " \t\"'<>\\^`{|}#?%,;=") || strings.ContainsAny(name, ":[]") && (wild || !isIPv6(name)) {
		return "", errHostName
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 {
			return "", errHostName
		}
		if label[0] == '-' || label[len(label)-1] == '-' {
			return "", errHostHyphen
		}
	}
	if strings.ContainsFunc(name, func(c rune) bool { return c > unicode.MaxASCII }) {
		return "", errHostIDNA // NormalizeHost leaves what IDNA refuses
	}
	if wild {
		name = "*." + name
	}
	return Host(name), nil
}

// isPort reports whether s is a port as an address carries it.
func isPort(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil
}

// isIPv6 reports whether name is an IPv6 address as a Host header carries it.
func isIPv6(name string) bool {
	inner, ok := strings.CutPrefix(name, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	addr, err := netip.ParseAddr(inner)
	return ok && closed && err == nil && addr.Is6()
}

// NormalizeHost brings the host of a request into the form in which hosts are
// compared: lower case, A-labels, without port and without the dot of a fully
// qualified name.
func NormalizeHost(s string) string {
	s = strings.TrimSuffix(trimPort(s), ".")
	for i := range len(s) {
		if s[i] >= 0x80 {
			if a, err := idna.Lookup.ToASCII(s); err == nil {
				return a
			}
			break
		}
	}
	return strings.ToLower(s)
}

// trimPort cuts the port off a host, minding IPv6 literals.
func trimPort(s string) string {
	if i := strings.LastIndexByte(s, ':'); i >= 0 && !strings.ContainsAny(s[i:], "]") &&
		(s[0] == '[' || strings.IndexByte(s, ':') == i) {
		return s[:i]
	}
	return s
}
