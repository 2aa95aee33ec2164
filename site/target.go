// SPDX-License-Identifier: Apache-2.0

package site

import (
	"iter"
	"net/url"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// MaxPath is how many bytes of a request target are compared with patterns. The edge takes a longer one for a path
// that is blocked, if any is to the crawler; pages under it carry what the policy says of any path.
const MaxPath = 16 << 10

// Target is what a request is for: a host, and a path with its query, in every way in which Caddy and the servers behind
// it may read them. What holds for one of them holds for the request. It depends on no policy, so that a request is read
// once for all that it is compared with.
type Target struct {
	Host string // as sent
	Path string // with the query, as sent

	other string // another host that Host may stand for, or ""
	path  string // what was sent, in normal form
	name  string // path without its query
	fold  string // path without letter case
	more  []string
	long  bool // over MaxPath, or it has more readings; then the paths are not all
	cut   bool // long, and not only because of the query
}

// NewTarget reads the host and the target of a request as it was sent. It does not allocate for ordinary requests.
func NewTarget(host, path string) Target {
	t := Target{Host: host, Path: path}
	t.other, _ = policy.OtherHost(host)
	if len(path) > MaxPath {
		path = path[:MaxPath]
		t.long, t.cut = true, strings.IndexByte(path, '?') < 0
	}
	var buf [1]string
	all, complete := pathpattern.Readings(buf[:0], path)
	t.path, t.fold = all[0], pathpattern.Fold(all[0])
	t.name, _, _ = strings.Cut(t.path, "?")
	if len(all) > 1 {
		t.more = slices.Clone(all[1:])
	}
	if !complete {
		t.long, t.cut = true, true
	}
	return t
}

// PathOf returns the path and query of a request target, for [NewTarget]; u is the target as a URL. Of a target in
// absolute form, and of one of CONNECT, the scheme and the host are dropped; without a path it is "/". It is not ok if it
// has an opaque part, such as "x:http://host/path": net/http passes that on as it is, and a server that is sent it may read
// any host and path in it.
func PathOf(target string, u *url.URL) (path string, ok bool) {
	if strings.HasPrefix(target, "/") {
		return target, true
	}
	return pathpattern.Target(u), u.Opaque == ""
}

// Name is the path without its query, in normal form.
func (t *Target) Name() string { return t.name }

// WithoutQuery is the target without its query.
func (t *Target) WithoutQuery() Target {
	path, _, _ := strings.Cut(t.Path, "?")
	return NewTarget(t.Host, path)
}

// projection is a policy in the two ways in which a path is compared with it.
type projection struct {
	exact  *policy.Policy // with regard to letter case, as RFC 9309 says
	folded *policy.Policy // without, as Caddy's path matchers and many applications do; see policy.Folded
}

// target is a Target as a policy reads it.
type target struct {
	Target
	folds bool // letter case may matter
}

func (p projection) read(t *Target) target {
	read := target{*t, p.exact != p.folded || t.fold != t.path}
	if !p.exact.HasHosts() {
		read.other = ""
	}
	return read
}

func (p projection) targetOf(host, path string) target {
	t := NewTarget(host, path)
	return p.read(&t)
}

// reader is a policy and how a path is compared with it.
type reader struct {
	*policy.Policy
	anyCase bool // without regard to letter case
}

// queries yields what is asked about a target and in which policy, first with regard
// to letter case. A request is restricted by each of the answers.
func (p projection) queries(t target, q policy.Query) iter.Seq2[reader, policy.Query] {
	return func(yield func(reader, policy.Query) bool) {
		for q := range t.queries(q) {
			if !yield(reader{p.exact, false}, q) {
				return
			}
		}
		if !t.folds {
			return
		}
		for q := range t.queries(q) {
			if q.Path = t.folded(q.Path); !yield(reader{p.folded, true}, q) {
				return
			}
		}
	}
}

func (t Target) queries(q policy.Query) iter.Seq[policy.Query] {
	return func(yield func(policy.Query) bool) {
		for q.Host = range t.hosts {
			if q.Path = t.path; !yield(q) {
				return
			}
			for _, q.Path = range t.more {
				if !yield(q) {
					return
				}
			}
		}
	}
}

// folded is one of the paths without letter case.
func (t Target) folded(path string) string {
	if path == t.path {
		return t.fold
	}
	return pathpattern.Fold(path)
}

// hosts yields the hosts that the target may be for.
func (t Target) hosts(yield func(string) bool) {
	if yield(t.Host) && t.other != "" {
		yield(t.other)
	}
}

// open reports whether a target is open to every crawler, in whichever way it is read. Letter case counts.
func (s *Site) open(t target) bool {
	if t.cut || !s.opens(t.Host, t.name) {
		return false
	}
	for _, path := range t.more {
		if name, _, _ := strings.Cut(path, "?"); !s.opens(t.Host, name) {
			return false
		}
	}
	return true
}

func (s *Site) opens(host, name string) bool {
	return name == "/robots.txt" || strings.HasPrefix(name, "/.well-known/") ||
		s.File.Spec.Publish.RSL != "" && name == s.File.Spec.Publish.RSL ||
		s.license.path != "" && name == s.license.path && (s.license.host == "" || policy.NormalizeHost(host) == s.license.host)
}
