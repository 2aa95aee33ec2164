// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// DefaultMaxAge is how long a robots.txt may be cached. By RFC 9309 section 2.4 crawlers
// cache it for at most 24 hours, MaxMaxAge.
const (
	DefaultMaxAge = time.Hour
	MaxMaxAge     = 24 * time.Hour
)

// ServeOptions are how a Server answers.
type ServeOptions struct {
	Options
	// MaxAge is for Cache-Control (see CacheControl); 0 means DefaultMaxAge.
	MaxAge time.Duration
}

// Answer is how one request is answered, where that is not as the Server always
// answers.
type Answer struct {
	// CacheControl is the header's value, one that CacheControl made; "" means
	// that of the ServeOptions.
	CacheControl string
	// Other is merged into the file (see Merge), if it is not nil. Where the two
	// cannot be merged, the file is served without.
	Other *robotstxt.File
	// Before is the file before Other, or nil. What it and the policy came to is served
	// while Other is being merged; where that is not known, the policy's file is.
	Before *robotstxt.File
	// Meanwhile is the Cache-Control of what is served while Other is being merged; ""
	// means CacheControl.
	Meanwhile string
	// Report is called once for each merged file with what Merge says about it; it may be nil.
	Report func([]policy.Problem, []robotstxt.Note)
	// Short is that of Options, for this answer.
	Short bool
}

// CacheControl is the value of Cache-Control that lets a robots.txt be cached for
// so long, but not longer than MaxMaxAge; for less than a second it is no-cache.
func CacheControl(maxAge time.Duration) string {
	seconds := int64(min(maxAge, MaxMaxAge) / time.Second)
	if seconds <= 0 {
		return "no-cache"
	}
	return "max-age=" + strconv.FormatInt(seconds, 10)
}

// Server serves the robots.txt of every host of a policy. It answers everybody:
// a client that is refused the file takes everything for allowed (RFC 9309
// section 2.3.1.3).
//
// What Host names costs no memory: the file is rendered once for all hosts to
// which the same rules speak, and the sitemaps are filled in with each answer.
type Server struct {
	p            *policy.Policy
	o            ServeOptions
	cacheControl string
	varies       bool // files contain the host's name
	hosts        map[policy.Host]*sites
	other        *sites // of hosts that no rule names
	merged       mergedSites
}

// sites are what is served to the hosts to which the same rules speak.
type sites struct{ all, short site }

func newSites(host string) *sites {
	return &sites{site{host: host}, site{host: host, short: true}}
}

// site is one of the files for hosts to which the same rules speak.
type site struct {
	once  sync.Once
	host  string // one of them
	short bool   // see Options
	*served
}

// NewServer returns a server of a policy. It serves whatever Render renders, so
// that the problems of Check are for the caller to look at before.
func NewServer(p *policy.Policy, o ServeOptions) *Server {
	s := &Server{p: p, o: o, varies: varies(p), hosts: map[policy.Host]*sites{}, other: newSites("")}
	if o.MaxAge == 0 {
		o.MaxAge = DefaultMaxAge
	}
	s.cacheControl = CacheControl(o.MaxAge)
	byKey := map[int]*sites{}
	for _, h := range Hosts(p) {
		if h == "" {
			continue
		}
		key := p.HostKey(string(h))
		if byKey[key] == nil {
			byKey[key] = newSites(string(h))
		}
		s.hosts[h] = byKey[key]
	}
	return s
}

// Hosts lists the hosts that rules name, in the order of the policy, and last ""
// for all others: a policy has as many different robots.txt. A wildcard stands
// for the hosts below it that are not listed.
func Hosts(p *policy.Policy) []policy.Host {
	var hosts []policy.Host
	seen := map[policy.Host]bool{}
	rules := p.Spec().Rules
	for i := range rules {
		for _, h := range rules[i].Hosts {
			if !seen[h] {
				seen[h] = true
				hosts = append(hosts, h)
			}
		}
	}
	return append(hosts, "")
}

// maxTooLarge is for how many hosts Check reports that their files are too large:
// these take the longest, and one is enough for the policy not to be served.
const maxTooLarge = 2

// Check renders the robots.txt of all hosts, of those to which the same rules speak
// only one, and returns their problems, each once. Past a few hosts whose files are too
// large it stops. Where all hosts would take too long it renders those with the most
// rules, and says so.
func Check(p *policy.Policy, o Options) []policy.Problem {
	problems, _ := check(p, o)
	return problems
}

