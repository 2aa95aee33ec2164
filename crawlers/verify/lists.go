// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/outbound"
)

// ListOptions are the options of [Lists]. The zero value is ready to use.
type ListOptions struct {
	Client *http.Client     // fetches the lists; by default one that follows up to three redirects, to https only
	Now    func() time.Time // the clock; time.Now by default
	// Report, if not nil, is called after every fetch, one call at a time. It must not call Stop.
	Report func(ListStatus)
}

const (
	// maxLists bounds the number of lists.
	maxLists = 5000
	// maxAge is the time for which a list is fresh. Only a fresh list can rule an address out.
	maxAge = 7 * 24 * time.Hour
	// maxVerifyAge is the time for which a list verifies addresses, fetched or embedded. Addresses in clouds
	// change owners.
	maxVerifyAge = 30 * maxAge
)

// warnAge is the age of a list that a warning comes with: it soon expires.
const warnAge = 180 * 24 * time.Hour

// Old says, as the end of a sentence, what a list no longer does because of its age, or soon
// will not; "" if it is recent, or there is none.
func (l *ListStatus) Old(now time.Time) string {
	date, end := l.Date.Format(time.DateOnly), Expires(l.Date).Format(time.DateOnly)
	switch age := now.Sub(l.Date); {
	case l.Date.IsZero():
		return ""
	case age > maxVerifyAge:
		return "of " + date + ", too old to verify crawlers"
	case age > warnAge:
		return "of " + date + ", and after " + end + " too old to verify crawlers"
	case age > maxAge && !l.Snapshot:
		return "of " + date + ", too old to expose impostors, and after " + end + " too old to verify crawlers"
	}
	return ""
}

// Expires returns the time at which a list of a date stops verifying addresses.
func Expires(date time.Time) time.Time { return date.Add(maxVerifyAge) }

// ListStatus is the state of an address list.
type ListStatus struct {
	URL      string    // where the list is published
	Date     time.Time // when it was fetched, or the date of the embedded list; zero if there is no list
	Created  time.Time // the creationTime in the list, or zero
	Prefixes int       // the number of prefixes
	Snapshot bool      // true for an embedded list
	Fresh    bool      // true while the list is recent enough to rule addresses out
	// Incomplete says why the list cannot be trusted to name every address of the crawler; it is empty if nothing
	// suggests that. An incomplete list verifies addresses but never rules one out.
	Incomplete string
	Err        error     // the error of the last fetch, or nil
	Failing    time.Time // the time of the first failed fetch in a row; zero while Err is nil
}

// Lists holds published address lists, each once, however many users it has. It starts with the embedded lists and
// refreshes them in the background between Start and Stop. It is safe for concurrent use, and asking it never waits.
type Lists struct {
	options ListOptions
	sources sync.Map      // *source by URL
	added   chan struct{} // wakes the refresher
	version atomic.Uint64 // counts changes of any list
	index   addressIndex

	mu     sync.Mutex // guards what follows and the references of sources
	count  int        // of sources
	cancel context.CancelFunc
	done   chan struct{}
}

type source struct {
	url     string
	current atomic.Pointer[list]

	// Guarded by Lists.mu.
	references  int
	maxPrefixes int

	// Used by the refresher only.
	due    time.Time
	busy   bool // a fetch is in progress
	fails  int  // in a row
	shrunk *shrunken
}

// list is the content of a list at one time. It is immutable.
type list struct {
	ListStatus
	ranges       ranges
	has4, has6   bool
	etag         string
	lastModified string
	fetched      bool
	problem      string // why the content is incomplete, or empty
}

// ErrTooManyLists is the error of Acquire beyond 5000 lists.
var ErrTooManyLists = errors.New("too many address lists")

