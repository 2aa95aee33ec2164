// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ListOptions are the options of [Lists]. The zero value has the defaults.
type ListOptions struct {
	// Client fetches the lists. The default follows up to three redirects, to https
	// only.
	Client *http.Client
	// Timeout is for one fetch, from its beginning to the end of the list: 30 seconds
	// by default. Lists are fetched beside each other, so that one which takes all of
	// it holds up no other.
	Timeout time.Duration
	// Interval is the time between two fetches of a list: 24 hours by default,
	// and never less than one (draft-illyes-aipref-jafar-00). A longer max-age
	// of the response is respected, up to a week.
	Interval time.Duration
	// MaxAge is how long a list is fresh: 7 days by default. Only a fresh list
	// says that an address is not the crawler's. That one is the crawler's, a
	// list says 30 times as long, and the snapshot for as long as nothing newer
	// was fetched.
	MaxAge time.Duration
	// Now is the clock; time.Now by default.
	Now func() time.Time
	// Report, if not nil, is told after every fetch, of one at a time. It must not
	// call Stop.
	Report func(ListStatus)
}

// ListStatus is what is known of an address list.
type ListStatus struct {
	// URL is where the list is published.
	URL string
	// Date is when it was fetched, or the date of the embedded snapshot; zero
	// when there is no list.
	Date time.Time
	// Created is the creationTime that the list itself states, or zero.
	Created time.Time
	// Prefixes is the number of prefixes.
	Prefixes int
	// Snapshot is true for the list that came with the program.
	Snapshot bool
	// Fresh is true while the list may say that an address is not on it.
	Fresh bool
	// Err says why the last fetch failed, or is nil.
	Err error
	// Failing is since when fetches have failed; zero while Err is nil.
	Failing time.Time
}

// Lists holds published address lists. It begins with a dated snapshot, and
// refreshes it in the background between Start and Stop. It is safe for
// concurrent use, and asking it never waits.
type Lists struct {
	options ListOptions
	urls    []string
	current atomic.Pointer[map[string]*list] // replaced, never changed

	mu     sync.Mutex // guards what follows
	cancel context.CancelFunc
	done   chan struct{}
}

// list is one list as it was at a time. It is immutable.
type list struct {
	ListStatus
	ranges ranges
	// What the server said, for asking again.
	etag, lastModified string
	fetched            bool
}

// staleFactor times MaxAge is how long what a list holds counts.
const staleFactor = 30

// NewLists returns the lists with the given URLs, as far as the snapshot has
// them. Nothing is fetched before Start.
func NewLists(urls []string, options ListOptions) *Lists {
	if options.Client == nil {
		options.Client = defaultClient()
	}
	if options.Timeout <= 0 {
		options.Timeout = 30 * time.Second
	}
	if options.Interval <= 0 {
		options.Interval = 24 * time.Hour
	}
	options.Interval = max(options.Interval, time.Hour)
	if options.MaxAge <= 0 {
		options.MaxAge = 7 * 24 * time.Hour
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	urls = slices.Clone(urls)
	slices.Sort(urls)
	l := &Lists{options: options, urls: slices.Compact(urls)}
	known := snapshot()
	current := make(map[string]*list, len(l.urls))
	for _, url := range l.urls {
		if s := known[url]; s != nil {
			current[url] = s
		} else {
			current[url] = &list{ListStatus: ListStatus{URL: url}}
		}
	}
	l.current.Store(&current)
	return l
}

// Start begins to refresh the lists in the background, and returns at once. It
// does nothing when they are being refreshed already. Keep one Lists while a
// configuration is reloaded: each Start fetches all lists anew, and operators
// ask not to do that more than once an hour.
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

// Stop ends refreshing and waits until no fetch is under way. The lists stay as
// they are, and Start may be called again. It may be called at any time.
func (l *Lists) Stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cancel == nil {
		return
	}
	l.cancel()
	<-l.done
	l.cancel = nil
}

// Status returns what is known of each list, ordered by URL.
func (l *Lists) Status() []ListStatus {
	current, now := *l.current.Load(), l.options.Now()
	all := make([]ListStatus, len(l.urls))
	for i, url := range l.urls {
		all[i] = current[url].ListStatus
		all[i].Fresh = current[url].isFresh(now, l.options.MaxAge)
	}
	return all
}

// ask looks an address up in some of the lists. It is `no` only when all of
// them are fresh. A nil *Lists is silent.
func (l *Lists) ask(urls []string, a netip.Addr) (answer, string) {
	if l == nil {
		return silent, ""
	}
	current, now := *l.current.Load(), l.options.Now()
	fresh := true
	for _, url := range urls {
		s := current[url]
		if s == nil || s.Prefixes == 0 {
			fresh = false
			continue
		}
		if (s.Snapshot || s.isFresh(now, staleFactor*l.options.MaxAge)) && s.ranges.contains(a) {
			return yes, url
		}
		fresh = fresh && s.isFresh(now, l.options.MaxAge)
	}
	if fresh {
		return no, ""
	}
	return silent, ""
}

// isFresh reports whether the list is there and not older than age.
func (s *list) isFresh(now time.Time, age time.Duration) bool {
	return s.Prefixes > 0 && now.Sub(s.Date) <= age
}

// replace publishes a list.
func (l *Lists) replace(s *list) {
	next := make(map[string]*list, len(l.urls))
	for url, old := range *l.current.Load() {
		next[url] = old
	}
	next[s.URL] = s
	l.current.Store(&next)
}
