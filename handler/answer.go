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
	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
)

// answered holds facts that become known while a request is answered.
type answered struct {
	document  string // path of the served rights document, or ""
	form      string // how the robots.txt was sent, see activity.Form
	violation bool   // the request violates the robots.txt that the crawler fetched
}

// answer answers a request after the policy has decided about it.
func (q *request) answer() error {
	tunnel := q.Method == http.MethodConnect // a blocked tunnel gets the same answer as a page
	if q.isRobots() {
		q.addHeaders()
		q.serveRobots()
		return nil
	}
	if !tunnel && q.serveDocument() {
		return nil
	}
	enforced := q.decision != nil && q.isFirst()
	if enforced {
		if refused, err := q.enforce(); refused {
			return err
		}
	}
	if tunnel && q.check == nil {
		return q.next.ServeHTTP(q.w, q.Request)
	}
	return q.servePage(enforced)
}

// unavailableRetry is sent as Retry-After while the policy is not available. After that many seconds, a crawler should
// fetch robots.txt again.
const unavailableRetry = 60

// answerUnavailable answers while the handler cannot find out whether the host has a policy. A request for
// robots.txt gets status 503, which tells crawlers to come back later. Other requests are answered as if there were
// no policy.
func (q *request) answerUnavailable() error {
	if !q.isRobots() {
		return q.next.ServeHTTP(q.w, q.Request)
	}
	q.w.Header().Set("Retry-After", strconv.Itoa(unavailableRetry))
	q.w.Header().Set("Cache-Control", "no-store")
	http.Error(q.w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
	return nil
}

// answerOpaque rejects a request whose target has a scheme but no host, with the same status as nginx. It does not
// return an error, because the server's error routes could forward the request.
func answerOpaque(w http.ResponseWriter) {
	http.Error(w, "the request target has a scheme, but no host", http.StatusBadRequest)
}

// enforce counts a request and enforces the policy's decision. refused reports whether the request is blocked. In this
// case, either the response has been written, or err is an error that the server must answer.
func (q *request) enforce() (refused bool, err error) {
	d := q.decision
	q.h.countEdge(d)
	q.checkViolation()
	if d.action <= policy.ModeOff {
		return false, nil
	}
	q.logRefusal()
	if d.action != policy.ModeBlock {
		return false, nil
	}
	if d.limited {
		return true, q.tooMany()
	}
	return true, q.refuse(q.snapshot.Site.File.Spec.Enforcement)
}

// noindexValues keeps the answer to a blocked request out of search results.
var noindexValues, _ = robotstag.Build(
	[]robotstag.Member{{Token: robotstag.Everyone, Rules: robotsrule.Of("noindex")}}, robotstag.Usage{}, time.Time{})

// messageType is text/plain in a spelling that Caddy's "templates" directive does not recognize, because the directive
// compares types byte for byte. If it recognized the type, it would execute the message as a template. Types are
// case-insensitive (RFC 9110 section 8.3.1).
const messageType = "Text/Plain; charset=utf-8"

// refuse blocks a request according to the policy's enforcement settings. By default, it writes a response itself, like
// Caddy's "respond" directive. With RaiseRefusals, it returns an error for the server's error routes. If the policy
// demands it, refuse closes the connection. The response is marked no-store, because caches must not show it to people.
func (q *request) refuse(e policy.Enforcement) error {
	status := cmp.Or(e.Status, http.StatusForbidden)
	if status == http.StatusPaymentRequired {
		terms := q.paymentRequired()
		if !q.h.RaiseRefusals { // an error route writes its own message
			e.Message = strings.TrimSpace(e.Message + "\n" + terms)
		}
	}
	if e.Close {
		if q.check == nil {
			panic(http.ErrAbortHandler)
		}
		status = statusClose
	}
	if e.RetryAfter > 0 {
		q.w.Header().Set("Retry-After", strconv.Itoa(wholeSeconds(e.RetryAfter)))
	}
	robotstag.Apply(q.w.Header(), noindexValues, q.h.Headers)
	return q.writeRefusal(status, e.Message)
}

// tooMany answers a request that exceeds a rate limit (RFC 6585 section 4). In contrast to the answer to a blocked
// request, it does not have the rule noindex, because the crawler may fetch the page later.
func (q *request) tooMany() error {
	seconds := wholeSeconds(q.wait)
	q.w.Header().Set("Retry-After", strconv.Itoa(seconds))
	return q.writeRefusal(http.StatusTooManyRequests, "Too many requests by this crawler; try again in "+english.Count(seconds, "second"))
}

// writeRefusal answers with a status and a message. With the option RaiseRefusals, it returns an error with the status
// and the message instead, for the server's error routes.
func (q *request) writeRefusal(status int, message string) error {
	header := q.w.Header()
	header["Cache-Control"] = []string{"no-store"}
	if q.h.RaiseRefusals {
		return &Error{status, refusalError(message)}
	}
	header["Content-Type"] = nil // keeps net/http from detecting a type
	if message != "" {
		header.Set("Content-Type", messageType)
	}
	q.w.WriteHeader(status)
	if message != "" && q.Method != http.MethodHead {
		_, _ = io.WriteString(q.w, message+"\n") // the client may have left
	}
	return nil
}

// wholeSeconds rounds up to seconds, the unit of Retry-After.
func wholeSeconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

var errRefused = errors.New("the site's policy does not allow this crawler here")

// refusalError returns the error that Caddy's placeholder {err.message} shows. An error route may put the message into
// a page that Caddy's "templates" directive executes. So a space is put into each "{{", which would begin a template
// action.
func refusalError(message string) error {
	if message == "" {
		return errRefused
	}
	for strings.Contains(message, "{{") {
		message = strings.ReplaceAll(message, "{{", "{ {")
	}
	return errors.New(message)
}

// paymentRequired completes a response with status 402 if the policy offers a license. It adds links to the site's
// license and to the licenses that the policy offers. The header field for the price of a single request is the one
// that Cloudflare's pay per crawl uses. paymentRequired returns the terms of the offers, with one offer on each line.
func (q *request) paymentRequired() string {
	header := q.w.Header()
	if license := q.snapshot.Site.License(q.Host); license != nil {
		license.Apply(header)
	}
	var terms []string
	for o := range q.snapshot.Site.Offers(q.query) {
		rights.AddLink(header, "<"+o.URL+`>; rel="license"`)
		if o.Payment == "crawl" && o.Amount != "" && header.Get("Crawler-Price") == "" {
			header.Set("Crawler-Price", o.Currency+" "+o.Amount)
		}
		terms = append(terms, offerTerms(o))
	}
	return strings.Join(terms, "\n")
}

// offerTerms describes an offer, for example "License for train-ai, payment per crawl, USD 0.01, for commercial
// users: URL".
func offerTerms(o *policy.Offer) string {
	text := "License for " + o.Usage.String() + ", payment per " + o.Payment
	switch o.Payment {
	case "purchase", "subscription", "contribution":
		text = "License for " + o.Usage.String() + ", payment by " + o.Payment
	}
	if o.Amount != "" {
		text += ", " + o.Currency + " " + o.Amount
	}
	if len(o.Users) > 0 {
		text += ", for " + strings.Join(o.Users, " and ") + " users"
	}
	return text + ": " + o.URL
}
