// SPDX-License-Identifier: Apache-2.0

package acap

import (
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Explain returns the ACAP lines of file that decide about the crawler and path of a query. file is the policy's
// robots.txt. Explain considers all usages, whatever the usage of the query is. For each usage, crawlers that read
// these records may come to another decision than the policy. differs has a sentence for each such usage.
func Explain(p *policy.Policy, file string, q policy.Query) (sends, differs []string) {
	if !Published(p) {
		return nil, nil
	}
	token := p.CrawlerInfo(q.Crawler).Token
	lines := strings.Split(file, "\n")
	records := Parse([]byte(file))
	for _, u := range policy.Usages() {
		if u.IsRight() {
			continue
		}
		q.Usage = u
		own := p.Decide(q)
		read := records.Decide(Query{Crawler: token, Path: q.Path, Usage: u, Now: q.Now})
		if read.Field == nil && u == policy.Crawl {
			continue // the Allow and Disallow lines decide
		}
		if read.Field != nil {
			if line := strings.TrimSpace(lines[read.Field.Line-1]); !slices.Contains(sends, line) {
				sends = append(sends, line)
			}
		}
		if (own.Verdict == policy.Disallowed) != (read.Verdict == policy.Disallowed) && !p.DemandsIdentity() {
			differs = append(differs, fmt.Sprintf("for crawlers that read ACAP, %s is %s, but according to the policy it is %s", u, read.Verdict, own.Verdict))
		}
	}
	return sends, differs
}
