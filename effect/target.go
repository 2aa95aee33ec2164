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

// MaxPath is the maximum length in bytes of a request target. Only targets up to this length are compared with
// patterns. A longer target is blocked if the policy blocks the crawler on at least one path. Likewise, the headers and
// meta tags of the response have every rule that the policy has for at least one path.
const MaxPath = 16 << 10

// Target holds the host and the path of a request, with all hosts and paths that Caddy and the servers behind it may
// understand the request to mean. A rule that applies to one of them applies to the request. A Target does not depend
// on a policy, so that a request is parsed only once for all policies.
type Target struct {
	Host string // the host, unchanged from the request
	Path string // the path with its query, unchanged from the request

	Other  string   // the result of policy.OtherHost, or ""
	Normal string   // Path in normal form
	Folded string   // Normal in lower case
	More   []string // the other paths that servers may take Path to be, in normal form
	Long   bool     // Path is longer than MaxPath or has too many readings, so More does not have all paths
	name   string   // Normal without its query
	cut    bool     // Long is true, and not only because of the query
}

// NewTarget returns the Target for the unchanged host and path of a request. For ordinary requests, it does not
// allocate memory.
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

// PathOf returns the path and query of a request target, for [NewTarget]. u is the same target, parsed as a URL.
// PathOf drops the scheme and host of targets in absolute form and of CONNECT requests. If such a target does not
// have a path, it returns "/". ok is false if the target has an opaque part, such as "x:http://host/path". net/http
// forwards such a target unchanged, and the next server may take any host and path from it.
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

// Projection holds two forms of a policy: one for exact paths, and one for paths in lower case.
type Projection struct {
	Exact  *policy.Policy // compares paths with letter case, like RFC 9309
	Folded *policy.Policy // compares paths in lower case, like Caddy's path matchers; see policy.Policy.Folded
}

// PolicyTarget is a Target for a certain policy. Its field Other is empty if the policy does not have rules for single
// hosts.
type PolicyTarget struct {
	Target

	Folds bool // the decision may depend on letter case
}

// Read returns t as a target for the policy of p.
func (p Projection) Read(t *Target) PolicyTarget {
	read := PolicyTarget{*t, p.Exact != p.Folded || t.Folded != t.Normal}
	if !p.Exact.HasHosts() {
		read.Other = ""
	}
	return read
}

// TargetOf returns the target for the policy of p, made from the unchanged host and path of a request.
func (p Projection) TargetOf(host, path string) PolicyTarget {
	t := NewTarget(host, path)
	return p.Read(&t)
}

// Reader is a policy that answers one of the queries that Queries yields.
type Reader struct {
	*policy.Policy

	AnyCase bool // the policy and the query are in lower case
}

// Queries yields the queries about a target, each with the policy that answers it. The queries with exact paths come
// before the queries in lower case. Restrictions from all these answers apply to the request.
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

// folded returns the path in lower case.
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

// Open reports whether every crawler may always fetch a target. That is the case if each path of the target is in
// /.well-known/, or is robots.txt, the license or another document with the rules. Letter case matters.
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
