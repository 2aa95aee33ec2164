// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"github.com/dunglas/httpsfv"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
)

// pageRules are the robots control rules of one channel, by product token in lower case; "" is
// for every crawler.
type pageRules map[string]robotsrule.Set

func (p pageRules) add(token, rules string) {
	token = strings.ToLower(strings.TrimSpace(token))
	p[token] = p[token].Union(robotsrule.Parse(rules))
}

// forCrawler returns the rules that a crawler of some names obeys: everyone's and its own.
func (p pageRules) forCrawler(names []string) robotsrule.Set {
	s := p[""]
	for _, n := range names {
		s = s.Union(p[strings.ToLower(n)])
	}
	return s
}

// xRobotsTag reads X-Robots-Tag lines: rules, with the name of a crawler before them or none.
func xRobotsTag(h http.Header) pageRules {
	p := pageRules{}
	for _, line := range h.Values(robotstag.XRobotsTagField) {
		token := ""
		for rest := line; rest != ""; {
			var item string
			item, rest = robotsrule.Cut(rest)
			if name, rules, ok := strings.Cut(item, ":"); ok && !robotsrule.IsRule(strings.ToLower(strings.TrimSpace(name))) {
				token, item = name, rules
			}
			p.add(token, item)
		}
	}
	return p
}

// robotsTag reads the Robots-Tag field of a response (draft-illyes-repext-03).
func robotsTag(h http.Header) pageRules {
	p := pageRules{}
	list, err := httpsfv.UnmarshalList(h.Values(robotstag.RobotsTagField))
	if err != nil {
		return p
	}
	for _, m := range list {
		item, ok := m.(httpsfv.Item)
		if !ok {
			continue
		}
		token, ok := item.Value.(httpsfv.Token)
		if !ok {
			continue
		}
		key := strings.ToLower(string(token))
		if key == robotstag.Everyone {
			key = ""
		}
		p[key] = p[key].Union(robotsrule.FromParams(item.Params))
	}
	return p
}

// metaElement is a meta element of a page that speaks to crawlers.
type metaElement struct{ name, content string }

// metaElements returns the meta elements named "robots" or by a product token in lower case.
func metaElements(body []byte, tokens map[string]bool) (found []metaElement) {
	z := html.NewTokenizer(bytes.NewReader(body))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return found
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			if t.DataAtom == atom.Body {
				return found
			}
			if t.DataAtom != atom.Meta {
				continue
			}
			var m metaElement
			for _, a := range t.Attr {
				switch a.Key {
				case "name":
					m.name = strings.ToLower(strings.TrimSpace(a.Val))
				case "content":
					m.content = a.Val
				}
			}
			if m.name == "robots" || tokens[m.name] {
				found = append(found, m)
			}
		case html.TextToken, html.EndTagToken, html.CommentToken, html.DoctypeToken:
		}
	}
}

func metaRules(elements []metaElement) pageRules {
	p := pageRules{}
	for _, m := range elements {
		name := m.name
		if name == "robots" {
			name = ""
		}
		p.add(name, m.content)
	}
	return p
}

// usage are AIPREF preferences: "y" or "n" by key.
type usage map[string]string

// contentUsage reads a Content-Usage value (draft-ietf-aipref-attach).
func contentUsage(values []string) usage {
	u := usage{}
	d, err := httpsfv.UnmarshalDictionary(values)
	if err != nil {
		return u
	}
	for _, key := range d.Names() {
		m, _ := d.Get(key)
		if item, ok := m.(httpsfv.Item); ok {
			if t, ok := item.Value.(httpsfv.Token); ok && (t == "y" || t == "n") {
				u[key] = string(t)
			}
		}
	}
	return u
}

// signalKeys maps the names of Content-Signal to those of Content-Usage.
var signalKeys = map[string]string{"ai-train": "train-ai", "ai-input": "ai-use", "search": "search"}

// contentSignal reads a Content-Signal value as preferences: "search=yes, ai-train=no".
func contentSignal(value string) usage {
	u := usage{}
	for part := range strings.SplitSeq(value, ",") {
		k, v, _ := strings.Cut(strings.TrimSpace(part), "=")
		key := signalKeys[strings.ToLower(strings.TrimSpace(k))]
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "yes":
			u[key] = "y"
		case "no":
			u[key] = "n"
		}
	}
	delete(u, "")
	return u
}

// String is the value as Content-Usage spells it.
func (u usage) String() string {
	var parts []string
	for _, key := range []string{"train-ai", "ai-use", "search"} {
		if u[key] != "" {
			parts = append(parts, key+"="+u[key])
		}
	}
	return strings.Join(parts, ", ")
}

// unknownRules returns the names in a list of rules that no crawler documents.
func unknownRules(list string) (unknown []string) {
	for rest := list; rest != ""; {
		var item string
		item, rest = robotsrule.Cut(rest)
		name, _, _ := strings.Cut(item, ":")
		name, _, _ = strings.Cut(name, "=")
		if name = strings.ToLower(strings.TrimSpace(name)); name != "" && !robotsrule.IsRule(name) && !slices.Contains(unknown, name) {
			unknown = append(unknown, name)
		}
	}
	return unknown
}
