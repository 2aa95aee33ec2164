// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"net/http"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/handler/upstream"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// request is a request with all that is found out about it. It lives on the stack of
// Serve: most requests are by browsers, and must cost nothing.
type request struct {
	*http.Request
	h        *Handler
	w        http.ResponseWriter
	next     upstream.Next
	snapshot *source.Snapshot
	target   string // its path and query, as the client sent them
	robots   bool   // it is for /robots.txt
	check    bool   // another server has received it, and answers it

	visit
}

// visit is what there is to know of a request by a crawler that the policy knows.
type visit struct {
	decision  *Decision // nil for anyone but a known crawler
	several   bool      // it names more crawlers than that of query
	anyCase   bool      // see site.Verdict
	query     policy.Query
	statement *policy.Statement // that decided; nil if none did
	document  string            // the path of a register's document that is served
	violation bool              // of the robots.txt that the crawler has fetched
	audit     bool              // made by the command audit
	wait      time.Duration     // if limited: when a request is possible again
	limitPos  policy.Pos        // if limited: the limit's place in the policy file
}

// answer answers a request that has been evaluated.
func (q *request) answer() error {
	tunnel := q.Method == http.MethodConnect // blocked as any other, as a page would be
	if q.robots {
		q.addHeaders()
		q.serveRobots()
		return nil
	}
	if !tunnel && q.serveRegister() {
		return nil
	}
	enforced := q.decision != nil && q.isFirst()
	if enforced {
		if refused, err := q.enforce(); refused {
			return err
		}
	}
	if tunnel && !q.check {
		return q.next.ServeHTTP(q.w, q.Request)
	}
	return q.servePage(enforced)
}

// Variables of a request.
const (
	evaluatedVar = "robots_policy.evaluated" // the edge has enforced the policy
	limitedVar   = "robots_policy.limited"   // []countedLimits: it has been counted
	recordedVar  = "robots_policy.recorded"  // it is being recorded
	checkVar     = "robots_policy.check"     // another server has received it
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
// routes handle a request that was evaluated before the error, unless the error came
// first.
func (q *request) isFirst() bool {
	return q.note(evaluatedVar) || !q.h.Server.InErrorRoute(q.Request)
}
