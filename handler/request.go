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

// request is a request with everything found out about it. It lives on the stack of serve, because
// most requests are by browsers and must not cost anything.
type request struct {
	*http.Request
	h        *Handler
	w        http.ResponseWriter
	next     upstream.Next
	check    *check // not nil: another server has received it, and answers it
	target   site.Target
	snapshot *source.Snapshot

	judgment
	answered
}

// isRobots reports whether the request is for a robots.txt that is served here.
func (q *request) isRobots() bool {
	return q.h.robots != nil && q.check == nil && q.Method != http.MethodConnect && q.target.Name() == "/robots.txt"
}

// client is a crawler that a request may be from.
type client = identity.Client[policy.CrawlerID]

// ask finds out who sent the request, and for which purposes. There are no clients unless it is from a crawler that the
// policy knows.
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
	judgedVar   = "robots_policy.evaluated" // the edge has enforced the policy
	limitedVar  = "robots_policy.limited"   // []countedLimits: it has been counted
	recordedVar = "robots_policy.recorded"  // it is being recorded
)

// note sets a variable of the request, and reports whether it was not set before.
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

// isFirst reports whether the policy is still to be enforced on the request. Error
// routes handle a request that was judged before the error, unless the error came
// first.
func (q *request) isFirst() bool {
	return q.note(judgedVar) || !q.h.Server.InErrorRoute(q.Request)
}
