// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

var controlWords = []string{"off", "auto"}

func readControls(p *parser, n *yaml.Node, b *policy.Publish) {
	if n.Kind != yaml.MappingNode {
		word, _ := p.choice(n, "controls", controlWords...)
		b.Controls = switchWords[word]
		return
	}
	p.eachPair(n, "controls", func(key, value *yaml.Node) {
		words := controlValues(key.Value, p.catalog.ControlsOf(key.Value))
		if len(words) == 0 {
			known := p.controlled()
			p.report(posOf(key), "bad-value", Nearest(key.Value, known), "the operator of %s offers no control against AI; such controls exist for %s", quote(key.Value), english.List(known, "and"))
			return
		}
		if word, ok := p.choice(value, "the control of "+key.Value, words...); ok {
			b.ControlChoices = append(b.ControlChoices, policy.ControlChoice{Crawler: key.Value, Value: word})
		}
	})
}

// controlValues returns the valid values for a key under "controls". The key is a control token, or a crawler whose
// operator documents a rule that serves as a control (crawlers.ControlRule). For other names, controlValues returns
// nil.
func controlValues(token string, controls []crawlers.Control) (words []string) {
	for _, x := range controls {
		switch {
		case x.Kind == crawlers.ControlRule:
			return []string{x.Value, policy.NoControl}
		case x.Kind == crawlers.ControlToken && strings.EqualFold(x.Value, token):
			return []string{policy.NoControl}
		}
	}
	return nil
}

func printControls(w *printer, b *policy.Publish) {
	switch {
	case b.Controls == policy.Off:
		w.plain("controls", "off")
	case len(b.ControlChoices) > 0:
		w.under("controls", func() {
			for _, c := range b.ControlChoices {
				w.plain(Scalar(c.Crawler), c.Value)
			}
		})
	}
}

// controlled returns the crawlers and tokens that are valid keys under "controls".
func (p *parser) controlled() (tokens []string) {
	for _, x := range p.catalog.Controls() {
		switch x.Kind {
		case crawlers.ControlRule:
			tokens = append(tokens, x.Crawlers...)
		case crawlers.ControlToken:
			tokens = append(tokens, x.Value)
		case crawlers.ControlForm:
		}
	}
	return tokens
}

// addControls sets the fields of c that depend on the controls of its operator in the catalog.
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
