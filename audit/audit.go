// SPDX-License-Identifier: Apache-2.0

// Package audit examines a website from outside, like a crawler. It fetches robots.txt and a few pages from the public
// address. It shows which rules a crawler finds in each channel, such as robots.txt, headers and meta tags. It also
// reports contradictions between the channels, and between the channels and a policy.
//
// An audit is polite. It obeys the robots.txt rules for its own product token, on each host and at each redirect. It
// sends at most one request a second and identifies itself. It connects to a private address only if the URL itself
// contains that address.
package audit

import (
	"cmp"
	"context"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// Options configures an audit.
type Options struct {
	// Policy is the policy that the site should have. If it is nil, the audit only compares the channels with each
	// other.
	Policy *site.Site
	Merged bool     // true if robots.txt may also contain lines of the upstream's robots.txt
	As     []string // product tokens of crawlers whose User-Agents are also used to request pages
	Pages  int      // maximum number of pages to examine; 0 means DefaultPages
	// Transport sends the requests. If it is nil, the audit uses a transport that connects to a private address only if
	// the URL contains that address.
	Transport http.RoundTripper
	Wait      func(context.Context, time.Duration) error // waits between two requests; the default is Sleep
	Now       func() time.Time                           // returns the current time; the default is time.Now
}

// DefaultPages is the default number of pages to examine: the given page and some pages of the sitemap.
const DefaultPages = 5

// Report is the result of an audit.
type Report struct {
	URL       string     `json:"url"`
	Time      time.Time  `json:"time"`
	Requests  int        `json:"requests"`
	Policy    string     `json:"policy,omitempty"` // name of the policy file
	RobotsTxt RobotsInfo `json:"robots_txt"`
	Pages     []PageInfo `json:"pages"`
	Findings  []Finding  `json:"problems"`
}

// Errors returns the number of errors.
func (r *Report) Errors() int { return r.count(Error) }

func (r *Report) count(s Severity) (n int) {
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// RobotsInfo describes how robots.txt was served.
type RobotsInfo struct {
	Status      int      `json:"status"` // 0 if there was no response
	ContentType string   `json:"content_type,omitempty"`
	Bytes       int      `json:"bytes"`
	Redirects   []string `json:"redirects,omitempty"`
	Cached      string   `json:"cached,omitempty"` // evidence that a cache answered, or ""
	Error       string   `json:"error,omitempty"`
}

// PageInfo describes what one page tells crawlers.
type PageInfo struct {
	URL      string    `json:"url"`
	Readings []Reading `json:"readings"`
}

// Reading holds the rules that one crawler reads in the channels of a page.
type Reading struct {
	Crawler   string `json:"crawler"`    // product token, or "any other crawler"
	RobotsTxt string `json:"robots_txt"` // "may crawl" or "may not crawl", with the line
	Headers   string `json:"headers"`    // robots control rules in the header fields
	Page      string `json:"page"`       // robots control rules in the meta tags
	Usage     string `json:"usage"`      // preferences about AI and search, in the syntax of Content-Usage
	// Status is the status of the response to a request with the crawler's User-Agent. It is empty if the audit did not
	// send such a request.
	Status  string `json:"status"`
	fetched bool   // true if Headers, Page and Usage are known
}

// otherCrawler is the name in the report for all crawlers without their own rules: neither robots.txt nor a header
// field names them.
const otherCrawler = "any other crawler"

// Run audits the site at an address. It returns an error if o.As has an unknown crawler, if Run cannot connect to the
// host, or if ctx ends.
func Run(ctx context.Context, address *url.URL, o Options) (*Report, error) {
	a, err := newAuditor(address, o)
	if err != nil {
		return nil, err
	}
	report, moved, err := a.run(ctx)
	if err != nil || moved == nil {
		return report, err
	}
	// The page is on another host, for example because example.com redirects to www.example.com.
	next, err := newAuditor(moved, o)
	if err != nil {
		return nil, err
	}
	next.fetch.requests, next.fetch.interval, next.settled = a.fetch.requests, a.fetch.interval, true
	if report, _, err = next.run(ctx); report != nil {
		report.Findings = append(report.Findings, finding("other-host", address.String(), "",
			fmt.Sprintf("the page redirects to %s, so the audit examined that site", moved), ""))
	}
	return report, err
}

type auditor struct {
	base     *url.URL
	o        Options
	now      time.Time
	own      agent
	agents   []agent           // a browser and the crawlers of Options.As; empty if Options.As is empty
	known    *crawlers.Catalog // the catalog of the policy, or the built-in one
	fetch    *fetcher
	report   *Report
	robots   *response // robots.txt as sent to the audit's own User-Agent
	rules    *robotsTxt
	others   map[string]*robotsTxt // robots.txt of other hosts, keyed by its URL
	pages    []*page
	refetchs int
	settled  bool // the audit no longer moves to another host
}

type page struct {
	url       *url.URL
	inSitemap bool
	got       map[string]*response
	noindex   []string // crawlers whose noindex was reported
}

func newAuditor(address *url.URL, o Options) (*auditor, error) {
	base := *address
	base.Fragment, base.User = "", nil
	base.Path = cmp.Or(base.Path, "/")
	if o.Pages <= 0 {
		o.Pages = DefaultPages
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	a := &auditor{base: &base, o: o, now: o.Now(), own: agent{Name: OwnToken, userAgent: ownUserAgent}, others: map[string]*robotsTxt{}}
	a.fetch = newFetcher(&base, o)
	a.report = &Report{URL: base.String(), Time: a.now, Findings: []Finding{}, Pages: []PageInfo{}}
	a.known, _ = crawlers.Default() // the built-in catalog is valid
	if o.Policy != nil {
		a.report.Policy, a.known = o.Policy.File.Name, o.Policy.File.Catalog
	}
	for _, name := range o.As {
		c, ok := a.known.Lookup(name)
		if !ok {
			return nil, fmt.Errorf("unknown crawler %q: must be a product token of the catalog or the policy, such as GPTBot", name)
		}
		if len(c.Patterns()) == 0 {
			return nil, fmt.Errorf("%s only exists in robots.txt; no client sends requests with this name", c.Token)
		}
		a.agents = append(a.agents, claimedAgent(c))
	}
	if len(a.agents) > 0 {
		a.agents = append([]agent{browserAgent}, a.agents...)
	}
	return a, nil
}

// run performs the audit. If the page redirects to another host, it returns the new address as moved, and the caller
// must audit that address instead. If ctx ends, all further requests fail immediately, so the individual checks do not
// examine ctx.
func (a *auditor) run(ctx context.Context) (report *Report, moved *url.URL, err error) {
	defer func() { a.report.Requests = a.fetch.requests }()
	if err := a.robotsTxt(ctx); err != nil {
		return nil, nil, cmp.Or(ctx.Err(), err)
	}
	if a.rules != nil { // a.rules is nil if robots.txt does not allow any crawling
		a.getPages(ctx)
		if moved = a.moved(); moved == nil {
			a.checkPages(ctx)
			a.checkAgents(ctx)
			a.listDocuments(ctx)
			a.fillPages()
			sortFindings(a.report.Findings)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err // requests failed only because ctx ended
	}
	if a.rules != nil && a.rules.work < 0 {
		return nil, nil, fmt.Errorf("the site cannot be judged, because %s has too many rules with wildcards", a.robotsURL())
	}
	return a.report, moved, nil
}

// moved returns the address of the first page after redirects if that address is on another host. Otherwise it returns
// nil.
func (a *auditor) moved() *url.URL {
	if len(a.pages) == 0 {
		return nil
	}
	if r := a.pages[0].got[OwnToken]; r.err == errOtherHost {
		return r.final
	}
	return nil
}

// mayFetch reports whether robots.txt allows the product token of the audit to fetch a URL.
func (a *auditor) mayFetch(u *url.URL) bool {
	return a.rules.decide(reader{names: []string{OwnToken}}, target(u)).Allowed
}

// probe adds a query to a URL, so that caches do not have a stored response for the URL.
func (a *auditor) probe(u *url.URL) *url.URL {
	a.refetchs++
	p := *u
	q := OwnToken + "=" + strconv.FormatInt(a.now.UnixNano(), 36) + strconv.Itoa(a.refetchs)
	if p.RawQuery != "" {
		q = p.RawQuery + "&" + q
	}
	p.RawQuery = q
	return &p
}

// maxRefetches limits the requests that bypass caches.
const maxRefetches = 8

// refetch requests a page with a URL that bypasses caches. It returns nil if robots.txt disallows this URL, or after
// maxRefetches requests.
func (a *auditor) refetch(ctx context.Context, p *page, as agent) *response {
	probe := a.probe(p.url)
	if a.refetchs > maxRefetches || !a.mayFetch(probe) {
		return nil
	}
	return a.get(ctx, probe, as)
}

// target returns the part of a URL to compare with patterns in robots.txt.
func target(u *url.URL) string { return u.RequestURI() }

// getPages chooses the pages to examine, and requests them with the audit's own User-Agent.
func (a *auditor) getPages(ctx context.Context) {
	listed := a.sitemapPages(ctx)
	chosen := append([]*page{{url: a.base}}, choosePages(listed, a.base, a.o.Pages-1)...)
	for _, p := range chosen {
		if !a.mayFetch(p.url) {
			if p.inSitemap {
				continue // already reported by sitemapPages
			}
			a.add(finding("not-audited", p.url.String(), "", "robots.txt does not allow the audit to read this page, so its headers and meta tags are unknown",
				"to let the audit read it, add to robots.txt: User-agent: "+OwnToken+" and Allow: /"))
			continue
		}
		p.got = map[string]*response{OwnToken: a.get(ctx, p.url, a.own)}
		a.pages = append(a.pages, p)
	}
	if a.moved() == nil {
		a.samplePages(ctx, listed)
	}
}

func (a *auditor) add(f ...Finding) { a.report.Findings = append(a.report.Findings, f...) }

func (a *auditor) query(crawler policy.CrawlerID, u *url.URL) policy.Query {
	return policy.Query{Crawler: crawler, Host: u.Host, Path: target(u), Usage: policy.Crawl, Now: a.now}
}

// documents lists files for AI crawlers and agents, such as llms.txt, which this project does not publish. If a site
// has one of them, the audit reports a hint, because the file may contradict the policy.
var documents = []struct {
	path  string
	types []string
}{
	{"/llms.txt", []string{"text/plain", "text/markdown"}},
	{"/agents.txt", []string{"text/plain", "text/markdown"}},
	{"/.well-known/agent-permissions.json", []string{"application/json"}},
}

func (a *auditor) listDocuments(ctx context.Context) {
	for _, d := range documents {
		u := *a.base
		u.Path, u.RawPath, u.RawQuery = d.path, "", ""
		if !a.mayFetch(&u) {
			continue
		}
		r := a.get(ctx, &u, a.own)
		if !r.ok() {
			continue
		}
		if media, _, err := mime.ParseMediaType(r.header.Get("Content-Type")); err == nil && slices.Contains(d.types, media) {
			a.add(finding("other-document", u.String(), "", fmt.Sprintf("the site has %s, which robots_policy does not publish", d.path),
				"check that it agrees with the policy"))
		}
	}
}
