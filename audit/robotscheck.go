// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/robotspolicy/caddy-robots-policy/internal/rfc9309"
)

// robotsURL returns the address of the site's robots.txt.
func (a *auditor) robotsURL() *url.URL {
	return &url.URL{Scheme: a.base.Scheme, Host: a.base.Host, Path: "/robots.txt"}
}

// robotsTxt fetches and checks robots.txt. If the response does not allow any crawling, a.rules remains nil.
func (a *auditor) robotsTxt(ctx context.Context) error {
	at := a.robotsURL()
	r := a.fetch.get(ctx, at, a.own)
	a.robots = r
	info := &a.report.RobotsTxt
	info.Status, info.Redirects, info.Cached = r.status, r.redirects, r.cached()
	if r.err != nil {
		info.Error = r.err.Error()
	}
	if dial := (*net.OpError)(nil); len(r.redirects) == 0 && errors.As(r.err, &dial) && dial.Op == "dial" {
		return fmt.Errorf("connecting to %s failed: %w; check the address, and that the site is up", r.final.Host, dial.Err)
	}
	if len(r.redirects) == 0 && errors.Is(r.err, http.ErrSchemeMismatch) {
		return fmt.Errorf("%s supports http:// but not https://; write http://%s", r.final.Host, r.final.Host)
	}
	f := func(code, message, fix string) { a.add(finding(code, at.String(), "", message, fix)) }
	switch {
	case r.err == errTooManyRedirects:
		f("robots-redirect", "robots.txt redirects more than five times. In this case, crawlers give up, and treat the whole site as allowed (RFC 9309 section 2.3.1.2)", "answer requests for /robots.txt on this host directly, without a redirect")
		a.rules = readRobots(nil, nil)
		return nil
	case r.err != nil || r.status >= 500 || r.status == http.StatusTooManyRequests:
		f("robots-unreachable", "robots.txt cannot be fetched ("+r.outcome()+"). Crawlers treat the whole site as disallowed until they can fetch robots.txt (RFC 9309 section 2.3.1.4). The audit stops here", "answer requests for /robots.txt with status 200, or with 404 if the site has no robots.txt")
		return nil
	case r.status == http.StatusNotFound || r.status == http.StatusGone:
		missing := finding("robots-missing", at.String(), "", "there is no robots.txt ("+r.outcome()+"): crawlers may fetch everything", "")
		if a.o.Policy != nil {
			missing = missing.as(Error)
			missing.Fix = "let requests for /robots.txt reach the server that has the policy"
		}
		a.add(missing)
		a.rules = readRobots(nil, nil)
		return nil
	case !r.ok():
		f("robots-forbidden", "the response for robots.txt is "+r.outcome()+". Crawlers treat this like a site without rules, and fetch everything (RFC 9309 section 2.3.1.3)", "let everyone read /robots.txt, including crawlers that you block from other pages")
		a.rules = readRobots(nil, nil)
		return nil
	}
	info.ContentType, info.Bytes = r.header.Get("Content-Type"), len(r.body)
	a.rules = a.readRobots(r.body)
	a.keepDelay(a.rules)
	readable := a.robotsResponse(r)
	if r.looksLikeHTML() {
		return nil
	}
	if readable {
		a.robotsLines()
	}
	a.robotsFreshness(ctx)
	return nil
}

