// SPDX-License-Identifier: Apache-2.0

package acap

import (
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// unready reports whether a permission of the usage has qualifiers that the document
// calls not ready (sections 2.5.5.2.2 and 2.5.5.2.5).
func (s *fieldSolver) unready(quals string) bool {
	if s.usage != policy.Present && !s.usage.IsPresentation() || s.p.Spec().Publish.ActionRequests == policy.On {
		return false
	}
	return slices.ContainsFunc(strings.Fields(quals), func(text string) bool { return strings.HasPrefix(text, "must-") })
}

// prohibitUnready makes prohibitions of permissions that no reader is to be expected
// to understand: without the qualifier they would permit too much.
func (s *fieldSolver) prohibitUnready() {
	for i := range s.claims {
		c := &s.claims[i]
		if c.gone || !c.allow || !c.ambiguous && !s.unready(c.quals) {
			continue
		}
		if c.allow, c.quals = false, ""; c.ambiguous {
			continue // verify reports it
		}
		for _, f := range c.from {
			if f.Statement.Qualifiers != nil {
				s.warn(f.Statement, "acap-not-ready", fmt.Sprintf("ACAP 1.0 calls the must-… qualifiers of %s not ready, so that its records disallow %q instead; write \"action-requests: on\" under publish if crawlers that you know read them",
					f.Statement.Usage, f.Statement.Pattern))
			}
		}
	}
}

// checkQualifiers reports what the records cannot say of a permission.
func (w *writer) checkQualifiers(c *policy.Class, st *conditional, u policy.Usage) {
	q := st.Statement.Qualifiers
	if q == nil {
		return
	}
	if len(q.ProhibitedModification) > 0 && !slices.Contains(policy.QualifiersOf(u), policy.QualifierProhibitedModification) {
		w.warn(st.Statement, "acap-modification", fmt.Sprintf("ACAP knows prohibited-modification for %s, but not for %s, which has a rule of its own: for %s the records say %q without it",
			st.Statement.Usage, u, u, st.Statement.Pattern))
	}
	for _, resource := range []string{q.MustUseResource, q.MustIncludeResource} {
		host, path := w.resource(resource)
		if path == "" || !w.serves(host) {
			continue
		}
		query := policy.Query{Host: host, Path: path, Usage: policy.Crawl, Identity: policy.Verified}
		if len(c.Crawlers) > 0 {
			query.Crawler = c.Crawlers[0]
		}
		if w.p.Decide(query).Verdict == policy.Disallowed {
			w.warn(st.Statement, "acap-resource-closed", fmt.Sprintf("crawlers must be able to fetch %q to obey this (ACAP sections 2.5.3.2 and 2.5.5.2), and they may not crawl it; allow crawl of %q", resource, path))
		}
	}
}

// resource is the host and path of a resource that a qualifier names, "" for one
// within the page.
func (w *writer) resource(uri string) (host, path string) {
	for _, role := range []string{"the-acap:credit:", "the-acap:link:"} {
		uri = strings.TrimPrefix(uri, role)
	}
	if host, path = splitURL(uri, w.host); !strings.HasPrefix(path, "/") {
		return "", ""
	}
	return host, path
}

// qualifiersOf prints limits that hold together for a usage. What limits present loses
// what section 2.5 does not define for what is derived from it, or no reader would take
// it for a permission at all. It fails where two limits of one kind hold of which none
// is the stricter, because a qualifier stands once (section 2.5.5.2).
func qualifiersOf(limits policy.Limits, u policy.Usage) (text string, ok bool) {
	takes := policy.QualifiersOf(u)
	seen := map[policy.QualifierName]bool{}
	texts := slices.DeleteFunc(slices.Clone(limits.Strings()), func(text string) bool {
		name, _, _ := strings.Cut(text, "=")
		return !slices.Contains(takes, policy.QualifierName(name))
	})
	for _, text := range texts {
		n, _, _ := strings.Cut(text, "=")
		if name := policy.QualifierName(n); name != policy.QualifierProhibitedModification {
			if seen[name] {
				return "", false
			}
			seen[name] = true
		}
	}
	return strings.Join(texts, " "), true
}
