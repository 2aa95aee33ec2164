// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
)

// Resolver has the methods of [*net.Resolver] that this package uses. If a name does not exist, the methods must return
// a [*net.DNSError] with IsNotFound set.
type Resolver interface {
	LookupAddr(ctx context.Context, addr string) (names []string, err error)
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// DNSOptions configures reverse DNS lookups. The zero value selects the defaults.
type DNSOptions struct {
	Resolver Resolver // net.DefaultResolver by default
	// Report, if not nil, is called after each lookup of an address. Its argument is nil if the resolver answered, even
	// if the answer was negative.
	Report func(error)
}

const (
	// lookupTimeout limits the total time of all DNS lookups for one address.
	lookupTimeout = 2 * time.Second
	// maxLookups limits how many addresses are looked up at the same time. At most a sixteenth of these addresses may
	// be in the same /24 (IPv4) or /64 (IPv6) network, and at most a quarter in the same /16 or /48. Clients with
	// addresses beyond these limits stay unverified.
	maxLookups = 64
	// cacheSize is the maximum number of cached answers.
	cacheSize = 10_000
)

// These durations determine how long answers are cached. The resolver does not return the time to live of records.
const (
	keepYes    = 24 * time.Hour
	keepNo     = time.Hour
	keepSilent = time.Minute
	// keepStale limits how long an expired positive answer is used while a newer answer is not available.
	keepStale = 24 * time.Hour
	// Only rateFactor*limit lookups may begin for a network within a rateWindow, where limit is the maximum number of
	// lookups in progress for the network (see maxLookups). This limits the load even if the resolver is fast.
	rateFactor = 16
	rateWindow = 4 * time.Second
	// maxNames limits how many matching host names are looked up for one address.
	maxNames = 4
)

// names looks up the host names of addresses, and caches the answers.
type names struct {
	options   DNSOptions
	health    health
	cacheSize int

	mu       sync.Mutex // protects the fields below
	recent   map[question]*entry
	earlier  map[question]*entry // the previous generation, which is dropped when recent is full
	inFlight int
	byPrefix map[netip.Prefix]int // number of lookups in progress for each network
	begun    map[netip.Prefix]int // number of lookups for each network that began in the current rateWindow
}

type question struct {
	addr     netip.Addr
	patterns string
}

// entry holds the cached answer for an address. Its fields are protected by names.mu.
type entry struct {
	answer  answer
	host    string
	at      time.Time     // when the answer arrived; zero if there is none yet
	expires time.Time     // when to look up the address again
	period  int           // the period of health at the time of a negative answer
	counts  bool          // true if the negative answer may be used
	done    chan struct{} // closed when the lookup in progress ends; nil if there is none
}

func newNames(o DNSOptions) *names {
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	return &names{
		options: o, health: health{resolver: o.Resolver}, cacheSize: cacheSize,
		recent: map[question]*entry{}, byPrefix: map[netip.Prefix]int{}, begun: map[netip.Prefix]int{},
	}
}

// ask reports whether an address has a host name that matches a pattern and resolves back to the address. It waits
// for the resolver until ctx is done. It returns cached answers even if ctx is already done.
func (n *names) ask(ctx context.Context, patterns []string, a netip.Addr) (answer, string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	q := question{a, patterns[0]}
	if len(patterns) > 1 {
		q.patterns = strings.Join(patterns, " ")
	}
	e := n.find(q)
	now := time.Now()
	if (e == nil || e.done == nil && !now.Before(e.expires)) && n.reserve(a) {
		if e == nil {
			e = new(entry)
			n.keep(q, e)
		}
		e.done = make(chan struct{})
		go n.lookUp(e, slices.Clone(patterns), a)
	}
	if e == nil {
		return silent, ""
	}
	if e.done != nil && !e.usable(now) {
		done := e.done
		n.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
		}
		n.mu.Lock()
		now = time.Now()
	}
	if !e.usable(now) || (e.answer == no || e.answer == noForward) && !n.believe(e) {
		return silent, ""
	}
	return e.answer, e.host
}

// believe reports whether a negative answer may be used. If a probe of the resolver has failed since the answer
// arrived, believe marks the answer as expired, so that the address is looked up again.
func (n *names) believe(e *entry) bool {
	if e.counts {
		return true
	}
	var dropped bool
	if e.counts, dropped = n.health.believes(e.at, e.period); dropped {
		e.expires = e.at
	}
	return e.counts
}

// usable reports whether the answer may be used at time now. This is true if the answer has not expired, or if it is
// positive and expired less than keepStale ago.
func (e *entry) usable(now time.Time) bool {
	return now.Before(e.expires) || e.answer == yes && now.Before(e.at.Add(keepYes+keepStale))
}

func (n *names) find(q question) *entry {
	if e := n.recent[q]; e != nil {
		return e
	}
	e := n.earlier[q]
	if e != nil {
		n.keep(q, e)
	}
	return e
}

