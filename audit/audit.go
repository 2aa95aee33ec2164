// SPDX-License-Identifier: Apache-2.0

// Package audit looks at a website from outside, as crawlers do. It fetches robots.txt and a
// few pages through the public address, and shows what each channel tells a crawler. It reports
// contradictions between the channels, and between them and a policy.
//
// An audit is polite. It obeys robots.txt under its own product token, on each host and at each redirect. It sends one
// request a second and identifies itself. It connects to private addresses only if the URL itself names one.
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

// Options change an audit.
type Options struct {
	// Policy is the policy that the site should have. Nil compares only the channels with each other.
	Policy *site.Site
	Merged bool     // says that robots.txt may have more rules than the policy: the upstream's
	As     []string // product tokens of crawlers to request pages as, besides the audit's own name
	Pages  int      // bounds the pages to look at; 0 means DefaultPages
	// Transport sends the requests; nil means one that rejects private addresses unless the URL names one.
	Transport http.RoundTripper
	Wait      func(context.Context, time.Duration) error // waits between two requests; nil sleeps
	Now       func() time.Time                           // the time; nil means time.Now
}

// DefaultPages is the number of pages that an audit looks at: the given one and some of the sitemap.
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

// Errors counts the errors.
func (r *Report) Errors() int { return r.count(Error) }

func (r *Report) count(s Severity) (n int) {
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// RobotsInfo says how robots.txt was served.
type RobotsInfo struct {
	Status      int      `json:"status"` // 0: no response
	ContentType string   `json:"content_type,omitempty"`
	Bytes       int      `json:"bytes"`
	Redirects   []string `json:"redirects,omitempty"`
	Cached      string   `json:"cached,omitempty"` // evidence that a cache answered
	Error       string   `json:"error,omitempty"`
}

// PageInfo holds what one page tells crawlers.
type PageInfo struct {
	URL      string    `json:"url"`
	Readings []Reading `json:"readings"`
}

// Reading holds what one crawler reads in the channels of a page.
type Reading struct {
	Crawler   string `json:"crawler"`    // product token, or "any other crawler"
	RobotsTxt string `json:"robots_txt"` // "may crawl" or "may not crawl", with the line
	Headers   string `json:"headers"`    // robots control rules of the header fields
	Page      string `json:"page"`       // robots control rules of the meta tags
	Usage     string `json:"usage"`      // what its headers say about AI and search, as Content-Usage spells it
	Status    string `json:"status"`     // the response to a request in this name, if one was sent
	fetched   bool   // Headers, Page and Usage are known
}

// otherCrawler stands for a crawler that no group and no field names.
const otherCrawler = "any other crawler"

// Run audits the site at a web address. There is no report for an unknown crawler in o.As, a host to which nothing
// connects, and a context that ended.
func Run(ctx context.Context, address *url.URL, o Options) (*Report, error) {
	a, err := newAuditor(address, o)
	if err != nil {
		return nil, err
	}
	report, moved, err := a.run(ctx)
	if err != nil || moved == nil {
		return report, err
	}
	// The page is on another host, as where example.com redirects to www.example.com.
	next, err := newAuditor(moved, o)
	if err != nil {
		return nil, err
	}
	next.fetch.requests, next.fetch.interval, next.settled = a.fetch.requests, a.fetch.interval, true
	if report, _, err = next.run(ctx); report != nil {
		report.Findings = append(report.Findings, finding("other-host", address.String(), "",
			fmt.Sprintf("the page redirects to %s, so that site was looked at", moved), ""))
	}
	return report, err
}

type auditor struct {
	base     *url.URL
	o        Options
	now      time.Time
	own      agent
	agents   []agent           // in addition to own: the browser and the agents of Options.As
	known    *crawlers.Catalog // the policy's, or the built-in one
	fetch    *fetcher
	report   *Report
	robots   *response // as the audit itself gets it
	rules    *robotsTxt
	others   map[string]*robotsTxt // of other hosts, by the address of robots.txt
	pages    []*page
	refetchs int
	settled  bool // the audit does not move to another host any more
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
	a.known, _ = crawlers.Default() // what is built in is valid
	if o.Policy != nil {
		a.report.Policy, a.known = o.Policy.File.Name, o.Policy.File.Catalog
	}
	for _, name := range o.As {
		c, ok := a.known.Lookup(name)
		if !ok {
			return nil, fmt.Errorf("unknown crawler %q: must be a product token of the catalog or the policy, such as GPTBot", name)
		}
		if len(c.Patterns()) == 0 {
			return nil, fmt.Errorf("%s only exists in robots.txt; no client sends requests in this name", c.Token)
		}
		a.agents = append(a.agents, claimedAgent(c))
	}
	if len(a.agents) > 0 {
		a.agents = append([]agent{browserAgent}, a.agents...)
	}
	return a, nil
}

// run carries out the audit. moved is another address to audit instead. Once ctx has ended, all
// requests fail at once, so the checks need not look at it.
func (a *auditor) run(ctx context.Context) (report *Report, moved *url.URL, err error) {
	defer func() { a.report.Requests = a.fetch.requests }()
	if err := a.robotsTxt(ctx); err != nil {
		return nil, nil, cmp.Or(ctx.Err(), err)
	}
	if a.rules != nil { // otherwise no crawler may crawl
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
		return nil, nil, err // requests failed for this reason only
	}
	if a.rules != nil && a.rules.work < 0 {
		return nil, nil, fmt.Errorf("the site cannot be judged: %s has too many rules with wildcards to try them all", a.robotsURL())
	}
	return a.report, moved, nil
}

// moved is the target of the first page's redirect, if that is another host.
func (a *auditor) moved() *url.URL {
	if len(a.pages) == 0 {
		return nil
	}
	if r := a.pages[0].got[OwnToken]; r.err == errOtherHost {
		return r.final
	}
	return nil
}

// mayFetch reports whether robots.txt lets the audit itself fetch an address.
func (a *auditor) mayFetch(u *url.URL) bool {
	return a.rules.decide(reader{names: []string{OwnToken}}, target(u)).Allowed
}

// probe returns an address with a query that no cache has seen.
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

// maxRefetches bounds the requests for pages past caches.
const maxRefetches = 8

// refetch requests a page past caches. It returns nil if robots.txt prohibits that, or after maxRefetches.
func (a *auditor) refetch(ctx context.Context, p *page, as agent) *response {
	probe := a.probe(p.url)
	if a.refetchs > maxRefetches || !a.mayFetch(probe) {
		return nil
	}
	return a.get(ctx, probe, as)
}

// target is the request target that patterns of robots.txt are matched with.
func target(u *url.URL) string { return u.RequestURI() }

// getPages chooses the pages and requests them in the audit's own name.
func (a *auditor) getPages(ctx context.Context) {
	listed := a.sitemapPages(ctx)
	chosen := append([]*page{{url: a.base}}, choosePages(listed, a.base, a.o.Pages-1)...)
	for _, p := range chosen {
		if !a.mayFetch(p.url) {
			if p.inSitemap {
				continue // reported by sitemapPages
			}
			a.add(finding("not-audited", p.url.String(), "", "robots.txt does not let the audit read this page, so its headers and elements are unknown",
				"to have it audited, add to robots.txt: User-agent: "+OwnToken+" and Allow: /"))
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

// documents address AI crawlers and agents in addition to robots.txt. This program publishes none of them.
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
			a.add(finding("other-document", u.String(), "", fmt.Sprintf("the site has %s, which no policy states and this program does not publish", d.path),
				"see that it says what the policy says"))
		}
	}
}
