// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net/url"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

const maxSitemapURLs = 1000

// sitemapPages returns the pages of the first readable sitemap. It reports the pages that robots.txt disallows.
func (a *auditor) sitemapPages(ctx context.Context) (pages []*url.URL) {
	named := a.rules.sitemaps
	if len(named) == 0 {
		named = []string{(&url.URL{Scheme: a.base.Scheme, Host: a.base.Host, Path: "/sitemap.xml"}).String()}
	}
	for range 2 { // the second round reads the sitemap that a sitemap index names
		var locs []string
		var index bool
		for _, address := range named {
			u, err := url.Parse(address)
			if err != nil || u.Host != a.base.Host || !a.mayFetch(u) {
				continue
			}
			if locs, index, err = readSitemap(a.get(ctx, u, a.own)); err == nil {
				break
			}
			if len(a.rules.sitemaps) > 0 {
				a.add(finding("sitemap-unreadable", address, "", "the sitemap that robots.txt names cannot be read: "+err.Error(), "correct the Sitemap line, or serve the sitemap"))
			}
			return nil
		}
		if index {
			named = locs
			continue
		}
		for _, l := range locs {
			if u, err := url.Parse(l); err == nil && u.Host == a.base.Host {
				pages = append(pages, u)
			}
		}
		break
	}
	a.closedSitemapPages(pages)
	return pages
}

// searchCrawlers are the crawlers whose access to the pages of the sitemap is checked.
var searchCrawlers = []string{"Googlebot", "Bingbot"}

func (a *auditor) closedSitemapPages(pages []*url.URL) {
	var first *url.URL
	line := 0
	n := 0
	for _, u := range pages {
		for _, name := range searchCrawlers {
			if v := a.rules.decide(reader{names: []string{name}}, target(u)); !v.Allowed && v.Line > 0 {
				if n++; first == nil {
					first, line = u, v.Line
				}
				break
			}
		}
	}
	if n > 0 {
		a.add(finding("sitemap-disallowed", first.String(), "", "the sitemap lists "+english.Count(n, "page")+" that robots.txt disallows for search engines, because of line "+a.rules.describe(line),
			"take the pages out of the sitemap, or let search engines read them"))
	}
}

// readSitemap parses a sitemap. locs are the URLs of pages or, if index is true, of other sitemaps.
func readSitemap(r *response) (locs []string, index bool, err error) {
	if !r.ok() {
		return nil, false, errors.New(r.outcome())
	}
	data := r.body
	if bytes.HasPrefix(data, []byte("\x1f\x8b")) {
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, false, err
		}
		if data, err = io.ReadAll(io.LimitReader(z, maxBody)); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, false, err
		}
	}
	d := xml.NewDecoder(bytes.NewReader(data))
	d.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil }
	inLoc, root := false, ""
	for len(locs) < maxSitemapURLs {
		t, err := d.Token()
		if err != nil {
			break // end of the sitemap, which may be truncated
		}
		switch t := t.(type) {
		case xml.StartElement:
			root = cmp.Or(root, t.Name.Local)
			inLoc = t.Name.Local == "loc"
		case xml.EndElement:
			inLoc = false
		case xml.CharData:
			if inLoc {
				locs = append(locs, strings.TrimSpace(string(t)))
			}
		}
	}
	if root != "urlset" && root != "sitemapindex" {
		return nil, false, errors.New("the file is not a sitemap")
	}
	return locs, root == "sitemapindex", nil
}

// choosePages chooses up to n pages. It first chooses one page for each first segment of the path, such as /news/ and
// /shop/, because such pages tend to be in different parts of a site.
func choosePages(all []*url.URL, home *url.URL, n int) (chosen []*page) {
	taken := map[string]bool{home.String(): true}
	segments := map[string]bool{}
	for _, onlyNew := range []bool{true, false} {
		for _, u := range all {
			segment, _, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
			if len(chosen) >= n || taken[u.String()] || onlyNew && segments[segment] {
				continue
			}
			segments[segment], taken[u.String()] = true, true
			chosen = append(chosen, &page{url: u, inSitemap: true})
		}
	}
	return chosen
}

// readerOf returns the reader for a crawler of the catalog.
func readerOf(c *crawlers.Crawler) reader {
	return reader{c.Token, append([]string{c.Token}, c.Follows...), c.IgnoresStar}
}
