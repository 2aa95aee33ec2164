// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"net/http"
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/handler/upstream"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// request holds a request and all facts known about it. It stays on the stack of serve, because most requests come from
// browsers and must not cost an allocation.
type request struct {
	*http.Request
	h        *Handler
	w        http.ResponseWriter
	next     upstream.Next
	check    *check // not nil if another server received the request and will answer it
	target   site.Target
	snapshot *source.Snapshot

	judgment
	answered
}

// isRobots reports whether the request is for a robots.txt that this handler serves.
func (q *request) isRobots() bool {
	return q.h.robots != nil && q.check == nil && q.Method != http.MethodConnect && q.target.Name() == "/robots.txt"
}

// client is a crawler that a request may come from.
type client = identity.Client[policy.CrawlerID]

// ask returns the crawlers that may have sent the request, and the purposes that the request states. If the policy does
// not know any of these crawlers, ask returns neither clients nor purposes.
func (q *request) ask(clients []client) (_ []client, purposes []string) {
	s := q.snapshot.Site
	var buf [4]policy.CrawlerID
	named := s.RecognizeAll(buf[:0], q.Header["User-Agent"])
	clients, card := identity.Ask[policy.CrawlerID](q.h.Verifier, identity.Request{Request: q.Request, Server: q.h.Server, Target: q.target.Path}, s, named, clients)
	if len(clients) == 0 {
		return nil, nil
	}
	says := q.Header["User-Agent"]
	if card.Purpose != "" {
		says = append(slices.Clip(says), card.Purpose)
	}
	return clients, s.Purposes(says)
}

// Variables of a request.
const (
	judgedVar   = "robots_policy.evaluated" // a handler has enforced the policy
	limitedVar  = "robots_policy.limited"   // []countedLimits: the policies whose rate limits have counted the request
	recordedVar = "robots_policy.recorded"  // a handler records the request
)

// note sets a variable of the request. It reports whether the variable was unset.
func (q *request) note(name string) bool {
	vars := q.h.Server.Vars(q.Request)
	if vars[name] != nil {
		return false
	}
	if vars != nil {
		vars[name] = true
	}
	return true
}

// isFirst reports whether the policy must still be enforced on the request. It returns false in an error route if
// the policy was enforced before the error.
func (q *request) isFirst() bool {
	return q.note(judgedVar) || !q.h.Server.InErrorRoute(q.Request)
}
