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
	"github.com/robotspolicy/caddy-robots-policy/policy/solve"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// DefaultMaxAge is the default of ServeOptions.MaxAge. MaxMaxAge is the longest time that a robots.txt should be
// cached, according to RFC 9309 section 2.4.
const (
	DefaultMaxAge = time.Hour
	MaxMaxAge     = 24 * time.Hour
)

// ServeOptions are the options of a Server's answers.
type ServeOptions struct {
	Options
	MaxAge time.Duration // for Cache-Control (see CacheControl); 0 means DefaultMaxAge
}

// Answer holds options for the answer to one request.
type Answer struct {
	CacheControl string          // a value returned by CacheControl; "" means the value of the ServeOptions
	Other        *robotstxt.File // the site's own file, which is merged if possible (see Merge); may be nil
	// Before is the previous file of the site, or nil. While Other is being merged, the server sends the policy merged
	// with Before. If that result is not cached, it sends the policy alone.
	Before    *robotstxt.File
	Meanwhile string // the Cache-Control of answers before Other is merged; "" means CacheControl
	// Report, if not nil, is called once for each merged file, with the problems and notes of the merge.
	Report func([]policy.Problem, []robotstxt.Note)
	Scheme string // the scheme of this answer, instead of the one in Options, if it is not ""
}

// CacheControl returns the value of Cache-Control for a robots.txt that may be cached for maxAge. Longer times are
// reduced to MaxMaxAge. If maxAge is less than a second, the value is "no-cache".
func CacheControl(maxAge time.Duration) string {
	seconds := int64(min(maxAge, MaxMaxAge) / time.Second)
	if seconds <= 0 {
		return "no-cache"
	}
	return "max-age=" + strconv.FormatInt(seconds, 10)
}

// Server serves the robots.txt of every host of a policy. It answers every client, because a client that does not get
// the file may treat everything as allowed (RFC 9309 section 2.3.1.3).
//
// Requests for made-up hosts do not take memory, because the file is rendered once for all hosts with the same rules.
// The sitemaps are added to each answer.
type Server struct {
	p            *policy.Policy
	o            ServeOptions
	cacheControl string
	varies       bool          // the files contain the host's name
	hosts        map[int]*site // by policy.Policy.HostKey
	merged       mergedSites
}

// site holds the file of all hosts with the same rules.
type site struct {
	once     sync.Once
	host     string // one of these hosts
	problems []policy.Problem
	*served
}

// draw renders the file in the first call. l is a layout of the policy, or nil if there is none yet.
func (s *site) draw(srv *Server, l *layout) {
	s.once.Do(func() {
		if l == nil {
			l = newLayout(srv.p)
		}
		var d *drawing
		d, s.problems = l.drawBelow(s.host, srv.o.Options)
		s.served = serve(d)
	})
}

// NewServer returns a server for a policy. It serves the result of Render even if Render reports problems, so call
// Check first.
func NewServer(p *policy.Policy, o ServeOptions) *Server {
	s := &Server{p: p, o: o, varies: varies(p), hosts: map[int]*site{}}
	if o.MaxAge == 0 {
		o.MaxAge = DefaultMaxAge
	}
	s.cacheControl = CacheControl(o.MaxAge)
	for _, h := range Hosts(p) {
		if key := p.HostKey(string(h)); s.hosts[key] == nil {
			s.hosts[key] = &site{host: string(h)}
		}
	}
	return s
}

// Hosts lists the hosts that rules name, in the order of the policy, followed by "" for all other hosts. Each of them
// may have a different robots.txt. A wildcard means all of its subdomains that rules do not name.
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

// maxTooLarge limits the number of files that Check reports as too large. These files take the longest to render, and
// one of them is enough to reject the policy.
const maxTooLarge = 2

// Check renders the robots.txt of one host for each set of hosts with the same rules. It returns the problems of all
// rendered files, without duplicates. It stops after a few files that are too large. If rendering all files would take
// too long, it renders the files with the most rules, and reports that it did not render the others. Later, the server
// sends these files without rendering them again.
func (s *Server) Check() []policy.Problem {
	problems, _ := s.check()
	return problems
}

func (s *Server) check() (problems []policy.Problem, rendered int) {
	l := newLayout(s.p)
	seen := map[policy.Problem]bool{}
	tooLarge, budget := 0, solve.NewBudget()
	hosts := differentHosts(s.p)
	for _, h := range hosts {
		if budget.Exceeded() {
			return append(problems, notRendered(s.p, rendered, len(hosts))), rendered
		}
		rendered++
		site := s.site(string(h))
		site.draw(s, l)
		v, more := site.drawing.vary(s.p, string(h), s.o.Options)
		f, found := site.drawing.file(s.p, v, slices.Concat(site.problems, more))
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
		budget.Spend(site.drawing.work)
	}
	return problems, rendered
}

