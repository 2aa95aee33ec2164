// SPDX-License-Identifier: Apache-2.0

package site

import (
	"iter"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// MaxPath is how many bytes of a request target are compared with patterns. The edge takes a longer one for a path
// that is blocked, if any is to the crawler; pages under it carry what the policy says of any path.
const MaxPath = 16 << 10

// target is what a request may be for: each of the hosts with each of the paths, and each of these without letter
// case. What holds for one of them holds for the request.
type target struct {
	host  string
	other string // another host that host may stand for, or ""
	path  string // what was sent, in normal form
	more  []string
	folds bool // letter case may matter
	long  bool // over MaxPath, or it has more readings; then the paths are not all
	cut   bool // long, and not only because of the query
}

// projection is a policy in the two ways in which a path is compared with it.
type projection struct {
	exact  *policy.Policy // with regard to letter case, as RFC 9309 says
	folded *policy.Policy // without, as Caddy's path matchers and many applications do; see policy.Folded
}

// targetOf reads the host and the target of a request as it was sent, in every way in which Caddy and the servers
// behind it may. It does not allocate for ordinary requests.
func (p projection) targetOf(host, path string) target {
	t := target{host: host}
	if p.exact.HasHosts() {
		t.other, _ = policy.OtherHost(host)
	}
	if len(path) > MaxPath {
		path = path[:MaxPath]
		t.long, t.cut = true, strings.IndexByte(path, '?') < 0
	}
	var buf [1]string
	all, complete := pathpattern.Readings(buf[:0], path)
	t.path = all[0]
	if len(all) > 1 {
		t.more = slices.Clone(all[1:])
	}
	if !complete {
		t.long, t.cut = true, true
	}
	t.folds = p.exact != p.folded || pathpattern.Fold(t.path) != t.path
	return t
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
			if q.Path = pathpattern.Fold(q.Path); !yield(reader{p.folded, true}, q) {
				return
			}
		}
	}
}

func (t target) queries(q policy.Query) iter.Seq[policy.Query] {
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

// hosts yields the hosts that the target may be for.
func (t target) hosts(yield func(string) bool) {
	if yield(t.host) && t.other != "" {
		yield(t.other)
	}
}

// open reports whether a target is open to every crawler, in whichever way it is read. Letter case counts.
func (s *Site) open(t target) bool {
	if t.cut || !s.opens(t.host, t.path) {
		return false
	}
	for _, path := range t.more {
		if !s.opens(t.host, path) {
			return false
		}
	}
	return true
}

func (s *Site) opens(host, path string) bool {
	name, _, _ := strings.Cut(path, "?")
	return name == "/robots.txt" || strings.HasPrefix(name, "/.well-known/") ||
		s.File.Spec.Publish.RSL != "" && name == s.File.Spec.Publish.RSL ||
		s.license.path != "" && name == s.license.path && (s.license.host == "" || policy.NormalizeHost(host) == s.license.host)
}
