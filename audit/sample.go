// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// maxSampled limits the number of policy paths that the audit examines. For each path, the audit examines one page.
const maxSampled = 20

// samplePages adds one page for each path whose indexing the policy disallows. It looks for such a page in the sitemap
// and among the links on other pages, and tries the path itself. It reports the paths that have no such page.
func (a *auditor) samplePages(ctx context.Context, listed []*url.URL) {
	if a.o.Policy == nil {
		return
	}
	candidates := slices.Clip(listed)
	for _, p := range a.pages {
		if r := p.got[OwnToken]; r.ok() && r.isHTML() && r.final.Host == a.base.Host {
			candidates = append(candidates, readDocument(r.body, nil).linksOf(r.final)...)
		}
	}
	var without []string
	for i, pattern := range a.unindexed() {
		if i >= maxSampled || !a.sample(ctx, pattern, candidates, len(listed)) {
			without = append(without, pattern.String())
		}
	}
	if len(without) > 0 {
		a.add(finding("noindex-not-sampled", a.base.String(), "", "no page was found below "+english.Some(without, 5)+", where the policy disallows index, so the audit did not test whether pages there have noindex",
			"run the audit with the address of a page there, or list such a page in the sitemap or on the home page"))
	}
}

// unindexed returns the paths on the host whose indexing the policy disallows for all crawlers.
func (a *auditor) unindexed() (all []pathpattern.Pattern) {
	spec := a.o.Policy.Policy.Spec()
	for i := range spec.Rules {
		for _, s := range spec.Rules[i].Statements {
			if s.Allow || s.Usage != policy.Index || slices.Contains(all, s.Pattern) {
				continue
			}
			if u, err := a.base.Parse(s.Pattern.Example()); err == nil && a.policyHas(u, a.own, "noindex") {
				all = append(all, s.Pattern)
			}
		}
	}
	return all
}

// sample examines one page that matches a pattern. It chooses the page from the candidates, and returns false if it
// cannot examine any of them. The first candidates are from the sitemap; listed is the number of candidates from there.
func (a *auditor) sample(ctx context.Context, pattern pathpattern.Pattern, candidates []*url.URL, listed int) bool {
	fits := func(u *url.URL) bool { return pattern.Match(target(u)) && a.policyHas(u, a.own, "noindex") }
	for _, p := range a.pages {
		if fits(p.url) && p.got[OwnToken].ok() {
			return true
		}
	}
	if own, err := a.base.Parse(strings.TrimSuffix(pattern.String(), "$")); err == nil && !pattern.Wild() {
		candidates = append(slices.Clip(candidates), own)
	}
	const mostTried, mostAsked = 10, 3 // limited because each try costs time, and each request costs more time
	tried, asked := 0, 0
	for i, u := range candidates {
		if asked == mostAsked || tried == mostTried {
			break
		}
		if !fits(u) {
			continue
		}
		if tried++; !a.mayFetch(u) {
			continue
		}
		asked++
		p := &page{url: u, got: map[string]*response{}, inSitemap: i < listed}
		if r := a.get(ctx, u, a.own); r.ok() {
			p.got[OwnToken] = r
			a.pages = append(a.pages, p)
			return true
		}
	}
	return false
}
