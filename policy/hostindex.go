// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/binary"
	"strings"
)

const noHost int32 = 0 // the "host" of rules without hosts

// exactRank is the rank of an exact host; that of a wildcard is the length of its
// suffix, and 0 that of rules without hosts.
const exactRank = 1 << 16

// hostIndex finds which of the rules' hosts a request's host is.
type hostIndex struct {
	ids   map[Host]int32
	ranks []int32               // by number, see Applied.Host
	exact map[string]*hostClass // by name, or address without brackets
	wild  map[string]*hostClass // by the name below which the hosts lie
	none  hostClass
}

// hostClass stands for all hosts that the same rules name.
type hostClass struct {
	key   int     // tells classes apart
	hosts []int32 // by which rules name them, the narrowest first; the last is noHost
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

// rank is how narrowly a host of a rule names a host, see Applied.Host.
func (x *hostIndex) rank(id int32) int32 {
	if id == noHost {
		return 0
	}
	return x.ranks[id]
}

// link gives every class the wildcards that its hosts lie below, and its key.
// ruleHosts are the hosts of each rule. It is called once, when all hosts are known.
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

// HasHosts reports whether any rule names a host. If none does, all hosts get the same
// answers.
func (p *Policy) HasHosts() bool { return len(p.hosts.ids) > 0 }

// HostKey returns a number that hosts share which get the same answers from
// Decide, and the same from every channel: the same rules name them, and in the same
// order of narrowness. It is 0 for every host that no rule names, and at most the
// number of hosts that rules name.
func (p *Policy) HostKey(host string) int { return p.hosts.class(host).key }

// above appends the wildcards that a name lies below, the longest first.
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

// class returns the class of a request's host as Caddy's host matcher sees it. It
// looks at a bounded part of the host and does not allocate.
func (x *hostIndex) class(host string) *hostClass {
	if len(x.ids) == 0 {
		return &x.none
	}
	host = matchedHost(host)
	// A host that is too long for a rule may lie below one that is not: Caddy's
	// wildcards take labels of any length.
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
