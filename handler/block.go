// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
)

// noindexValues marks the block itself.
var noindexValues, _ = robotstag.Build(
	[]robotstag.Member{{Token: robotstag.Everyone, Rules: robotsrule.Of("noindex")}}, robotstag.Usage{}, time.Time{})

// messageType is text/plain in a spelling that Caddy's templates does not take for
// it, as it compares types byte for byte: templates around this handler would
// execute what stands in the message. Types are case-insensitive (RFC 9110 section
// 8.3.1).
const messageType = "Text/Plain; charset=utf-8"

// refuse blocks a request as the policy's enforcement says: with a response, like
// Caddy's respond directive, or with an error for the error routes. Caches must not
// show the block to people, so it is never stored.
func (q *request) refuse(e *policy.Enforcement) error {
	status := cmp.Or(e.Status, http.StatusForbidden)
	if e.Close {
		if !q.check {
			panic(http.ErrAbortHandler)
		}
		status = statusClose
	}
	if e.RetryAfter > 0 {
		q.w.Header().Set("Retry-After", strconv.Itoa(wholeSeconds(e.RetryAfter)))
	}
	robotstag.Apply(q.w.Header(), noindexValues, q.h.Headers&^robotstag.ContentUsage)
	return q.writeRefusal(status, e.Message)
}

// tooMany answers a request that is over a limit (RFC 6585 section 4). It says nothing
// about indexing: the page is not gone.
func (q *request) tooMany() error {
	seconds := wholeSeconds(q.wait)
	q.w.Header().Set("Retry-After", strconv.Itoa(seconds))
	return q.writeRefusal(http.StatusTooManyRequests, "Too many requests by this crawler; try again in "+english.Count(seconds, "second"))
}

// writeRefusal sends a status and a message, or returns them as an error for the error
// routes.
func (q *request) writeRefusal(status int, message string) error {
	header := q.w.Header()
	header["Cache-Control"] = []string{"no-store"}
	if q.h.RaiseRefusals {
		return &Error{status, refusalError(message)}
	}
	header["Content-Type"] = nil // nothing to sniff
	if message != "" {
		header.Set("Content-Type", messageType)
	}
	q.w.WriteHeader(status)
	if message != "" && q.Method != http.MethodHead {
		_, _ = io.WriteString(q.w, message+"\n") // the client may have left
	}
	return nil
}

// wholeSeconds rounds up, for Retry-After.
func wholeSeconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

var errRefused = errors.New("the site's policy does not allow this crawler here")

// refusalError returns the error that {err.message} shows. Error routes may put it
// into a page that Caddy's templates executes, so it contains no template action.
func refusalError(message string) error {
	if message == "" {
		return errRefused
	}
	for strings.Contains(message, "{{") {
		message = strings.ReplaceAll(message, "{{", "{ {")
	}
	return errors.New(message)
}
