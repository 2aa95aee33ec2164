// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// ControlKind is the place where a site uses a [Control]: robots.txt, page headers, or the operator's website.
type ControlKind string

// The kinds of controls.
const (
	ControlToken ControlKind = "token" // a group in robots.txt for a token that User-Agents do not contain
	ControlRule  ControlKind = "rule"  // a rule in X-Robots-Tag and robots meta tags
	ControlForm  ControlKind = "form"  // a setting on the operator's website
)

var controlKinds = []ControlKind{ControlToken, ControlRule, ControlForm}

// Control is a setting that an operator offers to sites, such as a meta tag, a control token or a switch on a website.
// A site uses it to disallow some usages of its pages, in addition to the rules for the operator's crawlers in
// robots.txt.
type Control struct {
	Operator string      `json:"operator"`
	Crawlers []string    `json:"crawlers"` // the crawlers that the control affects; the main crawler is first
	Kind     ControlKind `json:"kind"`
	Value    string      `json:"value"`          // the token, the rule, or where the setting is found
	Takes    []string    `json:"takes"`          // the usages that the control disallows
	Also     string      `json:"also,omitempty"` // the side effects, worded as the end of a sentence
	Docs     string      `json:"docs"`
	AsOf     string      `json:"as_of"` // the day when the row was last checked, as YYYY-MM-DD
}

// Controls returns the controls that operators document, in the order of the catalog.
func (c *Catalog) Controls() []Control { return slices.Clone(c.controls) }

// ControlsOf returns the controls that affect the crawler with the given token. If token is a control token, such as
// Google-Extended, ControlsOf also returns the control with this token as its value.
func (c *Catalog) ControlsOf(token string) (all []Control) {
	for _, x := range c.controls {
		if x.isFor(token) {
			all = append(all, x)
		}
	}
	return all
}

func (x *Control) isFor(token string) bool {
	return x.Kind == ControlToken && strings.EqualFold(x.Value, token) ||
		slices.ContainsFunc(x.Crawlers, func(name string) bool { return strings.EqualFold(name, token) })
}

// control parses one row of the controls section.
func (p *fileParser) control(key, value *yaml.Node) {
	x := Control{AsOf: p.asOf}
	p.fields(value, map[string]any{
		"operator": &x.Operator, "crawlers": &x.Crawlers, "kind": (*string)(&x.Kind), "value": &x.Value,
		"takes": &x.Takes, "also": &x.Also, "docs": &x.Docs, "as-of": &x.AsOf,
	})
	switch {
	case !slices.Contains(controlKinds, x.Kind):
		p.errorf(key, "%s: kind is %q; expected token, rule or form", key.Value, x.Kind)
	case x.Operator == "", x.Value == "", len(x.Crawlers) == 0, len(x.Takes) == 0:
		p.errorf(key, "%s: write each of the keys operator, value, crawlers and takes", key.Value)
	case !isWebAddress(x.Docs):
		p.errorf(key, "%s: invalid docs %q: must be a web address such as https://www.example.com/bot", key.Value, x.Docs)
	}
	if _, err := time.Parse(time.DateOnly, x.AsOf); err != nil {
		p.errorf(key, "%s: as-of is %q; expected a date such as 2026-11-21", key.Value, x.AsOf)
	}
	p.controls = append(p.controls, x)
}

// checkControls returns an error for each crawler or token that a control names, but that the catalog does not have.
func (c *Catalog) checkControls() (errs []error) {
	for _, x := range c.controls {
		for _, token := range x.Crawlers {
			if _, ok := c.Lookup(token); !ok {
				errs = append(errs, fmt.Errorf("controls: the crawler %s, named in a control of %s, is not in the catalog", token, x.Operator))
			}
		}
		if row, ok := c.Lookup(x.Value); x.Kind == ControlToken && (!ok || !row.RobotsOnly) {
			errs = append(errs, fmt.Errorf("controls: %s must be a token that has robots-only in the catalog", x.Value))
		}
	}
	return errs
}
