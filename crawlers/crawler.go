// SPDX-License-Identifier: Apache-2.0

// Package crawlers knows the crawlers of the web: a curated catalog of their product tokens, operators and
// purposes, and a recognizer that finds those tokens in a User-Agent header.
//
// The catalog contains what operators document. It is only ever asked for exact names. A crawler that is not in
// it is not known: it is never recognized, never belongs to a category and is never blocked.
//
// A token is only found as a separate word in the User-Agent, never as a part of a longer word
// and never inside a URL. See [Recognizer].
package crawlers

import "slices"

// Crawler is one entry of a [Catalog]. Entries are shared: do not change one.
type Crawler struct {
	// Token is the product token that stands for the crawler in robots.txt
	// (RFC 9309 §2.2.1), in the operator's spelling.
	Token    string `json:"token"`
	Operator string `json:"operator,omitempty"` // the organization that runs the crawler
	// Category is the primary category. It is empty for a crawler of the policy file that names none.
	Category Category   `json:"category,omitempty"`
	Further  []Category `json:"further,omitempty"` // the further categories, without Category
	Results  Results    `json:"results,omitempty"` // of a search engine; those that feed no AI leave it out
	// UserAgents are the strings that announce the crawler in a User-Agent,
	// where they differ from Token. Use [Crawler.Patterns] for recognition.
	UserAgents []string `json:"user_agents,omitempty"`
	// Follows names the crawlers whose robots.txt group it follows when none
	// names it, the first that has a group first.
	Follows     []string `json:"follows,omitempty"`
	IgnoresStar bool     `json:"ignores_star,omitempty"` // true when a group for `*` does not bind the crawler, so that it must be named
	// ReadsMeta is true when the operator documents that the crawler reads robots meta
	// elements that carry Token as their name.
	ReadsMeta bool `json:"reads_meta,omitempty"`
	// RobotsOnly is true for a token that only robots.txt knows, such as
	// Google-Extended: no User-Agent ever carries it, so it cannot be blocked.
	RobotsOnly   bool         `json:"robots_only,omitempty"`
	Docs         string       `json:"docs,omitempty"`        // the operator's page about the crawler, if there is one
	Honors       Honors       `json:"honors_robots_txt"`     // says whether the crawler follows robots.txt
	Purposes     []string     `json:"purposes,omitempty"`    // the purpose tokens of the crawler (draft-illyes-rep-purpose-00)
	Verification Verification `json:"verification,omitzero"` // says how the crawler's requests can be verified
	Examples     []string     `json:"examples,omitempty"`    // User-Agent headers that the crawler sends
	LookAlikes   []string     `json:"-"`                     // User-Agent headers of others that resemble them
	Note         string       `json:"note,omitempty"`        // a remark for the reader of the catalog
	AsOf         string       `json:"as_of,omitempty"`       // the day on which the entry was last checked, as YYYY-MM-DD
	Sources      []string     `json:"sources,omitempty"`     // name where the facts come from
	FromPolicy   bool         `json:"-"`                     // true when the policy file added or changed the entry
}

// Verification holds what an operator publishes about its requests. If all of it is empty, no
// request can be verified.
type Verification struct {
	AddressLists []string `json:"address_lists,omitempty"` // the URLs of published address lists
	// ReverseDNS are the host names that the addresses resolve to: a suffix that begins with a dot
	// (".googlebot.com"), or a name in which one `*` stands for a part without dots ("google-proxy-*.google.com").
	ReverseDNS []string `json:"reverse_dns,omitempty"`
	WebBotAuth string   `json:"signature_directory,omitempty"` // the origin of the operator's key directory (draft-ietf-webbotauth-httpsig-protocol)
}

// IsEmpty reports whether nothing is published.
func (v Verification) IsEmpty() bool {
	return len(v.AddressLists) == 0 && len(v.ReverseDNS) == 0 && v.WebBotAuth == ""
}

// Is reports whether k is the primary or a further category of the crawler.
func (c *Crawler) Is(k Category) bool { return c.Category == k || slices.Contains(c.Further, k) }

// IsAI reports whether category:ai includes the crawler: its main category or a further one
// serves AI, or its search results are AI answers. Crawlers of web search are not included.
func (c *Crawler) IsAI() bool {
	if c.Category == CategorySearch {
		return c.Results == ResultsAI
	}
	return slices.ContainsFunc([]Category{CategoryAITraining, CategoryAIInput, CategoryAIAssistant, CategoryAIAgent}, c.Is)
}

// Patterns returns the strings to look for in a User-Agent: UserAgents, or Token
// when there are none, or nothing for a token that only robots.txt knows, and for a signer.
func (c *Crawler) Patterns() []string {
	switch {
	case c.RobotsOnly, c.IsSigner():
		return nil
	case len(c.UserAgents) > 0:
		return c.UserAgents
	}
	return []string{c.Token}
}
