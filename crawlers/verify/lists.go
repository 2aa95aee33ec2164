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

	"github.com/gaissmai/bart"
	"golang.org/x/sync/semaphore"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/outbound"
)

// ListOptions are the options of [Lists]. The zero value is ready to use.
type ListOptions struct {
	Client *http.Client     // fetches the lists; the default follows up to three redirects, only to https
	Now    func() time.Time // the clock; time.Now by default
	// Report, if not nil, is called after every fetch, one call at a time. Report must not call Stop.
	Report func(ListStatus)
}

const (
	// maxLists limits the number of lists.
	maxLists = 5000
	// maxAge is the maximum age of a fresh list. Only a fresh list can show that a client is an impostor.
	maxAge = 7 * 24 * time.Hour
	// maxVerifyAge is the maximum age of a fetched or embedded list that verifies clients. The age is limited because
	// cloud addresses change owners.
	maxVerifyAge = 30 * maxAge
)

// warnAge is the age from which warnings say that a list will soon be too old.
const warnAge = 180 * 24 * time.Hour

// Old returns a phrase about the age of the list, such as "from 2026-05-05, too old to verify crawlers". The phrase
// says what the list can no longer prove, or the day after which it can no longer verify crawlers. It belongs at the
// end of a sentence. Old returns "" if the list is recent or does not exist.
func (l *ListStatus) Old(now time.Time) string {
	date, end := l.Date.Format(time.DateOnly), Expires(l.Date).Format(time.DateOnly)
	switch age := now.Sub(l.Date); {
	case l.Date.IsZero():
		return ""
	case age > maxVerifyAge:
		return "from " + date + ", too old to verify crawlers"
	case age > warnAge:
		return "from " + date + "; after " + end + ", it will be too old to verify crawlers"
	case age > maxAge && !l.Snapshot:
		return "from " + date + ", too old to detect impostors; after " + end + ", it will also be too old to verify crawlers"
	}
	return ""
}

// Expires returns the time when a list of the given date becomes too old to verify clients.
func Expires(date time.Time) time.Time { return date.Add(maxVerifyAge) }

// ListStatus is the state of an address list.
type ListStatus struct {
	URL      string    // where the list is published
	Date     time.Time // the time of the fetch, or the date of the embedded list; zero if there is no list
	Created  time.Time // the creationTime in the list, or zero
	Prefixes int       // number of prefixes
	Snapshot bool      // true for an embedded list
	Fresh    bool      // true while the list is recent enough to detect impostors
	// Incomplete is the reason why addresses of the crawler may be missing from the list, or "". An incomplete list can
	// verify a client, but cannot show that a client is an impostor.
	Incomplete string
	Err        error     // the error of the last fetch, or nil
	Failing    time.Time // the time of the first failed fetch in a row; zero while Err is nil
}

// Lists holds published address lists. All users of a list share one copy. Initially, Lists holds the embedded lists.
// Between Start and Stop, it refreshes all lists in the background. Lists is safe for concurrent use, and address
// lookups never wait.
type Lists struct {
	options ListOptions
	sources sync.Map      // *source by URL
	version atomic.Uint64 // counts changes of any list
	index   addressIndex

	fetching *semaphore.Weighted
	watching sync.WaitGroup
	reports  sync.Mutex // held during a call of Report

	mu     sync.Mutex      // protects the fields below and the fields of each source
	count  int             // number of sources
	ctx    context.Context // nil while lists are not refreshed
	cancel context.CancelFunc
}

type source struct {
	url     string
	current atomic.Pointer[list]

	// These fields are protected by Lists.mu.
	references  int
	maxPrefixes int
	stop        context.CancelFunc // nil while the list is not refreshed

	// These fields are used only by the goroutine that refreshes the list.
	fails  int // number of failed fetches in a row
	shrunk *shrunken
}

// list is one version of an address list. It is immutable.
type list struct {
	ListStatus
	prefixes     *bart.Lite
	etag         string
	lastModified string
	fetched      bool
	problem      string // why the content may be incomplete, or ""
}

