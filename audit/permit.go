// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"
)

// closedError is the error for a request that the audit did not send because robots.txt disallows the URL.
type closedError struct {
	at    *url.URL
	rules *robotsTxt // robots.txt of the host; nil if the file could not be fetched
}

func (e *closedError) Error() string {
	if e.rules == nil {
		return "not requested, because the robots.txt of " + e.at.Host + " cannot be fetched"
	}
	return "not requested, because robots.txt disallows it"
}

// errOtherHost is the error of the request for the first page if the page redirects to another host. In that case, the
// audit continues on that host.
var errOtherHost = errors.New("it redirects to another host")

// get requests a page, and follows redirects. Before each request, it checks that the robots.txt of the host allows the
// audit to fetch the URL.
func (a *auditor) get(ctx context.Context, u *url.URL, as agent) *response {
	return a.fetch.follow(ctx, u, as, func(next *url.URL) error {
		if next.Host != a.base.Host && !a.settled && u == a.base {
			return errOtherHost
		}
		return a.permit(ctx, next)
	})
}

// permit returns nil if the robots.txt of the URL's host allows the audit to request the URL.
func (a *auditor) permit(ctx context.Context, u *url.URL) error {
	rules := a.rules
	if u.Host != a.base.Host || u.Scheme != a.base.Scheme {
		rules = a.rulesOf(ctx, u)
	}
	if rules == nil || !rules.decide(reader{names: []string{OwnToken}}, target(u)).Allowed {
		return &closedError{u, rules}
	}
	return nil
}

// rulesOf returns the robots.txt of another host, and fetches the file on the first call. It returns nil if the audit
// must not send requests to that host.
func (a *auditor) rulesOf(ctx context.Context, u *url.URL) *robotsTxt {
	at := url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/robots.txt"}
	if known, ok := a.others[at.String()]; ok {
		return known
	}
	var rules *robotsTxt
	switch r := a.fetch.get(ctx, &at, a.own); {
	case r.ok() && !r.looksLikeHTML():
		rules = a.readRobots(r.body)
		a.keepDelay(rules)
	case r.err == errTooManyRedirects, r.err == nil && r.status < 500 && r.status != http.StatusTooManyRequests:
		rules = readRobots(nil, nil)
	}
	a.others[at.String()] = rules
	return rules
}

// keepDelay increases the time between requests to the Crawl-delay in rules, if that is longer.
func (a *auditor) keepDelay(rules *robotsTxt) {
	a.fetch.interval = max(a.fetch.interval, time.Duration(min(rules.delay(), maxInterval.Seconds())*float64(time.Second)))
}
