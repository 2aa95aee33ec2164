// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"fmt"
	"net/url"

	"github.com/robotspolicy/caddy-robots-policy/site"
)

// Explain returns the statements of every channel about a URL for a crawler, and the reason.
func ExampleSite_Explain() {
	s, diagnostics := site.Load("site-policy.yaml", []byte(`version: 1
rules:
  - name: no AI training
    for: category:ai-training
    disallow:
      crawl: /
`))
	if diagnostics.HasErrors() {
		fmt.Println(diagnostics)
		return
	}
	e := s.Explain(site.Question{Agent: "GPTBot/1.2", URL: &url.URL{Scheme: "https", Host: "www.example.com", Path: "/news/"}})
	fmt.Println(e.Crawler.Token, "may crawl:", e.MayCrawl)
	fmt.Println(e.Reason.Rule)
	// Output:
	// GPTBot may crawl: false
	// no AI training
}
