// SPDX-License-Identifier: Apache-2.0

// Package rsl publishes a policy's decisions about the use of content as an RSL document (Really Simple Licensing 1.0,
// Recommendation of 10 December 2025). RSL cannot address single crawlers. If the policy allows a usage for everyone,
// the document permits it without payment. If the policy disallows a usage for at least one crawler, the document
// prohibits the usage or offers it under the terms of the policy's rights section.
package rsl

import (
	"encoding/xml"
	"net/http"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
)

// MediaType is the media type of RSL documents.
const MediaType = "application/rsl+xml"

// DefaultPath is the path of the document if the policy does not set one.
const DefaultPath = "/license.xml"

// tokens are RSL's names for the usages of policy.RightsUsages (section 3.4.1.1).
var tokens = [...]string{"ai-train", "ai-input", "search"}

type document struct {
	XMLName xml.Name  `xml:"https://rslstandard.org/rsl rsl"`
	Content []content `xml:"content"`
}

type content struct {
	URL       string     `xml:"url,attr"`
	Licenses  []license  `xml:"license"`
	Copyright *copyright `xml:"copyright"`
	Terms     string     `xml:"terms,omitempty"`
}

type license struct {
	Permits   []typed   `xml:"permits"` // at most one of each type (section 3.5)
	Prohibits []typed   `xml:"prohibits"`
	Payments  []payment `xml:"payment"`
}

type typed struct {
	Type string `xml:"type,attr"`
	List string `xml:",chardata"` // the values, separated by spaces
}

type payment struct {
	Type   string  `xml:"type,attr"`
	Custom string  `xml:"custom,omitempty"`
	Amount *amount `xml:"amount"`
}

type amount struct {
	Currency string `xml:"currency,attr"`
	Decimal  string `xml:",chardata"`
}

type copyright struct {
	ContactEmail string `xml:"contactEmail,attr,omitempty"`
	ContactURL   string `xml:"contactUrl,attr,omitempty"`
	Name         string `xml:",chardata"`
}

// New returns the RSL document of a view, or nil if the view has no decision to state. exact is false if the document
// is stricter than the view.
func New(v *rights.View, r *policy.Rights) (d *rights.Document, exact bool) {
	cells, exact := v.Cells()
	var doc document
	for _, cell := range cells {
		verdicts := cell.Value.Verdicts()
		if !verdicts.Stated() {
			continue
		}
		doc.Content = append(doc.Content, content{
			URL: cell.Pattern.String(), Licenses: licenses(verdicts, r.Offers), Copyright: copyrightOf(r), Terms: r.Terms,
		})
	}
	if doc.Content == nil {
		return nil, exact
	}
	body, err := xml.MarshalIndent(&doc, "", "  ")
	if err != nil {
		panic("rsl: writing into memory: " + err.Error()) // impossible, because the document has only strings
	}
	return rights.NewDocument([]byte(xml.Header+string(body)+"\n"), MediaType), exact
}

// licenses returns the licenses for paths with the given verdicts: a license without payment, and a license for each
// offer whose usage is disallowed. If a license in RSL permits some usages, it implicitly prohibits all other usages.
// If a license only prohibits some usages, it does not restrict the other usages. Therefore a license with only
// prohibitions is returned only if no usage is permitted or offered.
func licenses(verdicts rights.Verdicts, offers []policy.Offer) (all []license) {
	var permitted, prohibited []string
	var offered []policy.Offer
	for i, u := range policy.RightsUsages() {
		switch verdicts[i] {
		case policy.Allowed:
			permitted = append(permitted, tokens[i])
		case policy.Disallowed:
			n := len(offered)
			for _, o := range offers {
				if o.Usage == u {
					offered = append(offered, o)
				}
			}
			if len(offered) == n {
				prohibited = append(prohibited, tokens[i])
			}
		case policy.Unstated:
		}
	}
	if len(permitted) > 0 || len(offered) == 0 {
		all = append(all, license{Permits: usages(permitted), Prohibits: usages(prohibited)})
	}
	for _, o := range offered {
		at := slices.Index(policyUsages, o.Usage)
		l := license{Permits: usages(tokens[at : at+1]), Prohibits: usages(prohibited), Payments: []payment{{Type: o.Payment, Custom: o.URL}}}
		if len(o.Users) > 0 {
			l.Permits = append(l.Permits, typed{"user", strings.Join(o.Users, " ")})
		}
		if o.Amount != "" {
			l.Payments[0].Amount = &amount{o.Currency, o.Amount}
		}
		all = append(all, l)
	}
	return all
}

// Describe describes the licenses that New would write for these verdicts and offers, for example for the output of a
// command.
func Describe(verdicts rights.Verdicts, offers []policy.Offer) string {
	var parts []string
	for _, l := range licenses(verdicts, offers) {
		for _, t := range l.Permits {
			var text strings.Builder
			text.WriteString("permits " + t.Type + " " + t.List)
			for _, p := range l.Payments {
				text.WriteString(" for " + p.Type)
			}
			parts = append(parts, text.String())
		}
		for _, t := range l.Prohibits {
			parts = append(parts, "prohibits "+t.Type+" "+t.List)
		}
	}
	if parts == nil {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

var policyUsages = func() []policy.Usage { u := policy.RightsUsages(); return u[:] }()

func usages(list []string) []typed {
	if len(list) == 0 {
		return nil
	}
	return []typed{{"usage", strings.Join(list, " ")}}
}

func copyrightOf(r *policy.Rights) *copyright {
	if r.Copyright == "" && r.Contact == "" {
		return nil
	}
	c := &copyright{Name: r.Copyright}
	if mail, ok := strings.CutPrefix(r.Contact, "mailto:"); ok {
		c.ContactEmail = mail
	} else {
		c.ContactURL = r.Contact
	}
	return c
}

// License is a Link field value that points to a license (RFC 8288, RSL 1.0).
type License string

// Link returns the License that points to target. target is a URL, or a path on the response's host.
func Link(target string) License {
	return License("<" + target + `>; rel="license"; type="` + MediaType + `"`)
}

// Apply adds the field to a response's header.
func (l License) Apply(h http.Header) { rights.AddLink(h, string(l)) }

// Tags returns nil, because a License has no meta tags.
func (l License) Tags() []rights.Tag { return nil }

// Restricts returns false, because the restrictions are in the license itself.
func (l License) Restricts() bool { return false }

func (l License) String() string { return string(l) }
