// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"iter"
	"net/url"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/channels"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// MaxPath is the number of bytes of a request target that are compared with patterns. A longer one is blocked if any
// path is blocked for the crawler, and its pages carry the policy's rules for any path.
const MaxPath = 16 << 10

// Target is the host and the path of a request, in every way in which Caddy and the servers behind it may read them.
// A rule that applies to one of them applies to the request. It depends on no policy, so that a request is read once
// for all that it is compared with.
type Target struct {
	Host string // as sent
	Path string // with the query, as sent

	Other  string   // another host that Host may stand for, or ""
	Normal string   // Path in normal form
	Folded string   // Normal without letter case
	More   []string // further readings of Path, in normal form
	Long   bool     // over MaxPath, or it has more readings; then the paths are not all
	name   string   // Normal without its query
	cut    bool     // long, and not only because of the query
}

// NewTarget reads the host and the target of a request as it was sent. It does not allocate for ordinary requests.
func NewTarget(host, path string) Target {
	t := Target{Host: host, Path: path}
	t.Other, _ = policy.OtherHost(host)
	if len(path) > MaxPath {
		path = path[:MaxPath]
		t.Long, t.cut = true, strings.IndexByte(path, '?') < 0
	}
	var buf [1]string
	all, complete := pathpattern.Readings(buf[:0], path)
	t.Normal, t.Folded = all[0], pathpattern.Fold(all[0])
	t.name, _, _ = strings.Cut(t.Normal, "?")
	if len(all) > 1 {
		t.More = slices.Clone(all[1:])
	}
	if !complete {
		t.Long, t.cut = true, true
	}
	return t
}

// PathOf returns the path and query of a request target, for [NewTarget]. u is the target as a URL. It drops the scheme
// and the host of a target in absolute form, and of one of CONNECT; without a path it returns "/". It is not ok if the
// target has an opaque part, such as "x:http://host/path". net/http passes that on unchanged, and a server that
// receives it may read any host and path in it.
func PathOf(target string, u *url.URL) (path string, ok bool) {
	if strings.HasPrefix(target, "/") {
		return target, true
	}
	return pathpattern.Target(u), u.Opaque == ""
}

// Name returns the path without its query, in normal form.
func (t *Target) Name() string { return t.name }

// WithoutQuery returns the target without its query.
func (t *Target) WithoutQuery() Target {
	path, _, _ := strings.Cut(t.Path, "?")
	return NewTarget(t.Host, path)
}

// Projection holds a policy in two forms: for paths with and without letter case.
type Projection struct {
	Exact  *policy.Policy // with regard to letter case, as in RFC 9309
	Folded *policy.Policy // without, like Caddy's path matchers and many applications; see policy.Folded
}

// PolicyTarget is a Target with the forms of its paths that a policy compares.
type PolicyTarget struct {
	Target

	Folds bool // letter case may matter
}

// Read returns a target as the policy reads it.
func (p Projection) Read(t *Target) PolicyTarget {
	read := PolicyTarget{*t, p.Exact != p.Folded || t.Folded != t.Normal}
	if !p.Exact.HasHosts() {
		read.Other = ""
	}
	return read
}

// TargetOf reads a host and a path as a client sends them.
func (p Projection) TargetOf(host, path string) PolicyTarget {
	t := NewTarget(host, path)
	return p.Read(&t)
}

// Reader is a policy with the way in which it compares a path.
type Reader struct {
	*policy.Policy

	AnyCase bool // without regard to letter case
}

// Queries yields the questions about a target and the policy that answers them, first with regard to letter case. A
// request is restricted by each of the answers.
func (p Projection) Queries(t PolicyTarget, q policy.Query) iter.Seq2[Reader, policy.Query] {
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
			if q.Path = t.folded(q.Path); !yield(Reader{p.Folded, true}, q) {
				return
			}
		}
	}
}

func (t PolicyTarget) queries(q policy.Query) iter.Seq[policy.Query] {
	return func(yield func(policy.Query) bool) {
		for q.Host = range t.Hosts {
			if q.Path = t.Normal; !yield(q) {
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

// folded returns the path without letter case.
func (t *PolicyTarget) folded(path string) string {
	if path == t.Normal {
		return t.Folded
	}
	return pathpattern.Fold(path)
}

// Hosts yields the hosts that the target may be for.
func (t PolicyTarget) Hosts(yield func(string) bool) {
	if yield(t.Host) && t.Other != "" {
		yield(t.Other)
	}
}

// Open reports whether a target is open to every crawler in each of its readings. Letter case matters.
func (e *Engine) Open(t PolicyTarget) bool {
	if t.cut || !e.opens(t.Host, t.name) {
		return false
	}
	for _, path := range t.More {
		if name, _, _ := strings.Cut(path, "?"); !e.opens(t.Host, name) {
			return false
		}
	}
	return true
}

func (e *Engine) opens(host, name string) bool {
	return name == "/robots.txt" || strings.HasPrefix(name, "/.well-known/") ||
		channels.At(&e.Policy.Spec().Publish, name) != nil ||
		e.license.path != "" && name == e.license.path && (e.license.host == "" || policy.NormalizeHost(host) == e.license.host)
}
