// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

func readControls(p *parser, n *yaml.Node, b *policy.Publish) {
	p.eachPair(n, "controls", func(key, value *yaml.Node) {
		rules := slices.DeleteFunc(p.catalog.ControlsOf(key.Value), func(x crawlers.Control) bool { return x.Kind != crawlers.ControlRule })
		if len(rules) == 0 {
			known := p.controlled()
			p.report(posOf(key), "bad-value", Nearest(key.Value, known), "%s has no control that headers can send; %s have one", quote(key.Value), english.List(known, "and"))
			return
		}
		if word, ok := p.choice(value, "the control of "+key.Value, rules[0].Value, policy.NoControl); ok {
			b.Controls = append(b.Controls, policy.ControlChoice{Crawler: key.Value, Value: word})
		}
	})
}

// controlled lists the crawlers for which headers can send a control.
func (p *parser) controlled() (tokens []string) {
	for _, x := range p.catalog.Controls() {
		if x.Kind == crawlers.ControlRule {
			tokens = append(tokens, x.Crawlers...)
		}
	}
	return tokens
}

// addControls adds what a catalog knows of the controls of a crawler's operator.
func addControls(c *policy.Crawler, catalog *crawlers.Catalog) {
	for _, x := range catalog.ControlsOf(c.Token) {
		switch {
		case x.Kind == crawlers.ControlToken && c.ControlsTraining:
			c.Main = x.Crawlers[0]
		case x.Kind == crawlers.ControlRule:
			c.Control = &policy.Control{Rules: robotsrule.Of(x.Value)}
			for _, name := range x.Takes {
				if u, ok := policy.ParseUsage(name); ok {
					c.Control.Takes = append(c.Control.Takes, u)
				}
			}
		}
	}
}
