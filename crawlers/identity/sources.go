// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/crawlers/verify"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/webbotauth"
)

// These thresholds determine when a failing DNS resolver is logged. Several lookups in a row must fail. If only one
// fails, the cause may be the name server for the client's address, and other lookups still work. The log says at most
// once per dnsLogInterval that the resolver fails or works again. Otherwise, someone with a broken name server could
// fill the log.
const (
	dnsFailures    = 5
	dnsLogInterval = time.Minute
)

// sources tracks failed fetches of lists, keys and DNS answers. It writes one log line when a source starts to fail or
// works again, instead of one line for each request. Each engine has its own sources.
type sources struct {
	logger func() *zap.Logger // nil disables logging

	mu      sync.Mutex
	failing map[string]bool      // failing address lists and key directories, keyed by URL
	bounds  map[string]time.Time // the time when a limit was last logged, keyed by message
	dns     dnsState
}

type dnsState struct {
	lookups, failures uint64
	inRow             int       // number of failures since the last success
	err               error     // error of the last lookup
	since             time.Time // time of the first failure in a row; zero if the last lookup succeeded
	logged            bool      // the failure has been logged
	loggedAt          time.Time
}

func (s *sources) log() *zap.Logger {
	if s.logger == nil {
		return zap.NewNop()
	}
	return s.logger()
}

// setFailing records whether fetches of a URL fail. It returns true if the state has changed.
func (s *sources) setFailing(url string, failing bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing[url] == failing {
		return false
	}
	if s.failing == nil {
		s.failing = map[string]bool{}
	}
	s.failing[url] = failing
	return true
}

func (s *sources) listFetched(l verify.ListStatus) {
	countFetch("address_list", l.Err)
	if old := l.Old(time.Now()); s.setFailing("the age of "+l.URL, old != "") && old != "" {
		s.log().Warn("an address list is "+old, zap.String("list", l.URL), zap.Error(l.Err))
	}
	if !s.setFailing(l.URL, l.Err != nil) {
		return
	}
	fields := []zap.Field{zap.String("list", l.URL), zap.Int("entries", l.Prefixes)}
	if !l.Date.IsZero() {
		fields = append(fields, zap.Time("as_of", l.Date))
	}
	if l.Err == nil {
		s.log().Info("fetching the address list works again", fields...)
		return
	}
	message := "fetching an address list failed; using the last good one"
	if l.Prefixes == 0 {
		message = "fetching an address list failed; the crawlers that need this list remain unverified"
	}
	s.log().Warn(message, append(fields, zap.Error(l.Err))...)
}

func (s *sources) keysFetched(d webbotauth.DirectoryStatus) {
	countFetch("key_directory", d.Err)
	if !s.setFailing(d.URL, d.Err != nil) {
		return
	}
	log := s.log().With(zap.String("directory", d.URL), zap.Int("keys", d.Keys))
	if d.Err == nil {
		log.Info("fetching the key directory works again")
		return
	}
	message := "fetching a key directory failed; using the last good keys"
	if d.Keys == 0 {
		message = "fetching a key directory failed; signatures with keys from this directory cannot be checked"
	}
	log.Warn(message, zap.Error(d.Err))
}

// boundLogInterval is the shortest time between two log lines about the same limit.
const boundLogInterval = time.Hour

// bound logs that a limit was reached, at most once per boundLogInterval for each message. If there are more lists or
// nonces than the limit allows, clients that need one of the lists or nonces beyond the limit stay unverified. They do
// not become impostors.
func (s *sources) bound(message string, fields ...zap.Field) {
	s.mu.Lock()
	now := time.Now()
	last, ok := s.bounds[message]
	log := !ok || now.Sub(last) >= boundLogInterval
	if log {
		if s.bounds == nil {
			s.bounds = map[string]time.Time{}
		}
		s.bounds[message] = now
	}
	s.mu.Unlock()
	if log {
		s.log().Warn(message, fields...)
	}
}

func (s *sources) noncesForgotten(directory string) {
	s.bound("too many signatures with nonces are valid at the same time, so older signatures with the keys of this directory are not accepted", zap.String("directory", directory))
}

func (s *sources) lookedUp(err error) {
	countFetch("dns", err)
	failing, log := s.recordLookup(err, time.Now())
	switch {
	case !log:
	case failing:
		s.log().Warn("reverse DNS lookups fail; crawlers that only DNS could verify remain unverified", zap.Error(err))
	default:
		s.log().Info("reverse DNS lookups work again")
	}
}

// recordLookup counts a DNS lookup. err is the error of the lookup, or nil. failing reports whether the resolver fails.
// log reports whether the caller must log this state.
func (s *sources) recordLookup(err error, now time.Time) (failing, log bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &s.dns
	d.lookups++
	if err == nil {
		d.inRow, d.err, d.since = 0, nil, time.Time{}
	} else {
		d.failures++
		d.inRow++
		d.err = err
		if d.since.IsZero() {
			d.since = now
		}
	}
	failing = d.inRow >= dnsFailures
	if failing == d.logged || err != nil && !failing || !d.loggedAt.IsZero() && now.Sub(d.loggedAt) < dnsLogInterval {
		return failing, false
	}
	d.logged, d.loggedAt = failing, now
	return failing, true
}

func (s *sources) dnsState() dnsState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dns
}
