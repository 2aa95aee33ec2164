// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"strings"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap/zapcore"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// kind is what requests of crawlers have in common under a policy of which the same
// is counted, logged and told.
type kind struct {
	id       policy.CrawlerID
	identity policy.Identity
	verdict  policy.Verdict
	impostor bool         // what is done is what the policy says about impostors
	action   policy.Mode  // what is done where the policy is against it: its mode, capped by the server's
	rule     *policy.Rule // that decided; nil where none did
}

// visitKind is the kind of a request of a crawler that has got a verdict, on a server
// that does so much at most.
func visitKind(identity policy.Identity, v site.Verdict, most policy.Mode) kind {
	k := kind{id: v.Crawler, identity: identity, verdict: v.Decision.Verdict, impostor: v.Impostor, rule: v.Decision.Rule}
	if v.Refused() {
		k.action = min(v.Mode, most)
	}
	return k
}

// refused reports whether the policy has something against the request, whatever is
// done about it.
func (k *kind) refused() bool { return k.impostor || k.verdict == policy.Disallowed }

// finding is what is counted, logged and told of a kind of requests. It is shared by
// them: but for its counters it does not change.
type finding struct {
	kind
	site         *site.Site
	crawler      policy.Crawler
	reader       string // by which is remembered who has fetched robots.txt
	readerBit    uint64
	placeholders caddy.ReplacerFunc

	robots, edge, headers, page series
}

func newFinding(s *site.Site, k kind) *finding {
	f := &finding{kind: k, site: s, crawler: s.Policy.CrawlerInfo(k.id)}
	f.reader = strings.ToLower(f.crawler.Token)
	f.readerBit = readerBit(f.reader)
	f.placeholders = f.replace
	return f
}

// ruleName is the name of what decided.
func (f *finding) ruleName() string {
	if f.impostor {
		return "enforcement.impostors"
	}
	return f.site.RuleName(f.rule)
}

// findings are those of one policy, with which they go. There is at most one for
// each place, the last that was asked for, so that what is remembered is bounded.
type findings [findingPlaces]atomic.Pointer[finding]

const findingPlaces = 64

// of returns what is found about a kind of requests.
func (fs *findings) of(s *site.Site, k kind) *finding {
	place := &fs[k.place()]
	if f := place.Load(); f != nil && f.kind == k {
		return f
	}
	f := newFinding(s, k)
	place.Store(f)
	return f
}

// place is where among the findings a kind is. Crawlers that stand beside each other
// in the catalogue have different ones.
func (k *kind) place() uint {
	h := uint(k.id) + 16*uint(k.verdict) + 8*uint(k.identity)
	if k.rule != nil {
		h += 5 * uint(k.rule.Pos.Line)
	}
	return h % findingPlaces
}

const placeholderPrefix = "http.robots_policy."

var placeholderNames = []string{"crawler", "operator", "kind", "verified", "decision", "action", "rule"}

// placeholder is the value of one of placeholderNames.
func (f *finding) placeholder(name string) (string, bool) {
	switch name {
	case "crawler":
		return f.crawler.Token, true
	case "operator":
		return f.crawler.Operator, true
	case "kind":
		return f.crawler.Kind, true
	case "verified":
		return f.identity.String(), true
	case "decision":
		return f.verdict.String(), true
	case "action":
		if !f.refused() {
			return "", true
		}
		return f.action.String(), true
	case "rule":
		return f.ruleName(), true
	}
	return "", false
}

// replace answers for the placeholders of a request.
func (f *finding) replace(key string) (any, bool) {
	name, ok := strings.CutPrefix(key, placeholderPrefix)
	if !ok {
		return nil, false
	}
	value, ok := f.placeholder(name)
	return value, ok
}

// nobody answers for requests of no crawler that the policy knows: every
// placeholder is empty. It is the same for all of them, so that they cost
// nothing.
func nobody(key string) (any, bool) {
	name, ok := strings.CutPrefix(key, placeholderPrefix)
	if !ok {
		return nil, false
	}
	for _, n := range placeholderNames {
		if n == name {
			return "", true
		}
	}
	return nil, false
}

// MarshalLogObject writes the fields of an access log's line.
func (f *finding) MarshalLogObject(e zapcore.ObjectEncoder) error {
	for _, name := range placeholderNames {
		if value, _ := f.placeholder(name); value != "" {
			e.AddString(name, value)
		}
	}
	return nil
}
