// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// Bounds on what is remembered of who fetched which robots.txt.
const (
	maxReaders  = 4096 // crawlers and hosts
	maxPolicies = 32   // that robots.txt files in memory were made from
	maxHostname = 253  // octets; what is longer is no host, and would fill the memory
)

// robotsReader is a crawler that has fetched a host's robots.txt.
type robotsReader struct {
	crawler string // product token
	host    string
}

// readerBit is one of 64 bits that stand for crawlers.
func readerBit(crawler string) uint64 {
	n := uint64(0)
	for i := range len(crawler) {
		n = n*31 + uint64(crawler[i])
	}
	return 1 << (n % 64)
}

// fetchedRobots is what it was given.
type fetchedRobots struct {
	version string // the entity tag, which is a hash of the file
	site    *site.Site
	at      time.Time
}

// readers remembers which crawler fetched which version of robots.txt. It holds on
// to the policies of the versions, of which there are few: what a version says is
// asked of its policy.
type readers struct {
	names    atomic.Uint64 // of the crawlers that are in the maps, and of others that share their bits
	mu       sync.RWMutex
	recent   map[robotsReader]fetchedRobots
	earlier  map[robotsReader]fetchedRobots // dropped when recent is full
	policies []*site.Site                   // oldest first
}

// readerPool holds what is remembered, by the names of policies: a configuration that
// takes over from another goes on from what that one has seen.
var readerPool = caddy.NewUsagePool()

// holdReaders returns what is remembered for a policy, to be given back by its name.
func holdReaders(policy string) (*readers, error) {
	v, _, err := readerPool.LoadOrNew(policy, func() (caddy.Destructor, error) { return new(readers), nil })
	if err != nil {
		return nil, err
	}
	return v.(*readers), nil
}

// Destruct implements caddy.Destructor: there is nothing to end.
func (*readers) Destruct() error { return nil }

// fetched notes that a crawler has been given a version.
func (rs *readers) fetched(who robotsReader, what fetchedRobots) {
	if len(who.host) > maxHostname {
		return
	}
	who.host = strings.Clone(who.host) // and not the request line that it may be a part of
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.names.Or(readerBit(who.crawler))
	rs.keep(what.site)
	if rs.recent == nil || len(rs.recent) >= maxReaders/2 {
		rs.earlier, rs.recent = rs.recent, map[robotsReader]fetchedRobots{}
	}
	rs.recent[who] = what
}

// keep holds on to a policy, and forgets the oldest with all that were given its
// versions when there are too many.
func (rs *readers) keep(s *site.Site) {
	for _, p := range rs.policies {
		if p == s {
			return
		}
	}
	rs.policies = append(rs.policies, s)
	if len(rs.policies) <= maxPolicies {
		return
	}
	gone := rs.policies[0]
	rs.policies = append([]*site.Site(nil), rs.policies[1:]...)
	for _, m := range []map[robotsReader]fetchedRobots{rs.recent, rs.earlier} {
		for who, what := range m {
			if what.site == gone {
				delete(m, who)
			}
		}
	}
}

// of returns what a crawler was given last.
func (rs *readers) of(who robotsReader) (fetchedRobots, bool) {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	if what, ok := rs.recent[who]; ok {
		return what, true
	}
	what, ok := rs.earlier[who]
	return what, ok
}

// readerOf is how a visit is remembered: by the crawler and the host, and not by the
// address, for crawlers fetch robots.txt from one and pages from others.
func (v *visit) readerOf() robotsReader {
	return robotsReader{crawler: v.reader, host: policy.NormalizeHost(v.query.Host)}
}

// violation reports what a version of robots.txt that the crawler had fetched says
// against a visit. A robots.txt speaks to whoever has the crawler's name, so that
// what it says is asked for a verified client: rules for such stand in it.
func (rs *readers) violation(v *visit) (fetchedRobots, policy.Decision, bool) {
	if v.query.Identity == policy.Impostor {
		return fetchedRobots{}, policy.Decision{}, false
	}
	if rs.names.Load()&v.readerBit == 0 {
		return fetchedRobots{}, policy.Decision{}, false
	}
	what, ok := rs.of(v.readerOf())
	if !ok {
		return what, policy.Decision{}, false
	}
	q := v.query
	if what.site != v.site {
		q.Crawler = what.site.Policy.Crawler(v.crawler.Token)
	}
	if q.Crawler == 0 {
		return what, policy.Decision{}, false
	}
	q.Identity, q.Purposes, q.Now = policy.Verified, nil, what.at
	verdict := what.site.Edge(q)
	return what, verdict.Decision, verdict.Decision.Verdict == policy.Disallowed
}

// serveRobots answers a request for robots.txt, and remembers who was given what.
func (h *Handler) serveRobots(w http.ResponseWriter, r *http.Request, l *live, next caddyhttp.Handler) {
	l.site.ServeRobots(w, r, h.robotsAnswer(r, next))
	id := l.site.Recognize(r.Header["User-Agent"])
	if id == 0 || r.Method != http.MethodGet {
		return
	}
	var v visit
	v.judge(h, l, r, id, "/robots.txt")
	v.tell(r)
	v.countSent(&v.robots, channelRobotsTxt, decisionServed)
	if version := w.Header().Get("Etag"); version != "" && v.query.Identity != policy.Impostor {
		h.readers.fetched(v.readerOf(), fetchedRobots{version: strings.Trim(version, `W/"`), site: l.site, at: v.query.Now})
	}
}

// checkViolation counts and logs a request that goes against the robots.txt that the
// crawler has fetched.
func (h *Handler) checkViolation(r *http.Request, v *visit) {
	what, d, ok := h.readers.violation(v)
	if !ok {
		return
	}
	metrics.violations.WithLabelValues(metrics.crawler(v.crawler.Token), metrics.rule(what.site, d.Rule)).Inc()
	c := h.logger.Check(zapcore.InfoLevel, "crawler went against robots.txt")
	if c == nil {
		return
	}
	told, skipped := h.samples.take(sampleKey{crawler: v.id, rule: d.Rule, violation: true}, v.query.Now)
	if !told {
		return
	}
	c.Write(append(v.logFields(r),
		zap.String("robots_txt", what.version), zap.Time("fetched", what.at),
		zap.String("rule", what.site.RuleName(d.Rule)), zap.String("policy", what.site.Place(d.Statement.Pos)),
		zap.Int("not_logged", skipped))...)
}