// NewLists returns a store with the lists of these URLs, as far as they are embedded.
// Nothing is fetched before Start.
func NewLists(urls []string, options ListOptions) *Lists {
	if options.Client == nil {
		options.Client = &http.Client{CheckRedirect: outbound.CheckRedirect}
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	l := &Lists{options: options, added: make(chan struct{}, 1)}
	_ = l.Acquire(urls, maxPrefixes)
	return l
}

// Acquire adds lists, or adds a reference to those that are there already. Lists with more than limit prefixes are
// rejected when they are fetched. The error is ErrTooManyLists, and nothing is acquired then. Each call needs a call
// of Release with the same URLs.
func (l *Lists) Acquire(urls []string, limit int) error {
	urls = unique(urls)
	l.mu.Lock()
	defer l.mu.Unlock()
	missing := 0
	for _, url := range urls {
		if l.source(url) == nil {
			missing++
		}
	}
	if missing > 0 && l.count+missing > maxLists {
		return ErrTooManyLists
	}
	for _, url := range urls {
		s := l.source(url)
		if s == nil {
			s = &source{url: url, due: l.options.Now()}
			first := delivered(url)
			if first == nil {
				first = &list{ListStatus: ListStatus{URL: url}}
			}
			s.current.Store(first)
			l.sources.Store(url, s)
			l.count++
		}
		s.references++
		s.maxPrefixes = max(s.maxPrefixes, min(limit, maxPrefixes))
	}
	if missing > 0 {
		l.version.Add(1)
		select {
		case l.added <- struct{}{}:
		default:
		}
	}
	return nil
}

// Release removes a reference to each of these lists. A list without references is dropped.
func (l *Lists) Release(urls []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, url := range unique(urls) {
		s := l.source(url)
		if s == nil {
			continue
		}
		if s.references--; s.references == 0 {
			l.sources.Delete(url)
			l.count--
			l.version.Add(1)
		}
	}
}

func unique(urls []string) []string { return slices.Compact(slices.Sorted(slices.Values(urls))) }

func (l *Lists) source(url string) *source {
	if s, ok := l.sources.Load(url); ok {
		return s.(*source)
	}
	return nil
}

// all returns the sources, ordered by URL.
func (l *Lists) all() []*source {
	var all []*source
	for _, s := range l.sources.Range {
		all = append(all, s.(*source))
	}
	slices.SortFunc(all, func(a, b *source) int { return strings.Compare(a.url, b.url) })
	return all
}

// Start begins to refresh the lists in the background and returns at once. It does nothing if they are being
// refreshed already. Keep one Lists across configuration reloads: each Start fetches every list, and operators ask
// not to do that more than once an hour.
func (l *Lists) Start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel, l.done = cancel, make(chan struct{})
	go func(done chan struct{}) {
		defer close(done)
		l.refresh(ctx)
	}(l.done)
}

// Stop ends refreshing and waits for fetches in progress. The lists stay as they are,
// and Start may be called again. It may be called at any time.
func (l *Lists) Stop() {
	l.mu.Lock()
	cancel, done := l.cancel, l.done
	l.cancel = nil
	l.mu.Unlock()
	if cancel == nil {
		return
	}
	cancel()
	<-done
}

// Status returns the state of each list, ordered by URL.
func (l *Lists) Status() []ListStatus {
	now := l.options.Now()
	sources := l.all()
	all := make([]ListStatus, len(sources))
	for i, s := range sources {
		c := s.current.Load()
		all[i] = c.ListStatus
		all[i].Fresh = c.isFresh(now)
	}
	return all
}

// ask looks an address up in lists. The answer is negative if and only if each list rules the
// address out.
func (l *Lists) ask(urls []string, a netip.Addr) (answer, string) {
	now, ruledOut := l.options.Now(), true
	for _, url := range urls {
		s := l.source(url)
		if s == nil {
			ruledOut = false
			continue
		}
		c := s.current.Load()
		if c.isWithin(maxVerifyAge, now) && c.ranges.contains(a) {
			return yes, url
		}
		ruledOut = ruledOut && c.rulesOut(a, now)
	}
	if ruledOut {
		return no, ""
	}
	return silent, ""
}

// isFresh reports whether a list is recent enough to rule addresses out.
func (c *list) isFresh(now time.Time) bool { return c.isWithin(maxAge, now) }

// isWithin reports whether there is a list and it is not older than age.
func (c *list) isWithin(age time.Duration, now time.Time) bool {
	return c.Prefixes > 0 && now.Sub(c.Date) <= age
}

// rulesOut reports whether the absence of an address proves anything: the list is
// fresh and complete and has addresses of the same family.
func (c *list) rulesOut(a netip.Addr, now time.Time) bool {
	family := c.has4
	if a.Is6() {
		family = c.has6
	}
	return family && c.Incomplete == "" && c.isFresh(now)
}

func (l *Lists) set(s *source, c *list) {
	s.current.Store(c)
	l.version.Add(1)
}

// ranges is a set of addresses: ranges that do not overlap, in order.
type ranges []addrRange

type addrRange struct{ from, to netip.Addr }

func newRanges(prefixes []netip.Prefix) ranges {
	all := make(ranges, 0, len(prefixes))
	for _, p := range prefixes {
		all = append(all, addrRange{p.Masked().Addr(), lastAddr(p)})
	}
	slices.SortFunc(all, func(a, b addrRange) int { return a.from.Compare(b.from) })
	merged := all[:0]
	for _, r := range all {
		if n := len(merged); n > 0 && merged[n-1].to.Compare(r.from) >= 0 {
			if merged[n-1].to.Less(r.to) {
				merged[n-1].to = r.to
			}
			continue
		}
		merged = append(merged, r)
	}
	return slices.Clip(merged)
}

func (rs ranges) contains(a netip.Addr) bool {
	i, found := slices.BinarySearchFunc(rs, a, func(r addrRange, a netip.Addr) int { return r.from.Compare(a) })
	return found || i > 0 && a.Compare(rs[i-1].to) <= 0
}

func lastAddr(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for bit := p.Bits(); bit < len(b)*8; bit++ {
		b[bit/8] |= 0x80 >> (bit % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}
