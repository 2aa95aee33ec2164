// SPDX-License-Identifier: Apache-2.0

// Package channels is the table of everything that carries a policy outward and has a name of its own. Serving, explain,
// check, init and the console go through the table, so that no other package needs to know a channel by name.
//
// A channel is one row and the package that knows its format. The row has the parts of that format: lines or records in
// robots.txt, words, fields and meta tags, a document.
package channels

import (
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// Channel is a row of the table.
type Channel struct {
	Name     string // as people know it
	Key      string // the setting under publish; "" if rules alone decide
	Document string // the specification, with its date
	Readers  string // who is known to read it

	// ForEveryone tells that it cannot exempt a crawler.
	ForEveryone bool
	// On reports whether a policy publishes anything in it.
	On func(*policy.Publish) bool
	// Carries reports whether a policy publishes its decisions about a usage of policy.RightsUsages in it. If it is nil, none is.
	Carries func(*policy.Publish, policy.Usage) bool
	// Switch switches it on or off in a policy where rights are reserved; nil if it does not reserve rights.
	Switch func(*policy.Publish)
	// Where says where a reservation is read, for Switch.
	Where string

	Vocabulary *rights.Vocabulary // of its field, or nil
	Group      *Group             // lines in the groups of robots.txt, or nil
	Records    *Records           // records after the groups of robots.txt, or nil
	Words      robotsrule.Set     // in headers and meta tags, for the usages that it carries
	Page       *Page              // fields and meta tags, or nil
	File       *File              // a document, or nil

	// Says returns what the channel tells everyone about a page. If it is nil, the other parts tell.
	Says func(Question) []string
}

// Group is the lines of a channel in the groups of robots.txt.
type Group struct {
	Field  string // the name of its lines
	ByPath bool   // a line can be for a path, and the longest decides
	Lines  func(*rights.Client) ([]policy.Line, []policy.Problem)
	// StrictLine returns the value of one line for every path, of what is disallowed for any. If it is nil, the lines of
	// several groups are combined by path.
	StrictLine func(*rights.Client) string
	// Named is the hint for lines that are only in groups of named crawlers. It has no text if nothing is wrong with that.
	Named Hint
	// Reasons yields what the lines say about a query's host and path, and where that comes from; nil if the decisions say it.
	Reasons func(*policy.Policy, policy.Query, func(r *policy.Rule, at policy.Pos, says string))
	// Values are texts that decisions do not say, or nil.
	Values *Values
}

// Hint is a diagnostic of a channel.
type Hint struct{ Code, Text string }

// Values are the texts that policies differ in, next to decisions.
type Values struct {
	Names    func(*policy.Policy) []string
	Patterns func(*policy.Rule) []pathpattern.Pattern
	Value    func(p *policy.Policy, q policy.Query, name string) string
}

// Records are the records of a channel after the groups of robots.txt.
type Records struct {
	First string // line of a file that has records
	EOL   string // the ends of lines of such a file
	New   func(*policy.Policy) RecordWriter
	// All reports whether they carry every usage.
	All func(*policy.Publish) bool
	// Explain returns the records of a robots.txt that apply to a query, and where their readers get another answer.
	Explain func(p *policy.Policy, file string, q policy.Query) (sends, differs []string)
	// SwitchOn is the line under publish that switches the channel on.
	SwitchOn string
}

// RecordWriter writes the records of a policy.
type RecordWriter interface {
	// Write returns the records of a host, or nil if there is none.
	Write(host string) ([]policy.Line, []policy.Problem)
}

// Page is the fields and meta tags of a channel.
type Page struct {
	Fields []string // their names
	// License tells that they name a license, which a response with status 402 has, too.
	License bool
	// Declare returns what is declared about a page, or nil. Channel.Declare asks it.
	Declare func(Question) rights.Declared
}

// File is a document of a channel, which is published on each host.
type File struct {
	Name string                       // in the history
	Path func(*policy.Publish) string // "" if it is not published
	// Field is the name of the line of robots.txt that names the document, or "" if there is none.
	Field string
	// New returns the document of a host, nil if it says nothing.
	New func(v *rights.View, spec *policy.Spec) *rights.Document
	// Site reads a site's own document, which New's is merged with; nil if that is not done.
	Site *Site
}

// Site reads a site's own document.
type Site struct {
	Path     string
	Type     string // media type
	IsLikely func(body []byte) bool
	// Parse returns the document, which is empty where err is not nil, and notes on what is unusual about it.
	Parse func([]byte) (doc rights.SiteDocument, notes []string, err error)
}

// Question names a page, with what channels need to know about it.
type Question struct {
	Spec     *policy.Spec
	Everyone func() rights.Verdicts // the statements for everyone about the page
	Document *rights.Document       // the channel's document on the page's host, or nil
	Declared rights.Declared        // for Says: what Page declares, or nil
}

// Declare returns what a channel with a Page declares about a page, or nil. If the policy does not publish the channel, that
// is what it disallows, for responses and pages in which the site itself says something in the channel; published is false.
func (c *Channel) Declare(x Question) (d rights.Declared, published bool) {
	if d = c.Page.Declare(x); d != nil || c.Switch == nil || c.On(&x.Spec.Publish) {
		return d, true
	}
	on := policy.Spec{Publish: x.Spec.Publish} // without terms, because these would be published
	c.Switch(&on.Publish)
	x.Spec = &on
	if d = c.Page.Declare(x); d == nil || !d.Restricts() {
		return nil, false
	}
	return d, false
}

// Published reports whether any channel states what a policy decides about a usage of policy.RightsUsages.
func Published(p *policy.Publish, u policy.Usage) bool {
	return slices.ContainsFunc(Table, func(c *Channel) bool { return c.Carries != nil && c.Carries(p, u) })
}

// CarriesAll reports whether some channel carries every usage of a policy to every crawler.
func CarriesAll(p *policy.Publish) bool {
	return slices.ContainsFunc(Table, func(c *Channel) bool { return c.Records != nil && c.Records.All(p) })
}

// At returns the channel whose document is published at a path, or nil.
func At(p *policy.Publish, path string) *Channel {
	for _, c := range documents {
		if at := c.File.Path(p); at != "" && at == path {
			return c
		}
	}
	return nil
}

// Only returns the channel that alone expresses requests, references to other records, purposes, the usage other, and
// qualifiers that search engines have no rules for.
func Only() *Channel { return &records }

// Documents returns the channels that publish documents.
func Documents() []*Channel { return documents }

// Groups returns the channels that have lines in the groups of robots.txt, in the order of the lines.
func Groups() []*Channel { return groups }

// Reserving returns the channels that reserve rights in a form for programs.
func Reserving() []*Channel { return reserving }

// Words returns the words of all channels.
func Words() robotsrule.Set { return words }

// WordsFor returns the words that disallow a usage in headers and meta tags, as far as a policy publishes them.
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
