// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

// How the upstream's robots.txt is asked for.
const (
	upstreamTimeout = 5 * time.Second  // to answer
	upstreamFresh   = time.Minute      // an answer is taken as it stands
	upstreamRetry   = 10 * time.Second // after a failure
	// unsureMaxAge is how long our file may be kept where the upstream's could not
	// be had and nothing is known of it: it may allow what the two together do not.
	unsureMaxAge = time.Minute
)

// Bounds on what is remembered of upstreams: a client can make up hosts. There are
// two generations of each bound.
const (
	maxUpstreamHosts  = 128
	maxUpstreamOctets = 1 << 20
	maxUpstreamAsked  = 16 // hosts at a time
)

// upstreams knows the robots.txt of the sites that a handler stands before.
type upstreams struct {
	told   *once
	logger *zap.Logger

	mu      sync.Mutex
	recent  map[string]*upstream // by upstreamKey
	earlier map[string]*upstream // dropped when recent is full
	octets  int                  // of the recent ones' files
	asked   int                  // that are being asked
	last    *upstreamFile        // shared by hosts that answer the same
}

// upstream is one site. Its fields are guarded by upstreams.mu.
type upstream struct {
	file    *upstreamFile // nil: it has none, or nothing is known
	known   bool          // it has answered once
	until   time.Time     // when to ask again
	asking  chan struct{} // closed when the answer is there; nil if nobody asks
	started time.Time     // of asking
}

// upstreamFile is a robots.txt as it was fetched.
type upstreamFile struct {
	data  []byte
	other *robotsserve.Other
}

// of returns the robots.txt of the upstream for a request, nil if it has none, and
// whether that is what the upstream has said. One request of many asks the
// upstream, and the others wait for it if nothing is known yet. What was last
// known holds for as long as the upstream fails.
func (u *upstreams) of(r *http.Request, next caddyhttp.Handler) (*robotsserve.Other, bool) {
	key, ok := upstreamKey(r)
	if !ok {
		return nil, true // no site has such a name
	}
	now := time.Now()
	u.mu.Lock()
	up := u.find(key)
	if now.Before(up.until) || !mayAsk(r) || up.asking == nil && u.asked >= maxUpstreamAsked {
		defer u.mu.Unlock()
		return up.answer()
	}
	if done := up.asking; done != nil {
		wait := up.started.Add(upstreamTimeout).Sub(now)
		if up.known {
			wait = 0
		}
		u.mu.Unlock()
		waitFor(r.Context(), done, wait)
		u.mu.Lock()
		defer u.mu.Unlock()
		return up.answer()
	}
	up.asking, up.started = make(chan struct{}), now
	u.asked++
	u.mu.Unlock()
	u.ask(key, up, r, next)
	u.mu.Lock()
	defer u.mu.Unlock()
	return up.answer()
}

// ask asks an upstream and notes the answer. It goes on when the client leaves, as
// others wait for the answer too.
func (u *upstreams) ask(key string, up *upstream, r *http.Request, next caddyhttp.Handler) {
	// A deadline would count as a failure of the whole upstream with Caddy's passive
	// health checks, and shut the site over a slow robots.txt. That a client leaves
	// does not.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer time.AfterFunc(upstreamTimeout, cancel).Stop()
	defer cancel()
	data, err := fetchRobots(ctx, r, next)
	file := u.fileOf(up, data, err)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asked--
	close(up.asking)
	up.asking = nil
	up.until = time.Now().Add(upstreamFresh)
	if err != nil && (!errors.Is(err, errNoRobots) || up.file != nil && errors.Is(err, errDenied)) {
		up.until = time.Now().Add(upstreamRetry)
		if u.told.first("upstream " + err.Error()) {
			u.logger.Warn("the robots.txt of the site behind could not be had", zap.String("host", r.Host), zap.Bool("last_one_served", up.file != nil), zap.Error(err))
		}
		return
	}
	if err != nil && up.file != nil {
		u.logger.Info("the site behind has no robots.txt any more", zap.String("host", r.Host), zap.Error(err))
	}
	if u.recent[key] == up {
		u.octets += file.size() - up.file.size()
	}
	up.file, up.known = file, true
}