// robotsResponse checks the HTTP response for robots.txt. readable reports whether the body is text.
func (a *auditor) robotsResponse(r *response) (readable bool) {
	at := a.robotsURL().String()
	if n := len(r.redirects); n > 0 && r.final.Host != a.base.Host {
		a.add(finding("robots-redirect", at, "", "robots.txt redirects to another host: "+r.final.String()+". Crawlers follow the redirect, and obey rules that were written for another site", "answer requests for /robots.txt on this host directly, without a redirect"))
	} else if n > 0 && r.final.Path != "/robots.txt" {
		a.add(finding("robots-redirect", at, "", "robots.txt redirects to "+r.final.String(), "answer requests for /robots.txt directly, without a redirect"))
	}
	switch {
	case r.looksLikeHTML():
		a.add(finding("robots-html", at, "", "there is a web page at the address of robots.txt; crawlers find no rules in it, and fetch everything", "serve the rules as text/plain at /robots.txt, or answer 404"))
		return false
	case r.mediaType() != "text/plain":
		what := fmt.Sprintf("the content type of robots.txt is %q", r.header.Get("Content-Type"))
		if r.header.Get("Content-Type") == "" {
			what = "robots.txt has no content type"
		}
		a.add(finding("robots-content-type", at, "", what+"; RFC 9309 section 2.3 requires text/plain, and some crawlers do not read other types", "send Content-Type: text/plain; charset=utf-8"))
	}
	if len(r.body) > rfc9309.Limit || r.truncated {
		line := 1 + bytes.Count(r.body[:min(len(r.body), rfc9309.Limit)], []byte("\n"))
		a.add(finding("robots-too-large", at, "", fmt.Sprintf("robots.txt is longer than 500 KiB: crawlers may stop at line %d (RFC 9309 section 2.5)", line), "shorten it by replacing lists of pages with patterns"))
	}
	if !utf8.Valid(r.body) || bytes.HasPrefix(r.body, []byte("\xff\xfe")) || bytes.HasPrefix(r.body, []byte("\xfe\xff")) || bytes.IndexByte(r.body, 0) >= 0 {
		a.add(finding("robots-encoding", at, "", "robots.txt is not UTF-8, which RFC 9309 section 2.3 requires: crawlers misread some or all of its lines", "save it as UTF-8"))
		return false
	}
	return true
}

// readRobots parses a robots.txt. It also recognizes names of known crawlers that are not valid product tokens.
func (a *auditor) readRobots(data []byte) *robotsTxt {
	return readRobots(data, func(name string) bool { _, ok := a.known.Lookup(name); return ok })
}

func (a *auditor) robotsLines() {
	at := a.robotsURL().String()
	if ps := a.rules.problems; len(ps) > 0 {
		a.add(finding("robots-syntax", at, "", "crawlers skip or misread "+describeLines(ps), "correct or delete the lines"))
	}
	if ps := a.rules.unusual; len(ps) > 0 {
		a.add(finding("robots-lighthouse", at, "", "Lighthouse and PageSpeed report "+describeLines(ps)+"; crawlers ignore such lines", "no change is needed; delete the lines if you do not want these tools to report them"))
	}
}

func describeLines(ps []lineProblem) string {
	s := fmt.Sprintf("line %d, which %s: %s", ps[0].number, ps[0].why, shorten(ps[0].line))
	if n := len(ps) - 1; n > 0 {
		s += fmt.Sprintf(" (and %d more)", n)
	}
	return s
}

func shorten(s string) string {
	const most = 80
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strconv.Quote(s)
}

// robotsFreshness compares robots.txt with the policy. It also requests robots.txt again with a URL that bypasses
// caches, and compares both responses.
func (a *auditor) robotsFreshness(ctx context.Context) {
	at := a.robotsURL()
	fresh := a.fetch.get(ctx, a.probe(at), a.own)
	differs := fresh.ok() && !fresh.looksLikeHTML() && !bytes.Equal(fresh.body, a.robots.body)
	if differs {
		a.add(finding("robots-stale", at.String(), "", "a cache serves an old robots.txt"+because(a.robots.cached())+": a request with a query bypasses the cache and gets a different robots.txt", "clear the cache for /robots.txt, and let it respect Cache-Control"))
	} else if age, err := strconv.Atoi(a.robots.header.Get("Age")); err == nil && age > 24*60*60 {
		a.add(finding("robots-stale", at.String(), "", fmt.Sprintf("a cache serves a robots.txt that is %d hours old; RFC 9309 section 2.4 allows 24", age/3600), "let the cache respect Cache-Control"))
	}
	if a.o.Policy == nil {
		return
	}
	found, same := a.compareRobots(a.robots.body)
	if differs {
		if same || found.Severity != Error {
			return
		}
		found, same = a.compareRobots(fresh.body) // the difference may come from an old version in a cache
	}
	if !same {
		a.add(found)
	}
}

func because(evidence string) string {
	if evidence == "" {
		return ""
	}
	return " (" + evidence + ")"
}
