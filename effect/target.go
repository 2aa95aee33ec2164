// SPDX-License-Identifier: Apache-2.0

package effect

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

// Target is what a request may be for: each of the hosts with each of the paths, and each of these without letter
// case. What holds for one of them holds for the request.
type Target struct {
	Host  string
	Other string // another host that Host may stand for, or ""
	Path  string // what was sent, in normal form
	More  []string
	Folds bool // letter case may matter
	Long  bool // over MaxPath, or it has more readings; then the paths are not all
	cut   bool // long, and not only because of the query
}

// Projection is a policy in the two ways in which a path is compared with it.
type Projection struct {
	Exact  *policy.Policy // with regard to letter case, as RFC 9309 says
	Folded *policy.Policy // without, as Caddy's path matchers and many applications do; see policy.Folded
}

// TargetOf reads the host and the target of a request as it was sent, in every way in which Caddy and the servers
// behind it may. It does not allocate for ordinary requests.
func (p Projection) TargetOf(host, path string) Target {
	t := Target{Host: host}
	if p.Exact.HasHosts() {
		t.Other, _ = policy.OtherHost(host)
	}
	if len(path) > MaxPath {
		path = path[:MaxPath]
		t.Long, t.cut = true, strings.IndexByte(path, '?') < 0
	}
	var buf [1]string
	all, complete := pathpattern.Readings(buf[:0], path)
	t.Path = all[0]
	if len(all) > 1 {
		t.More = slices.Clone(all[1:])
	}
	if !complete {
		t.Long, t.cut = true, true
	}
	t.Folds = p.Exact != p.Folded || pathpattern.Fold(t.Path) != t.Path
	return t
}

// Reader is a policy and how a path is compared with it.
type Reader struct {
	*policy.Policy

	AnyCase bool // without regard to letter case
}

// Queries yields what is asked about a target and in which policy, first with regard
// to letter case. A request is restricted by each of the answers.
func (p Projection) Queries(t Target, q policy.Query) iter.Seq2[Reader, policy.Query] {
	return func(yield func(Reader, policy.Query) bool) {
		for q := range t.queries(q) {
			if !yield(Reader{p.Exact, false}, q) {
				return
			}
		}
		if !t.Folds {
			return
		}
		for q := range t.queries(q) {
			if q.Path = pathpattern.Fold(q.Path); !yield(Reader{p.Folded, true}, q) {
				return
			}
		}
	}
}

func (t Target) queries(q policy.Query) iter.Seq[policy.Query] {
	return func(yield func(policy.Query) bool) {
		for q.Host = range t.Hosts {
			if q.Path = t.Path; !yield(q) {
				return
			}
			for _, q.Path = range t.More {
				if !yield(q) {
					return
				}
			}
		}
	}
}

// Hosts yields the hosts that the target may be for.
func (t Target) Hosts(yield func(string) bool) {
	if yield(t.Host) && t.Other != "" {
		yield(t.Other)
	}
}

// Open reports whether a target is open to every crawler, in whichever way it is read. Letter case counts.
func (e *Engine) Open(t Target) bool {
	if t.cut || !e.opens(t.Host, t.Path) {
		return false
	}
	for _, path := range t.More {
		if !e.opens(t.Host, path) {
			return false
		}
	}
	return true
}

func (e *Engine) opens(host, path string) bool {
	name, _, _ := strings.Cut(path, "?")
	return name == "/robots.txt" || strings.HasPrefix(name, "/.well-known/") ||
		e.Policy.Spec().Publish.RSL != "" && name == e.Policy.Spec().Publish.RSL ||
		e.license.path != "" && name == e.license.path && (e.license.host == "" || policy.NormalizeHost(host) == e.license.host)
}