// ErrTooManyLists is returned by [Lists.Acquire] if the total number of lists would exceed 5000.
var ErrTooManyLists = errors.New("too many address lists")

// NewLists returns Lists that holds the embedded lists for urls. Lists are fetched only after Start.
func NewLists(urls []string, options ListOptions) *Lists {
	if options.Client == nil {
		options.Client = &http.Client{CheckRedirect: outbound.CheckRedirect}
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	l := &Lists{options: options, fetching: semaphore.NewWeighted(maxFetches)}
	_ = l.Acquire(urls, maxPrefixes)
	return l
}

// Acquire adds the lists at urls. If a list exists already, Acquire adds a reference to it. A fetched list with more
// than limit prefixes is rejected. If the total number of lists would be too large, Acquire returns ErrTooManyLists and
// does not add any list. For each call of Acquire, the caller must later call Release with the same URLs.
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
			s = &source{url: url}
			first := delivered(url)
			if first == nil {
				first = newList(url, nil, time.Time{})
			}
			s.current.Store(first)
			l.sources.Store(url, s)
			if l.count++; l.ctx != nil {
				l.watch(s, 0)
			}
		}
		s.references++
		s.maxPrefixes = max(s.maxPrefixes, min(limit, maxPrefixes))
	}
	if missing > 0 {
		l.version.Add(1)
	}
	return nil
}

// Release removes one reference from each list at urls. A list without references is deleted.
func (l *Lists) Release(urls []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, url := range unique(urls) {
		s := l.source(url)
		if s == nil {
			continue
		}
		if s.references--; s.references == 0 {
			if s.stop != nil {
				s.stop()
			}
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

// Start begins to refresh the lists in the background and returns at once. It has no effect if refreshing has already
// begun. A reload of the configuration should keep the same Lists, because each Start fetches every list, and operators
// ask for at most one fetch per hour.
func (l *Lists) Start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cancel != nil {
		return
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	for i, s := range l.all() {
		l.watch(s, firstWait+time.Duration(i)*between)
	}
}

// Stop ends refreshing and waits for fetches in progress. The lists keep their content. Start may be called again.
func (l *Lists) Stop() {
	l.mu.Lock()
	cancel := l.cancel
	l.ctx, l.cancel = nil, nil
	l.mu.Unlock()
	if cancel != nil {
		cancel()
		l.watching.Wait()
	}
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

// ask looks up an address in the lists at urls. The answer is positive if a list contains the address; then the second
// result is the URL of this list. The answer is negative if every list shows that the address belongs to an impostor.
// Otherwise the answer is silent.
func (l *Lists) ask(urls []string, a netip.Addr) (answer, string) {
	now, ruledOut := l.options.Now(), true
	for _, url := range urls {
		s := l.source(url)
		if s == nil {
			ruledOut = false
			continue
		}
		c := s.current.Load()
		if c.isWithin(maxVerifyAge, now) && c.prefixes.Contains(a) {
			return yes, url
		}
		ruledOut = ruledOut && c.rulesOut(a, now)
	}
	if ruledOut {
		return no, ""
	}
	return silent, ""
}

// isFresh reports whether a list is recent enough to detect impostors.
func (c *list) isFresh(now time.Time) bool { return c.isWithin(maxAge, now) }

// isWithin reports whether the list exists and is not older than age.
func (c *list) isWithin(age time.Duration, now time.Time) bool {
	return c.Prefixes > 0 && now.Sub(c.Date) <= age
}

// rulesOut reports whether the absence of a from the list proves that a client at a is an impostor. This is true if the
// list is fresh and complete, and has other addresses of the same family (IPv4 or IPv6).
func (c *list) rulesOut(a netip.Addr, now time.Time) bool {
	family := c.prefixes.Size4()
	if a.Is6() {
		family = c.prefixes.Size6()
	}
	return family > 0 && c.Incomplete == "" && c.isFresh(now)
}

func (l *Lists) set(s *source, c *list) {
	s.current.Store(c)
	l.version.Add(1)
}
