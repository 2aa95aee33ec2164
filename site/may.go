// SPDX-License-Identifier: Apache-2.0

package site

import (
	"encoding/json"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/claim"
)

// maySubject holds the facts that [mayCrawl] judges.
type maySubject struct {
	Explanation *Explanation
	Site        claim.Known[bool] `gap:"site-robots-txt" what:"the site's own robots.txt, which applies where the policy has no rule, is not known yet" close:"request /robots.txt of this host once, and then repeat this check"`
}

// mayCrawl is the claim that a crawler may crawl a page.
var mayCrawl = claim.Register("may-crawl", func(s maySubject) claim.Finding {
	e := s.Explanation
	f := claim.Finding{Fails: !e.MayCrawl, Unjudged: "It is not known whether the crawler may crawl " + e.URL}
	readAs := ""
	if e.ReadAs != "" {
		readAs = ", which servers may read as " + e.ReadAs
	}
	if e.AnyCase {
		readAs += ": the policy disallows the path in another letter case, and Caddy's path matchers and many applications ignore letter case"
	}
	switch {
	case e.MayCrawl && e.Blocked():
		f.Fails, f.Text = true, "The rules allow it to crawl "+e.URL+", but the server blocks this client because of its identity"
	case e.MayCrawl && e.MayNotIndex != nil:
		f.Text = "It may crawl " + e.URL + ", but not index it: " + e.MayNotIndex.String()
	case e.MayCrawl && e.Reason == nil && e.merged:
		f.Text = "It may crawl " + e.URL + ": neither the policy nor the site's own robots.txt disallows it"
	case e.MayCrawl && e.Reason == nil:
		f.Text = "It may crawl " + e.URL + ": the policy does not disallow it"
	case e.MayCrawl:
		f.Text = "It may crawl " + e.URL
	case e.Crawler == nil:
		f.Text = "Crawlers that the policy does not name may not crawl " + e.URL + readAs + ". Clients that are not recognized are not blocked"
	case e.Open:
		f.Text = "It is asked not to crawl " + e.URL + ", but it is not blocked there, because crawlers learn the rules from this file"
	default:
		f.Text = "It may not crawl " + e.URL + readAs
	}
	return f
})

// May judges whether the crawler may crawl the page. It may not if the policy disallows crawling, or if the server
// blocks the request.
func (e *Explanation) May() claim.Claim {
	s := maySubject{Explanation: e}
	if !e.Unread {
		s.Site = claim.Read(true, claim.Coverage{})
	}
	return claim.Judge(mayCrawl, s)
}

// MarshalJSON adds the claim that May returns.
func (e *Explanation) MarshalJSON() ([]byte, error) {
	type fields Explanation
	return json.Marshal(struct {
		*fields
		May claim.Claim `json:"may"`
	}{(*fields)(e), e.May()})
}

// Blocked reports whether the server blocks a client of the assumed identity.
func (e *Explanation) Blocked() bool {
	if e.Identity != nil {
		for _, o := range e.Identity.Outcomes {
			if o.Blocked && o.Identity == e.Identity.Assumed {
				return true
			}
		}
	}
	return false
}

// Sentences returns the answer of May as text. It adds a sentence for each gap, which is a fact that May would need but
// does not know.
func (e *Explanation) Sentences() string {
	may := e.May()
	gaps := may.Gaps()
	all := append(make([]string, 0, 1+len(gaps)), may.Text()+".")
	for _, g := range gaps {
		all = append(all, g.Sentence())
	}
	return strings.Join(all, " ")
}
