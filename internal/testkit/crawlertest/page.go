// SPDX-License-Identifier: Apache-2.0

package crawlertest

import (
	"strings"

	"golang.org/x/net/html"
)

// PageRules holds the rules of the robots meta tags in the head of a page. The keys are the audiences in lower case,
// with "robots" for everyone.
type PageRules map[string][][2]string

// Elements reads a page according to the HTML standard. It returns every meta tag with a name in the head, because any
// name might be the name of a crawler.
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

// To returns the rights that a crawler has on a page with these meta tags. The rules for everyone and the rules for the
// crawler apply together (draft-illyes-repext-03).
func (p PageRules) To(crawler string) Rights {
	rules := append([][2]string{}, p["robots"]...)
	if crawler != "" {
		rules = append(rules, p[strings.ToLower(crawler)]...)
	}
	return Evaluate(rules)
}