func (n *names) keep(q question, e *entry) {
	if len(n.recent) >= n.cacheSize/2 {
		n.earlier, n.recent = n.recent, map[question]*entry{}
	}
	n.recent[q] = e
}

// block holds a network and the maximum number of lookups that may be in progress for its addresses.
type block struct {
	prefix netip.Prefix
	limit  int
}

// blocks returns a small and a larger network that contain the address.
func blocks(a netip.Addr) [2]block {
	small, large := 24, 16
	if a.Is6() {
		small, large = 64, 48
	}
	network, _ := a.Prefix(small)
	around, _ := a.Prefix(large)
	return [2]block{{network, maxLookups / 16}, {around, maxLookups / 4}}
}

// reserve reserves a lookup for an address. It returns false if too many lookups are in progress. It also returns false
// if, for one of the networks that contain the address, too many lookups are in progress or began recently. The limits
// for networks prevent a single network from using up all lookups.
func (n *names) reserve(a netip.Addr) bool {
	if n.inFlight >= maxLookups {
		return false
	}
	for _, b := range blocks(a) {
		if n.byPrefix[b.prefix] >= b.limit || n.begun[b.prefix] >= rateFactor*b.limit {
			return false
		}
	}
	n.inFlight++
	for _, b := range blocks(a) {
		n.byPrefix[b.prefix]++
		n.begun[b.prefix]++
	}
	time.AfterFunc(rateWindow, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.subtract(n.begun, a)
	})
	return true
}

// subtract removes one lookup for an address from the counts of its networks.
func (n *names) subtract(counts map[netip.Prefix]int, a netip.Addr) {
	for _, b := range blocks(a) {
		if counts[b.prefix]--; counts[b.prefix] == 0 {
			delete(counts, b.prefix)
		}
	}
}

// lookUp looks up an address and fills its entry. The lookup continues after the end of the request that started it,
// because other requests may wait for the answer.
func (n *names) lookUp(e *entry, patterns []string, a netip.Addr) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	found, host, err := confirm(ctx, n.options.Resolver, patterns, a)
	at, period, working := n.health.now()
	if found == no || found == noForward {
		if !working {
			found = silent
		}
		n.health.probe(ctx) // probe after the answer, because a negative answer is used only if the resolver still works
	}
	n.store(e, a, entry{answer: found, host: host, at: at, period: period})
	if n.options.Report != nil {
		n.options.Report(err)
	}
}

func (n *names) store(e *entry, a netip.Addr, found entry) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.inFlight--
	n.subtract(n.byPrefix, a)
	close(e.done)
	e.done = nil
	now := time.Now()
	if found.answer == silent && e.answer == yes && e.usable(now) {
		e.expires = now.Add(keepSilent) // the resolver failed, so the last answer remains in use
		return
	}
	keep := keepNo
	switch found.answer {
	case yes:
		keep = keepYes
	case silent:
		keep = keepSilent
	case no, noForward:
	}
	*e = found
	e.expires = now.Add(keep)
}

// confirm performs forward-confirmed reverse DNS. If the resolver does not answer, err is the reason. A panic caused by
// a response becomes an error, because in this goroutine a panic would end the program.
func confirm(ctx context.Context, r Resolver, patterns []string, a netip.Addr) (found answer, name string, err error) {
	defer func() {
		if p := recover(); p != nil {
			found, err = silent, fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	hosts, err := r.LookupAddr(ctx, a.String())
	if err != nil {
		if isNotFound(err) {
			return no, "", nil
		}
		return silent, "", err
	}
	result, tried := no, 0
	for _, host := range hosts {
		host = strings.ToLower(strings.TrimSuffix(host, "."))
		if !slices.ContainsFunc(patterns, func(p string) bool { return hostMatches(p, host) }) {
			continue
		}
		if tried++; tried > maxNames {
			break
		}
		addrs, err := r.LookupNetIP(ctx, "ip", host)
		switch {
		case err != nil && !isNotFound(err):
			return silent, "", err
		case err != nil || len(addrs) == 0:
			result = noForward
		case slices.ContainsFunc(addrs, func(b netip.Addr) bool { return b.Unmap() == a }):
			return yes, host, nil
		}
	}
	return result, "", nil
}

func isNotFound(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound && !dns.IsTimeout && !dns.IsTemporary
}

// hostMatches reports whether a host name in lower case matches a pattern of crawlers.Verification. A pattern is a
// suffix that begins with a dot, or a name in which one star matches any text without dots.
func hostMatches(pattern, host string) bool {
	before, after, star := strings.Cut(pattern, "*")
	if !star {
		return strings.HasPrefix(pattern, ".") && strings.HasSuffix(host, pattern)
	}
	if len(host) <= len(before)+len(after) || !strings.HasPrefix(host, before) || !strings.HasSuffix(host, after) {
		return false
	}
	return !strings.Contains(host[len(before):len(host)-len(after)], ".")
}
