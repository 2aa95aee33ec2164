// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// metaTag is a meta tag for crawlers. Its name may be misspelled.
type metaTag struct {
	name, content string
	body          bool // true if the tag is in the body, where crawlers need not look for meta tags
	misnamed      bool // true if the name is only similar to a name that crawlers read
}

// document holds the parts of a page that an audit examines.
type document struct {
	tags  []metaTag
	links []string // link targets, unchanged from the page
}

// headElements are the elements that can be part of the head of a page. Any other element begins the body.
var headElements = []string{"html", "head", "title", "meta", "link", "base", "basefont", "bgsound", "script", "style", "noscript", "noframes"}

// maxLinks limits the number of links that readDocument returns.
const maxLinks = 1000

// readDocument parses a page. tokens holds the product tokens, in lower case, that can be names of meta tags.
func readDocument(page []byte, tokens map[string]bool) (d document) {
	z := html.NewTokenizer(bytes.NewReader(bytes.TrimPrefix(page, []byte("\ufeff"))))
	body, inside := false, "" // inside is the name of the open head element whose text does not begin the body
	templates := 0            // number of open templates, whose content is not part of the page
	for {
		switch z.Next() {
		case html.ErrorToken:
			return d
		case html.TextToken:
			body = body || inside == "" && templates == 0 && len(bytes.TrimSpace(z.Text())) > 0
		case html.EndTagToken:
			inside = ""
			if name, _ := z.TagName(); string(name) == "template" {
				templates = max(0, templates-1)
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			if t.Data == "template" {
				templates++
			}
			switch {
			case templates > 0:
			case t.Data == "meta":
				if m, ok := readMeta(t.Attr, tokens); ok {
					m.body = body
					d.tags = append(d.tags, m)
				}
			case t.Data == "a" && len(d.links) < maxLinks:
				for _, a := range t.Attr {
					if a.Key == "href" {
						d.links = append(d.links, a.Val)
					}
				}
				fallthrough
			default:
				if !slices.Contains(headElements, t.Data) {
					body = true
				} else if t.Data != "html" && t.Data != "head" && t.Data != "link" && t.Type == html.StartTagToken {
					inside = t.Data
				}
			}
		case html.CommentToken, html.DoctypeToken:
		}
	}
}

func readMeta(attributes []html.Attribute, tokens map[string]bool) (m metaTag, ok bool) {
	for _, a := range attributes {
		value := strings.ToLower(strings.TrimSpace(a.Val))
		switch a.Key {
		case "name":
			m.name = value
		case "content":
			m.content = a.Val
		case "property", "http-equiv":
			m.misnamed = m.misnamed || value == "robots" || value == "x-robots-tag"
		}
	}
	if m.name == "robots" || tokens[m.name] {
		m.misnamed = false
		return m, true
	}
	m.misnamed = (m.misnamed || oneOff(m.name, "robots")) && hasRule(m.content)
	return m, m.misnamed
}

// oneOff reports whether a name differs from a word by one added, missing or changed letter, or by two swapped
// letters.
func oneOff(name, word string) bool {
	at := 0
	for at < len(name) && at < len(word) && name[at] == word[at] {
		at++
	}
	a, b := name[at:], word[at:]
	switch len(a) - len(b) {
	case 1:
		return a[1:] == b
	case -1:
		return a == b[1:]
	case 0:
		return len(a) > 0 && (a[1:] == b[1:] || len(a) > 1 && a[0] == b[1] && a[1] == b[0] && a[2:] == b[2:])
	}
	return false
}

func hasRule(list string) bool {
	for list != "" {
		var name string
		if name, _, list = cutRule(list); isRule(name) {
			return true
		}
	}
	return false
}

// linksOf returns the link targets that are on the host of the page.
func (d document) linksOf(page *url.URL) (all []*url.URL) {
	for _, l := range d.links {
		if u, err := page.Parse(strings.TrimSpace(l)); err == nil && u.Host == page.Host && u.Scheme == page.Scheme {
			u.Fragment = ""
			all = append(all, u)
		}
	}
	return all
}
