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

// Resolver is what is needed of a *net.Resolver. "Not found" must be a
// *net.DNSError that says so.
type Resolver interface {
	LookupAddr(ctx context.Context, addr string) (names []string, err error)
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// DNSOptions are the options of reverse DNS. The zero value has the defaults.
type DNSOptions struct {
	// Resolver is net.DefaultResolver by default.
	Resolver Resolver
	// Timeout is for all lookups of one address together: 2 seconds by default.
	Timeout time.Duration
	// Concurrency is how many addresses are looked up at the same time: 16 by
	// default. Beyond it the answer is unknown at once.
	Concurrency int
	// CacheSize is how many answers are kept: 10000 by default.
	CacheSize int
	// Now is the clock; time.Now by default.
	Now func() time.Time
	// Report, if not nil, is told after each address that was looked up, by the
	// goroutine that did: nil if the resolver had an answer, whatever it was, and
	// else why it had none.
	Report func(error)
}

// How long answers are kept. The resolver does not tell the TTL of records.
const (
	keepYes    = 24 * time.Hour
	keepNo     = time.Hour
	keepSilent = time.Minute
	// maxNames is how many names of one address are looked up, of those that fit.
	maxNames = 4
)

// names looks up and remembers the names of addresses.
type names struct {
	options DNSOptions
	slots   chan struct{}

	mu      sync.Mutex // guards what follows
	recent  map[question]*reply
	earlier map[question]*reply // the generation before, dropped when recent is full
}

type question struct {
	addr     netip.Addr
	patterns string
}

// reply is an answer, or will be one: done is closed when it is there.
type reply struct {
	done    chan struct{}
	answer  answer
	host    string
	expires time.Time
}

func newNames(o DNSOptions) *names {
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Timeout <= 0 {
		o.Timeout = 2 * time.Second
	}
	if o.Concurrency <= 0 {
		o.Concurrency = 16
	}
	if o.CacheSize <= 0 {
		o.CacheSize = 10_000
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &names{options: o, slots: make(chan struct{}, o.Concurrency), recent: map[question]*reply{}}
}

// ask tells whether an address has a name that fits one of the patterns and
// resolves back to it. It waits for the resolver, or until the context ends: what
// is known already is told also when it has ended.
func (n *names) ask(ctx context.Context, patterns []string, a netip.Addr) (answer, string) {
	r := n.reply(question{a, strings.Join(patterns, " ")}, patterns)
	if r == nil {
		return silent, ""
	}
	select {
	case <-r.done:
		return r.answer, r.host
	default:
	}
	select {
	case <-r.done:
		return r.answer, r.host
	case <-ctx.Done():
		return silent, ""
	}
}

// reply returns the answer that is known or being looked up, or begins to look
// it up, or is nil when too many lookups are under way.
func (n *names) reply(q question, patterns []string) *reply {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.recent[q]
	if r == nil {
		r = n.earlier[q]
	}
	if r != nil {
		select {
		case <-r.done:
			if n.options.Now().Before(r.expires) {
				return r
			}
		default:
			return r
		}
	}
	select {
	case n.slots <- struct{}{}:
	default:
		return nil
	}
	if len(n.recent) >= max(n.options.CacheSize/2, 1) {
		n.earlier, n.recent = n.recent, map[question]*reply{}
	}
	r = &reply{done: make(chan struct{})}
	n.recent[q] = r
	go n.lookUp(r, slices.Clone(patterns), q.addr)
	return r
}

// lookUp fills a reply in. It does not depend on the request that asked first,
// for others may wait too.
func (n *names) lookUp(r *reply, patterns []string, a netip.Addr) {
	ctx, cancel := context.WithTimeout(context.Background(), n.options.Timeout)
	defer cancel()
	var err error
	r.answer, r.host, err = n.confirm(ctx, patterns, a)
	keep := keepNo
	switch r.answer {
	case yes:
		keep = keepYes
	case silent:
		keep = keepSilent
	}
	r.expires = n.options.Now().Add(keep)
	close(r.done)
	<-n.slots
	if n.options.Report != nil {
		n.options.Report(err)
	}
}

// confirm is forward-confirmed reverse DNS. The error is why the answer is silent. A
// panic over what a server sent is one: in this goroutine it would end the program.
func (n *names) confirm(ctx context.Context, patterns []string, a netip.Addr) (found answer, name string, err error) {
	defer func() {
		if p := recover(); p != nil {
			found, err = silent, fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	hosts, err := n.options.Resolver.LookupAddr(ctx, a.String())
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
		addrs, err := n.options.Resolver.LookupNetIP(ctx, "ip", host)
		switch {
		case err != nil && !isNotFound(err):
			return silent, "", err
		case err != nil || len(addrs) == 0:
			result = noWayBack
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

// hostMatches compares a name in lower case with a pattern of
// crawlers.Verification: a suffix that begins with a dot, or a name in which
// one star stands for a part without dots.
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