// check is Check, and returns how many files it rendered.
func check(p *policy.Policy, o Options) (problems []policy.Problem, rendered int) {
	l := newLayout(p)
	seen := map[policy.Problem]bool{}
	tooLarge, work := 0, 0
	hosts := differentHosts(p)
	for _, h := range hosts {
		if work > maxCheckWork {
			return append(problems, notRendered(p, rendered, len(hosts))), rendered
		}
		rendered++
		f, found := l.render(string(h), o)
		for _, f := range found {
			if !seen[f] {
				seen[f] = true
				problems = append(problems, f)
			}
		}
		if len(f.Body) > robotstxt.MaxSize {
			tooLarge++
		}
		if tooLarge == maxTooLarge {
			break
		}
		work += f.drawn.work
	}
	return problems, rendered
}

// differentHosts lists a host for each file that hosts of a policy have, those that
// the most statements name first.
func differentHosts(p *policy.Policy) (hosts []policy.Host) {
	size := map[policy.Host]int{}
	rules := p.Spec().Rules
	for i := range rules {
		for _, h := range rules[i].Hosts {
			size[h] += len(rules[i].Statements) + len(rules[i].AppDirectives)
		}
	}
	done := map[int]bool{}
	for _, h := range Hosts(p) {
		if key := p.HostKey(string(h)); !done[key] {
			done[key] = true
			hosts = append(hosts, h)
		}
	}
	slices.SortStableFunc(hosts, func(a, b policy.Host) int { return cmp.Compare(size[b], size[a]) })
	return hosts
}

const methodResponse = "robots.txt answers GET and HEAD only\n"

// ServeHTTP answers a request for /robots.txt, whatever its path is, for the
// host of r.Host. It answers GET and HEAD, also for ranges and under conditions
// (RFC 9110), and other methods with 405.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.Serve(w, r, Answer{}) }

// Serve is ServeHTTP with an answer of its own. settled is false if a.Other has not been
// merged yet, so that the next answer will be another one.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, a Answer) (settled bool) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header()["Allow"] = []string{"GET, HEAD"}
		http.Error(w, methodResponse, http.StatusMethodNotAllowed)
		return true
	}
	site := s.site(r.Host, a.Short)
	var c *contents
	settled = true
	if a.Other != nil {
		if c, settled = s.mergedContent(r.Context(), site, r.Host, a); !settled && a.Meanwhile != "" {
			a.CacheControl = a.Meanwhile
		}
	}
	if c == nil {
		c = site.content(s, r.Host)
	}
	if a.CacheControl == "" {
		a.CacheControl = s.cacheControl
	}
	answer(w, r, c, a.CacheControl)
	return settled
}

// Body is the robots.txt of the policy as it is served to a host, with all groups, uncompressed.
func (s *Server) Body(host string) string {
	text, _ := s.Text(host)
	return text
}

// Text is Body and its entity tag.
func (s *Server) Text(host string) (text, etag string) {
	var b strings.Builder
	c := &s.site(host, false).content(s, host).identity
	for _, part := range c.parts {
		b.Write(part)
	}
	return b.String(), c.etag
}

// site returns the site of a request's host.
func (s *Server) site(host string, short bool) *site {
	of := s.sites(host)
	if short && !s.p.Spec().Publish.AllGroups {
		return &of.short
	}
	return &of.all
}

func (s *Server) sites(host string) *sites {
	if len(s.hosts) == 0 {
		return s.other
	}
	name := policy.NormalizeHost(host)
	if found := s.hosts[policy.Host(name)]; found != nil && !strings.HasPrefix(name, "*") {
		return found
	}
	for i := range len(name) {
		if name[i] == '.' {
			if found := s.hosts[policy.Host("*"+name[i:])]; found != nil {
				return found
			}
		}
	}
	return s.other
}

// acceptsGzip reports whether a client takes gzip (RFC 9110 section 12.5.3).
func acceptsGzip(h http.Header) bool {
	accepts := false
	for _, line := range h["Accept-Encoding"] {
		for member := range strings.SplitSeq(line, ",") {
			name, params, _ := strings.Cut(member, ";")
			name = strings.TrimSpace(name)
			if name != "*" && !strings.EqualFold(name, "gzip") && !strings.EqualFold(name, "x-gzip") {
				continue
			}
			_, q, weighted := strings.Cut(params, "=")
			ok := !weighted || strings.Trim(strings.TrimSpace(q), "0.") != ""
			if name != "*" {
				return ok
			}
			accepts = ok
		}
	}
	return accepts
}
