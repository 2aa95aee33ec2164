// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"strings"

	"golang.org/x/net/html"
)

// pageTree is a page, parsed according to the HTML standard. Robots meta tags in the head are separated from the rest
// of the page.
type pageTree struct {
	says  reading
	count map[string]int // contents of robots elements, keyed by audience
	words map[string]string
	rest  string
}

// readTree parses a page, and separates the robots meta tags in its head from the rest. Robots meta tags are those with
// the name "robots" or the name of one of the crawlers.
func readTree(text string, crawlers ...string) (pageTree, error) {
	doc, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return pageTree{}, err
	}
	tree := pageTree{says: reading{}, count: map[string]int{}, words: map[string]string{}}
	var found []*html.Node
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || n.Data != "meta" || n.Parent.Data != "head" || n.Namespace != "" {
			continue
		}
		name, content := attribute(n, "name"), attribute(n, "content")
		audience := strings.ToLower(strings.TrimSpace(name))
		if audience == "robots" {
			audience = "*"
		} else if !contains(crawlers, audience) {
			continue
		}
		tree.says.add(audience, rulesOf(content))
		tree.count[audience]++
		tree.words[audience] += "," + strings.ToLower(content)
		found = append(found, n)
	}
	for _, n := range found {
		n.Parent.RemoveChild(n)
	}
	var b strings.Builder
	err = html.Render(&b, doc)
	tree.rest = b.String()
	return tree, err
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if strings.EqualFold(l, s) {
			return true
		}
	}
	return false
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// treeChange compares a page before and after the server has changed it. The new page must contain the rules of the
// policy in addition to the page's own rules. The rest of the page must be the same. treeChange describes the first
// problem, or returns "".
func treeChange(before, after string, policy reading) string {
	crawlers := []string{"amazonbot", "googlebot", "examplebot"}
	b, err := readTree(before, crawlers...)
	if err != nil {
		return err.Error()
	}
	a, err := readTree(after, crawlers...)
	if err != nil {
		return err.Error()
	}
	if a.rest != b.rest {
		return fmt.Sprintf("the rest of the page has changed from\n%s\nto\n%s", b.rest, a.rest)
	}
	if d := a.says.difference(b.says.and(policy)); d != "" {
		return d
	}
	for audience, n := range a.count {
		if n > 1 {
			return fmt.Sprintf("%d elements for %s", n, audience)
		}
		for w := range strings.SplitSeq(a.words[audience], ",") {
			if w = strings.TrimSpace(w); strings.Contains(a.says.to(audience).words, " no"+w+" ") {
				return fmt.Sprintf("%s is allowed %s beside no%s", audience, w, w)
			}
		}
	}
	return ""
}