// differentHosts lists one host for each different file. The host with the longest sitemap lines comes first, then the
// hosts with the most statements, because their files are the most likely to be too large.
func differentHosts(p *policy.Policy) (hosts []policy.Host) {
	size := map[policy.Host]int{}
	rules := p.Spec().Rules
	for i := range rules {
		for _, h := range rules[i].Hosts {
			size[h] += rules[i].Lines()
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
	if host := mostSitemaps(p); host != "" {
		hosts = append([]policy.Host{host}, hosts...)
	}
	return hosts
}

// mostSitemaps returns the host with the longest sitemap lines, or "".
func mostSitemaps(p *policy.Policy) (host policy.Host) {
	longest := 0
	for _, s := range p.Spec().Sitemaps {
		size := 0
		for _, address := range s.Addresses {
			size += len(address)
		}
		if s.Host != "" && size > longest {
			longest, host = size, policy.Host(s.Host.Example())
		}
	}
	return host
}

const methodResponse = "robots.txt can only be requested with GET or HEAD\n"

// ServeHTTP answers a request for the robots.txt of r.Host. It ignores the path. It supports GET and HEAD with ranges
// and conditions (RFC 9110). It answers other methods with status 405.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.Serve(w, r, Answer{}) }

// Serve answers a request like ServeHTTP, but in the way that a describes. The result merged reports whether the file
// a.Other, or a.Before, was merged into the response. settled is false if a.Other has not been merged yet, so that the
// next response will differ.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, a Answer) (merged, settled bool) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header()["Allow"] = []string{"GET, HEAD"}
		http.Error(w, methodResponse, http.StatusMethodNotAllowed)
		return false, true
	}
	site := s.site(r.Host)
	var c *contents
	settled = true
	if a.Other != nil {
		if c, settled = s.mergedContent(r.Context(), site, r.Host, a); !settled && a.Meanwhile != "" {
			a.CacheControl = a.Meanwhile
		}
	}
	merged = c != nil
	if !merged {
		c = site.content(s, r.Host, a.Scheme)
	}
	if a.CacheControl == "" {
		a.CacheControl = s.cacheControl
	}
	answer(w, r, c, a.CacheControl)
	return merged, settled
}

// Text returns the uncompressed robots.txt that is served for a host, and its entity tag.
func (s *Server) Text(host string) (text, etag string) {
	var b strings.Builder
	c := &s.site(host).content(s, host, "").identity
	for _, part := range c.parts {
		b.Write(part)
	}
	return b.String(), c.etag
}

func (s *Server) site(host string) *site { return s.hosts[s.p.HostKey(policy.NormalizeHost(host))] }

// acceptsGzip reports whether a client accepts gzip (RFC 9110 section 12.5.3).
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

// fields holds the values of an answer's header in one allocation. Answers do not share them, because handlers around
// the Server, such as Caddy's "header" directive, change values in place.
type fields struct {
	header http.Header
	values [8]string
	n      int
}

func (f *fields) set(name, value string) {
	f.values[f.n] = value
	f.header[name] = f.values[f.n : f.n+1 : f.n+1]
	f.n++
}

// answer sends a file to a client, compressed if the client accepts gzip.
func answer(w http.ResponseWriter, r *http.Request, c *contents, cacheControl string) {
	f := fields{header: w.Header()}
	body, coded := &c.identity, false
	if len(c.gzip.parts) > 0 && acceptsGzip(r.Header) {
		body, coded = &c.gzip, true
	}
	f.set("Cache-Control", cacheControl)
	f.set("Etag", body.etag)
	if v := f.header["Vary"]; len(v) > 0 {
		f.header["Vary"] = append(v, "Accept-Encoding")
	} else {
		f.set("Vary", "Accept-Encoding")
	}
	if v := r.Header["If-None-Match"]; len(v) == 1 && v[0] == body.etag && len(r.Header["If-Match"]) == 0 {
		w.WriteHeader(http.StatusNotModified) // http.ServeContent would send the same status
		return
	}
	if coded {
		f.set("Content-Encoding", "gzip")
	}
	f.set("Content-Type", "text/plain; charset=utf-8")
	f.set("X-Content-Type-Options", "nosniff")
	f.set("Content-Length", body.length) // http.ServeContent does not set it for encoded content
	if selective(r.Header) {
		http.ServeContent(unmet{w}, r, "", time.Time{}, body.reader())
		return
	}
	// The rest does the same as http.ServeContent, without copying the content.
	f.set("Accept-Ranges", "bytes")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	for _, p := range body.parts {
		if _, err := w.Write(p); err != nil {
			return // the client has closed the connection
		}
	}
}

// unmet removes the fields that describe the file from answers to requests whose condition is not met.
// http.ServeContent does not remove them. If such an answer had a Content-Length, the client would wait for a body that
// never arrives.
type unmet struct{ http.ResponseWriter }

func (u unmet) WriteHeader(status int) {
	switch status {
	case http.StatusPreconditionFailed:
		for _, name := range []string{"Content-Encoding", "Content-Type", "Content-Length", "Cache-Control"} {
			delete(u.Header(), name)
		}
	case http.StatusNotModified:
		delete(u.Header(), "X-Content-Type-Options") // answer sends status 304 without this field, too
	}
	u.ResponseWriter.WriteHeader(status)
}

// Unwrap returns the underlying writer for http.ResponseController.
func (u unmet) Unwrap() http.ResponseWriter { return u.ResponseWriter }

// selective reports whether a request asks for something other than the whole file (RFC 9110 sections 13 and 14).
// Conditions about dates do not apply, because the file has no date.
func selective(h http.Header) bool {
	return len(h["Range"]) > 0 || len(h["If-None-Match"]) > 0 || len(h["If-Match"]) > 0
}
