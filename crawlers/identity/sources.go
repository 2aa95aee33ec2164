// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/crawlers/verify"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/webbotauth"
)

// The resolver is failing after this many failed lookups in a row, because single addresses
// have broken name servers. Its state is logged at most once per dnsLogInterval, because the
// owner of such addresses could make it change at will.
const (
	dnsFailures    = 5
	dnsLogInterval = time.Minute
)

// sources tracks what verification fetches, so that the log gets one line for each
// change of state and none per request. It lives as long as the engine does.
type sources struct {
	logger func() *zap.Logger // nil: nothing is logged

	mu      sync.Mutex
	failing map[string]bool      // address lists and key directories, by URL
	bounds  map[string]time.Time // when reaching a bound was logged, by message
	dns     dnsState
}

type dnsState struct {
	lookups, failures uint64
	inRow             int       // failures since the last success
	err               error     // of the last lookup
	since             time.Time // of the first failure in a row; zero if the last lookup succeeded
	logged            bool      // as failing
	loggedAt          time.Time
}

func (s *sources) log() *zap.Logger {
	if s.logger == nil {
		return zap.NewNop()
	}
	return s.logger()
}

// setFailing records whether fetching a URL fails, and reports whether that changed.
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
		message = "fetching an address list failed; its crawlers stay unverified"
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
		message = "fetching a key directory failed; its signatures cannot be checked"
	}
	log.Warn(message, zap.Error(d.Err))
}

// boundLogInterval is the shortest time between two logs of reaching the same bound.
const boundLogInterval = time.Hour

// bound logs that a bound was reached. It never makes anyone an impostor.
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
	s.bound("too many signatures with a nonce are valid at the same time; older ones of this directory are not accepted", zap.String("directory", directory))
}

func (s *sources) lookedUp(err error) {
	countFetch("dns", err)
	failing, log := s.recordLookup(err, time.Now())
	switch {
	case !log:
	case failing:
		s.log().Warn("reverse DNS lookups fail; crawlers that are verified by DNS stay unverified", zap.Error(err))
	default:
		s.log().Info("reverse DNS lookups work again")
	}
}

// recordLookup counts a lookup. It reports whether the resolver is failing and whether to log that.
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
