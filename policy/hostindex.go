// SPDX-License-Identifier: Apache-2.0

package policy

import "strings"

const noHost int32 = 0 // the "host" of rules without hosts

// hostLevel ranks the ways in which a rule can name a host.
type hostLevel uint8

const (
	exactHost hostLevel = iota
	wildcardHost
	everyHost

	numHostLevels
)

// hostIndex finds which of the rules' hosts a request's host is.
type hostIndex struct {
	ids   map[Host]int32
	exact map[string]*hostClass
	wild  map[string]*hostClass // by the name below which the hosts lie
	none  hostClass
}

// hostClass is what all hosts have in common to which the same rules speak.
type hostClass struct {
	key      int // tells classes apart
	exact    []int32
	wildcard []int32
}

var onlyNoHost = []int32{noHost}

func (c *hostClass) level(l hostLevel) []int32 {
	switch l {
	case exactHost:
		return c.exact
	case wildcardHost:
		return c.wildcard
	}
	return onlyNoHost
}

// intern returns the number of a host that rules name. The classes of the names
// below it are made on the way.
func (x *hostIndex) intern(h Host) int32 {
	if id, ok := x.ids[h]; ok {
		return id
	}
	if x.ids == nil {
		x.ids = map[Host]int32{}
		x.exact = map[string]*hostClass{}
		x.wild = map[string]*hostClass{}
	}
	id := int32(len(x.ids) + 1)
	x.ids[h] = id
	if !h.Wildcard() {
		x.exact[string(h)] = &hostClass{exact: []int32{id}}
	} else {
		x.wild[string(h[2:])] = &hostClass{wildcard: []int32{id}}
	}
	return id
}

// link gives every class the wildcards that its hosts lie below. It is called
// once, when all hosts are known.
func (x *hostIndex) link() {
	for name, c := range x.wild {
		c.key = int(c.wildcard[0])
		c.wildcard = append(c.wildcard[:1:1], x.above(name)...)
	}
	for name, c := range x.exact {
		c.key = int(c.exact[0])
		c.wildcard = x.above(name)
	}
}

// HostKey tells hosts apart to which different rules speak: hosts with the same
// key get the same answers from Decide. It is 0 for every host that no rule
// names, and at most the number of hosts that rules name.
func (p *Policy) HostKey(host string) int { return p.hosts.class(host).key }

// above lists the wildcards that a name lies below, the longest first.
func (x *hostIndex) above(name string) (ids []int32) {
	for i := range len(name) {
		if name[i] != '.' {
			continue
		}
		if c := x.wild[name[i+1:]]; c != nil {
			ids = append(ids, c.wildcard[0])
		}
	}
	return ids
}

// class returns the class of a request's host. It does not allocate for a host
// in ASCII.
func (x *hostIndex) class(host string) *hostClass {
	if len(x.ids) == 0 {
		return &x.none
	}
	var buf [256]byte
	b := buf[:0]
	host = strings.TrimSuffix(trimPort(host), ".")
	if len(host) > len(buf) {
		return &x.none
	}
	for i := range len(host) {
		if host[i] >= 0x80 {
			host = NormalizeHost(host)
			break
		}
	}
	b = appendLower(b, host)
	if c := x.exact[string(b)]; c != nil {
		return c
	}
	if len(x.wild) == 0 {
		return &x.none
	}
	for i := range len(b) {
		if b[i] == '.' {
			if c := x.wild[string(b[i+1:])]; c != nil {
				return c
			}
		}
	}
	return &x.none
}
