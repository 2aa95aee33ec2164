// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/crawlers/verify"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/webbotauth"
)

// What verification asks, as the label source of its counter.
const (
	sourceList = "address_list"
	sourceDNS  = "dns"
	sourceKeys = "key_directory"

	fetchOK     = "ok"
	fetchFailed = "failed"
)

// A resolver is said to fail when so many look-ups in a row had no answer: single
// addresses have name servers that are out of order. States of the resolver are
// told once a minute at most, for whoever has such addresses could make it change
// as often as he likes.
const (
	dnsFailures = 5
	dnsTellGap  = time.Minute
)

// verificationState remembers what was told of the sources of a checker, so that a
// log has one line for each change of state, and none for a request. It outlives
// configurations, as the checker does.
type verificationState struct {
	mu     sync.Mutex
	failed map[string]bool // lists and key directories, by URL
	dns    dnsState
}

// dnsState is what is known of the resolver.
type dnsState struct {
	lookups, failures uint64
	inRow             int
	err               error     // of the last look-up that had no answer
	since             time.Time // of the failing; zero while it works
	told              bool      // that it fails
	toldAt            time.Time
}

// verificationLogger is the logger of the configuration that runs now.
func verificationLogger() *zap.Logger { return caddy.Log().Named("http.handlers.robots_policy") }

func result(err error) string {
	if err != nil {
		return fetchFailed
	}
	return fetchOK
}

// changed notes whether a source fails, and reports whether it did otherwise before.
func (s *verificationState) changed(url string, fails bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed[url] == fails {
		return false
	}
	if s.failed == nil {
		s.failed = map[string]bool{}
	}
	s.failed[url] = fails
	return true
}

// list takes note of the fetch of an address list.
func (s *verificationState) list(l verify.ListStatus) {
	metrics.fetches.WithLabelValues(sourceList, result(l.Err)).Inc()
	if !s.changed(l.URL, l.Err != nil) {
		return
	}
	fields := []zap.Field{zap.String("list", l.URL), zap.Int("entries", l.Prefixes)}
	if !l.Date.IsZero() {
		fields = append(fields, zap.Time("as_of", l.Date))
	}
	if l.Err == nil {
		verificationLogger().Info("address list of crawlers can be had again", fields...)
		return
	}
	message := "address list of crawlers cannot be had; the one before goes on"
	if l.Prefixes == 0 {
		message = "address list of crawlers cannot be had; whoever it is for stays unknown"
	}
	verificationLogger().Warn(message, append(fields, zap.Error(l.Err))...)
}

// keys takes note of the fetch of a key directory.
func (s *verificationState) keys(d webbotauth.DirectoryStatus) {
	metrics.fetches.WithLabelValues(sourceKeys, result(d.Err)).Inc()
	if !s.changed(d.URL, d.Err != nil) {
		return
	}
	fields := []zap.Field{zap.String("directory", d.URL), zap.Int("keys", d.Keys)}
	if d.Err == nil {
		verificationLogger().Info("key directory of a crawler can be had again", fields...)
		return
	}
	message := "key directory of a crawler cannot be had; the keys before go on"
	if d.Keys == 0 {
		message = "key directory of a crawler cannot be had; its signatures verify nobody"
	}
	verificationLogger().Warn(message, append(fields, zap.Error(d.Err))...)
}

// lookup takes note of an address that the resolver was asked about.
func (s *verificationState) lookup(err error) {
	metrics.fetches.WithLabelValues(sourceDNS, result(err)).Inc()
	fails, tell := s.resolver(err, time.Now())
	switch {
	case !tell:
	case fails:
		verificationLogger().Warn("reverse DNS does not answer; crawlers that are verified by it stay unknown", zap.Error(err))
	default:
		verificationLogger().Info("reverse DNS answers again")
	}
}

// resolver counts a look-up, and reports whether the resolver fails and whether that
// is to be told.
func (s *verificationState) resolver(err error, now time.Time) (fails, tell bool) {
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
	fails = d.inRow >= dnsFailures
	if fails == d.told || err != nil && !fails || !d.toldAt.IsZero() && now.Sub(d.toldAt) < dnsTellGap {
		return fails, false
	}
	d.told, d.toldAt = fails, now
	return fails, true
}

func (s *verificationState) resolverState() dnsState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dns
}
