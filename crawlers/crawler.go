// SPDX-License-Identifier: Apache-2.0

// Package crawlers provides a catalog of web crawlers with their product tokens, operators and categories. Its
// recognizer finds these tokens in a User-Agent header.
//
// The catalog contains the facts that operators document. A crawler that is neither in the catalog nor in the policy is
// not recognized, does not belong to a category, and is never blocked.
//
// A token is only found as a separate word in the User-Agent, never as a part of a longer word and never inside a
// URL. See [Recognizer].
package crawlers

import "slices"

// Crawler is a row of a [Catalog]. Rows are shared and must not be changed.
type Crawler struct {
	// Token is the crawler's product token in robots.txt (RFC 9309 section 2.2.1), in the operator's spelling.
	Token    string `json:"token"`
	Operator string `json:"operator,omitempty"` // the organization that runs the crawler
	// Category is the main category. It is empty for a crawler of the policy file without a category.
	Category Category   `json:"category,omitempty"`
	Further  []Category `json:"further,omitempty"` // the further categories, without Category
	// Results is the kind of search results, if the crawler belongs to a search engine that also uses pages for AI. It
	// is empty for other crawlers.
	Results Results `json:"results,omitempty"`
	// UserAgents are the strings that identify the crawler in a User-Agent. If UserAgents is empty, the crawler is
	// recognized by Token. Use [Crawler.Patterns] for recognition.
	UserAgents []string `json:"user_agents,omitempty"`
	// Follows lists other tokens in order of preference. If robots.txt has no group for Token, the crawler follows the
	// group of the first token in Follows that has a group.
	Follows     []string `json:"follows,omitempty"`
	IgnoresStar bool     `json:"ignores_star,omitempty"` // true if the crawler ignores the group for `*`, so that robots.txt must name the crawler
	// ReadsMeta is true if the operator documents that the crawler reads meta tags whose name is Token.
	ReadsMeta bool `json:"reads_meta,omitempty"`
	// RobotsOnly is true for a control token, such as Google-Extended. No client sends the token in its User-Agent, so
	// no request can be blocked because of it.
	RobotsOnly   bool         `json:"robots_only,omitempty"`
	Docs         string       `json:"docs,omitempty"`        // the operator's page about the crawler, if there is one
	Honors       Honors       `json:"honors_robots_txt"`     // whether the crawler follows robots.txt
	Purposes     []string     `json:"purposes,omitempty"`    // the purpose tokens of the crawler (draft-illyes-rep-purpose-00)
	Verification Verification `json:"verification,omitzero"` // how the crawler's requests can be verified
	Examples     []string     `json:"examples,omitempty"`    // User-Agent headers that the crawler sends
	LookAlikes   []string     `json:"-"`                     // User-Agent headers that look like the crawler's, but come from other clients
	Note         string       `json:"note,omitempty"`        // a remark for the reader of the catalog
	AsOf         string       `json:"as_of,omitempty"`       // the day when the row was last checked, as YYYY-MM-DD
	Sources      []string     `json:"sources,omitempty"`     // where the facts come from
	FromPolicy   bool         `json:"-"`                     // true if the policy file added or changed the row
}

// Verification holds the facts that a crawler's operator publishes so that others can verify the crawler's requests. If
// all fields are empty, the requests cannot be verified.
type Verification struct {
	AddressLists []string `json:"address_lists,omitempty"` // the URLs of published address lists
	// ReverseDNS holds patterns for the host names of the crawler's addresses. A pattern is a suffix that begins with a
	// dot (".googlebot.com"), or a name in which one `*` matches any text without dots ("google-proxy-*.google.com").
	ReverseDNS []string `json:"reverse_dns,omitempty"`
	WebBotAuth string   `json:"signature_directory,omitempty"` // the origin of the operator's key directory (draft-ietf-webbotauth-httpsig-protocol)
}

// IsEmpty reports whether all fields are empty.
func (v Verification) IsEmpty() bool {
	return len(v.AddressLists) == 0 && len(v.ReverseDNS) == 0 && v.WebBotAuth == ""
}

// Is reports whether k is the main category or a further category of the crawler.
func (c *Crawler) Is(k Category) bool { return c.Category == k || slices.Contains(c.Further, k) }

// IsAI reports whether category:ai includes the crawler. If the main category of the crawler is search, this is true
// only if its search results are AI answers, even if it also has AI categories. For other crawlers, it is true if the
// main category or one of the further categories is an AI category.
func (c *Crawler) IsAI() bool {
	if c.Category == CategorySearch {
		return c.Results == ResultsAI
	}
	return slices.ContainsFunc([]Category{CategoryAITraining, CategoryAIInput, CategoryAIAssistant, CategoryAIAgent}, c.Is)
}

// Patterns returns the strings to look for in a User-Agent. These are UserAgents or, if UserAgents is empty, Token. It
// returns nil for a signer (see [Crawler.IsSigner]), and for a control token (see RobotsOnly).
func (c *Crawler) Patterns() []string {
	switch {
	case c.RobotsOnly, c.IsSigner():
		return nil
	case len(c.UserAgents) > 0:
		return c.UserAgents
	}
	return []string{c.Token}
}