// fileOf reads a file, unless it is one that is known already.
func (u *upstreams) fileOf(up *upstream, data []byte, err error) *upstreamFile {
	if err != nil {
		return nil
	}
	u.mu.Lock()
	before, last := up.file, u.last
	u.mu.Unlock()
	for _, f := range []*upstreamFile{before, last} {
		if f != nil && bytes.Equal(f.data, data) {
			return f
		}
	}
	f := &upstreamFile{data, robotsserve.ParseOther(data)}
	u.mu.Lock()
	u.last = f
	u.mu.Unlock()
	return f
}

func (f *upstreamFile) size() int {
	if f == nil {
		return 0
	}
	return len(f.data)
}

// find returns the upstream of a key, which is one of the latest then.
func (u *upstreams) find(key string) *upstream {
	up := u.recent[key]
	if up != nil {
		return up
	}
	if up = u.earlier[key]; up == nil {
		up = &upstream{}
	}
	if u.recent == nil || len(u.recent) >= maxUpstreamHosts || u.octets >= maxUpstreamOctets {
		u.earlier, u.recent, u.octets = u.recent, map[string]*upstream{}, 0
	}
	u.recent[key] = up
	u.octets += up.file.size()
	return up
}

func (up *upstream) answer() (*robotsserve.Other, bool) {
	if up.file == nil {
		return nil, up.known
	}
	return up.file.other, up.known
}

// upstreamKey tells sites apart, by all that a client can say of the site and that
// the upstream is asked with; false for a host that can be none.
func upstreamKey(r *http.Request) (string, bool) {
	host := siteHost(r)
	if host == "" || len(r.Host) > 300 || strings.ContainsAny(host, "/\\@ \t\"'<>") {
		return "", false
	}
	key := "http " + host
	if r.TLS != nil {
		key = "https " + host
	}
	for name, values := range forwarded(r) {
		if said := strings.Join(values, ","); len(said) <= 300 {
			key += " " + name + " " + said
			continue
		}
		return "", false
	}
	return key, true
}

// siteHost is the host of a request as all clients of the site could write it: a
// port that the site is not on would make some upstreams redirect.
func siteHost(r *http.Request) string {
	host := policy.NormalizeHost(r.Host)
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return host
	}
	_, port, err := net.SplitHostPort(local.String())
	if err == nil && port != "80" && port != "443" && strings.HasSuffix(r.Host, ":"+port) {
		host += ":" + port
	}
	return host
}

// forwarded is what a trusted proxy tells of the site that the client has asked,
// sorted by name. What it tells of the client is not for an answer to everybody.
func forwarded(r *http.Request) iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		if trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool); !trusted {
			return
		}
		for _, name := range [...]string{"X-Forwarded-Host", "X-Forwarded-Proto"} {
			if v := r.Header[name]; v != nil && !yield(name, v) {
				return
			}
		}
	}
}

// mayAsk reports whether asking with a request can give the file of the site.
// While an error is handled, what follows on the route is the page of the error.
// A query that a rewrite has worked into the address cannot be told from it.
func mayAsk(r *http.Request) bool {
	if r.Context().Value(caddyhttp.ErrorCtxKey) != nil {
		return false
	}
	original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request)
	return !ok || original.URL.RawQuery == "" || original.URL.RawQuery == r.URL.RawQuery && original.URL.Path == r.URL.Path
}

func waitFor(ctx context.Context, done <-chan struct{}, atMost time.Duration) {
	if atMost <= 0 {
		return
	}
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-done:
	case <-ctx.Done():
	case <-timer.C:
	}
}

// tell logs what merging says of a policy and an upstream's file.
func (u *upstreams) tell(host string) func([]policy.Problem, []robotsserve.Told) {
	return func(problems []policy.Problem, told []robotsserve.Told) {
		for _, p := range problems {
			if p.Severity == policy.Error {
				u.logger.Warn("the robots.txt of the site behind cannot be merged and is left out", zap.String("host", host), zap.String("problem", p.Message))
				return
			}
		}
		if len(told) == 0 {
			return
		}
		const most = 10
		lines := make([]robotsserve.Told, min(len(told), most))
		copy(lines, told)
		u.logger.Info("the robots.txt of the site behind is merged", zap.String("host", host), zap.Int("notes", len(told)), zap.Any("first_notes", lines))
	}
}
