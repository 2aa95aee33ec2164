// SPDX-License-Identifier: Apache-2.0

// Package channels lists the channels of a policy. A channel is an output through which a policy reaches crawlers, such
// as the Content-Usage header or tdmrep.json. The packages that serve, explain and check a policy use the table of
// channels, so that they need not know the channels by name.
//
// A row of the table has the parts of a channel: lines or records in robots.txt, rules in headers and meta tags, header
// fields, or a document. The package for the channel's format implements these parts.
package channels

import (
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// Channel describes one output of a policy. The variable Table lists all channels.
type Channel struct {
	Name     string // the name that people use
	Key      string // the setting's key under "publish"; "" if there is no setting and only rules switch the channel on
	Document string // the specification, with its date
	Readers  string // the known readers of the channel

	// ForEveryone is true if the channel cannot exempt single crawlers.
	ForEveryone bool
	// On reports whether a policy publishes anything in the channel.
	On func(*policy.Publish) bool
	// Carries reports whether a policy with the given settings publishes its decisions about a usage in the channel.
	// The usage is one of policy.RightsUsages. If Carries is nil, the channel does not publish such decisions.
	Carries func(*policy.Publish, policy.Usage) bool
	// Switch switches the channel on in the settings of a policy, for example because the policy's author reserves
	// rights. It is nil if the channel cannot reserve rights.
	Switch func(*policy.Publish)
	// Where describes where readers find the reservation, for channels with Switch.
	Where string

	Vocabulary *rights.Vocabulary // vocabulary of the channel's header field, or nil
	Group      *Group             // lines in the groups of robots.txt, or nil
	Records    *Records           // records after the groups of robots.txt, or nil
	Words      robotsrule.Set     // robots control rules for the usages that the channel carries
	Page       *Page              // header fields and meta tags, or nil
	File       *File              // the channel's document, or nil

	// Says returns what the channel tells all crawlers about a page. Says is nil if other fields of Channel, such as
	// Page, already yield this information.
	Says func(Question) []string
}

// Group describes the lines of a channel in the groups of robots.txt.
type Group struct {
	Field  string // the key of the lines
	ByPath bool   // lines may have a path, and the line with the longest path applies
	Lines  func(*rights.Client) ([]policy.Line, []policy.Problem)
	// StrictLine returns the value of a line for all paths. The line disallows each usage that the policy disallows on
	// any path. It replaces all other lines of the channel if the groups for different usage purposes have different
	// lines. A crawler with two purposes combines their groups, and could then use a line that allows too much.
	// StrictLine is nil if such a crawler just uses the line with the longest path.
	StrictLine func(*rights.Client) string
	// Named is the diagnostic for robots.txt files where only groups of named crawlers have lines of this channel. If
	// this is not a problem, the text of Named is empty.
	Named Hint
	// Reasons yields the texts of the lines that apply to the host and path of a query, each with the rule and the
	// place in the policy that cause it. Reasons is nil if the lines follow from the decisions of the policy, which
	// have their own reasons.
	Reasons func(*policy.Policy, policy.Query, func(r *policy.Rule, at policy.Pos, says string))
	// Values describes texts that the channel publishes in addition to decisions. It is nil if there are none.
	Values *Values
}

// Hint is a diagnostic message with its code.
type Hint struct{ Code, Text string }

// Values describes texts of a channel that are not decisions, such as the directives in App-Directives. A comparison of
// two policies includes these texts.
type Values struct {
	Names    func(*policy.Policy) []string
	Patterns func(*policy.Rule) []pathpattern.Pattern
	Value    func(p *policy.Policy, q policy.Query, name string) string
}

// Records describes the records of a channel after the groups of robots.txt.
type Records struct {
	First string // first line of a file with records
	EOL   string // line ending of a file with records
	New   func(*policy.Policy) RecordWriter
	// All reports whether the records express decisions about every usage.
	All func(*policy.Publish) bool
	// Explain returns the lines of file whose records decide about the crawler and path of a query. file is the
	// policy's robots.txt. Crawlers that read these records may come to another decision than the policy. differs has
	// a sentence for each such case.
	Explain func(p *policy.Policy, file string, q policy.Query) (sends, differs []string)
	// SwitchOn is the line under "publish" that switches on the channel.
	SwitchOn string
}

// RecordWriter writes the records of a policy.
type RecordWriter interface {
	// Write returns the records of a host, or nil if there are none.
	Write(host string) ([]policy.Line, []policy.Problem)
}

// Page describes the header fields and meta tags of a channel.
type Page struct {
	Fields []string // names of the header fields
	// License is true if the fields name a license. The server also adds such fields to responses with status 402.
	License bool
	// Declare returns the declaration for a page, or nil. Call Channel.Declare instead, which also handles a channel
	// that the policy does not publish.
	Declare func(Question) rights.Declared
}

// File describes a document of a channel, which every host serves.
type File struct {
	Name string                       // name of the document in the version history
	Path func(*policy.Publish) string // returns the document's path, or "" if it is not published
	// Field is the key of the line of robots.txt that names the document, or "" if there is no such line.
	Field string
	// New returns the document of a host, or nil if the document would be empty.
	New func(v *rights.View, spec *policy.Spec) *rights.Document
	// Site parses the site's own document, which the handler merges with the document that New returns. Site is nil if
	// the channel does not merge documents.
	Site *Site
}

// Site parses the site's own document.
type Site struct {
	Path     string
	Type     string // media type
	IsLikely func(body []byte) bool
	// Parse returns the document, and notes about unusual parts. If err is not nil, the document is empty.
	Parse func([]byte) (doc rights.SiteDocument, notes []string, err error)
}

// Question is a question to a channel about a page. It has the facts that channels need to answer.
type Question struct {
	Spec     *policy.Spec
	Everyone func() rights.Verdicts // the statements for everyone about the page
	Document *rights.Document       // the channel's document on the page's host, or nil
	Declared rights.Declared        // the declaration of the channel's Page, for the function Says; or nil
}

// Declare returns what the channel declares about a page, or nil. The channel must have a Page. published reports
// whether the policy publishes the channel. Even if it does not, the page may already have a declaration of the site in
// this channel. For this case, Declare returns a declaration with only the usages that the policy disallows.
func (c *Channel) Declare(x Question) (d rights.Declared, published bool) {
	if d = c.Page.Declare(x); d != nil || c.Switch == nil || c.On(&x.Spec.Publish) {
		return d, true
	}
	on := policy.Spec{Publish: x.Spec.Publish} // leave out the license terms, which are not to be published
	c.Switch(&on.Publish)
	x.Spec = &on
	if d = c.Page.Declare(x); d == nil || !d.Restricts() {
		return nil, false
	}
	return d, false
}

// Published reports whether at least one channel states the policy's decisions about a usage of policy.RightsUsages.
func Published(p *policy.Publish, u policy.Usage) bool {
	return slices.ContainsFunc(Table, func(c *Channel) bool { return c.Carries != nil && c.Carries(p, u) })
}

// CarriesAll reports whether one channel states the policy's decisions about all usages to all crawlers.
func CarriesAll(p *policy.Publish) bool {
	return slices.ContainsFunc(Table, func(c *Channel) bool { return c.Records != nil && c.Records.All(p) })
}

// At returns the channel whose document is served at a path, or nil.
func At(p *policy.Publish, path string) *Channel {
	for _, c := range documents {
		if at := c.File.Path(p); at != "" && at == path {
			return c
		}
	}
	return nil
}

// Only returns the channel with ACAP records. No other channel can express action requests, references to other
// records, purposes, the usage "other", or qualifiers that have no robots rule of search engines.
func Only() *Channel { return &records }

// Documents returns the channels with documents.
func Documents() []*Channel { return documents }

// Groups returns the channels with lines in the groups of robots.txt, in the order of the lines.
func Groups() []*Channel { return groups }

// Reserving returns the channels that reserve rights in machine-readable form.
func Reserving() []*Channel { return reserving }

// Words returns the robots control rules of all channels.
func Words() robotsrule.Set { return words }

// WordsFor returns the robots control rules that disallow a usage in headers and meta tags, from the channels that
// a policy publishes.
func WordsFor(p *policy.Publish, u policy.Usage) (all robotsrule.Set) {
	for _, c := range withWords {
		if c.Carries(p, u) {
			all = all.Union(c.Words)
		}
	}
	return all
}

var (
	documents = having(func(c *Channel) bool { return c.File != nil })
	reserving = having(func(c *Channel) bool { return c.Switch != nil })
	withWords = having(func(c *Channel) bool { return !c.Words.IsEmpty() })
	groups    = append(having(func(c *Channel) bool { return c.Group != nil && c.Group.ByPath }),
		having(func(c *Channel) bool { return c.Group != nil && !c.Group.ByPath })...)
	words = func() (all robotsrule.Set) {
		for _, c := range withWords {
			all = all.Union(c.Words)
		}
		return all
	}()
)

func having(has func(*Channel) bool) (all []*Channel) {
	for _, c := range Table {
		if has(c) {
			all = append(all, c)
		}
	}
	return all
}
