// SPDX-License-Identifier: Apache-2.0

package crawlertest

import (
	"strings"

	"golang.org/x/net/html"
)

// PageRules are the rules of the robots meta tags in the head of a page, by
// audience in lower case; "robots" is everyone.
type PageRules map[string][][2]string

// Elements reads a page like the HTML standard. Every named meta tag of its head might address
// a crawler.
func Elements(page string) (PageRules, error) {
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return nil, err
	}
	found := PageRules{}
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || n.Data != "meta" || n.Parent.Data != "head" || n.Namespace != "" {
			continue
		}
		name, content := "", ""
		for _, a := range n.Attr {
			switch a.Key {
			case "name":
				name = strings.ToLower(strings.TrimSpace(a.Val))
			case "content":
				content = a.Val
			}
		}
		found[name] = append(found[name], XRules([]string{content})["*"]...)
	}
	return found, nil
}

// To returns the rules of the elements for a crawler: those for everyone and its own add up
// (draft-illyes-repext-03).
func (p PageRules) To(crawler string) Rights {
	rules := append([][2]string{}, p["robots"]...)
	if crawler != "" {
		rules = append(rules, p[strings.ToLower(crawler)]...)
	}
	return Evaluate(rules)
}
